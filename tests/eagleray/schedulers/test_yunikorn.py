"""YuniKorn on a running operator: what stands on Pods, and on the clusters of jobs."""

import json

import pytest

from tests.eagleray.rayjob.situations import reached, told, waits_for
from tests.eagleray.schedulers.standins import asking, gang_world, marks
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

GANG = "ray.io/gang-scheduling-enabled"
GROUP = "yunikorn.apache.org/task-group-name"
GROUPS = "yunikorn.apache.org/task-groups"
PLACED = {
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
WORKERS = {
    "replicas": 3,
    "minReplicas": 2,
    "numOfHosts": 2,
    "suspend": False,
    **asking(cpu="1", memory="1Gi"),
}
HEAD_TASKS = {
    "name": "headgroup",
    "minMember": 1,
    "minResource": {"cpu": "2"},
}
WORKER_TASKS = {"name": "small-group", "minMember": 4, "minResource": {"cpu": "1", "memory": "1Gi"}}
SUBMITTER_TASKS = {
    "name": "submittergroup",
    "minMember": 1,
    "minResource": {"cpu": "500m", "memory": "200Mi"},
}


def task_groups(obj):
    return json.loads(obj["metadata"]["annotations"][GROUPS])


@pytest.mark.case("OP-146")
async def test_pods_name_the_scheduler_the_queue_and_the_application():
    labels = {"yunikorn.apache.org/queue": "root.q", "yunikorn.apache.org/app-id": "a"}
    async with gang_world("yunikorn") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}))
        await world.create(raycluster("plain"))
        await world.ready()
        for pod in await world.pods():
            assert pod["spec"]["schedulerName"] == "yunikorn"
            assert {"queue": "root.q", "applicationId": "a"}.items() <= pod["metadata"]["labels"].items()
        await world.ready("plain")
        for pod in await world.pods("plain"):
            assert pod["spec"]["schedulerName"] == "yunikorn"
            assert not {"queue", "applicationId"} & set(pod["metadata"]["labels"])


@pytest.mark.case("OP-147")
@pytest.mark.parametrize("value", ["true", "false", ""], ids=["true", "false", "empty"])
async def test_every_pod_of_a_labelled_cluster_says_what_the_gang_is(value):
    async with gang_world("yunikorn") as (world, _):
        labels = {GANG: value}
        await world.create(raycluster(head=asking(cpu="2"), workers=[WORKERS], metadata={"labels": labels}))
        await world.ready()
        for name, pod in (await marks(world)).items():
            assert pod["metadata"]["annotations"][GROUP] == name
            assert task_groups(pod) == [HEAD_TASKS, WORKER_TASKS]


@pytest.mark.case("OP-147")
async def test_a_task_group_says_where_its_pods_may_go():
    containers = [{"name": "ray", "image": "rayproject/ray:2.52.0"}]
    placed = {"nodeSelector": {"kubernetes.io/os": "linux"}, **PLACED}
    group = {"pod": {"containers": containers, **placed}}
    async with gang_world("yunikorn") as (world, _):
        await world.create(raycluster(head=group, workers=[group], metadata={"labels": {GANG: "true"}}))
        await world.ready()
        head, worker = task_groups(await world.head())
        expected = {"minResource": {}, **placed}
        assert head == {"name": "headgroup", "minMember": 1, **expected}
        assert worker == {"name": "small-group", "minMember": 0, **expected}


@pytest.mark.case("OP-147")
async def test_without_the_label_there_is_no_gang():
    async with gang_world("yunikorn") as (world, _):
        await world.create(raycluster())
        await world.ready()
        for pod in await world.pods():
            assert not {GROUP, GROUPS} & set(pod["metadata"].get("annotations") or {})


@pytest.mark.case("OP-148")
async def test_a_task_groups_annotation_is_reused_unchanged():
    given = '[{"name":"mine"}]'
    async with gang_world("yunikorn") as (world, _):
        metadata = {"labels": {GANG: "true"}, "annotations": {GROUPS: given}}
        await world.create(raycluster(metadata=metadata))
        await world.create(rayjob(metadata=metadata))
        await world.ready()
        status = await reached(world, "Complete")
        for cluster in ("c", status["rayClusterName"]):
            for pod in await world.pods(cluster):
                assert pod["metadata"]["annotations"][GROUPS] == given
        template = (await world.get("Job", "j"))["spec"]["template"]
        assert template["metadata"]["annotations"] == {GROUPS: given, GROUP: "submittergroup"}


@pytest.mark.case("OP-148")
async def test_a_job_is_one_gang_with_its_cluster():
    labels = {GANG: "true", "yunikorn.apache.org/queue": "root.q"}
    cluster = {"head": asking(cpu="2"), "workers": [WORKERS]}
    async with gang_world("yunikorn", lasts=None) as (world, _):
        await world.create(rayjob(cluster=cluster, metadata={"labels": labels}))
        status = await reached(world, "Running")
        expected = [HEAD_TASKS, WORKER_TASKS, SUBMITTER_TASKS]
        assert task_groups(await world.get("RayCluster", status["rayClusterName"])) == expected
        for pod in await world.pods(status["rayClusterName"]):
            assert task_groups(pod) == expected
        template = (await world.get("Job", "j"))["spec"]["template"]
        assert task_groups(template) == expected
        assert template["metadata"]["annotations"][GROUP] == "submittergroup"
        assert template["spec"]["schedulerName"] == "yunikorn"
        assert template["metadata"]["labels"]["queue"] == "root.q"


@pytest.mark.parametrize(
    ("mode", "head"),
    [
        pytest.param("HTTPMode", {"cpu": "2"}, id="submitted by the operator"),
        pytest.param("InteractiveMode", {"cpu": "2"}, id="submitted by a user"),
        pytest.param("SidecarMode", {"cpu": "2500m", "memory": "200Mi"}, id="submitted from beside Ray"),
    ],
)
async def test_without_a_submitter_pod_the_gang_is_the_cluster(mode, head):
    cluster = {"head": asking(cpu="2"), "workers": [WORKERS]}
    async with gang_world("yunikorn", lasts=None) as (world, _):
        await world.create(rayjob(cluster=cluster, metadata={"labels": {GANG: "true"}}, submissionMode=mode))
        status = await reached(world, "Running", "Waiting")
        found = task_groups(await world.head(status["rayClusterName"]))
        assert found == [{**HEAD_TASKS, "minResource": head}, WORKER_TASKS]


@pytest.mark.case("OP-149")
async def test_a_gang_labelled_job_on_a_chosen_cluster_is_refused_with_a_way_out():
    async with gang_world("yunikorn", lasts=3) as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.create(
            rayjob(
                cluster=False, clusterSelector={"ray.io/cluster": "c"}, metadata={"labels": {GANG: "true"}}
            )
        )
        await world.pass_time(10)
        assert not await world.list("Job")
        message = (
            "yunikorn: a RayJob with clusterSelector describes no Pods to make a gang of; remove its label"
            " ray.io/gang-scheduling-enabled and set it on the RayCluster"
        )
        assert await told(world, "FailedToSubmitBatchScheduler") == ("Warning", "Create", message)
        assert (await waits_for(world))[0] == "BatchSchedulerRefused"
        await world.patch("RayJob", "j", {"metadata": {"labels": {GANG: None}}})
        await reached(world, "Complete")
