"""The RayService controller: looks, plans, acts, writes the status down, and hands Serve what it is to run."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from eagleray.dashboard.orders import Owner
from eagleray.dashboard.poller import Poller
from eagleray.dashboard.questions import HealthOf, Question, ServeOf
from eagleray.kube.resources import RAY_SERVICES, Key
from eagleray.kube.writer import Writer
from eagleray.manifests.rayservice import RayService
from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.rayservice.caches import Caches
from eagleray.rayservice.clusters import plan_dangling
from eagleray.rayservice.deletion import plan_end
from eagleray.rayservice.handovers import Handovers
from eagleray.rayservice.look import READY, SUSPENDED, Config, Decision, Look, Seen, soonest
from eagleray.rayservice.planning import plan
from eagleray.rayservice.serving import is_ready, questions
from eagleray.rayservice.status import is_urgent, needs_write, rejected_status
from eagleray.rayservice.timeouts import is_timed_out
from eagleray.runtime.acting import Acting, ActionFailed
from eagleray.runtime.actions import Stage, described
from eagleray.runtime.events import Recorder
from eagleray.runtime.gathering import Gathering
from eagleray.runtime.outcomes import Again, Done, Failed, Outcome, Rejected, step
from kubewire import mergepatch
from kubewire.sources import Clock, Entropy
from kubewire.times import format_time

Object = dict[str, Any]

NAME = "rayservice"
MANAGER = "ray.io/kuberay-operator"

# A service that waits is looked at again from time to time, in case the event that it waits for was missed.
RECHECK_SECONDS = 300.0
# News that can wait are gathered for so long before the next status is written, and longer while a service starts:
# everybody waits for its being ready then, which is told at once.
STATUS_PAUSE = 1.0
STARTING_PAUSE = 3.0
# Each look that changes something is followed by another one; a handful leads to rest, and more would be a loop.
_MOST_LOOKS = 24
_AFTER_A_LOOP = 10.0


class NoEffect(OSError):
    """What was done is to be done again at once, because it is not seen."""


class _Judged(NamedTuple):
    """What a verdict on a service depends on."""

    generation: int
    annotations: dict[str, str]


class RayServices:
    """Runs what RayServices describe. `reconcile` is one pass over one of them; it never waits for Ray."""

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
    ) -> None:
        self._caches = caches
        self._poller = poller
        self._writer = writer
        self._events = events
        self._acting = Acting(writer, events)
        self._handovers = Handovers(poller, events)
        self._config = config
        self._rules = ValidationConfig(config.settings.gates)
        self._clock = clock
        self._entropy = entropy
        self._followed: dict[Key, tuple[Question, ...]] = {}
        self._news = Gathering(clock)

    def find(self, key: Key) -> Object | None:
        """Return the RayService of a key as it is known."""
        return self._caches.rayservices.get(key)

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a RayService: look, act and write down what there is, until nothing changes any more."""
        owner = Owner("RayService", key)
        judged: _Judged | None = None
        done: Sequence[Stage] = ()
        for _ in range(_MOST_LOOKS):
            obj = self._caches.rayservices.get(key)
            service = RayService(obj) if obj is not None else None
            if service is None or service.spec.get("managedBy") not in (None, MANAGER):
                self._forget(owner)
                return Done()
            look = self._look(service, owner)
            if look.service.metadata.get("deletionTimestamp"):
                return await self._end(look, owner)
            facts = _Judged(service.generation, service.annotations)
            if judged != facts:
                problem = self._problem(look)
                if problem is not None:
                    return await self._reject(look, problem)
                judged = facts
            decision = plan(look)
            failure = await self._act(look, decision.stages)
            pause = self._pause_for_news(service, decision.status)
            is_stored = pause is None and await self._store(service, decision.status)
            if decision.acts and not is_stored and decision.stages == done:
                failure = failure or _no_effect(done)
            done = decision.stages
            if failure is not None or not (decision.acts or is_stored):
                return await self._rest(look, decision, failure, pause, owner)
        return Again(_AFTER_A_LOOP)

    # --- looking

    def _look(self, service: RayService, owner: Owner) -> Look:
        caches = self._caches
        names = (service.active.name, service.pending.name)
        self._handovers.collect(owner, service.obj, names)
        services = caches.services_of(service)
        look = Look(
            service,
            self._clock.now(),
            self._entropy,
            self._config,
            active=self._seen(service, service.active.name, owner),
            pending=self._seen(service, service.pending.name, owner),
            clusters=caches.clusters.owned_by(service.uid),
            services=services,
            slices=caches.slices_of(service, list(services)),
            gateway=caches.gateway_of(service),
            route=caches.route_of(service),
        )
        return self._with_answers(look, owner)

    def _seen(self, service: RayService, name: str, owner: Owner) -> Seen:
        obj = self._caches.cluster_of(service, name)
        if obj is None:
            return Seen()
        return Seen(
            obj,
            self._caches.heads_of(obj),
            put=self._handovers.put(owner, name),
            put_failure=self._handovers.failure(owner, name, service.serve_config),
            is_put_open=self._handovers.is_open(owner, name),
            takes_requests=self._caches.takes_requests(obj),
        )

    def _with_answers(self, look: Look, owner: Owner) -> Look:
        """Return a look with what Ray says of both clusters; from now on changes of that wake the service."""
        is_over = look.service.metadata.get("deletionTimestamp")
        wanted = [() if is_over else tuple(questions(look, seen)) for seen in (look.active, look.pending)]
        both = wanted[0] + wanted[1]
        for question in self._followed.get(owner.key, ()):
            if question not in both:
                self._poller.unfollow(owner, question)
        if both:
            self._followed[owner.key] = both
        else:
            self._followed.pop(owner.key, None)
        return look._replace(
            active=self._answered(look, look.active, wanted[0], owner),
            pending=self._answered(look, look.pending, wanted[1], owner),
        )

    def _answered(self, look: Look, seen: Seen, asked: Sequence[Question], owner: Owner) -> Seen:
        """Return what is seen of a cluster with what Ray on it says."""
        for question in asked:
            if isinstance(question, ServeOf):
                seen = seen._replace(serve=self._poller.follow(owner, question))
            elif isinstance(question, HealthOf):
                # The proxy was asked in vain for as long as the head took to start; with applications it is there.
                is_expected = is_ready(look, seen)
                seen = seen._replace(health=self._poller.follow(owner, question, is_expected=is_expected))
        details = seen.serve.serve if seen.serve is not None else None
        if seen.put is None and details is not None and details.configuration:
            # Only an operator that was just started has to ask the cluster what it was handed.
            seen = seen._replace(deployed=msgspec.json.decode(details.configuration))
        return seen

    def _problem(self, look: Look) -> Problem | None:
        """Return what is wrong with a service; one that runs is only warned of a rule that the reference has not."""
        service = look.service
        for problem in problems_of(service.obj, self._rules):
            if problem.severity != "error":
                continue
            if not problem.stricter or look.active.obj is None:
                return problem
            if service.generation != service.status.get("observedGeneration"):
                note = f"RayService spec warning {service.place}: {problem}"
                self._events.warning(service.obj, "InvalidRayServiceSpec", "Validate", note)
        return None

    # --- acting

    async def _act(self, look: Look, stages: Sequence[Stage]) -> Exception | None:
        """Carry out the stages of a plan; return how it failed if it did."""
        try:
            await self._acting.act(look.service.obj, stages)
        except ActionFailed as failed:
            return failed.cause
        return None

    async def _rest(
        self, look: Look, decision: Decision, failure: Exception | None, pause: float | None, owner: Owner
    ) -> Outcome:
        """Hand Serve what it is to run, and say when to look again."""
        waits = [self._handovers.give(owner, handover, look.now) for handover in decision.handovers]
        again = soonest(decision.again, *waits, pause, None if _is_at_rest(look) else RECHECK_SECONDS)
        if failure is None and decision.complaint is not None:
            failure = await self._act(look, (decision.complaint,))
        if failure is not None:
            return Failed(failure, again)
        return Done() if again is None else Again(again)

    async def _end(self, look: Look, owner: Owner) -> Outcome:
        self._forget(owner)
        decision = plan_end(look)
        failure = await self._act(look, decision.stages)
        if failure is not None:
            return Failed(failure)
        return Again(RECHECK_SECONDS) if look.clusters else Done()

    async def _reject(self, look: Look, problem: Problem) -> Outcome:
        """Tell what is wrong, and leave what runs alone; clusters without use go when they are due."""
        service = look.service
        kind = "Metadata" if problem.rule.startswith("rayservice-m") else "Spec"
        message = f"The RayService {kind.lower()} is invalid: {problem}"
        reason, note = f"InvalidRayService{kind}", f"{service.place}: {message}"
        farewell = plan_dangling(look)
        failure = await self._act(look, farewell.stages)
        await self._store(service, rejected_status(service, message, look.now))
        if failure is None and farewell.again is None:
            return Rejected(reason, note)
        self._events.warning(service.obj, reason, "Validate", note)
        return Failed(failure, farewell.again) if failure is not None else Again(farewell.again or 0.0)

    # --- status

    def _pause_for_news(self, service: RayService, status: Object | None) -> float | None:
        """Return how many seconds a status has yet to wait in case there is more to tell; None if it does not."""
        old = service.status
        if status is not None and needs_write(old, status) and not is_urgent(old, status):
            pause = STATUS_PAUSE if service.active.name else STARTING_PAUSE
            if (left := self._news.left(Key(service.namespace, service.name), pause)) > 0:
                return left
        self._news.told(Key(service.namespace, service.name))
        return None

    async def _store(self, service: RayService, status: Object | None) -> bool:
        """Write a status if it differs from the one that the service has by now; return whether it did."""
        key = (service.namespace, service.name)
        current, ref = self._caches.rayservices.get(key), self._caches.rayservices.ref(key)
        if status is None or current is None or ref is None or ref.uid != service.uid:
            return False
        old = current.get("status") or {}
        if not needs_write(old, status):
            return False
        stamped = {**status, "lastUpdateTime": format_time(self._clock.now())}
        with step("status"):
            await self._writer.patch_status(RAY_SERVICES, ref, mergepatch.create(old, stamped))
        return True

    def _forget(self, owner: Owner) -> None:
        self._poller.forget(owner)
        self._handovers.forget(owner)
        self._followed.pop(owner.key, None)
        self._news.told(owner.key)


def _no_effect(stages: Sequence[Stage]) -> NoEffect:
    """Return a failure that names what was done in vain: a Service without the labels that we gave it is not seen."""
    return NoEffect(
        f"{'; '.join(described(stages))}: it has no effect; does it carry the labels that it was made with?"
    )


def _is_at_rest(look: Look) -> bool:
    """Tell whether nothing is waited for: what is there may go on like this for ever."""
    if look.is_true(SUSPENDED) or is_timed_out(look):
        return True
    return look.is_true(READY) and not look.service.pending.name
