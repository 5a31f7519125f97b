"""Reading a schedule: five fields, a descriptor such as `@daily`, or `@every` with a duration."""

from datetime import tzinfo

from eagleray.cron.durations import nanoseconds
from eagleray.cron.errors import InvalidSchedule, quoted
from eagleray.cron.fields import FIELDS, parse_field
from eagleray.cron.schedule import Calendar, Interval, Schedule
from eagleray.cron.wall import WallTimes
from eagleray.cron.zones import check_zone

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_LONGEST = 4096  # ten times what naming every number takes; bounds the work, and the digits of a number
_SECOND = 1_000_000_000

# Python takes these four for white space and Go does not, so they are made visible before splitting.
_NOT_SPACE = dict.fromkeys(range(0x1C, 0x20), "\ufffd")


def parse(schedule: str, zone: str | None = None, *, local: tzinfo | None = None) -> Schedule:
    """Return the schedule, read by the wall clock of the zone.

    Without a zone, or with `Local`, that is the clock of `local`, by default the local zone of this process
    (`TZ`, else `/etc/localtime`, else UTC), looked up when the first time is asked for.

    Raises InvalidSchedule when the schedule cannot be read, else UnknownZone when there is no such zone.
    """
    if len(schedule) > _LONGEST:
        raise InvalidSchedule(f"the schedule has {len(schedule)} characters; use at most {_LONGEST}")
    if schedule.lstrip().startswith("@"):
        result = _parse_descriptor(schedule, zone, local)
    else:
        result = _parse_fields(schedule, zone, local)
    if zone is not None:
        check_zone(zone)
    return result


def schedule_text(schedule: str, zone: str | None = None) -> str:
    """Return schedule and zone as one line, `TZ=Asia/Taipei 0 9 * * *`, or the schedule alone."""
    return schedule if zone is None else f"TZ={zone} {schedule}"


def is_interval(schedule: str) -> bool:
    """Tell whether a schedule counts seconds, so that no clock on a wall matters to it."""
    return schedule.startswith(_EVERY)


def _parse_fields(schedule: str, zone: str | None, local: tzinfo | None) -> Calendar:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        raise InvalidSchedule("a schedule cannot name its time zone with TZ= or CRON_TZ=; use timeZone")
    words = schedule.translate(_NOT_SPACE).split()
    if len(words) != len(FIELDS):
        names = " ".join(field.name for field in FIELDS)
        found = f"found {len(words)}: {quoted(schedule)}" if words else "found none"
        raise InvalidSchedule(f"expected {len(FIELDS)} fields ({names}), {found}")
    numbers = (parse_field(word, field) for word, field in zip(words, FIELDS, strict=True))
    return Calendar(WallTimes(*numbers), zone, local)


def _parse_descriptor(schedule: str, zone: str | None, local: tzinfo | None) -> Schedule:
    if is_interval(schedule):
        return Interval(_every(schedule.removeprefix(_EVERY)))
    if schedule in _DESCRIPTORS:
        return _parse_fields(_DESCRIPTORS[schedule], zone, local)
    meant = schedule.strip().lower()
    if meant in _DESCRIPTORS:
        raise InvalidSchedule(
            f"{quoted(schedule)} is not a descriptor; write {meant}, in lower case and without spaces"
        )
    raise InvalidSchedule(
        f"{quoted(schedule)} is not a descriptor; use {', '.join(_DESCRIPTORS)} or @every with a duration, "
        "such as @every 1h30m"
    )


def _every(duration: str) -> int:
    """Return the whole seconds between two runs, of which there is always at least one."""
    length = nanoseconds(duration)
    if length is None:
        raise InvalidSchedule(
            f"@every: {quoted(duration)} is not a duration; use numbers with units, such as 90s, 5m or 1h30m"
        )
    return max(1, length // _SECOND)
