"""Zone names: which are accepted, what is proposed for the rest, where zones come from."""

import struct
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import resources
from itertools import pairwise

import pytest

from eagleray.cron import UnknownZone, check_zone, parse, zones

SUMMER = datetime(2024, 7, 1, 12, tzinfo=UTC)
BUNDLED = resources.files("tzdata") / "zoneinfo"
KNOWN = (resources.files("tzdata") / "zones").read_text(encoding="ascii").split()


@pytest.mark.parametrize(
    "name", ["UTC", "Local", "Asia/Taipei", "America/Argentina/Ushuaia", "Etc/GMT+5", "EST5EDT"]
)
def test_a_known_name_is_accepted(name):
    check_zone(name)


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        pytest.param("Asia/Tapei", "Asia/Taipei", id="a missing letter"),
        pytest.param("asia/taipei", "Asia/Taipei", id="lower case"),
        pytest.param("America/New York", "America/New_York", id="a space"),
        pytest.param("Berlin", "Europe/Berlin", id="the city alone"),
        pytest.param("US/Pacfic", "US/Pacific", id="an old name with a slip"),
        pytest.param("utc", "UTC", id="UTC in lower case"),
        pytest.param(" Asia/Tokyo", "Asia/Tokyo", id="a space in front"),
    ],
)
def test_the_nearest_name_is_proposed(name, proposed):
    with pytest.raises(UnknownZone) as refused:
        check_zone(name)
    assert str(refused.value) == f'the time zone "{name}" is unknown; did you mean {proposed}?'


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Invalid/Zone", id="no such zone"),
        pytest.param("PST", id="an abbreviation"),
        pytest.param("../../../etc/passwd", id="a path out of the database"),
        pytest.param("/etc/localtime", id="an absolute path"),
        pytest.param("America/../Asia/Taipei", id="a path within the database"),
        pytest.param("right/UTC", id="a zone with leap seconds"),
        pytest.param("America", id="a folder"),
        pytest.param("tzdata.zi", id="a file that is no zone"),
        pytest.param("Asia/Taipei\0", id="a null byte"),
        pytest.param("\ud800", id="half a surrogate pair"),
        pytest.param("x" * 1_000_000, id="a million letters"),
    ],
)
def test_a_name_that_is_no_zone_is_refused_with_a_short_message(name):
    with pytest.raises(UnknownZone) as refused:
        check_zone(name)
    assert len(str(refused.value)) < 200


def test_an_empty_name_is_refused():
    with pytest.raises(UnknownZone, match="the time zone is empty; leave it out"):
        parse("0 9 * * *", "")


def test_every_known_zone_can_be_loaded():
    assert [name for name in KNOWN if zones.load_zone(name).utcoffset(SUMMER) is None] == []


@pytest.fixture
def no_system_database():
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    yield
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()


@pytest.mark.usefixtures("no_system_database")
def test_zones_come_from_the_bundle_where_the_system_has_none():
    assert parse("0 9 * * *", "Europe/Berlin").next(SUMMER) == datetime(2024, 7, 2, 7, tzinfo=UTC)


def bundled(name):
    with resources.as_file(BUNDLED / name) as path:
        return str(path)


@pytest.mark.parametrize(
    ("variable", "hours"),
    [
        pytest.param("Asia/Tokyo", 9, id="a zone name"),
        pytest.param(":Asia/Tokyo", 9, id="a zone name after a colon"),
        pytest.param(bundled("Asia/Tokyo"), 9, id="the path of a zone file"),
        pytest.param("", 0, id="nothing"),
        pytest.param("Mars/Olympus", 0, id="an unknown name"),
        pytest.param("../etc/localtime", 0, id="a relative path"),
        pytest.param("/nowhere", 0, id="a file that does not exist"),
        pytest.param(__file__, 0, id="a file that is no zone"),
    ],
)
def test_the_local_zone_follows_the_environment(monkeypatch, variable, hours):
    monkeypatch.setenv("TZ", variable)
    noon = datetime(2024, 7, 2, 12 - hours, tzinfo=UTC)
    assert parse("0 12 * * *").next(SUMMER) == noon


@pytest.mark.parametrize(("file", "hours"), [(bundled("Asia/Tokyo"), 9), ("/nowhere", 0)])
def test_the_local_zone_is_else_that_of_the_machine_and_at_last_utc(monkeypatch, file, hours):
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(zones, "_LOCALTIME", file)
    assert zones.process_zone().utcoffset(SUMMER) == timedelta(hours=hours)


def offset_moves(data):
    """Return the moves of a compiled zone as (instant, seconds moved), from the 64-bit part of the file."""
    counts = ">6l"
    isut, isstd, leaps, times, types, letters = struct.unpack_from(counts, data, 20)
    second = 44 + times * 5 + types * 6 + letters + leaps * 8 + isstd + isut
    _, _, leaps, times, types, _ = struct.unpack_from(counts, data, second + 20)
    assert leaps == 0
    start = second + 44
    instants = struct.unpack_from(f">{times}q", data, start)
    kinds = struct.unpack_from(f">{times}B", data, start + times * 8)
    offsets = [struct.unpack_from(">l", data, start + times * 9 + kind * 6)[0] for kind in range(types)]
    seen = [offsets[0], *(offsets[kind] for kind in kinds)]
    steps = [after - before for before, after in pairwise(seen)]
    return [(instant, step) for instant, step in zip(instants, steps, strict=True) if step]


def test_no_zone_moves_by_more_than_a_day_or_twice_within_three_days():
    """What the search for the next time relies on."""
    day = 24 * 60 * 60
    for name in KNOWN:
        moves = offset_moves((BUNDLED / name).read_bytes())
        instants = [instant for instant, _ in moves]
        assert all(abs(step) <= day for _, step in moves), name
        assert all(later - earlier > 3 * day for earlier, later in pairwise(instants)), name
