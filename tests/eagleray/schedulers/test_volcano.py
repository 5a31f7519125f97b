"""Volcano on a running operator: PodGroups of clusters and jobs, from their beginning to their end."""

import pytest

from eagleray.kube.client import Client
from eagleray.why.kinds import diagnosis_of
from eagleray.why.reading import Reader
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.rayjob.situations import reached, reported, told, waits_for
from tests.eagleray.schedulers.standins import asking, gang_world, marks
from tests.eagleray.world import raycluster, rayjob

pytestmark = pytest.mark.usefixtures("virtual_time")

GROUPS = "podgroups.scheduling.volcano.sh"
HEAD = asking(cpu="2", memory="2Gi")
THREE = {"replicas": 3, "minReplicas": 1, **asking(cpu="1", memory="1Gi")}
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK = "volcano.sh/task-spec"


async def size_of(world, name="ray-c-pg"):
    spec = (await world.get("PodGroup", name))["spec"]
    return spec["minMember"], spec.get("minResources")


@pytest.mark.case("OP-138")
async def test_a_cluster_has_a_pod_group_and_its_pods_name_it():
    async with gang_world("volcano") as (world, _):
        made = await world.create(raycluster(workers=[THREE], metadata={"annotations": {"team": "a"}}))
        await world.ready()
        group = await world.get("PodGroup", "ray-c-pg")
        assert group["apiVersion"] == "scheduling.volcano.sh/v1beta1"
        assert group["metadata"]["annotations"] == {"team": "a"}
        assert group["status"] == {"phase": "Pending"}
        (owner,) = group["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == (
            "RayCluster",
            made["metadata"]["uid"],
            True,
        )
        pods = await marks(world)
        assert set(pods) == {"headgroup", "small-group"}
        for name, pod in pods.items():
            assert pod["spec"]["schedulerName"] == "volcano"
            found = pod["metadata"]["annotations"]
            assert (found[GROUP_NAME], found[TASK]) == ("ray-c-pg", name)


async def test_a_cluster_that_only_says_that_it_is_a_job_s_has_a_pod_group_of_its_own():
    labels = {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "j"}
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}))
        await world.ready()
        assert list(await world.made()) == [("PodGroup", "ray-c-pg")]


@pytest.mark.case("OP-139")
@pytest.mark.parametrize(
    ("spec", "members", "resources"),
    [
        pytest.param({}, 4, {"cpu": "5", "memory": "5Gi"}, id="the desired ones"),
        pytest.param(
            {"enableInTreeAutoscaling": True},
            2,
            {"cpu": "3", "memory": "3Gi"},
            id="the least with autoscaling",
        ),
    ],
)
async def test_the_gang_is_the_head_and_workers(spec, members, resources):
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(head=HEAD, workers=[THREE], **spec))
        await world.ready()
        assert await size_of(world) == (members, resources)


@pytest.mark.case("OP-140")
async def test_the_pod_group_follows_replicas_before_the_pods_do():
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(head=HEAD, workers=[THREE]))
        await world.ready()
        world.faults.sent.clear()
        await world.set_group("c", replicas=5)
        await world.until(lambda: _has_workers(world, 5))
        assert await size_of(world) == (6, {"cpu": "7", "memory": "7Gi"})
        assert world.writes()[:2] == [("patch", GROUPS), ("create", "pods")]
        await world.set_group("c", replicas=1)
        await world.until(lambda: _has_workers(world, 1))
        assert await size_of(world) == (2, {"cpu": "3", "memory": "3Gi"})


async def _has_workers(world, number):
    return len(await world.workers()) == number


async def test_a_gang_is_left_alone_while_the_autoscaler_moves_above_its_least():
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(workers=[THREE], enableInTreeAutoscaling=True))
        await world.ready()
        world.faults.sent.clear()
        await world.set_group("c", replicas=6)
        await world.until(lambda: _has_workers(world, 6))
        assert ("patch", GROUPS) not in world.writes()


@pytest.mark.case("OP-141")
async def test_queue_and_priority_come_from_labels():
    labels = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "p"}
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}))
        await world.ready()
        spec = (await world.get("PodGroup", "ray-c-pg"))["spec"]
        assert (spec["queue"], spec["priorityClassName"]) == ("q", "p")
        for pod in await world.pods():
            assert labels.items() <= pod["metadata"]["labels"].items()


