"""The RayCronJob controller: looks, runs the tick that is due, writes the status, and clears what is not kept."""

from typing import Any, NamedTuple

from eagleray.kube.resources import RAY_CRON_JOBS, Key
from eagleray.kube.writer import Writer
from eagleray.manifests.raycronjob import RayCronJob
from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.raycronjob.caches import Caches
from eagleray.raycronjob.history import surplus
from eagleray.raycronjob.look import Look, look_at
from eagleray.raycronjob.planning import Plan, Standing, plan
from eagleray.raycronjob.status import next_status
from eagleray.runtime.acting import Acting, ActionFailed
from eagleray.runtime.events import Recorder
from eagleray.runtime.outcomes import Again, Done, Failed, Outcome, Rejected, step
from kubewire import errors, mergepatch
from kubewire.sources import Clock

Object = dict[str, Any]

NAME = "raycronjob"

# The time of day can be set, and stands still while a machine sleeps, which no timer notices. So nobody waits
# for a tick any longer than this before the clock is read again.
RECHECK_SECONDS = 60.0


class _Judged(NamedTuple):
    """What the rules say of one generation of an object."""

    uid: str
    generation: int
    problem: Problem | None


class RayCronJobs:
    """Makes RayJobs when schedules are due. `reconcile` is one pass over one RayCronJob.

    A tick is run by creating a RayJob whose name the tick decides, and then written down. Whatever happens in
    between, the next pass finds the RayJob, so that no tick is run twice. Ended RayJobs are cleared away only after
    that, so that there is always a trace of the latest run.
    """

    def __init__(
        self, caches: Caches, writer: Writer, events: Recorder, rules: ValidationConfig, *, clock: Clock
    ) -> None:
        self._caches = caches
        self._writer = writer
        self._acting = Acting(writer, events)
        self._rules = rules
        self._clock = clock
        self._judged: dict[Key, _Judged] = {}

    def find(self, key: Key) -> Object | None:
        """Return the RayCronJob of a key as it is known."""
        return self._caches.crons.get(key)

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a RayCronJob."""
        obj = self._caches.crons.get(key)
        if obj is None:
            self._judged.pop(key, None)
            return Done()
        if obj["metadata"].get("deletionTimestamp"):
            return Done()
        look = self._look(key, RayCronJob(obj))
        made = plan(look)
        try:
            await self._pursue(look, made)
        except (errors.ApiError, OSError) as refusal:
            return Failed(refusal, self._seconds_until_next(made))
        if look.problem is not None:
            return Rejected("InvalidRayCronJobSpec", f"{look.cron.place}: {look.problem}")
        wait = self._seconds_until_next(made)
        return Done() if wait is None else Again(min(wait, RECHECK_SECONDS))

    def _look(self, key: Key, cron: RayCronJob) -> Look:
        jobs = self._caches.children_of(cron.uid)
        return look_at(cron, jobs, self._clock.now(), self._problem(key, cron))

    def _problem(self, key: Key, cron: RayCronJob) -> Problem | None:
        """Return the first rule that is broken. Each generation is judged once: the clock brings us here often."""
        known = self._judged.get(key)
        if known is None or (known.uid, known.generation) != (cron.uid, cron.generation):
            found = problems_of(cron.obj, self._rules)
            first = next((problem for problem in found if problem.severity == "error"), None)
            known = self._judged[key] = _Judged(cron.uid, cron.generation, first)
        return known.problem

    async def _pursue(self, look: Look, made: Plan) -> None:
        """Run the tick, write down how the schedule stands, whether it could be run or not, and clear away."""
        try:
            await self._acting.act(look.cron.obj, made.stages)
        except ActionFailed as failed:
            not_run = Standing(False, failed.mark, str(failed.cause))
            await self._write(look.cron, Plan(not_run))
            raise failed.cause from failed
        await self._write(look.cron, made)
        try:
            await self._acting.act(look.cron.obj, (surplus(look),))
        except ActionFailed as failed:
            raise failed.cause from failed

    async def _write(self, cron: RayCronJob, made: Plan) -> None:
        """Write down how the schedule stands, with the children as they are by now, if that is news."""
        key = Key(cron.namespace, cron.name)
        current, ref = self._caches.crons.get(key), self._caches.crons.ref(key)
        if current is None or ref is None or ref.uid != cron.uid:
            return
        now = self._clock.now()
        active = look_at(cron, self._caches.children_of(cron.uid), now).active
        status = next_status(cron, active, made.standing, made.tick, now)
        if change := mergepatch.create(current.get("status") or {}, status):
            with step("status"):
                await self._writer.patch_status(RAY_CRON_JOBS, ref, change)

    def _seconds_until_next(self, made: Plan) -> float | None:
        if made.next is None:
            return None
        return max(0.0, (made.next - self._clock.now()).total_seconds())
