"""How long the stages of an attempt took: its cluster, its submission, its run."""

from datetime import datetime
from typing import Any

from kubewire.times import parse_time

Object = dict[str, Any]


def durations(status: Object) -> str:
    """Return the stages that are over with their seconds, in words; empty before the first has ended."""
    began = _moment(status.get("startTime"))
    cluster = _moment(((status.get("rayClusterStatus") or {}).get("stateTransitionTimes") or {}).get("ready"))
    ray = status.get("rayJobInfo") or {}
    started, ended = _moment(ray.get("startTime")), _moment(ray.get("endTime"))
    parts = []
    if began and cluster and cluster >= began:
        parts.append(f"cluster {_seconds(began, cluster)}")
    if (ready := cluster or began) and started:
        parts.append(f"submission {_seconds(ready, started)}")
    if started and ended:
        parts.append(f"run {_seconds(started, ended)}")
    return f"took: {', '.join(parts)}" if parts else ""


def _moment(stamp: str | None) -> datetime | None:
    return parse_time(stamp) if stamp else None


def _seconds(start: datetime, end: datetime) -> str:
    return f"{max(0, round((end - start).total_seconds()))} s"
