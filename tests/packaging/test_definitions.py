"""The CRDs: how large they are, and what becomes of a cluster whose reference's CRDs are replaced by ours."""

import json

import pytest
import yaml

from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubereef.simulation import settle
from tests.eagleray.raycronjob.situations import raycronjob
from tests.eagleray.world import PATHS, raycluster, rayjob, rayservice, world_of

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MOST_BYTES = 1_400_000


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_definition_is_not_too_large_for_the_store_of_a_cluster(kind):
    assert len(json.dumps(crd(kind), separators=(",", ":"))) < MOST_BYTES


@pytest.mark.heavy
@pytest.mark.case("OP-131")
@pytest.mark.usefixtures("virtual_time")
async def test_when_the_reference_s_definitions_are_replaced_no_object_changes_and_no_pod_restarts(reference):
    theirs = {
        definition["spec"]["names"]["kind"]: definition
        for path in sorted((reference / "crds").glob("*.yaml"))
        for definition in [yaml.load(path.read_text(), yaml.CSafeLoader)]
    }
    assert theirs.keys() == {kind.name for kind in KINDS}
    held = {"suspend": True, "shutdownAfterJobFinishes": True}
    objects = [raycluster(), rayjob(**held), rayservice(), raycronjob(suspend=True)]

    async with world_of(kinds=(), operator=False) as world:
        for definition in theirs.values():
            await world.api.create(CRDS, definition)
        await settle()
        await world.start_operator()
        for obj in objects:
            await world.create(obj)
        await world.ready()
        await world.pass_time(60)
        before = await everything(world)
        assert len(before["Pod"]) >= 4

        for kind in KINDS:
            stored = await world.api.get(f"{CRDS}/{kind.plural}.ray.io")
            ours = crd(kind)
            ours["metadata"] = {**ours["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
            await world.api.replace(f"{CRDS}/{kind.plural}.ray.io", ours)
        await settle()
        assert await everything(world) == before
        await world.stop_operator()
        await world.start_operator()
        # One that starts anew looks at everything, and finds all hashes as they should be.
        await world.pass_time(700)
        after = await everything(world)
        assert after["Pod"] == before["Pod"]
        assert after["RayCluster"] == before["RayCluster"]
        for kind in KINDS:
            # Statuses may have more to say, now that there are fields for it.
            assert told(after[kind.name]) == told(before[kind.name])


def told(objects):
    """Return what users have said of objects, and operators in annotations and labels."""
    fields = ("uid", "generation", "labels", "annotations", "finalizers")
    return {
        name: (obj["spec"], {field: obj["metadata"].get(field) for field in fields})
        for name, obj in objects.items()
    }


async def everything(world):
    kinds = ("Pod", *(kind.name for kind in KINDS))
    found = {kind: (await world.api.get(PATHS[kind].format("default")))["items"] for kind in kinds}
    return {kind: {one["metadata"]["name"]: one for one in items} for kind, items in found.items()}
