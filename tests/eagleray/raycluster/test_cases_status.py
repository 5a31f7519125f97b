"""What the status and the metrics of a running cluster say."""

import pytest

from kubereef.node.scripted import NotReady, Ready, Running, Script, Waits
from tests.eagleray.raycluster.situations import MOMENT, count, running, told
from tests.eagleray.world import raycluster, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

HEAD = {"ray.io/node-type": "head"}
WORKER = {"ray.io/node-type": "worker"}
NEVER_STARTS = Script(WORKER, steps=[Waits(reason="ContainerCreating")])


@pytest.mark.case("RC-42")
async def test_a_cluster_is_ready_when_its_head_and_workers_are():
    slow = Script(WORKER, nth=3, steps=[Running(after=7)])
    async with running(workers=[{"replicas": 3}], scripts=[slow]) as world:
        status = await world.status()
        assert (status["readyWorkerReplicas"], status["availableWorkerReplicas"]) == (3, 3)
        assert status["stateTransitionTimes"] == {"ready": status["lastUpdateTime"]}


@pytest.mark.case("RC-43")
@pytest.mark.case("RC-57")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(NEVER_STARTS, id="a Pod is pending"),
        pytest.param(Script(WORKER, steps=[Running(ready=False)]), id="a Pod is not ready"),
    ],
)
async def test_a_cluster_without_running_workers_has_no_state(script):
    async with world_of(scripts=[script]) as world:
        await world.create(raycluster())
        await world.pass_time(30)
        status = await world.status()
        assert status.get("state", "") == ""
        assert "stateTransitionTimes" not in status
        assert (await world.condition("RayClusterProvisioned"))["status"] == "False"
        assert (await world.condition("HeadPodReady"))["status"] == "True"


@pytest.mark.case("RC-57")
async def test_a_cluster_without_pods_is_not_running():
    async with world_of() as world:
        world.faults.refuse("create", "pods")
        await world.create(raycluster(workers=[]))
        await world.pass_time(MOMENT)
        assert (await world.status()).get("state", "") == ""
        assert (await world.condition("RayClusterProvisioned"))["status"] == "False"


@pytest.mark.case("RC-44")
async def test_a_failed_step_keeps_a_cluster_from_ready_and_leaves_one_that_is():
    async with world_of() as world:
        await world.create(raycluster(head={"enableIngress": True}))
        await world.ready()
        await world.stop_operator()
        # As another operator would have left it: everything runs, and nobody has said so yet.
        blank = {"state": None, "stateTransitionTimes": None}
        await world.patch("RayCluster", "c", {"status": blank}, part="/status")
        await world.delete("Ingress", "c-head-ingress")
        allow = world.faults.refuse("create", "ingresses.networking.k8s.io")
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert (await world.status()).get("state", "") == ""
        allow()
        await world.pass_time(60)
        ready = await world.status()
        assert ready["state"] == "ready"
        await world.delete("Ingress", "c-head-ingress")
        world.faults.refuse("create", "ingresses.networking.k8s.io")
        await world.patch("RayCluster", "c", {"metadata": {"labels": {"a": "b"}}})
        await world.pass_time(60)
        after = await world.status()
        assert (after["state"], after["stateTransitionTimes"]) == ("ready", ready["stateTransitionTimes"])


@pytest.mark.case("RC-45")
async def test_a_suspended_group_counts_for_nothing():
    container = {"resources": {"requests": {"cpu": "1"}}}
    group = {"replicas": 100, "minReplicas": 100, "maxReplicas": 100, "suspend": True, "container": container}
    async with running(workers=[group], head={"container": container}) as world:
        status = await world.status()
        counts = [f"{which}WorkerReplicas" for which in ("desired", "min", "max")]
        assert [status.get(name, 0) for name in counts] == [0, 0, 0]
        assert status["desiredCPU"] == "1"


