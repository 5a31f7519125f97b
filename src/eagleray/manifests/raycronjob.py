"""What a RayCronJob has made for it: the RayJob of a tick, under a name that the tick alone decides."""

import copy
from datetime import datetime
from typing import Any, Final

from eagleray.manifests.stored import Stored
from kubewire.owners import owner_reference
from kubewire.times import TimeError, format_time, parse_time

Object = dict[str, Any]

NAME_LABEL: Final = "ray.io/cronjob-name"
TICK_ANNOTATION: Final = "ray.io/cronjob-scheduled-timestamp"
TRIGGERED_ANNOTATION: Final = "eagleray.io/cronjob-triggered-at"

ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"


class RayCronJob(Stored):
    """A RayCronJob as stored, with names for the questions that are asked about it. Nothing here changes it."""

    __slots__ = ()

    @property
    def schedule(self) -> str:
        return str(self.spec.get("schedule") or "")

    @property
    def zone(self) -> str | None:
        """The zone that a user names; None means that of the operator."""
        return self.spec.get("timeZone")

    @property
    def is_suspended(self) -> bool:
        return self.spec.get("suspend") is True

    @property
    def policy(self) -> str:
        return self.spec.get("concurrencyPolicy") or ALLOW

    @property
    def deadline(self) -> int | None:
        """How many seconds late a run may start; None is however late."""
        return self.spec.get("startingDeadlineSeconds")

    @property
    def last_tick(self) -> datetime | None:
        """The tick of the latest run."""
        stamp = self.status.get("lastScheduleTime")
        return parse_time(stamp) if stamp else None

    @property
    def base(self) -> datetime:
        """The time after which ticks count: that of the latest run, or else of the creation."""
        return self.last_tick or parse_time(self.metadata["creationTimestamp"])


def child_name(cron: RayCronJob, tick: datetime) -> str:
    """Return the name of a tick's RayJob. Whoever runs the tick, and however often, finds the same name."""
    return f"{cron.name}-{int(tick.timestamp()) // 60}"


def child_job(cron: RayCronJob, tick: datetime) -> Object:
    """Return the RayJob of a tick."""
    return _job(cron, child_name(cron, tick), {TICK_ANNOTATION: format_time(tick)})


def triggered_job(cron: RayCronJob, suffix: str, now: datetime) -> Object:
    """Return a RayJob that a user wants now, besides those of the schedule, whose names have digits at the end.

    With a suffix of five characters the name is as long as one of the schedule, so that it always fits.
    """
    return _job(cron, f"{cron.name}-now-{suffix}", {TRIGGERED_ANNOTATION: format_time(now)})


def tick_of(job: Object) -> datetime:
    """Return the tick that a RayJob was made for; its creation if it was made for none."""
    metadata = job["metadata"]
    stamp = (metadata.get("annotations") or {}).get(TICK_ANNOTATION)
    if stamp:
        try:
            return parse_time(stamp)
        except TimeError:
            pass  # somebody has edited it; the creation is near enough
    return parse_time(metadata["creationTimestamp"])


def _job(cron: RayCronJob, name: str, annotations: dict[str, str]) -> Object:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": name,
            "namespace": cron.namespace,
            "labels": {NAME_LABEL: cron.name},
            "annotations": annotations,
            "ownerReferences": [owner_reference(cron.obj)],
        },
        "spec": copy.deepcopy(cron.spec.get("jobTemplate") or {}),
    }
