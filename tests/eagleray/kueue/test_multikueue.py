"""Objects that MultiKueue runs in another cluster are not touched here."""

import pytest

from kubewire import errors
from tests.eagleray.kueue.quota import kueue_world
from tests.eagleray.world import raycluster, rayjob, rayservice

KINDS = ("RayCluster", "RayJob", "RayService")
OTHER = "kueue.x-k8s.io/multikueue"
OURS = "ray.io/kuberay-operator"


def managed(kind, manager):
    """Return an object of a kind that somebody manages."""
    builders = {"RayCluster": raycluster, "RayJob": rayjob, "RayService": rayservice}
    return builders[kind]("o", managedBy=manager)


@pytest.mark.case("OP-163")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_multikueue_manages_is_left_as_it_is(kind):
    async with kueue_world(kinds=KINDS) as (world, _, _):
        await world.create(managed(kind, OTHER))
        created = await world.get(kind, "o")
        await world.pass_time(60)
        assert await world.get(kind, "o") == created
        assert world.writes() == []
        await world.patch(kind, "o", {"status": {"observedGeneration": 1}}, part="/status")
        await world.delete(kind, "o")
        await world.pass_time(5)
        assert await world.get(kind, "o") is None


@pytest.mark.case("OP-163")
@pytest.mark.parametrize("kind", KINDS)
async def test_who_manages_an_object_does_not_change_and_is_one_of_two(kind):
    async with kueue_world(kinds=KINDS, operator=False) as (world, _, _):
        await world.create(managed(kind, OTHER))
        with pytest.raises(errors.Invalid, match="managedBy"):
            await world.patch(kind, "o", {"spec": {"managedBy": OURS}})
        other = managed(kind, "example.com/somebody")
        other["metadata"]["name"] = "p"
        with pytest.raises(errors.Invalid, match="managedBy"):
            await world.create(other)


@pytest.mark.parametrize("kind", KINDS)
async def test_what_this_operator_manages_by_name_is_looked_after(kind):
    async with kueue_world(kinds=KINDS) as (world, _, _):
        await world.create(managed(kind, OURS))
        await world.pass_time(10)
        assert await world.list("Pod")