@pytest.mark.case("RC-47")
async def test_a_cluster_that_was_provisioned_stays_so():
    script = Script(WORKER, steps=[Running(), NotReady(after=20)])
    async with running(workers=[{"replicas": 1}], scripts=[script]) as world:
        first = await world.condition("RayClusterProvisioned")
        assert (first["status"], first["reason"]) == ("True", "AllPodRunningAndReadyFirstTime")
        assert first["message"] == "All Ray Pods are ready for the first time"
        await world.pass_time(60)
        assert (await world.status()).get("readyWorkerReplicas", 0) == 0
        assert await world.condition("RayClusterProvisioned") == first


@pytest.mark.case("RC-49")
async def test_the_address_of_the_head_is_that_of_its_pod_or_of_its_service():
    async with running() as world:
        status = await world.status()
        assert status["head"]["serviceName"] == "c-head-svc"
        assert (
            status["head"]["serviceIP"] == status["head"]["podIP"] == (await world.head())["status"]["podIP"]
        )
    async with running(variables={"ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "true"}) as world:
        service = await world.get("Service", "c-head-svc")
        assert (await world.status())["head"]["serviceIP"] == service["spec"]["clusterIP"]


@pytest.mark.case("RC-49")
@pytest.mark.case("RC-83")
async def test_of_two_head_services_none_is_chosen_and_none_deleted():
    async with running() as world:
        service = await world.get("Service", "c-head-svc")
        assert count(world, "create", "services") == 1
        twin = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {key: service["metadata"][key] for key in ("labels", "ownerReferences")}
            | {"name": "twin"},
            "spec": {"selector": service["spec"]["selector"], "ports": [{"port": 80}]},
        }
        await world.create(twin)
        await world.pass_time(MOMENT)
        status = await world.status()
        assert "serviceName" not in status["head"]
        assert "serviceIP" not in status["head"]
        kind, action, note = await told(world, "FailedToCreateService")
        assert (kind, action) == ("Warning", "Create")
        assert "default/c-head-svc, default/twin" in note
        assert count(world, "create", "services") == 1
        assert ("delete", "services") not in world.writes()


@pytest.mark.case("RC-49")
async def test_without_a_head_service_there_is_no_address():
    async with world_of() as world:
        world.faults.refuse("create", "services")
        await world.create(raycluster())
        await world.pass_time(MOMENT)
        assert (await world.status())["head"] == {}


@pytest.mark.case("RC-50")
async def test_a_head_whose_image_is_missing_says_so():
    bad = Script(HEAD, steps=[Waits(reason="ImagePullBackOff", message="no such image")])
    containers = [{"name": "ray", "image": "r"}, {"name": "side", "image": "s"}]
    async with world_of(scripts=[bad]) as world:
        await world.create(raycluster(head={"template": {"spec": {"containers": containers}}}, workers=[]))
        await world.pass_time(MOMENT)
        condition = await world.condition("HeadPodReady")
        assert (condition["status"], condition["reason"]) == ("False", "ImagePullBackOff")
        assert condition["message"].endswith("; ray: no such image")


@pytest.mark.case("RC-51")
async def test_the_endpoints_of_an_ordinary_cluster():
    async with running() as world:
        assert (await world.status())["endpoints"] == {
            "client": "10001",
            "dashboard": "8265",
            "metrics": "8080",
            "gcs-server": "6379",
            "serve": "8000",
        }


@pytest.mark.case("RC-52")
async def test_a_status_is_written_when_more_than_its_time_changes():
    async with running() as world:
        await world.pass_time(MOMENT)
        written = count(world, "patch", "rayclusters.ray.io")
        before = await world.status()
        await world.patch("RayCluster", "c", {"metadata": {"labels": {"a": "b"}}})
        await world.pass_time(700)
        assert count(world, "patch", "rayclusters.ray.io") == written
        assert await world.status() == before
        await world.patch_spec("c", {"headServiceAnnotations": {"a": "b"}})
        await world.pass_time(MOMENT)
        after = await world.status()
        assert after["observedGeneration"] == 2
        assert after["lastUpdateTime"] > before["lastUpdateTime"]


def asking(**resources):
    return {"container": {"resources": {"requests": resources}}}


@pytest.mark.case("RC-53")
async def test_the_demand_is_that_of_all_pods():
    head = asking(cpu="1", memory="100Mi")
    group = {**asking(cpu="1", memory="200Mi"), "replicas": 4, "numOfHosts": 2}
    async with running(head=head, workers=[group]) as world:
        status = await world.status()
        assert (status["desiredCPU"], status["desiredMemory"]) == ("9", "1700Mi")
        assert (status["desiredGPU"], status["desiredTPU"]) == ("0", "0")


@pytest.mark.parametrize(
    ("groups", "field", "value"),
    [
        pytest.param(
            [{"replicas": 1, "maxReplicas": 2147483647, "numOfHosts": 4}],
            "maxWorkerReplicas",
            2147483647,
            id="the most is capped",
            marks=pytest.mark.case("RC-54"),
        ),
        pytest.param(
            [{"replicas": None, "minReplicas": 1}, {"groupName": "b", "replicas": None, "minReplicas": 2}],
            "desiredWorkerReplicas",
            3,
            id="unset replicas",
            marks=pytest.mark.case("RC-55"),
        ),
        pytest.param(
            [{"replicas": 0, "minReplicas": 2}, {"groupName": "b", "replicas": 6, "maxReplicas": 5}],
            "desiredWorkerReplicas",
            7,
            id="replicas out of bounds",
            marks=pytest.mark.case("RC-55"),
        ),
        pytest.param(
            [{"replicas": 3, "numOfHosts": 4}, {"groupName": "b", "replicas": 3}],
            "desiredWorkerReplicas",
            15,
            id="several hosts",
            marks=pytest.mark.case("RC-55"),
        ),
    ],
)
async def test_the_counts_of_workers(groups, field, value):
    async with running(workers=groups) as world:
        assert (await world.status())[field] == value


@pytest.mark.case("RC-56")
async def test_every_kind_of_gpu_counts():
    limits = {
        "nvidia.com/gpu": "3",
        "nvidia.com/mig-1g.10gb": "2",
        "foo.bar/gpu": "2",
        "google.com/tpu": "1",
    }
    head = {"container": {"resources": {"limits": limits}}}
    async with world_of() as world:
        await world.create(raycluster(head=head, workers=[]))
        await world.pass_time(MOMENT)
        status = await world.status()
        assert (status["desiredGPU"], status["desiredTPU"]) == ("7", "1")


def duration_lines(world):
    name = "kuberay_cluster_provisioned_duration_seconds{"
    return [line for line in world.operator.registry.render().splitlines() if line.startswith(name)]


@pytest.mark.case("RC-58")
async def test_the_time_until_a_cluster_is_provisioned_is_measured_once():
    flapping = Script(WORKER, steps=[Running(after=10), NotReady(after=20), Ready(after=20)])
    async with world_of(flags=("--enable-metrics",), scripts=[flapping]) as world:
        await world.create(raycluster())
        await world.pass_time(5)
        assert duration_lines(world) == []
        cluster = await world.ready()
        (line,) = duration_lines(world)
        uid = cluster["metadata"]["uid"]
        assert f'name="c",namespace="default",uid="{uid}"' in line
        assert 10 <= float(line.rsplit(" ", 1)[1]) < 20
        await world.pass_time(60)
        assert duration_lines(world) == [line]
        rendered = world.operator.registry.render()
        assert 'condition="true"' in rendered
        assert 'owner_kind="None"' in rendered
        await world.delete("RayCluster", "c")
        await world.pass_time(60)
        assert duration_lines(world) == []
    async with running(flags=("--enable-metrics",)) as world:
        await world.stop_operator()
        await world.start_operator()
        await world.pass_time(MOMENT)
        assert duration_lines(world) == []  # True before and True after is no news
