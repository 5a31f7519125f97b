"""Leader election, under virtual time."""

import asyncio
from typing import Any

import pytest

from eagleray.runtime.leases import Election, LeaseLost, identity, lease_namespace
from kubereef.simulation import VirtualClock, settle
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.runtime.standins import Leases

pytestmark = pytest.mark.usefixtures("virtual_time")

NAME = "ray-operator-leader"


def now():
    return asyncio.get_running_loop().time()


class Candidate:
    """A process that notes when it begins and ends to act."""

    def __init__(self, leases, name="one", namespace="ops"):
        self.told: list[bool] = []
        self.since: Any = None
        self.until: Any = None
        self.stop = asyncio.Event()
        self.election = Election(
            leases,
            namespace,
            name,
            clock=VirtualClock(),
            entropy=SeededEntropy(name),
            told=self.told.append,
        )
        self.task = asyncio.create_task(self.election.lead(self.work))

    async def work(self):
        self.since = now()
        try:
            await self.stop.wait()
        finally:
            self.until = now()

    async def end(self):
        self.stop.set()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_the_first_creates_the_lease_and_renews_it():
    leases = Leases()
    one = Candidate(leases)
    await settle()
    assert (one.since, one.told, one.election.is_leading) == (0, [True], True)
    spec = leases.stored["ops", NAME]["spec"]
    assert spec == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await asyncio.sleep(60)
    spec = leases.stored["ops", NAME]["spec"]
    assert spec["renewTime"] == "2030-01-01T00:01:00.000000Z"
    assert spec["acquireTime"] == "2030-01-01T00:00:00.000000Z"
    assert leases.requests[:2] == ["get", "create"]
    assert leases.requests[2:] == ["replace"] * 30
    await one.end()


async def test_a_second_waits_and_acts_as_soon_as_the_first_has_released():
    leases = Leases()
    one = Candidate(leases)
    await settle()
    two = Candidate(leases, "two")
    await asyncio.sleep(100)
    assert two.told == []
    await one.end()
    assert leases.holder() == ""
    assert one.told == [True, False]
    await asyncio.sleep(2.5)
    assert two.since - one.until <= 2.4
    assert leases.stored["ops", NAME]["spec"]["leaseTransitions"] == 1
    await two.end()


async def test_a_second_takes_over_when_the_first_was_killed():
    leases = Leases()
    one = Candidate(leases)
    await asyncio.sleep(10)
    one.election._client = Leases()  # nothing of its goodbye reaches the server
    one.task.cancel()
    await asyncio.gather(one.task, return_exceptions=True)
    two = Candidate(leases, "two")
    await asyncio.sleep(30)
    assert 15 <= two.since - 10 <= 15 + 2.4
    assert leases.holder() == "two"
    await two.end()


async def test_a_wrong_clock_of_the_holder_does_not_matter():
    leases = Leases()
    long_ago = "1990-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": long_ago}
    leases.store("ops", {"metadata": {"name": NAME}, "spec": spec})
    two = Candidate(leases, "two")
    await asyncio.sleep(14)
    assert two.told == []
    await asyncio.sleep(4)
    assert two.since >= 15
    await two.end()


async def test_a_lease_of_another_duration_is_respected():
    leases = Leases()
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 60, "renewTime": "x"}
    leases.store("ops", {"metadata": {"name": NAME}, "spec": spec})
    two = Candidate(leases, "two")
    await asyncio.sleep(59)
    assert two.told == []
    await asyncio.sleep(4)
    assert two.since >= 60
    await two.end()


@pytest.mark.parametrize("away", [errors.internal_error("x"), OSError("no route"), "hangs"], ids=str)
async def test_a_holder_that_cannot_renew_for_ten_seconds_stops_before_another_may_start(away):
    leases = Leases()
    one = Candidate(leases)
    await asyncio.sleep(20.5)  # renewed at 20
    leases.away = away
    with pytest.raises(LeaseLost, match="could not be renewed for 10 s"):
        await one.task
    assert 29.9 <= one.until <= 30.1
    assert one.told == [True, False]


async def test_a_short_absence_of_the_server_is_survived():
    leases = Leases()
    one = Candidate(leases)
    await asyncio.sleep(20.5)
    leases.away = errors.service_unavailable("x")
    await asyncio.sleep(8)
    leases.away = None
    await asyncio.sleep(100)
    assert one.until is None
    await one.end()


async def test_a_lost_answer_to_a_renewal_is_survived():
    leases = Leases()
    one = Candidate(leases)
    await asyncio.sleep(5)
    leases.store("ops", leases.stored["ops", NAME])  # the same words in a newer version
    await asyncio.sleep(60)
    assert one.until is None
    await one.end()


async def test_a_holder_that_finds_another_in_its_place_stops_at_once():
    leases = Leases()
    one = Candidate(leases)
    await asyncio.sleep(5)
    lease = leases.stored["ops", NAME]
    leases.store("ops", {**lease, "spec": {**lease["spec"], "holderIdentity": "two"}})
    with pytest.raises(LeaseLost, match="held by two"):
        await one.task
    assert one.until < 9
    assert leases.holder() == "two"


async def test_of_two_that_start_together_one_leads():
    leases = Leases()
    pair = [Candidate(leases, "one"), Candidate(leases, "two")]
    await asyncio.sleep(60)
    assert sorted(one.election.is_leading for one in pair) == [False, True]
    for one in pair:
        one.task.cancel()
    await asyncio.gather(*(one.task for one in pair), return_exceptions=True)


async def test_work_that_fails_releases_the_lease_and_shows_its_failure():
    leases = Leases()

    async def fails():
        raise KeyError("x")

    election = Election(leases, "ops", "one", clock=VirtualClock(), entropy=SeededEntropy(1))
    with pytest.raises(KeyError):
        await election.lead(fails)
    assert leases.holder() == ""


async def test_a_server_that_is_away_at_the_end_does_not_hold_up_the_stop():
    leases = Leases()
    one = Candidate(leases)
    await settle()
    leases.away = "hangs"
    before = now()
    await one.end()
    assert now() - before <= 2
    assert one.task.exception() is None


@pytest.mark.case("OP-8")
@pytest.mark.parametrize(
    ("told", "account", "want"),
    [
        pytest.param("ops", "pods-own", "ops", id="the one that was told"),
        pytest.param("", "pods-own\n", "pods-own", id="the Pod's own"),
        pytest.param("", None, "default", id="outside of a Pod, the default"),
    ],
)
async def test_the_lease_lives_in(told, account, want, tmp_path):
    file = tmp_path / "namespace"
    if account is not None:
        file.write_text(account)
    leases = Leases()
    one = Candidate(leases, namespace=lease_namespace(told, account=file))
    await settle()
    await one.end()
    assert list(leases.stored) == [(want, "ray-operator-leader")]


def test_two_processes_of_one_host_have_different_identities():
    entropy = SeededEntropy(1)
    first, second = identity("host", entropy), identity("host", entropy)
    assert first.startswith("host_")
    assert first != second
