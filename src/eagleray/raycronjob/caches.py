"""What the RayCronJob controller watches, and whom a change wakes."""

from collections.abc import Callable
from typing import Any

from eagleray.kube.cache import Cache, Change
from eagleray.kube.informers import Informers
from eagleray.kube.resources import RAY_CRON_JOBS, Key
from eagleray.kube.views import whole
from eagleray.raycronjob.look import child_of
from kubewire.owners import controller_of, is_controlled_by

Object = dict[str, Any]
Wake = Callable[[Key, bool], None]


class Caches:
    """RayCronJobs, and the RayJobs that are watched anyway."""

    def __init__(self, informers: Informers, jobs: Cache[Object]) -> None:
        self.crons: Cache[Object] = informers.add(RAY_CRON_JOBS, whole(RAY_CRON_JOBS)).cache
        self.jobs = jobs

    def children_of(self, uid: str) -> list[Object]:
        """Return the RayJobs that a RayCronJob controls."""
        return [job for job in self.jobs.owned_by(uid) if is_controlled_by(job, uid)]

    def wake_by(self, wake: Wake) -> None:
        """Have a function called with the RayCronJob that a change is about, and whether it only is a first look."""

        def cron_changed(change: Change[Object]) -> None:
            if change.cause != "write":  # what we wrote is known to the pass that wrote it
                wake(change.key, change.cause == "list")

        def job_changed(change: Change[Object]) -> None:
            # Another controller of this process writes the status of RayJobs, so our own writes count here.
            before, after = (child_of(job) if job is not None else None for job in (change.old, change.new))
            if before is not None and after is not None and before == after:
                return
            owner = controller_of(change.new or change.old or {})
            if owner is not None and owner.get("kind") == "RayCronJob":
                wake(Key(change.key.namespace, owner["name"]), change.cause == "list")

        self.crons.listen(cron_changed)
        self.jobs.listen(job_changed)
