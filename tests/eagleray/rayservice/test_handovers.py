"""What is remembered of configurations that were handed over, and what is taken back."""

from datetime import timedelta

import pytest

from eagleray.dashboard.errors import Refused
from eagleray.dashboard.orders import Order, Outcome, Owner, PutServe
from eagleray.kube.resources import Key
from eagleray.rayservice.handovers import Handovers
from eagleray.rayservice.look import Handover, Put
from eagleray.runtime.actions import Said, Say
from tests.eagleray.dashboard.places import place
from tests.eagleray.rayservice.scene import NOW

OWNER = Owner("RayService", Key("ns", "s"))
OBJ = {"metadata": {"name": "s"}}
SAID = Said(Say("Done", "Update", "It is done"), Say("Failed", "Update", "It is not done:", "Warning"))


class Standin:
    """A poller whose orders end when a test says so, and a recorder of what is told."""

    def __init__(self):
        self.orders = []
        self.started = set()
        self.outcomes = {}
        self.told = []

    def order(self, owner, order, *, again):
        self.orders.append(order.id)

    def take(self, owner, order_id):
        return self.outcomes.pop(order_id, None)

    def cancel(self, owner, order_id):
        return order_id not in self.started

    def end(self, handover, error=None):
        self.outcomes[handover.order.id] = Outcome(handover.order, NOW, error)

    def normal(self, obj, reason, action, note):
        self.told.append(note)

    warning = normal


def handover(text, cluster="c1"):
    order = Order(f"{cluster} {text}", place(), PutServe({}))
    return Handover(cluster, order, text, None, SAID)


@pytest.fixture
def poller():
    return Standin()


@pytest.fixture
def handovers(poller):
    return Handovers(poller, poller)


def test_what_was_taken_is_remembered_and_told(handovers, poller):
    one = handover("a")
    assert handovers.give(OWNER, one, NOW) is None
    handovers.collect(OWNER, OBJ, ["c1"])
    assert handovers.put(OWNER, "c1") is None
    poller.end(one)
    handovers.collect(OWNER, OBJ, ["c1"])
    assert handovers.put(OWNER, "c1") == Put("a", None, NOW)
    assert poller.told == ["It is done"]


def test_what_is_under_way_is_not_ordered_again_even_if_it_has_just_ended(handovers, poller):
    one = handover("a")
    handovers.give(OWNER, one, NOW)
    poller.end(one)
    handovers.give(OWNER, one, NOW)
    assert poller.orders == ["c1 a"]


def test_what_was_refused_waits_ever_longer_and_anything_else_does_not(handovers, poller):
    one = handover("a")
    waits = []
    now = NOW
    for _ in range(8):
        handovers.give(OWNER, one, now)
        poller.end(one, Refused(400, "no such field", certainly_not_done=True))
        handovers.collect(OWNER, OBJ, ["c1"])
        waits.append(handovers.give(OWNER, one, NOW))
        now = NOW + timedelta(seconds=waits[-1])
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]
    assert handovers.failure(OWNER, "c1", "a") == "no such field"
    assert handovers.failure(OWNER, "c1", "b") == ""
    assert poller.told[0] == "It is not done: no such field"
    assert handovers.give(OWNER, handover("b"), NOW) is None


def test_what_was_taken_ends_what_is_said_of_a_failure(handovers, poller):
    one = handover("a")
    handovers.give(OWNER, one, NOW)
    poller.end(one, Refused(400, "no", certainly_not_done=True))
    handovers.collect(OWNER, OBJ, ["c1"])
    handovers.give(OWNER, one, NOW + timedelta(seconds=2))
    poller.end(one)
    handovers.collect(OWNER, OBJ, ["c1"])
    assert handovers.failure(OWNER, "c1", "a") == ""


def test_what_is_wanted_no_more_is_taken_back_if_it_has_not_been_begun(handovers, poller):
    begun, waiting, wanted = handover("a"), handover("b"), handover("c")
    handovers.give(OWNER, begun, NOW)
    poller.started.add(begun.order.id)
    handovers.give(OWNER, waiting, NOW)
    handovers.give(OWNER, wanted, NOW)
    for one in (begun, waiting, wanted):
        poller.end(one)
    handovers.collect(OWNER, OBJ, ["c1"])
    assert handovers.put(OWNER, "c1") == Put("c", None, NOW)
    assert list(poller.outcomes) == ["c1 b"]  # nobody asks for it


def test_a_cluster_that_is_used_no_more_is_forgotten_once_nothing_is_under_way(handovers, poller):
    one = handover("a")
    handovers.give(OWNER, one, NOW)
    poller.started.add(one.order.id)
    handovers.collect(OWNER, OBJ, [])
    poller.end(one)
    handovers.collect(OWNER, OBJ, [])
    assert (handovers.put(OWNER, "c1"), poller.outcomes, poller.told) == (None, {}, [])
    assert handovers._services == {}


def test_nothing_is_left_of_a_service_that_is_gone(handovers, poller):
    handovers.give(OWNER, handover("a"), NOW)
    handovers.forget(OWNER)
    assert handovers._services == {}
