"""How worlds get along with a real plane: when their time jumps, what they wait for, and how they read its clock."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from kubereef.simulation import VirtualClock
from kubewire.times import format_time, parse_time
from tests.kubernetes.debts import Debts
from tests.kubernetes.patience import REACTION, PatientLoop, patient_loop, under_way
from tests.kubernetes.stamps import Stamps, on_the_wall

COUNTED = ["batch.kubernetes.io/job-tracking"]
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False"}]


def run(coroutine):
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(coroutine)


async def wall(seconds):
    await asyncio.to_thread(time.sleep, seconds)


async def passing(seconds):
    """Let the world's time pass; return how long it took on the wall."""
    began = time.monotonic()
    await asyncio.sleep(seconds)
    return time.monotonic() - began


# --- time


def test_time_jumps_where_nothing_stirs():
    async def scene():
        assert await passing(3600) < 1
        assert patient_loop().time() >= 3600

    run(scene())


def test_time_stands_still_while_a_request_is_under_way():
    async def scene():
        answer = asyncio.create_task(under_way(wall(0.2)))
        await asyncio.sleep(0)
        await passing(1)
        assert answer.done()

    run(scene())


def test_the_plane_has_time_to_react_to_what_it_sees():
    async def scene():
        patient_loop().stir()
        assert await passing(0.001) >= REACTION

    run(scene())


def test_what_is_owed_is_waited_for_until_it_has_come_and_no_longer():
    async def scene():
        loop = patient_loop()
        loop.owe("a node", 30)

        async def pays():
            await wall(0.2)
            loop.pay("a node")

        paying = asyncio.create_task(pays())
        assert 0.1 < await passing(3600) < 10
        await paying

    run(scene())


def test_what_is_never_paid_was_no_debt():
    async def scene():
        patient_loop().owe("a node", 0.1)
        assert 0.1 <= await passing(3600) < 10

    run(scene())


def test_time_keeps_pace_with_a_controller_that_waits_by_its_own_clock():
    async def scene():
        loop = patient_loop()
        loop.promise("the next Pod", 0.3)
        assert 0.1 <= await passing(0.1) < 0.29
        assert 0.1 <= await passing(3600) < 10

    run(scene())


# --- debts


def pod(*, node="", phase="Pending", **metadata):
    status = {"phase": phase, "conditions": metadata.pop("conditions", [])}
    spec = {"nodeName": node} if node else {}
    return {"kind": "Pod", "metadata": {"uid": "u", **metadata}, "spec": spec, "status": status}


def job(**status):
    return {"kind": "Job", "metadata": {"uid": "u"}, "spec": {}, "status": status}


def owed_after(*news):
    """Return whether something is owed after all that was heard."""

    async def scene():
        debts = Debts()
        for change, obj in news:
            debts.heard(change, obj)
        loop = patient_loop()
        return loop.pace > 0 or loop.listening(0) > 2 * REACTION

    return run(scene())


@pytest.mark.parametrize(
    ("obj", "is_owed"),
    [
        pytest.param(pod(), True, id="the scheduler owes a node to a new Pod"),
        pytest.param(pod(node="n"), False, id="but not to one that has one"),
        pytest.param(pod(conditions=UNSCHEDULABLE), False, id="nor to one that fits nowhere"),
        pytest.param(pod(deletionTimestamp="soon"), False, id="nor to one that goes"),
        pytest.param(
            pod(node="n", phase="Failed", finalizers=COUNTED), True, id="a Pod that failed is counted"
        ),
        pytest.param(
            pod(node="n", deletionTimestamp="soon", finalizers=COUNTED), True, id="and so is one that goes"
        ),
        pytest.param(pod(node="n", phase="Running", finalizers=COUNTED), False, id="but not one that runs"),
        pytest.param(job(failed=1), True, id="a Job that has lost its Pod gets another"),
        pytest.param(job(failed=1, active=1), False, id="but not one that has another"),
        pytest.param(job(failed=1, conditions=[{"type": "Failed"}]), False, id="nor one that is over"),
    ],
)
def test_what_is_owed_to_an_object(obj, is_owed):
    assert owed_after(("MODIFIED", obj)) is is_owed
    assert not owed_after(("MODIFIED", obj), ("DELETED", obj))


def test_what_is_owned_by_somebody_who_has_gone_goes_too():
    owner = {"kind": "RayCluster", "metadata": {"uid": "o"}}
    owned = pod(node="n", ownerReferences=[{"uid": "o"}])
    going = pod(node="n", deletionTimestamp="soon")
    news = [("ADDED", owner), ("ADDED", owned), ("DELETED", owner)]
    assert not owed_after(*news[:2])
    assert owed_after(*news)
    assert not owed_after(*news, ("MODIFIED", going))
    assert not owed_after(*news[:2], ("DELETED", owned), ("DELETED", owner))


# --- stamps


def stamped(**metadata):
    return {"kind": "Pod", "metadata": {"uid": "u", **metadata}}


def test_a_stamp_of_the_plane_is_told_as_the_time_at_which_it_was_seen_first():
    async def scene():
        clock = VirtualClock()
        stamps = Stamps(clock)
        on_the_plane = format_time(datetime.now(UTC))
        await asyncio.sleep(100)
        made = format_time(clock.now())
        assert stamps.told(stamped(creationTimestamp=on_the_plane)) == stamped(creationTimestamp=made)
        await asyncio.sleep(100)
        again = {"items": [stamped(creationTimestamp=on_the_plane)]}
        assert stamps.told(again) == {"items": [stamped(creationTimestamp=made)]}
        event = {"type": "MODIFIED", "object": stamped(creationTimestamp=on_the_plane)}
        assert stamps.told(event)["object"] == stamped(creationTimestamp=made)

    run(scene())


def test_a_deletion_is_told_as_so_much_later_as_there_is_time_for_it():
    async def scene():
        clock = VirtualClock()
        due = format_time(datetime.now(UTC) + timedelta(seconds=30))
        told = Stamps(clock).told(stamped(deletionTimestamp=due, deletionGracePeriodSeconds=30))
        assert parse_time(told["metadata"]["deletionTimestamp"]) - clock.now() == pytest.approx(
            timedelta(seconds=30), abs=timedelta(seconds=1)
        )

    run(scene())


def test_a_time_that_the_world_has_written_stays():
    async def scene():
        clock = VirtualClock()
        obj = {**stamped(), "status": {"startTime": format_time(clock.now()), "message": "at 12:00"}}
        assert Stamps(clock).told(obj) == {
            **stamped(),
            "status": {"startTime": format_time(clock.now()), "message": "at 12:00"},
        }

    run(scene())


def test_an_answer_that_is_no_json_stays():
    assert Stamps(VirtualClock()).text(b"404 page not found") == b"404 page not found"


def test_the_ends_of_containers_are_told_on_the_wall():
    ended = {"state": {"terminated": {"exitCode": 1, "finishedAt": "2030-01-01T00:00:03Z"}}}
    said = on_the_wall({"status": {"containerStatuses": [ended]}})
    (told,) = said["status"]["containerStatuses"]
    assert told["state"]["terminated"]["exitCode"] == 1
    finished = parse_time(told["state"]["terminated"]["finishedAt"])
    assert abs(finished - datetime.now(UTC)) < timedelta(minutes=1)
