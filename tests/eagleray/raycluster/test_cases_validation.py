"""Clusters that the rules reject or warn about, and those that somebody else manages."""

import pytest

from tests.eagleray.raycluster.situations import MOMENT, running, told, uids
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")


def both_suspensions(world):
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        }
        for kind in ("RayClusterSuspending", "RayClusterSuspended")
    ]
    return world.patch("RayCluster", "c", {"status": {"conditions": conditions}}, part="/status")


@pytest.mark.case("RC-31")
async def test_a_status_that_contradicts_itself_stops_everything():
    async with running() as world:
        before = uids(await world.pods())
        await both_suspensions(world)
        await world.set_group("c", replicas=1)
        await world.pass_time(MOMENT)
        assert uids(await world.pods()) == before
        kind, action, note = await told(world, "InvalidRayClusterStatus")
        assert (kind, action) == ("Warning", "Validate")
        assert note.startswith("The RayCluster status is invalid default/c, ")


@pytest.mark.case("RC-32")
@pytest.mark.parametrize("manager", [None, "ray.io/kuberay-operator"], ids=["unset", "this operator"])
async def test_a_cluster_that_is_ours_to_manage_is_reconciled(manager):
    async with running(managedBy=manager) as world:
        assert (await world.status())["state"] == "ready"


@pytest.mark.case("RC-32")
@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", "", "example.com/other"])
async def test_a_cluster_that_somebody_else_manages_is_left_alone(manager):
    async with world_of() as world:
        if manager != "kueue.x-k8s.io/multikueue":
            await without_rules(world)
        await world.create(raycluster(managedBy=manager))
        await world.pass_time(60)
        assert await world.pods() == []
        assert await world.status() == {}
        assert await world.events() == []
        assert world.writes() == []


async def without_rules(world):
    """Have the server accept any manager, as older CRDs do."""
    url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayclusters.ray.io"
    crd = await world.api.get(url)
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec.get("managedBy", {}).pop("x-kubernetes-validations", None)
    await world.api.replace(url, crd)
    await world.pass_time(1)


GATED = [
    pytest.param(
        {"tlsOptions": {"enabled": True}},
        "requires the RayClusterMTLS feature gate to be enabled",
        id="certificates",
        marks=[pytest.mark.case("RC-33"), pytest.mark.case("RC-99")],
    ),
    pytest.param(
        {"networkPolicy": {}},
        "requires the RayClusterNetworkPolicy feature gate to be enabled",
        id="network policies",
        marks=pytest.mark.case("RC-99"),
    ),
    pytest.param(
        {"historyServerOptions": {"collectorOptions": {"image": "i"}}},
        "RayClusterHistoryServer feature gate is not enabled",
        id="history server",
        marks=pytest.mark.case("RC-99"),
    ),
    pytest.param(
        {"gcsFaultToleranceOptions": {"backend": "rocksdb"}},
        "requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled",
        id="state on disk",
        marks=[pytest.mark.case("RC-99")],
    ),
]


@pytest.mark.parametrize(("spec", "words"), GATED)
async def test_what_comes_later_is_rejected_in_plain_words(spec, words):
    async with world_of() as world:
        await world.create(raycluster(**spec))
        await world.pass_time(60)
        kind, action, note = await told(world, "InvalidRayClusterSpec")
        assert (kind, action) == ("Warning", "Validate")
        assert note.startswith("The RayCluster spec is invalid default/c: ")
        assert words in note
        for child in ("Pod", "Service", "PersistentVolumeClaim"):
            found = [one for one in await world.list(child) if one["metadata"]["name"] != "kubernetes"]
            assert found == []


@pytest.mark.case("RC-101")
async def test_two_groups_of_one_name_are_rejected_where_nothing_runs():
    async with world_of() as world:
        await world.create(raycluster(workers=[{}, {}]))
        await world.pass_time(MOMENT)
        assert await world.pods() == []
        assert "invalid" in (await told(world, "InvalidRayClusterSpec"))[2]


@pytest.mark.case("RC-101")
async def test_two_groups_of_one_name_are_warned_about_where_pods_run():
    async with running(workers=[{"replicas": 1}]) as world:
        before = uids(await world.pods())
        group = (await world.get("RayCluster", "c"))["spec"]["workerGroupSpecs"][0]
        await world.patch_spec("c", {"workerGroupSpecs": [group, group]})
        await world.pass_time(MOMENT)
        assert uids(await world.pods()) >= before
        kind, action, note = await told(world, "InvalidRayClusterSpec")
        assert (kind, action) == ("Warning", "Validate")
        assert note.startswith("RayCluster spec warning default/c: ")
        assert (await world.status())["observedGeneration"] == 2