@pytest.mark.case("OP-142")
@pytest.mark.parametrize(
    ("mode", "tier", "topology"),
    [
        pytest.param("hard", "2", {"mode": "hard", "highestTierAllowed": 2}, id="mode and tier"),
        pytest.param("soft", None, {"mode": "soft"}, id="a mode alone"),
        pytest.param(None, "2", None, id="a tier without mode is ignored"),
        pytest.param(None, "x", None, id="even if it is none"),
    ],
)
async def test_network_topology_comes_from_labels(mode, tier, topology):
    given = {
        "volcano.sh/network-topology-mode": mode,
        "volcano.sh/network-topology-highest-tier-allowed": tier,
    }
    labels = {label: value for label, value in given.items() if value is not None}
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}))
        await world.ready()
        assert (await world.get("PodGroup", "ray-c-pg"))["spec"].get("networkTopology") == topology


@pytest.mark.case("OP-142")
async def test_a_tier_that_is_no_number_is_told_and_nothing_is_made():
    labels = {
        "volcano.sh/network-topology-mode": "hard",
        "volcano.sh/network-topology-highest-tier-allowed": "x",
    }
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(metadata={"labels": labels}))
        await world.pass_time(5)
        assert not await world.pods()
        event, *_ = await world.events("FailedToSubmitBatchScheduler", "c")
        assert event["note"] == (
            "volcano: label volcano.sh/network-topology-highest-tier-allowed: 'x' is no integer"
        )
        await world.patch(
            "RayCluster",
            "c",
            {"metadata": {"labels": {"volcano.sh/network-topology-highest-tier-allowed": "1"}}},
        )
        await world.ready()


@pytest.mark.case("OP-134")
async def test_a_refused_pod_group_holds_up_its_own_cluster_alone_and_is_tried_again():
    async with gang_world("volcano") as (world, _):
        end = world.faults.refuse("create", GROUPS, errors.Forbidden("no rights"), named="ray-c-pg")
        await world.create(raycluster("c"))
        await world.create(raycluster("other"))
        await world.ready("other")
        await world.pass_time(20)
        assert not await world.pods("c")
        event, *_ = await world.events("FailedToSubmitBatchScheduler", "c")
        assert event["note"] == "volcano: failed to create PodGroup default/ray-c-pg, no rights"
        tries = [one for one in world.faults.sent if one.resource == GROUPS and one.verb == "create"]
        assert 3 < len(tries) < 20, "with growing delay"
        end()
        await world.ready("c")


async def test_a_pod_group_of_somebody_else_is_not_touched():
    async with gang_world("volcano") as (world, _):
        await world.create_foreign("PodGroup", "ray-c-pg", {"minMember": 9})
        await world.create(raycluster())
        await world.pass_time(5)
        assert not await world.pods()
        event, *_ = await world.events("FailedToSubmitBatchScheduler", "c")
        assert event["note"] == (
            "volcano: PodGroup default/ray-c-pg has the name that is needed and belongs to nobody; delete or rename it"
        )
        await world.api.delete(f"{world.url('PodGroup')}/ray-c-pg")
        await world.ready(seconds=60)
        assert await size_of(world) == (2, None)


async def test_a_pod_group_that_was_deleted_or_changed_by_hand_comes_back():
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.api.patch(f"{world.url('PodGroup')}/ray-c-pg", {"spec": {"minMember": 7}})
        await world.pass_time(2)
        assert await size_of(world) == (2, None)
        await world.api.delete(f"{world.url('PodGroup')}/ray-c-pg")
        await world.pass_time(2)
        assert await size_of(world) == (2, None)


async def test_a_suspended_cluster_asks_for_no_room_before_it_is_resumed():
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster(suspend=True))
        await world.pass_time(5)
        assert not await world.made()
        await world.patch_spec("c", {"suspend": False})
        await world.ready()
        before = await world.get("PodGroup", "ray-c-pg")
        await world.patch_spec("c", {"suspend": True})
        await world.until(lambda: _has_workers(world, 0))
        await world.pass_time(5)
        assert await world.get("PodGroup", "ray-c-pg") == before


