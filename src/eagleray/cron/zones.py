"""Time zones by name, from the system's zone database or, where that has none, from the bundled one."""

import os
from datetime import UTC, datetime, tzinfo

from eagleray.cron.errors import UnknownZone, quoted

_LOCALTIME = "/etc/localtime"
_LONGEST_NAME = 64
_known: frozenset[str] = frozenset()


def check_zone(name: str) -> None:
    """Accept an IANA zone name, `UTC` or `Local`; raise UnknownZone, with the nearest name, for the rest.

    The names are those of the bundled database, the same on every machine. Nothing else is ever looked up, so
    no name can reach outside the database.
    """
    if name == "Local" or name in _known_zones():
        return
    if not name:
        raise UnknownZone("the time zone is empty; leave it out or name one such as Europe/Berlin or UTC")
    near = _nearest(name)
    way_out = f"did you mean {near}?" if near else "use an IANA name such as Europe/Berlin, or UTC"
    raise UnknownZone(f"the time zone {quoted(name)} is unknown; {way_out}")


def load_zone(name: str | None, local: tzinfo | None = None) -> tzinfo:
    """Return the zone of a checked name; None and `Local` give `local`, or else that of this process."""
    if name is None or name == "Local":
        return local or process_zone()
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # here, since reading a schedule needs none

    return ZoneInfo(name)


def process_zone() -> tzinfo:
    """Return the local zone of this process: that of `TZ`, else that of `/etc/localtime`, else UTC.

    `TZ` holds a zone name or the absolute path of a zone file; when it is empty or cannot be read, it is UTC.
    """
    from zoneinfo import ZoneInfo  # here, since reading a schedule needs none

    wanted = os.environ.get("TZ", _LOCALTIME).removeprefix(":")
    if wanted in _known_zones():
        return ZoneInfo(wanted)
    if not wanted.startswith("/"):
        return UTC
    try:
        with open(wanted, "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC  # many containers have no zone file


def offset_at(instant: int, zone: tzinfo) -> int:
    """Return how many seconds the wall clock of the zone is ahead of UTC, at so many seconds since 1970 in UTC."""
    offset = datetime.fromtimestamp(instant, zone).utcoffset()
    assert offset is not None, "a zone always knows its offset"
    return offset.days * 86_400 + offset.seconds


def first_move(low: int, high: int, zone: tzinfo) -> int:
    """Return the first instant whose offset is not that of `low`, knowing that the one of `high` is not."""
    offset = offset_at(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if offset_at(middle, zone) == offset:
            low = middle
        else:
            high = middle
    return high


def _known_zones() -> frozenset[str]:
    global _known  # noqa: PLW0603 - read once and kept; functools.cache is slower to import than the file to read
    if not _known:
        import tzdata  # type: ignore[import-untyped]  # a package of data, without code to type

        path = f"{tzdata.__path__[0]}/zones"
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - pathlib is slow to import
            _known = frozenset(file.read().split())
    return _known


def _nearest(name: str) -> str | None:
    """Return the zone that was probably meant: in other letters, by its city, with a slip of the finger."""
    if len(name) > _LONGEST_NAME:
        return None
    from difflib import get_close_matches  # here, since only a wrong name needs it

    spelled = name.strip().replace(" ", "_").lower()
    # Of several zones with the same city the last one stands, so old names without a region come first.
    zones = sorted(_known_zones(), key=lambda zone: ("/" in zone, zone))
    by_name = {zone.lower(): zone for zone in zones}
    by_city = {zone.rpartition("/")[2].lower(): zone for zone in zones}
    for spellings in (by_name, by_city):
        if close := get_close_matches(spelled, spellings, n=1, cutoff=0.8):
            return spellings[close[0]]
    return None
