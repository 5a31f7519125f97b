import pytest

from kubereef.node.network.proxy.balance import MOST_TRIES, Balancer
from kubereef.node.network.proxy.rules import Backend, Target
from kubewire.sources import ManualClock

A, B, C = (Backend(f"10.1.0.{number}", 80) for number in (1, 2, 3))


def firsts(balancer, client, count):
    """The backends that so many connections of a client are given."""
    found = []
    for _ in range(count):
        found.append(balancer.choices(client)[0])
        balancer.settled(client, found[-1])
    return found


def test_backends_take_turns():
    assert firsts(Balancer(Target((A, B, C)), ManualClock()), "x", 6) == [A, B, C, A, B, C]


def test_all_others_follow_the_first_choice():
    assert Balancer(Target((A, B, C)), ManualClock(), start=1).choices("x") == [B, C, A]


def test_a_client_with_affinity_stays_with_its_backend_and_others_take_turns():
    balancer = Balancer(Target((A, B, C), affinity_seconds=60), ManualClock())
    assert firsts(balancer, "x", 3) == [A, A, A]
    assert firsts(balancer, "y", 2) == [A, A]  # the turn went on while x was served
    assert len({firsts(balancer, client, 1)[0] for client in "pqr"}) == 3


def test_affinity_ends_when_a_client_stays_away():
    clock = ManualClock()
    balancer = Balancer(Target((A, B), affinity_seconds=60), clock)
    firsts(balancer, "x", 1)
    clock.advance(59)
    assert firsts(balancer, "x", 1) == [A]  # and the time begins anew
    clock.advance(59)
    assert firsts(balancer, "x", 1) == [A]
    clock.advance(61)
    assert firsts(balancer, "x", 1) == [B]


def test_a_client_whose_backend_was_removed_gets_another():
    balancer = Balancer(Target((A, B), affinity_seconds=60), ManualClock())
    firsts(balancer, "x", 1)
    balancer.update(Target((B, C), affinity_seconds=60))
    home = firsts(balancer, "x", 1)
    assert home[0] in (B, C)
    assert firsts(balancer, "x", 2) == home * 2


def test_no_more_backends_are_tried_than_a_client_would_wait_for():
    many = tuple(Backend("10.1.0.1", port) for port in range(1, 100))
    assert len(Balancer(Target(many), ManualClock()).choices("x")) == MOST_TRIES


@pytest.mark.parametrize("client", ["x", ""])
def test_nobody_is_chosen_among_none(client):
    assert Balancer(Target(()), ManualClock()).choices(client) == []


def test_remembered_clients_are_bounded(monkeypatch):
    monkeypatch.setattr("kubereef.node.network.proxy.balance.MOST_CLIENTS", 2)
    balancer = Balancer(Target((A, B, C), affinity_seconds=60), ManualClock())
    for client in "xyz":
        firsts(balancer, client, 1)
    assert len(balancer._homes) == 2
    assert "x" not in balancer._homes
