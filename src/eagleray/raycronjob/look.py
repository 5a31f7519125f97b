"""What a pass over a RayCronJob sees: the object, its RayJobs, and the time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from eagleray.kube.resources import Ref
from eagleray.manifests.raycronjob import RayCronJob, tick_of
from eagleray.rayapi.problems import Problem

Object = dict[str, Any]

SUCCEEDED: Final = ("Complete",)
FAILED: Final = ("Failed", "ValidationFailed")


class Child(NamedTuple):
    """A RayJob of a schedule: for which tick it was made, how far it is, and whether it is being deleted."""

    ref: Ref
    tick: datetime
    state: str
    is_going: bool

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def is_active(self) -> bool:
        """Whether it has not ended; what is being deleted may run until it is gone."""
        return self.state not in SUCCEEDED + FAILED


class Look(NamedTuple):
    """One RayCronJob at one moment. Its children are in the order of their ticks."""

    cron: RayCronJob
    now: datetime
    children: Sequence[Child] = ()
    problem: Problem | None = None  # the first rule that it breaks

    @property
    def active(self) -> list[Child]:
        return [child for child in self.children if child.is_active]


def child_of(job: Object) -> Child:
    """Return what matters of a RayJob."""
    return Child(
        Ref.of(job)._replace(version=""),
        tick_of(job),
        (job.get("status") or {}).get("jobDeploymentStatus") or "",
        bool(job["metadata"].get("deletionTimestamp")),
    )


def look_at(cron: RayCronJob, jobs: Sequence[Object], now: datetime, problem: Problem | None = None) -> Look:
    """Return a look at a RayCronJob and the RayJobs that it owns."""
    children = sorted(map(child_of, jobs), key=lambda child: (child.tick, child.name))
    return Look(cron, now, children, problem)