async def test_a_deleted_cluster_takes_its_pod_group_along():
    async with gang_world("volcano") as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.delete("RayCluster", "c")
        await world.pass_time(10)
        assert not await world.made()


# --- jobs


def job(mode="K8sJobMode", **spec):
    return rayjob(cluster={"head": HEAD, "workers": [THREE]}, submissionMode=mode, **spec)


@pytest.mark.case("OP-143")
@pytest.mark.parametrize(
    ("mode", "resources"),
    [
        pytest.param("K8sJobMode", {"cpu": "5500m", "memory": "5320Mi"}, id="with a submitter"),
        pytest.param("SidecarMode", {"cpu": "5500m", "memory": "5320Mi"}, id="with one beside Ray"),
        pytest.param("HTTPMode", {"cpu": "5", "memory": "5Gi"}, id="submitted by the operator"),
        pytest.param("InteractiveMode", {"cpu": "5", "memory": "5Gi"}, id="submitted by a user"),
    ],
)
async def test_a_job_and_its_cluster_have_one_pod_group(mode, resources):
    async with gang_world("volcano", lasts=None) as (world, _):
        made = await world.create(job(mode))
        status = await reached(world, "Waiting" if mode == "InteractiveMode" else "Running")
        assert list(await world.made()) == [("PodGroup", "ray-j-pg")]
        group = await world.get("PodGroup", "ray-j-pg")
        (owner,) = group["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("RayJob", made["metadata"]["uid"])
        assert await size_of(world, "ray-j-pg") == (4, resources)
        found = await marks(world, status["rayClusterName"])
        names = {group: pod["metadata"]["annotations"][GROUP_NAME] for group, pod in found.items()}
        assert names == {"headgroup": "ray-j-pg", "small-group": "ray-j-pg"}


@pytest.mark.case("OP-143")
async def test_the_submitter_is_scheduled_with_the_gang():
    labels = {"volcano.sh/queue-name": "q", "ray.io/priority-class-name": "p"}
    async with gang_world("volcano", lasts=None) as (world, _):
        await world.create({**job(), "metadata": {"name": "j", "labels": labels}})
        await reached(world, "Running")
        template = (await world.get("Job", "j"))["spec"]["template"]
        assert template["spec"]["schedulerName"] == "volcano"
        assert template["metadata"]["annotations"] == {GROUP_NAME: "ray-j-pg", TASK: "submittergroup"}
        assert labels.items() <= template["metadata"]["labels"].items()


@pytest.mark.case("OP-144")
async def test_a_job_on_a_chosen_cluster_has_no_pod_group_of_its_own():
    async with gang_world("volcano", lasts=3) as (world, _):
        await world.create(raycluster())
        await world.ready()
        await world.create(rayjob(cluster=False, clusterSelector={"ray.io/cluster": "c"}))
        await reached(world, "Complete")
        assert list(await world.made()) == [("PodGroup", "ray-c-pg")]


@pytest.mark.case("OP-145", "OP-137")
@pytest.mark.parametrize(
    ("spec", "size"),
    [
        pytest.param({"shutdownAfterJobFinishes": True}, (0, None), id="all of it when its cluster is gone"),
        pytest.param({}, (4, {"cpu": "5", "memory": "5Gi"}), id="what the submitter took while it is there"),
    ],
)
async def test_a_job_that_has_ended_gives_back(spec, size):
    async with gang_world("volcano", lasts=3) as (world, _):
        await world.create(job(**spec))
        await reached(world, "Complete")
        await world.pass_time(10)
        assert await size_of(world, "ray-j-pg") == size
        assert await told(world, "BatchSchedulerCleanedUp") == (
            "Normal",
            "Cleanup",
            "Cleaned up batch scheduler resources for RayJob default/j",
        )
        await world.pass_time(1000)
        changes = [one for one in world.writes() if one == ("patch", GROUPS)]
        assert len(changes) <= 2, "nothing is written that says nothing new"


@pytest.mark.case("OP-137")
async def test_a_job_that_cannot_give_back_has_ended_all_the_same():
    async with gang_world("volcano", lasts=3) as (world, _):
        world.faults.refuse("patch", GROUPS)
        await world.create(job(shutdownAfterJobFinishes=True))
        await reached(world, "Complete")
        await world.pass_time(10)
        kind, action, note = await told(world, "FailedToCleanupBatchScheduler")
        assert (kind, action) == ("Warning", "Cleanup")
        assert (
            note == "Failed to cleanup batch scheduler resources for RayJob default/j: the quota is used up"
        )


async def test_a_suspended_job_gives_back_and_a_resumed_one_asks_again():
    async with gang_world("volcano", lasts=None) as (world, _):
        await world.create(job(shutdownAfterJobFinishes=True))
        await reported(world, "RUNNING")
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await reached(world, "Suspended")
        assert await size_of(world, "ray-j-pg") == (0, None)
        await world.patch("RayJob", "j", {"spec": {"suspend": False}})
        await reported(world, "RUNNING")
        assert await size_of(world, "ray-j-pg") == (4, {"cpu": "5500m", "memory": "5320Mi"})


async def test_a_job_stays_in_suspending_until_it_could_give_back():
    async with gang_world("volcano", lasts=None) as (world, _):
        await world.create(job(shutdownAfterJobFinishes=True))
        await reported(world, "RUNNING")
        end = world.faults.refuse("patch", GROUPS)
        await world.patch("RayJob", "j", {"spec": {"suspend": True}})
        await world.pass_time(20)
        assert (await world.status("j", "RayJob"))["jobDeploymentStatus"] == "Suspending"
        assert await told(world, "FailedToCleanupBatchScheduler")
        end()
        await reached(world, "Suspended")


async def test_a_retried_job_gives_back_and_asks_again():
    async with gang_world("volcano", lasts=3, ends="FAILED") as (world, ray):
        await world.create(job(backoffLimit=1))
        await reached(world, "Failed")
        assert len(ray.ledger.started) == 2
        sizes = [body["spec"].get("minMember") for body in world.bodies("patch", GROUPS)]
        assert sizes[:2] == [0, 4]


async def test_a_deleted_job_takes_its_pod_group_along():
    async with gang_world("volcano", lasts=None) as (world, _):
        await world.create(job())
        await reported(world, "RUNNING")
        await world.delete("RayJob", "j")
        await world.pass_time(60)
        assert not await world.made()


async def test_a_pod_group_that_is_missing_while_a_job_runs_is_made():
    async with gang_world("volcano", lasts=None) as (world, _):
        await world.create(job())
        await reported(world, "RUNNING")
        await world.api.delete(f"{world.url('PodGroup')}/ray-j-pg")
        await world.pass_time(2)
        assert (await size_of(world, "ray-j-pg"))[0] == 4


async def test_a_refused_pod_group_is_what_a_job_waits_for():
    async with gang_world("volcano") as (world, _):
        labels = {
            "volcano.sh/network-topology-mode": "hard",
            "volcano.sh/network-topology-highest-tier-allowed": "x",
        }
        await world.create({**job(), "metadata": {"name": "j", "labels": labels}})
        await world.pass_time(5)
        reason, message = await waits_for(world)
        assert reason == "BatchSchedulerRefused"
        assert message.startswith("volcano: label volcano.sh/network-topology-highest-tier-allowed")
        assert not await world.list("RayCluster")


async def asked(world, word, name):
    client = Client(transport_to(world.simulated.server), world.clock, SeededEntropy("why"))
    reader = Reader(client, world.clock, SeededEntropy("why"))
    return (await diagnosis_of(word).diagnose(reader, "default", name)).causes


@pytest.mark.parametrize(
    ("word", "build", "name"),
    [
        pytest.param("raycluster", raycluster, "c", id="cluster"),
        pytest.param("rayjob", rayjob, "j", id="job"),
    ],
)
async def test_why_tells_what_the_scheduler_was_refused_until_it_is_not(word, build, name):
    async with gang_world("volcano", lasts=None) as (world, _):
        end = world.faults.refuse("create", GROUPS, errors.Forbidden("no rights"))
        await world.create(build(name))
        await world.pass_time(5)
        told = f"volcano: failed to create PodGroup default/ray-{name}-pg, no rights"
        assert any(told in cause for cause in await asked(world, word, name))
        end()
        await world.pass_time(60)
        assert not any(told in cause for cause in await asked(world, word, name))
