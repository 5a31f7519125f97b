"""The lines that `eagleray cron next` prints; apart from the other actions, because no cluster is needed for them."""

from collections.abc import Iterator
from datetime import datetime

from eagleray.cron import check_zone
from eagleray.cron.forecast import Gap, forecast
from kubewire.times import format_time


def coming_runs(schedule: str, zone: str, after: datetime, count: int) -> Iterator[str]:
    """Yield a line for each of the coming runs, and for what the clock leaves out between them.

    Raises InvalidSchedule or UnknownZone before the first line.
    """
    check_zone(zone)
    runs = list(forecast(schedule, zone, after, count))
    yield f"{schedule} in {zone}"
    if not runs:
        yield "  no run within five years"
    for run in runs:
        if isinstance(run, Gap):
            yield f"  ! {run.note}"
        else:
            shown = f"  {run.at:%a %Y-%m-%d %H:%M:%S %Z}  {format_time(run.at)}"
            yield f"{shown}  ! {run.note}" if run.note else shown
