"""What controllers tell users."""

import pytest

from kubereef.controllers.events import Recorder
from kubereef.controllers.resources import CONFIG_MAPS
from kubewire import errors

EVENTS = "/api/v1/namespaces/default/events"


@pytest.fixture
async def about(simulated_cluster):
    url = "/api/v1/namespaces/default/configmaps"
    return await simulated_cluster.client.create(url, {"metadata": {"name": "a"}})


@pytest.fixture
def recorder(simulated_cluster):
    return Recorder(simulated_cluster.client, simulated_cluster.clock, "some-controller")


async def test_an_event_names_its_object_its_teller_and_the_time(simulated_cluster, recorder, about):
    await recorder.warning(CONFIG_MAPS, about, "Broken", "it broke")
    (event,) = (await simulated_cluster.client.get(EVENTS))["items"]
    assert event["metadata"]["name"].startswith("a.")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Broken", "it broke")
    assert event["involvedObject"] == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "a",
        "uid": about["metadata"]["uid"],
        "resourceVersion": about["metadata"]["resourceVersion"],
    }
    assert event["source"] == {"component": "some-controller"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2030-01-01T00:00:00Z"
    assert event["count"] == 1


async def test_an_event_that_happens_again_is_counted(simulated_cluster, recorder, about):
    await recorder.normal(CONFIG_MAPS, about, "Again", "and again")
    await simulated_cluster.pass_time(60)
    await recorder.normal(CONFIG_MAPS, about, "Again", "and again")
    await recorder.normal(CONFIG_MAPS, about, "Again", "but differently")
    first, other = (await simulated_cluster.client.get(EVENTS))["items"]
    assert (first["count"], other["count"]) == (2, 1)
    assert first["firstTimestamp"] == "2030-01-01T00:00:00Z"
    assert first["lastTimestamp"] == "2030-01-01T00:01:00Z"


async def test_several_events_of_one_moment_are_all_told(simulated_cluster, recorder, about):
    for number in range(3):
        await recorder.normal(CONFIG_MAPS, about, "Busy", f"number {number}")
    assert len((await simulated_cluster.client.get(EVENTS))["items"]) == 3


async def test_very_many_similar_events_are_told_as_one(simulated_cluster, recorder, about):
    for number in range(100):
        await recorder.normal(CONFIG_MAPS, about, "Busy", f"number {number}")
    await recorder.normal(CONFIG_MAPS, about, "Done", "at last")
    told = {
        event["message"]: event["count"] for event in (await simulated_cluster.client.get(EVENTS))["items"]
    }
    assert told == {
        **{f"number {number}": 1 for number in range(10)},
        "(combined from similar events): number 99": 90,
        "at last": 1,
    }


async def test_after_a_while_similar_events_are_told_one_by_one_again(simulated_cluster, recorder, about):
    for number in range(20):
        await recorder.normal(CONFIG_MAPS, about, "Busy", f"number {number}")
    await simulated_cluster.pass_time(601)
    await recorder.normal(CONFIG_MAPS, about, "Busy", "much later")
    messages = [event["message"] for event in (await simulated_cluster.client.get(EVENTS))["items"]]
    assert "much later" in messages


async def test_a_counted_event_that_was_deleted_is_told_anew(simulated_cluster, recorder, about):
    await recorder.normal(CONFIG_MAPS, about, "Again", "and again")
    await simulated_cluster.client.delete(EVENTS)
    await recorder.normal(CONFIG_MAPS, about, "Again", "and again")
    await recorder.normal(CONFIG_MAPS, about, "Again", "and again")
    (event,) = (await simulated_cluster.client.get(EVENTS))["items"]
    assert event["message"] == "and again"


async def test_an_event_that_cannot_be_written_is_no_failure(about, simulated_cluster):
    class Refusing:
        async def create(self, url, body):
            raise errors.forbidden("events", "a", "the namespace is going")

        async def patch(self, url, body, kind="merge"):
            raise errors.not_found("events", "a")

    recorder = Recorder(Refusing(), simulated_cluster.clock, "some-controller")
    await recorder.normal(CONFIG_MAPS, about, "Any", "thing")


async def test_a_very_long_message_is_cut(simulated_cluster, recorder, about):
    await recorder.normal(CONFIG_MAPS, about, "Long", "x" * 5000)
    (event,) = (await simulated_cluster.client.get(EVENTS))["items"]
    assert len(event["message"]) == 1024
