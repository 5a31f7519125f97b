"""How long the stages of an attempt took: its cluster (of it the head's image), its submission, its run."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from eagleray.raycluster.views import PodView
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


def durations(status: Object, heads: Sequence[PodView] = ()) -> str:
    """Return the stages that are over with their seconds, in words; empty before the first has ended."""
    parts = [f"{stage.name} {stage.seconds} s" for stage in stages_of(status)]
    image = image_seconds(status, heads)
    if parts and image:
        parts[0] += f" (image {image} s)"
    return f"took: {', '.join(parts)}" if parts else ""


_TOLD_IMAGE = re.compile(r"\(image (\d{1,9}) s\)")


def image_seconds(status: Object, heads: Sequence[PodView]) -> int:
    """Return how long the head's container had to wait for its image, from when its Pod had a node.

    The head goes, and what was told of it stays: without one the conditions are read.
    """
    for head in heads:
        scheduled = head.condition("PodScheduled")
        running = [one.state.running for one in head.status.container_statuses[:1] if one.state.running]
        began = _moment(running[0].started_at) if running else None
        placed = _moment(scheduled.last_transition_time) if scheduled is not None else None
        if began is not None and placed is not None:
            return max(0, round((began - placed).total_seconds()))
    told = (_TOLD_IMAGE.search(entry.get("message") or "") for entry in status.get("conditions") or ())
    return next((int(found[1]) for found in told if found), 0)


def _moment(stamp: str | None) -> datetime | None:
    return parse_time(stamp) if stamp else None
