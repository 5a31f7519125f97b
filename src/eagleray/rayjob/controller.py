"""The RayJob controller: looks, decides by the table of states, acts, and writes the status down."""

import logging
from typing import Any, NamedTuple

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
# From New to Running there are a handful of steps, each with a look before and after; more would be a loop.
_MOST_STEPS = 16


class Draft(NamedTuple):
    """A status that a job is to have, and the job that it was decided for."""

    job: RayJob
    status: Object

    def over(self, obj: Object) -> RayJob:
        """Return a stored job as if it had this status; one that only has the name of ours is left as it is."""
        return RayJob({**obj, "status": self.status} if obj["metadata"]["uid"] == self.job.uid else obj)


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
        self._followed: dict[Key, tuple[Question, ...]] = {}

    def find(self, key: Key) -> Object | None:
        """Return the RayJob of a key as it is known."""
        return self._caches.jobs.get(key)

    async def reconcile(self, key: Key) -> PassOutcome:
        """Make one pass over a RayJob.

        A new state is stored at once. Whatever else is decided is drafted, and stored when the pass has come to rest
        or before anything is done: nothing must happen before what it follows from is on record.
        """
        owner = Owner("RayJob", key)
        draft: Draft | None = None
        valid_generation = 0
        for _ in range(_MOST_STEPS):
            obj = self._caches.jobs.get(key)
            if obj is None:
                self._forget(owner)
                return Done()
            job = RayJob(obj) if draft is None else draft.over(obj)
            if job.spec.get("managedBy") not in (None, MANAGER):
                self._forget(owner)
                return Done()
            look = self._look(job, owner)
            if job.metadata.get("deletionTimestamp"):
                return await self._end(look, owner)
            if job.generation != valid_generation:
                problem = self._problem(job)
                if problem is not None:
                    return await self._reject(look, problem)
                valid_generation = job.generation
            decision = decide(look)
            if draft is not None and decision.acts:
                await self._store(draft)
                draft = None
                continue
            is_done = await self._act(look, decision)
            draft = Draft(job, next_status(look, decision))
            if decision.is_idle or decision.orders or not is_done:
                return await self._rest(look, decision, draft, owner)
            if decision.to is not None:
                await self._store(draft)
                draft = None
        if draft is not None:
            await self._store(draft)
        return Again(0)

    # --- looking

    def _look(self, job: RayJob, owner: Owner) -> Look:
        key = (job.namespace, job.cluster_name)
        pods = self._caches.pods_of(job) if job.cluster_name else []
        look = Look(
            job,
            self._clock.now(),
            self._entropy,
            self._config,
            cluster=self._caches.clusters.get(key) if job.cluster_name else None,
            submitter=self._caches.submitter_of(job),
            service=self._caches.services.get((job.namespace, f"{job.name}-head-svc")),
            heads=[pod for pod in pods if pod.is_head],
            pods=pods,
        )
        answers = self._asked(owner, tuple(questions(look)))
        info = next((found for asked, found in answers.items() if isinstance(asked, JobOf)), None)
        session = next((found for asked, found in answers.items() if isinstance(asked, SessionOf)), None)
        return look._replace(info=info, session=session, outcome=self._poller.outcome(owner, order_id(look)))

    def _asked(self, owner: Owner, wanted: tuple[Question, ...]) -> dict[Question, Observation | None]:
        """Return what is known about these questions; from now on changes of the answers wake the job."""
        for question in self._followed.get(owner.key, ()):
            if question not in wanted:
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

    async def _act(self, look: Look, decision: Decision) -> bool:
        """Carry out the actions of a decision; False if a part was given up."""
        try:
            return await self._acting.act(look.job.obj, decision.stages)
        except ActionFailed as failed:
            # What the job waits for is told even if the step that would end the wait has failed.
            await self._store(Draft(look.job, next_status(look, Decision(cause=decision.cause))))
            raise failed.cause from failed

    async def _rest(self, look: Look, decision: Decision, draft: Draft, owner: Owner) -> PassOutcome:
        """Store what a pass has come to, and only then ask of Ray what follows from it."""
        if not decision.is_brief:
            await self._store(draft)
        for order in decision.orders:
            self._poller.order(owner, order, again=True)
        if decision.hurries:
            self._poller.hurry(owner)
        return self._again(look, decision)

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
        await self._store(Draft(job, rejected_status(job, message, look.now)))
        return Rejected(f"InvalidRayJob{kind}", f"{job.place}: {message}")

    # --- status

    async def _store(self, draft: Draft) -> None:
        """Write a status if it differs from the one that the job has by now."""
        key = (draft.job.namespace, draft.job.name)
        current = self._caches.jobs.get(key)
        ref = self._caches.jobs.ref(key)
        if current is None or ref is None or ref.uid != draft.job.uid:
            return
        change = mergepatch.create(current.get("status") or {}, draft.status)
        if change:
            with step("status"):
                await self._writer.patch_status(RAY_JOBS, ref, change)
        if self._metrics is not None:
            self._metrics.wrote(RayJob(current), draft.status, self._clock.now())

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
