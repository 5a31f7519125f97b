"""Jobs with a lifetime: some time after they have ended they are deleted, with their Pods."""

from datetime import timedelta

from kubereef.controllers.caches import Key
from kubereef.controllers.pods import is_deleting
from kubereef.controllers.resources import JOBS
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.times import parse_time


class TtlAfterFinishedController(Controller):
    """Deletes Jobs whose `ttlSecondsAfterFinished` has passed."""

    name = "ttl-after-finished-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.jobs = self.watch(JOBS)

    async def sync(self, key: Key) -> float | None:
        job = self.jobs.get(key)
        left = self._seconds_left(job) if job is not None else None
        if job is None or left is None or left > 0:
            return left
        # The lifetime may have been extended a moment ago, and what is deleted is deleted.
        try:
            live = await self.hands.get(JOBS, key)
        except errors.NotFound:
            return None
        left = self._seconds_left(live)
        if live["metadata"]["uid"] != job["metadata"]["uid"] or left is None or left > 0:
            return left
        await self.hands.delete(JOBS, live, propagation="Foreground", same_version=True)
        return None

    def _seconds_left(self, job: Object) -> float | None:
        """Return how long a Job is still kept, if it has ended and has a lifetime."""
        lifetime = job["spec"].get("ttlSecondsAfterFinished")
        if lifetime is None or is_deleting(job):
            return None
        for condition in (job.get("status") or {}).get("conditions") or []:
            if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
                end = parse_time(condition["lastTransitionTime"]) + timedelta(seconds=lifetime)
                return (end - self.clock.now()).total_seconds()
        return None