@pytest.mark.case("RC-108")
async def test_an_invalid_generation_changes_nothing_and_a_valid_one_goes_on():
    async with running(workers=[{"replicas": 3}]) as world:
        await world.pass_time(MOMENT)
        pods, before = uids(await world.pods()), await world.status()
        await world.set_group("c", replicas=1, minReplicas=5, maxReplicas=3)
        await world.pass_time(MOMENT)
        after = await world.status()
        assert after["observedGeneration"] == 2
        for status in (before, after):
            del status["observedGeneration"], status["lastUpdateTime"]
        assert after == before
        assert uids(await world.pods()) == pods
        await world.set_group("c", replicas=1, minReplicas=0, maxReplicas=3)
        await world.pass_time(MOMENT)
        assert len(await world.workers()) == 1
        assert (await world.status())["observedGeneration"] == 3


@pytest.mark.case("RC-109")
async def test_what_we_do_not_know_stays_in_the_object():
    """Fields that only a newer CRD knows survive every write of ours."""
    async with world_of() as world:
        url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayclusters.ray.io"
        crd = await world.api.get(url)
        spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        template = spec["properties"]["headGroupSpec"]["properties"]["template"]
        template["properties"]["spec"]["x-kubernetes-preserve-unknown-fields"] = True
        await world.api.replace(url, crd)
        await world.pass_time(1)
        cluster = raycluster(gcsFaultToleranceOptions={"redisAddress": "r:6379"})
        cluster["spec"]["headGroupSpec"]["template"]["spec"]["notYetKnown"] = {"deep": [1, None, "x"]}
        await world.create(cluster)
        stored = await world.get("RayCluster", "c")
        await world.ready()
        after = await world.get("RayCluster", "c")
        assert after["spec"] == stored["spec"]
        assert after["spec"]["headGroupSpec"]["template"]["spec"]["notYetKnown"] == {"deep": [1, None, "x"]}
        assert after["metadata"]["generation"] == 1
        assert after["metadata"]["finalizers"]


REJECTED = [
    pytest.param(
        {"name": "9" + "c" * 3}, {}, "InvalidRayClusterMetadata", "metadata is invalid", id="metadata"
    ),
    pytest.param(
        {},
        {"workers": [{"minReplicas": 5, "maxReplicas": 3}]},
        "InvalidRayClusterSpec",
        "spec is invalid",
        id="spec",
    ),
    pytest.param(
        {"labels": {"ray.io/originated-from-crd": "RayJob"}},
        {"upgradeStrategy": {"type": "Recreate"}},
        "InvalidRayClusterSpec",
        "UpgradeStrategy is invalid",
        id="upgrade",
    ),
]


@pytest.mark.case("RC-111")
@pytest.mark.parametrize(("metadata", "spec", "reason", "words"), REJECTED)
async def test_a_rejected_cluster_is_told_and_nothing_is_made(metadata, spec, reason, words):
    async with world_of() as world:
        await world.create(raycluster(metadata=metadata, **spec))
        await world.pass_time(60)
        kind, action, note = await told(world, reason)
        assert (kind, action) == ("Warning", "Validate")
        assert f"The RayCluster {words} default/{metadata.get('name', 'c')}: " in note
        assert [one for one in world.writes() if one[0] != "patch"] == []
        assert await world.list("Pod") == []


@pytest.mark.case("RC-111")
async def test_the_pods_of_a_cluster_that_becomes_invalid_stay():
    async with running() as world:
        before = uids(await world.pods())
        await world.patch_spec("c", {"headGroupSpec": {"rayStartParams": {"labels": "a=b"}}})
        await world.delete("Pod", (await world.workers())[0]["metadata"]["name"])
        await world.pass_time(60)
        assert uids(await world.pods()) < before
        assert len(await world.pods()) == 3


@pytest.mark.case("RC-112")
@pytest.mark.parametrize(
    ("workers", "spec", "words"),
    [
        pytest.param(
            [
                {
                    "template": {
                        "spec": {"restartPolicy": "Always", "containers": [{"name": "ray", "image": "r"}]}
                    }
                }
            ],
            {"enableInTreeAutoscaling": True, "autoscalerOptions": {"version": "v1"}},
            "restartPolicy",
            id="a restart policy that v1 of the autoscaler cannot use",
        ),
        pytest.param([{}], {"authOptions": {}}, "mode", id="authentication without a mode"),
    ],
)
async def test_a_cluster_that_is_only_warned_about_runs(workers, spec, words):
    async with running(workers=workers, **spec) as world:
        kind, action, note = await told(world, "InvalidRayClusterSpec")
        assert (kind, action) == ("Warning", "Validate")
        assert note.startswith("RayCluster spec warning default/c: ")
        assert words in note
        await world.pass_time(700)
        assert len(await world.events("InvalidRayClusterSpec")) == 1
