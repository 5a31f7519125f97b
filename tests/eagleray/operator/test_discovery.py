"""Which kinds an operator finds, on servers that tell late of those that they serve."""

import asyncio

import msgspec

from eagleray.operator.assembly import EXIT_AGAIN, Operator
from eagleray.runtime.options import read_options
from kubewire.sources import SeededEntropy
from tests.eagleray.world import QUIET, PickyTransport, definition_of, rayjob, world_of


class Slow(PickyTransport):
    """A server that serves a kind and does not tell of it yet."""

    async def send(self, request):
        answer = await super().send(request)
        if request.path != "/apis/ray.io/v1":
            return answer
        told = msgspec.json.decode(answer.body)
        told["resources"] = [one for one in told["resources"] if one["kind"] == "RayCluster"]
        return answer._replace(body=msgspec.json.encode(told))


async def test_a_kind_that_is_served_but_not_told_of_yet_is_looked_after(virtual_time):
    async with world_of(kinds=("RayCluster", "RayJob"), operator=False) as world:
        await world.start_operator(Slow(world.place.transport()))
        await world.create(rayjob())

        async def has_begun():
            return (await world.status("j", "RayJob")).get("jobDeploymentStatus")

        await world.until(has_begun)


async def test_a_kind_that_is_not_served_is_told_and_left_out(virtual_time, caplog):
    async with world_of(kinds=("RayCluster", "RayJob")) as world:
        await world.pass_time(1)
        left_out = [line.split()[0] for line in caplog.messages if "is not served here" in line]
        assert left_out == ["RayService", "RayCronJob"]
        assert {request.resource for request in world.faults.sent if request.verb == "watch"} >= {
            "rayjobs.ray.io"
        }


async def test_an_operator_that_may_begin_anew_ends_when_a_kind_comes_that_it_has_missed(virtual_time):
    async with world_of(kinds=("RayCluster",), operator=False) as world:
        operator = Operator(
            read_options(QUIET, {}),
            world.place.transport(),
            clock=world.clock,
            entropy=SeededEntropy("anew"),
            begins_anew=True,
        )
        running = asyncio.create_task(operator.run(asyncio.Event()))
        await world.pass_time(60)
        assert not running.done()
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await world.api.create(crds, definition_of("RayJob"))
        assert await asyncio.wait_for(running, 30) == EXIT_AGAIN
        await operator.close()
