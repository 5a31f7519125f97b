"""How long the stages of an attempt took: its cluster, its submission, its run."""

from datetime import datetime
from typing import Any, NamedTuple

from kubewire.times import parse_time

Object = dict[str, Any]


class StageTime(NamedTuple):
    """A stage that an attempt has come to; the last one may still go on."""

    name: str
    seconds: int
    is_over: bool


def stages_of(status: Object, now: datetime | None = None) -> list[StageTime]:
    """Return the stages that are over; with a time also the one that was going on then, or when the job ended."""
    began = _moment(status.get("startTime"))
    if began is None:
        return []
    ready = _moment(((status.get("rayClusterStatus") or {}).get("stateTransitionTimes") or {}).get("ready"))
    ray = status.get("rayJobInfo") or {}
    ends = (
        ("cluster", ready),
        ("submission", _moment(ray.get("startTime"))),
        ("run", _moment(ray.get("endTime"))),
    )
    until = _moment(status.get("endTime")) or now
    found = []
    for number, (name, end) in enumerate(ends):
        is_over = any(later is not None for _, later in ends[number:])
        last = end if is_over else until
        if last is None:
            continue  # nobody noted when it ended, or it has not begun
        # A cluster that was chosen may have been ready long before; then it took no time of the job's.
        last = max(last, began)
        found.append(StageTime(name, round((last - began).total_seconds()), is_over))
        if not is_over:
            break
        began = last
    return found


def durations(status: Object) -> str:
    """Return the stages that are over with their seconds, in words; empty before the first has ended."""
    parts = [f"{stage.name} {stage.seconds} s" for stage in stages_of(status)]
    return f"took: {', '.join(parts)}" if parts else ""


def _moment(stamp: str | None) -> datetime | None:
    return parse_time(stamp) if stamp else None
