"""Events: how they look, how repetitions are folded, and that telling never waits."""

import asyncio

import pytest

from eagleray.runtime import events as module
from eagleray.runtime.events import BURST, COMBINED, GATHERING_SECONDS, MOST_SIMILAR, Recorder, clipped
from kubereef.simulation import SimulatedCluster, VirtualClock, settle
from kubewire import errors
from tests.eagleray.runtime.standins import Events, ray_cluster

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
def written():
    return Events()


@pytest.fixture
async def recorder(written):
    recorder = Recorder(written, VirtualClock(), "raycluster-controller", "raycluster-controller-host")
    recorder.start()
    yield recorder
    await recorder.stop()


async def gathered():
    """Let what went well be written: for a moment it is gathered."""
    await asyncio.sleep(GATHERING_SECONDS)
    await settle()


@pytest.mark.case("OP-82")
async def test_an_event_has_the_fields_of_events_k8s_io(recorder, written):
    recorder.normal(ray_cluster(), "CreatedHeadPod", "Create", "Created head Pod default/c-head")
    await gathered()
    (event,) = written.all
    assert event.pop("metadata") == {"name": event_name(written), "namespace": "default"}
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingController": "raycluster-controller",
        "reportingInstance": "raycluster-controller-host",
        "action": "Create",
        "reason": "CreatedHeadPod",
        "regarding": {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "namespace": "default",
            "name": "c",
            "uid": "uid-of-default-c",
            "resourceVersion": "7",
        },
        "note": "Created head Pod default/c-head",
        "type": "Normal",
    }


def event_name(written):
    ((_, name),) = written.written
    return name


async def test_an_event_may_name_a_second_object(recorder, written):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "uid": "uid-of-p"},
    }
    recorder.warning(ray_cluster(), "R", "A", "note", related=pod)
    await settle()
    (event,) = written.all
    assert event["related"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p",
        "uid": "uid-of-p",
    }
    assert event["type"] == "Warning"


@pytest.mark.case("OP-82")
async def test_the_api_server_takes_them():
    cluster = SimulatedCluster()
    await cluster.start()
    url = "/apis/events.k8s.io/v1/namespaces/{}/events"

    class Writer:
        async def create(self, namespace, event):
            await cluster.client.create(url.format(namespace), event)

        async def patch(self, namespace, name, patch):
            await cluster.client.patch(f"{url.format(namespace)}/{name}", patch)

    recorder = Recorder(Writer(), cluster.clock, "raycluster-controller", "host")
    recorder.start()
    for _ in range(2):
        recorder.warning(ray_cluster("x" * 253), "R" * 200, "A" * 200, "ä" * 2000)
        await settle()
    await recorder.stop()
    (event,) = (await cluster.client.get(url.format("default")))["items"]
    await cluster.stop()
    assert recorder.dropped == 0
    assert event["series"]["count"] == 2
    assert event["reportingController"] == "raycluster-controller"


async def test_repetitions_are_counted_in_the_series(recorder, written):
    for _ in range(10):
        recorder.warning(ray_cluster(), "R", "A", "the same")
        await asyncio.sleep(1)
    (event,) = written.all
    assert [verb for verb, _ in written.requests] == ["create", "patch"]
    assert event["series"] == {"count": 2, "lastObservedTime": "2030-01-01T00:00:01.000000Z"}
    await asyncio.sleep(60)
    (event,) = written.all
    assert event["series"]["count"] == 10
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await settle()
    assert len(written.requests) == 3
    await asyncio.sleep(60)
    (event,) = written.all
    assert event["series"]["count"] == 11
    assert len(written.requests) == 4


async def test_what_went_well_repeats_itself_whatever_its_words(recorder, written):
    for number in range(100):
        recorder.normal(ray_cluster(), "CreatedWorkerPod", "Create", f"Created worker Pod {number}")
    await asyncio.sleep(600)
    (event,) = written.all
    assert (event["note"], event["series"]["count"]) == ("Created worker Pod 0", 100)
    assert [verb for verb, _ in written.requests] == ["create"]


async def test_what_went_well_again_later_is_counted_within_a_minute(recorder, written):
    for number in range(3):
        recorder.normal(ray_cluster(), "CreatedWorkerPod", "Create", f"Created worker Pod {number}")
        await gathered()
    assert [verb for verb, _ in written.requests] == ["create"]
    await asyncio.sleep(60)
    (event,) = written.all
    assert event["series"]["count"] == 3
    assert [verb for verb, _ in written.requests] == ["create", "patch"]


async def test_a_count_that_waits_is_written_at_the_stop(recorder, written):
    for _ in range(3):
        recorder.normal(ray_cluster(), "R", "A", "note")
        await settle()
    await recorder.stop()
    (event,) = written.all
    assert event["series"]["count"] == 3


async def test_a_repetition_before_the_first_was_written_is_part_of_it(written):
    recorder = Recorder(written, VirtualClock(), "c")
    for _ in range(3):
        recorder.warning(ray_cluster(), "R", "A", "the same")
    recorder.start()
    await recorder.stop()
    (event,) = written.all
    assert event["series"]["count"] == 3
    assert [verb for verb, _ in written.requests] == ["create"]


async def test_a_repetition_does_not_overtake_the_creation_of_its_event():
    class Slow(Events):
        async def create(self, namespace, event):
            await asyncio.sleep(1)
            await super().create(namespace, event)

    slow = Slow()
    recorder = Recorder(slow, VirtualClock(), "c")
    recorder.start()
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await settle()
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await recorder.stop()
    assert [verb for verb, _ in slow.requests] == ["create", "patch"]


