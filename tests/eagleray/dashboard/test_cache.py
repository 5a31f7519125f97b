"""The latest observations, as many and for as long as is allowed."""

from datetime import UTC, datetime

from eagleray.dashboard.cache import ObservationCache
from eagleray.dashboard.questions import JobOf, Observation
from eagleray.dashboard.words import JobInfo
from tests.eagleray.dashboard.places import place


def about(name):
    return JobOf(place(), name)


def seen(status="RUNNING"):
    return Observation(JobInfo(status), None, datetime(2030, 1, 1, tzinfo=UTC))


def test_the_latest_observation_is_kept():
    cache = ObservationCache(10, 600)
    cache.put(about("a"), seen("PENDING"), now=0)
    cache.put(about("a"), seen("RUNNING"), now=1)
    assert cache.get(about("a"), now=2) == seen("RUNNING")
    assert cache.get(about("b"), now=2) is None
    assert len(cache) == 1


def test_beyond_its_size_the_one_touched_longest_ago_goes():
    cache = ObservationCache(2, 600)
    cache.put(about("a"), seen(), now=0)
    cache.put(about("b"), seen(), now=1)
    cache.get(about("a"), now=2)
    cache.put(about("c"), seen(), now=3)
    assert [cache.get(about(name), now=4) is not None for name in "abc"] == [True, False, True]


def test_what_is_neither_made_nor_read_for_its_age_goes():
    cache = ObservationCache(10, 600)
    cache.put(about("a"), seen(), now=0)
    cache.put(about("b"), seen(), now=0)
    assert cache.get(about("a"), now=599) is not None
    assert cache.get(about("b"), now=600) is None
    assert cache.get(about("a"), now=1198) is not None
    cache.put(about("c"), seen(), now=1900)
    assert len(cache) == 1


def test_what_is_dropped_is_gone():
    cache = ObservationCache(10, 600)
    cache.put(about("a"), seen(), now=0)
    cache.drop(about("a"))
    cache.drop(about("never there"))
    assert cache.get(about("a"), now=1) is None
