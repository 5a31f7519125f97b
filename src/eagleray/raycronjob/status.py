"""The status of a RayCronJob: the latest run, those that go on, when the next one is, and why one was not run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from eagleray.manifests.raycronjob import RayCronJob
from eagleray.raycronjob.look import Child
from eagleray.raycronjob.planning import SCHEDULED, SUSPENDED, Standing, condition
from kubewire.times import format_time

Object = dict[str, Any]

# Messages of conditions are bounded by the API.
_LONGEST_MESSAGE = 32_768


def next_status(
    cron: RayCronJob, active: Sequence[Child], standing: Standing, tick: datetime | None, now: datetime
) -> Object:
    """Return the status that a RayCronJob should have; `tick` is the one that was run, if any."""
    status = {**cron.status, "active": [_reference(child) for child in active]}
    if tick is not None:
        status["lastScheduleTime"] = format_time(tick)
    reason = SUSPENDED if cron.is_suspended else "NotSuspended"
    told = {
        SCHEDULED: standing,
        SUSPENDED: Standing(cron.is_suspended, reason, "spec.suspend is true" if cron.is_suspended else ""),
    }
    others = [one for one in cron.status.get("conditions") or () if one["type"] not in told]
    status["conditions"] = [*(_condition(cron, kind, told[kind], now) for kind in told), *others]
    return {field: value for field, value in status.items() if value}


def _reference(child: Child) -> Object:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "namespace": child.ref.namespace,
        "name": child.name,
        "uid": child.ref.uid,
    }


def _condition(cron: RayCronJob, kind: str, standing: Standing, now: datetime) -> Object:
    known = condition(cron, kind)
    status = "True" if standing.is_scheduled else "False"
    stays = known is not None and known["status"] == status
    return {
        "type": kind,
        "status": status,
        "reason": standing.reason,
        "message": standing.message[:_LONGEST_MESSAGE],
        "observedGeneration": cron.generation,
        "lastTransitionTime": known["lastTransitionTime"] if known and stays else format_time(now),
    }
