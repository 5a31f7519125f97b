"""scheduler-plugins on a running operator: PodGroups of clusters that ask for one, and jobs that simply run."""

import pytest

from tests.eagleray.rayjob.situations import MODES, reached
from tests.eagleray.schedulers.standins import asking, gang_world
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

GANG = {"labels": {"ray.io/gang-scheduling-enabled": "whatever"}}
HEAD = asking(cpu="2")
THREE = {"replicas": 3, **asking(cpu="1")}
LABEL = "scheduling.x-k8s.io/pod-group"


async def size_of(world, name="c"):
    spec = (await world.get("PodGroup", name))["spec"]
    return spec["minMember"], spec.get("minResources")


@pytest.mark.case("OP-150")
async def test_pods_name_the_scheduler_even_without_the_label():
    async with gang_world("scheduler-plugins") as (world, _):
        await world.create(raycluster())
        await world.ready()
        for pod in await world.pods():
            assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
            assert LABEL not in pod["metadata"]["labels"]
        assert not await world.made()


@pytest.mark.case("OP-151")
async def test_a_labelled_cluster_has_a_pod_group_and_its_pods_name_it():
    async with gang_world("scheduler-plugins") as (world, _):
        made = await world.create(raycluster(head=HEAD, workers=[THREE], metadata=GANG))
        await world.ready()
        group = await world.get("PodGroup", "c")
        assert group["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
        assert group["metadata"]["ownerReferences"] == [
            {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": made["metadata"]["uid"]}
        ]
        assert await size_of(world) == (4, {"cpu": "5"})
        assert {pod["metadata"]["labels"][LABEL] for pod in await world.pods()} == {"c"}


@pytest.mark.case("OP-152")
async def test_the_pod_group_follows_replicas():
    async with gang_world("scheduler-plugins") as (world, _):
        await world.create(raycluster(head=HEAD, workers=[THREE], metadata=GANG))
        await world.ready()
        await world.set_group("c", replicas=5)
        await world.pass_time(10)
        assert await size_of(world) == (6, {"cpu": "7"})
        assert len(await world.workers()) == 5


async def test_a_pod_group_of_another_owner_is_named():
    async with gang_world("scheduler-plugins") as (world, _):
        await world.create_foreign("PodGroup", "c", {"minMember": 1})
        await world.create(raycluster(metadata=GANG))
        await world.pass_time(5)
        assert not await world.pods()
        event, *_ = await world.events("FailedToSubmitBatchScheduler", "c")
        assert "PodGroup default/c has the name that is needed and belongs to nobody" in event["note"]


async def test_a_deleted_cluster_takes_its_pod_group_along():
    async with gang_world("scheduler-plugins") as (world, _):
        await world.create(raycluster(metadata=GANG))
        await world.ready()
        await world.delete("RayCluster", "c")
        await world.pass_time(10)
        assert not await world.made()


@pytest.mark.case("OP-153")
@pytest.mark.parametrize("mode", MODES)
async def test_a_job_starts_and_ends_as_without_the_scheduler(mode):
    async with gang_world("scheduler-plugins", lasts=3) as (world, ray):
        cluster = {"head": HEAD, "workers": [THREE]}
        await world.create(rayjob(cluster=cluster, metadata=GANG, submissionMode=mode))
        if mode == "InteractiveMode":
            status = await reached(world, "Waiting")
            ray.dashboards.heads[
                f"{status['rayClusterName']}-head-svc.default.svc.cluster.local:8265"
            ].submit("by-hand")
            await world.patch("RayJob", "j", {"spec": {"jobId": "by-hand"}})
        status = await reached(world, "Complete")
        members, resources = await size_of(world, status["rayClusterName"])
        assert (members, resources["cpu"]) == (4, "5500m" if mode == "SidecarMode" else "5")
        if mode == "K8sJobMode":
            template = (await world.get("Job", "j"))["spec"]["template"]
            assert template["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
            assert LABEL not in template["metadata"]["labels"], "the gang does not wait for it"