async def test_a_repetition_that_the_creation_has_told_of_is_not_written_again():
    class Slow(Events):
        async def create(self, namespace, event):
            await asyncio.sleep(5)
            await super().create(namespace, event)

    slow = Slow()
    recorder = Recorder(slow, VirtualClock(), "c")
    recorder.start()
    for number in range(4):  # all that can be written at a time
        recorder.warning(ray_cluster(), "R", "A", f"note {number}")
    recorder.normal(ray_cluster(), "Done", "A", "note")
    await asyncio.sleep(2)
    recorder.normal(ray_cluster(), "Done", "A", "note")
    await asyncio.sleep(120)
    await recorder.stop()
    assert slow.all[-1]["series"]["count"] == 2
    assert [verb for verb, _ in slow.requests] == ["create"] * 5


async def test_what_was_silent_for_long_is_told_anew(recorder, written):
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await asyncio.sleep(361)
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await settle()
    assert len(written.all) == 2


async def test_a_series_whose_event_has_expired_is_told_anew(recorder, written):
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await settle()
    written.written.clear()
    written.refusals = [errors.not_found("events", "x")]
    recorder.warning(ray_cluster(), "R", "A", "the same")
    await settle()
    assert [verb for verb, _ in written.requests] == ["create", "patch", "create"]
    assert len({name for _, name in written.requests}) == 2
    assert written.all[0]["series"]["count"] == 2


async def test_an_event_gives_way_to_one_of_its_name(recorder, written):
    written.refusals = [errors.already_exists("events", "c.1")]
    recorder.warning(ray_cluster(), "R", "A", "note")
    await settle()
    (taken, name) = (name for _, name in written.requests)
    assert taken != name
    assert [event["metadata"]["name"] for event in written.all] == [name]
    assert recorder.dropped == 0


async def test_events_that_differ_are_told_apart(recorder, written):
    recorder.warning(ray_cluster(), "R", "A", "one")
    recorder.warning(ray_cluster(), "R", "A", "two")
    recorder.normal(ray_cluster(), "R", "A", "one")
    recorder.normal(ray_cluster("d"), "R", "A", "one")
    recorder.normal(ray_cluster(), "R", "B", "one")
    await gathered()
    assert len(written.all) == 5
    assert len(written.written) == 5


async def test_many_similar_events_become_one_series(recorder, written):
    for number in range(500):
        recorder.warning(ray_cluster(), "FailedToCreateWorkerPod", "Create", f"Pod {number}: no")
    await recorder.stop()
    notes = [event["note"] for event in written.all]
    assert len(notes) == MOST_SIMILAR + 1
    assert notes[-1].startswith(COMBINED)
    assert written.all[-1]["series"]["count"] == 500 - MOST_SIMILAR


async def test_after_a_silence_similar_events_are_told_one_by_one_again(recorder, written):
    for number in range(MOST_SIMILAR + 1):
        recorder.warning(ray_cluster(), "R", "A", f"note {number}")
    await asyncio.sleep(361)
    recorder.warning(ray_cluster(), "R", "A", "another note")
    await settle()
    assert written.all[-1]["note"] == "another note"


async def test_one_object_gets_only_so_many_and_takes_nothing_from_others(recorder, written):
    for number in range(BURST + 20):
        recorder.normal(ray_cluster(), f"Reason{number}", "A", "note")
    recorder.normal(ray_cluster("other"), "R", "A", "note")
    await gathered()
    assert len(written.all) == BURST + 1
    assert recorder.dropped == 20
    await asyncio.sleep(10)
    recorder.normal(ray_cluster(), "Later", "A", "note")
    await gathered()
    assert len(written.all) == BURST + 2


@pytest.mark.parametrize(
    "refusal",
    [errors.forbidden("events", "", "no"), OSError("gone"), ValueError("a bug")],
    ids=["refused", "unreachable", "broken"],
)
async def test_what_cannot_be_written_is_dropped_and_the_next_one_is_written(recorder, written, refusal):
    written.refusals = [refusal]
    recorder.normal(ray_cluster(), "First", "A", "note")
    recorder.normal(ray_cluster(), "Second", "A", "note")
    await gathered()
    assert [event["reason"] for event in written.all] == ["Second"]
    assert recorder.dropped == 1


async def test_a_hanging_server_holds_up_nobody_and_what_waits_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MOST_WAITING", 5)

    class Hanging(Events):
        async def create(self, namespace, event):
            await asyncio.sleep(1e6)

    recorder = Recorder(Hanging(), VirtualClock(), "c")
    for number in range(20):
        recorder.normal(ray_cluster(str(number)), "R", "A", "note")
    assert recorder.dropped == 15
    recorder.start()
    before = asyncio.get_running_loop().time()
    await recorder.stop(patience=5)
    assert asyncio.get_running_loop().time() - before == 5


async def test_what_is_remembered_is_bounded(recorder, monkeypatch):
    monkeypatch.setattr(module, "MOST_REMEMBERED", 10)
    for number in range(50):
        recorder.warning(ray_cluster(str(number)), "R", "A", "note")
    assert len(recorder._told) == len(recorder._similar) == len(recorder._budgets) == 10


async def test_secrets_stay_out_of_notes(recorder, written):
    recorder.warning(ray_cluster(), "R", "A", "cannot reach redis://:hunter2@redis:6379")
    await settle()
    assert "hunter2" not in written.all[0]["note"]


@pytest.mark.parametrize(
    ("text", "size", "want"),
    [
        pytest.param("abc", 3, "abc", id="what fits stays"),
        pytest.param("abcdefgh", 6, "abc…", id="what does not is cut"),
        pytest.param("ääää", 6, "ä…", id="bytes count, and letters stay whole"),
    ],
)
def test_notes_are_cut_to_bytes(text, size, want):
    assert clipped(text, size) == want
    assert len(want.encode()) <= size
