"""Heads that keep their state themselves, on a volume."""

import pytest

from tests.eagleray.raycluster.situations import MOMENT
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

GATE = ("--feature-gates=GCSFaultToleranceEmbeddedStorage=true",)
CLAIM = "c-gcs-pvc"


def stored(**storage):
    """Return a cluster with one worker whose head keeps its state on a volume."""
    options = {"backend": "rocksdb", **({"storage": storage} if storage else {})}
    return raycluster(gcsFaultToleranceOptions=options)


def claim(name="mine"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


async def owners(world):
    found = await world.get("PersistentVolumeClaim", CLAIM)
    return [owner["kind"] for owner in found["metadata"].get("ownerReferences") or ()]


@pytest.mark.case("RC-92", "OP-49")
async def test_a_claim_is_made_for_the_head_and_goes_with_the_cluster():
    async with world_of(flags=GATE) as world:
        await world.create(stored())
        await world.pass_time(MOMENT)
        made = await world.get("PersistentVolumeClaim", CLAIM)
        assert made["spec"]["accessModes"] == ["ReadWriteOnce"]
        assert made["spec"]["resources"]["requests"] == {"storage": "1Gi"}
        assert await owners(world) == ["RayCluster"]
        assert made["metadata"]["labels"] == {"ray.io/cluster": "c"}
        (event,) = await world.events("CreatedPVC")
        assert event["note"] == f"Created GCS storage PVC default/{CLAIM}"


@pytest.mark.case("RC-92", "RC-36")
async def test_the_head_mounts_the_claim_and_knows_of_no_redis():
    async with world_of(flags=GATE) as world:
        await world.create(stored(subPath="gcs"))
        await world.pass_time(MOMENT)
        head = await world.head()
        ray = head["spec"]["containers"][0]
        values = {one["name"]: one.get("value") for one in ray["env"]}
        assert (values["RAY_gcs_storage"], values["RAY_gcs_storage_path"]) == ("rocksdb", "/data/gcs")
        assert not {name for name in values if "REDIS" in name or "external_storage" in name}
        assert {"name": "gcs-storage", "mountPath": "/data/gcs", "subPath": "gcs"} in ray["volumeMounts"]
        volume = {"name": "gcs-storage", "persistentVolumeClaim": {"claimName": CLAIM}}
        assert volume in head["spec"]["volumes"]
        assert "ray.io/external-storage-namespace" not in head["metadata"]["annotations"]
        (worker,) = await world.workers()
        names = [one["name"] for one in worker["spec"]["containers"][0]["env"]]
        assert "RAY_gcs_rpc_server_reconnect_timeout_s" in names
        cluster = await world.get("RayCluster", "c")
        assert not cluster["metadata"].get("finalizers")


@pytest.mark.case("RC-92")
async def test_a_claim_of_the_users_own_is_mounted_and_none_is_made():
    async with world_of(flags=GATE) as world:
        await world.create(claim())
        await world.create(stored(claimName="mine"))
        await world.pass_time(MOMENT)
        assert await world.get("PersistentVolumeClaim", CLAIM) is None
        volumes = {one["name"]: one for one in (await world.head())["spec"]["volumes"]}
        assert volumes["gcs-storage"]["persistentVolumeClaim"] == {"claimName": "mine"}
        assert await world.events("FailedToCreatePVC") == []


@pytest.mark.case("RC-92")
async def test_a_missing_claim_of_the_users_own_is_told_and_holds_nothing_up():
    async with world_of(flags=GATE) as world:
        await world.create(stored(claimName="mine"))
        await world.pass_time(MOMENT)
        (event,) = await world.events("FailedToCreatePVC")
        assert (event["type"], event["action"]) == ("Warning", "Validate")
        assert "default/mine does not exist" in event["note"]
        assert await world.head() is not None


@pytest.mark.case("RC-92")
async def test_whether_a_claim_is_kept_can_be_changed():
    async with world_of(flags=GATE) as world:
        await world.create(stored(deletionPolicy="Retain"))
        await world.pass_time(MOMENT)
        assert await owners(world) == []
        await world.patch_spec(
            "c", {"gcsFaultToleranceOptions": {"storage": {"deletionPolicy": "DeleteWithCluster"}}}
        )
        await world.pass_time(MOMENT)
        assert await owners(world) == ["RayCluster"]
        await world.patch_spec("c", {"gcsFaultToleranceOptions": {"storage": {"deletionPolicy": "Retain"}}})
        await world.pass_time(MOMENT)
        assert await owners(world) == []


@pytest.mark.case("RC-92")
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"size": "2Gi"}, "size"),
        ({"storageClassName": "fast"}, "storageClassName"),
        ({"accessModes": ["ReadWriteMany"]}, "accessModes"),
    ],
)
async def test_a_claim_that_differs_is_told_and_left_alone(change, word):
    async with world_of(flags=GATE) as world:
        await world.create(stored())
        await world.pass_time(MOMENT)
        before = await world.get("PersistentVolumeClaim", CLAIM)
        await world.patch_spec("c", {"gcsFaultToleranceOptions": {"storage": change}})
        await world.pass_time(MOMENT)
        (event,) = await world.events("FailedToCreatePVC")
        assert (event["type"], event["action"]) == ("Warning", "Update")
        assert f"its {word} differ" in event["note"]
        assert (await world.get("PersistentVolumeClaim", CLAIM))["spec"] == before["spec"]
