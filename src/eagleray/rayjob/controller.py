"""The RayJob controller: looks, decides by the table of states, acts, and writes the status down."""

import logging
from typing import Any

from eagleray.dashboard.orders import Owner
from eagleray.dashboard.poller import Poller
from eagleray.dashboard.questions import JobOf, Observation, Question, SessionOf
from eagleray.kube.resources import RAY_JOBS, Key
from eagleray.kube.writer import Writer
from eagleray.manifests.rayjob import RayJob
from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.rayjob.caches import Caches
from eagleray.rayjob.deletion import plan_end, stop_id
from eagleray.rayjob.look import Config, Decision, Look
from eagleray.rayjob.metrics import JobMetrics
from eagleray.rayjob.states import decide, next_deadline
from eagleray.rayjob.status import TERMINAL, next_status, rejected_status
from eagleray.rayjob.submitting import order_id, questions
from eagleray.runtime.acting import Acting, ActionFailed
from eagleray.runtime.events import Recorder
from eagleray.runtime.outcomes import Again, Done, Rejected, step
from eagleray.runtime.outcomes import Outcome as PassOutcome
from kubewire import mergepatch
from kubewire.sources import Clock, Entropy

Object = dict[str, Any]

log = logging.getLogger(__name__)

NAME = "rayjob"
MANAGER = "ray.io/kuberay-operator"

# A state that waits is looked at again from time to time, in case the event that it waits for was missed.
RECHECK_SECONDS = 300.0
# From New to Running there are a handful of steps; more in one pass would be a loop.
_MOST_STEPS = 12


class RayJobs:
    """Runs what RayJobs describe. `reconcile` is one pass over one of them; it never waits for Ray."""

    def __init__(
        self,
        caches: Caches,
        poller: Poller,
        writer: Writer,
        events: Recorder,
        config: Config,
        *,
        clock: Clock,
        entropy: Entropy,
        metrics: JobMetrics | None = None,
    ) -> None:
        self._caches = caches
        self._poller = poller
        self._writer = writer
        self._acting = Acting(writer, events)
        self._events = events
        self._config = config
        self._rules = ValidationConfig(config.settings.gates)
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self._followed: dict[Key, frozenset[Question]] = {}

    def find(self, key: Key) -> Object | None:
        """Return the RayJob of a key as it is known."""
        return self._caches.jobs.get(key)

    async def reconcile(self, key: Key) -> PassOutcome:
        """Make one pass over a RayJob."""
        owner = Owner("RayJob", key)
        for _ in range(_MOST_STEPS):
            obj = self._caches.jobs.get(key)
            if obj is None:
                self._forget(owner)
                return Done()
            job = RayJob(obj)
            if job.spec.get("managedBy") not in (None, MANAGER):
                self._forget(owner)
                return Done()
            look = self._look(job, owner)
            if job.metadata.get("deletionTimestamp"):
                return await self._end(look, owner)
            problem = self._problem(job)
            if problem is not None:
                return await self._reject(look, problem)
            decision = decide(look)
            await self._follow_through(look, decision, owner)
            if decision.is_idle:
                return self._again(look, decision)
        return Again(0)

    # --- looking

    def _look(self, job: RayJob, owner: Owner) -> Look:
        key = (job.namespace, job.cluster_name)
        look = Look(
            job,
            self._clock.now(),
            self._entropy,
            self._config,
            cluster=self._caches.clusters.get(key) if job.cluster_name else None,
            submitter=self._caches.submitter_of(job),
            service=self._caches.services.get((job.namespace, f"{job.name}-head-svc")),
            heads=self._caches.heads_of(job) if job.cluster_name else (),
        )
        answers = self._asked(owner, frozenset(questions(look)))
        info = next((found for asked, found in answers.items() if isinstance(asked, JobOf)), None)
        session = next((found for asked, found in answers.items() if isinstance(asked, SessionOf)), None)
        return look._replace(info=info, session=session, outcome=self._poller.outcome(owner, order_id(look)))

    def _asked(self, owner: Owner, wanted: frozenset[Question]) -> dict[Question, Observation | None]:
        """Return what is known about these questions; from now on changes of the answers wake the job."""
        for question in self._followed.get(owner.key, frozenset()) - wanted:
            self._poller.unfollow(owner, question)
        if wanted:
            self._followed[owner.key] = wanted
        else:
            self._followed.pop(owner.key, None)
        return {question: self._poller.follow(owner, question) for question in wanted}

    def _problem(self, job: RayJob) -> Problem | None:
        found = problems_of(job.obj, self._rules)
        return next((problem for problem in found if problem.severity == "error"), None)

    # --- acting

    async def _follow_through(self, look: Look, decision: Decision, owner: Owner) -> None:
        """Carry a decision out: actions, then the status, then what Ray is asked to do."""
        try:
            await self._acting.act(look.job.obj, decision.stages)
        except ActionFailed as failed:
            # What the job waits for is told even if the step that would end the wait has failed.
            await self._write(look, Decision(cause=decision.cause))
            raise failed.cause from failed
        await self._write(look, decision)
        for order in decision.orders:
            self._poller.order(owner, order, again=True)
        if decision.hurries:
            self._poller.hurry(owner)

    async def _end(self, look: Look, owner: Owner) -> PassOutcome:
        decision = plan_end(look, self._poller.outcome(owner, stop_id(look)))
        for order in decision.orders:
            self._poller.order(owner, order, again=True)
        try:
            await self._acting.act(look.job.obj, decision.stages)
        except ActionFailed as failed:
            raise failed.cause from failed
        if decision.again is None:
            self._forget(owner)
            return Done()
        return Again(decision.again)

    async def _reject(self, look: Look, problem: Problem) -> PassOutcome:
        job = look.job
        part = problem.rule.partition("-")[2][0] if problem.rule.startswith("rayjob-") else "v"
        kind = {"m": "Metadata", "s": "Status"}.get(part, "Spec")
        message = f"The RayJob {kind.lower()} is invalid: {problem}"
        await self._patch(job, rejected_status(job, message, look.now))
        return Rejected(f"InvalidRayJob{kind}", f"{job.place}: {message}")

    # --- status

    async def _write(self, look: Look, decision: Decision) -> None:
        status = next_status(look, decision)
        await self._patch(look.job, status)
        if self._metrics is not None:
            self._metrics.wrote(look.job, status, look.now)

    async def _patch(self, job: RayJob, status: Object) -> None:
        """Write a status if it differs from the one that the job has by now."""
        key = (job.namespace, job.name)
        current = self._caches.jobs.get(key)
        ref = self._caches.jobs.ref(key)
        if current is None or ref is None or ref.uid != job.uid:
            return
        change = mergepatch.create(current.get("status") or {}, status)
        if change:
            with step("status"):
                await self._writer.patch_status(RAY_JOBS, ref, change)

    def _again(self, look: Look, decision: Decision) -> PassOutcome:
        waits = [decision.again, next_deadline(look)]
        due = [seconds for seconds in waits if seconds is not None]
        if look.job.state in (*TERMINAL, "Suspended") and not due:
            return Done()
        return Again(min([RECHECK_SECONDS, *due]))

    def _forget(self, owner: Owner) -> None:
        self._poller.forget(owner)
        self._followed.pop(owner.key, None)
        if self._metrics is not None:
            self._metrics.gone(owner.key)
