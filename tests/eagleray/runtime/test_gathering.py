"""News that can wait: for how long, and from when on."""

import pytest

from eagleray.kube.resources import Key
from eagleray.runtime.gathering import Gathering
from kubewire.sources import ManualClock
from tests.eagleray.raycronjob.situations import SettableClock

A, B = Key("default", "a"), Key("default", "b")


@pytest.fixture
def clock():
    return SettableClock(ManualClock())


@pytest.fixture
def news(clock):
    return Gathering(clock)


def test_the_pause_begins_with_the_first_news(clock, news):
    assert news.left(A, 10) == 10
    clock.set(seconds=4)
    assert news.left(A, 10) == 6
    clock.set(seconds=7)
    assert news.left(A, 10) == -1


def test_a_pause_may_become_shorter(clock, news):
    news.left(A, 10)
    clock.set(seconds=4)
    assert news.left(A, 1) == -3


def test_every_object_has_its_own_pause(clock, news):
    news.left(A, 10)
    clock.set(seconds=4)
    assert news.left(B, 10) == 10


def test_after_they_were_told_the_next_news_wait_anew(clock, news):
    news.left(A, 10)
    clock.set(seconds=4)
    news.told(A)
    assert news.left(A, 10) == 10


def test_a_clock_that_is_set_back_makes_no_pause_longer(clock, news):
    news.left(A, 10)
    clock.set(hours=-1)
    assert news.left(A, 10) == 10
