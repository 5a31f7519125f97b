"""The metrics of RayServices."""

import pytest

from tests.eagleray.rayservice.situations import (
    ROUND,
    has_condition,
    head_at,
    new_pending,
    pending,
    serve_world,
    serving,
    set_image,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")

METRICS = ("--enable-metrics",)
INFO = "kuberay_service_info"
READY = "kuberay_service_condition_ready"
UPGRADING = "kuberay_service_condition_upgrade_in_progress"


def samples(world, family):
    """Return the samples of a family as (labels, value)."""
    found = []
    for line in world.operator.registry.render().splitlines():
        name, _, rest = line.partition("{")
        if name == family:
            labels, _, value = rest.rpartition("} ")
            pairs = (pair.partition("=") for pair in labels.split(","))
            found.append(({key: text.strip('"') for key, _, text in pairs}, float(value)))
    return found


@pytest.mark.case("OP-90", "OP-91", "OP-92")
async def test_services_are_told_of_as_long_as_they_are_there():
    async with serve_world(flags=METRICS, deploys=3600) as (world, _):
        await world.create(rayservice())
        await world.pass_time(ROUND)
        labels = {
            "name": "s",
            "namespace": "default",
            "uid": (await world.get("RayService", "s"))["metadata"]["uid"],
        }
        assert samples(world, INFO) == [(labels, 1)]
        assert samples(world, READY) == [({**labels, "condition": "false"}, 1)]
        assert samples(world, UPGRADING) == [({**labels, "condition": "false"}, 1)]
        head_at(world, await pending(world)).set_application("app", "RUNNING")
        await has_condition(world, "Ready", "True", "NonZeroServeEndpoints")
        assert samples(world, READY) == [({**labels, "condition": "true"}, 1)]
        await set_image(world, "2.53.0")
        await new_pending(world)
        assert samples(world, UPGRADING) == [({**labels, "condition": "true"}, 1)]
        await world.delete("RayService", "s")
        await world.pass_time(ROUND)
        assert samples(world, INFO) == samples(world, READY) == samples(world, UPGRADING) == []


async def test_nothing_is_told_without_being_asked_for():
    async with serving() as (world, _):
        assert "kuberay_service" not in world.operator.registry.render()
