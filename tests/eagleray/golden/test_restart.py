"""A new operator over clusters of its own: nothing is written that is not new, and no Pod restarts."""

import pytest

from eagleray.manifests.settings import VERSION, settings_of
from eagleray.operator import assembly
from eagleray.raycluster.podplan import HASH_ANNOTATION, VERSION_ANNOTATION
from kubereef.simulation import run
from tests.eagleray.golden.samples import contents, until_quiet
from tests.eagleray.ray import RayOnPods
from tests.eagleray.rayservice.situations import incremental, is_ready, serve_world
from tests.eagleray.world import raycluster, rayjob, rayservice, world_of

NEXT_VERSION = "eagleray-99.0.0"
# Past the moment at which a cluster is looked at again although nothing has happened.
RESYNC = 400

CLUSTERS = (
    raycluster("plain", workers=[{"replicas": 2}]),
    raycluster("recreating", upgradeStrategy={"type": "Recreate"}),
    raycluster("autoscaling", enableInTreeAutoscaling=True),
    raycluster("fault-tolerant", gcsFaultToleranceOptions={"redisAddress": "redis:6379"}),
    raycluster("multi-host", workers=[{"replicas": 2, "numOfHosts": 2}]),
    raycluster("ingress", head={"enableIngress": True}),
    raycluster("token", authOptions={"mode": "token"}, rayVersion="2.52.0"),
    raycluster("annotated", metadata={"annotations": {"ray.io/enable-serve-service": "true"}}),
    raycluster("suspended", suspend=True),
)


class Generations:
    """What there was under a first operator, and under each of those that followed it, with their writes."""

    def __init__(self):
        self.pods = []
        self.states = []
        self.writes = []

    async def note(self, world):
        objects, _ = await contents(world)
        self.pods.append({_place(obj): obj["metadata"] for obj in objects if obj["kind"] == "Pod"})
        clusters = [obj for obj in objects if obj["kind"] == "RayCluster"]
        self.states.append({obj["metadata"]["name"]: obj["status"]["state"] for obj in clusters})
        self.writes.append(
            [
                (request.verb, request.path.rpartition("/")[2])
                for request in world.faults.sent
                if request.verb not in ("get", "list", "watch")
            ]
        )


def _place(obj):
    return obj["metadata"]["name"]


def settings_of_version(version):
    return lambda options: settings_of(options)._replace(version=version)


async def _succeed(versions, kill):
    """Have operators of some versions follow each other over the same clusters."""
    generations = Generations()
    version = VERSION
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            assembly, "settings_of", lambda options: settings_of(options)._replace(version=version)
        )
        async with world_of() as world:
            for cluster in CLUSTERS:
                await world.create(cluster)
            await until_quiet(world)
            await generations.note(world)
            for version in versions:
                await (world.kill_operator() if kill else world.stop_operator())
                patched.setattr(assembly, "settings_of", settings_of_version(version))
                world.faults.sent.clear()
                await world.start_operator()
                await until_quiet(world)
                await world.pass_time(RESYNC)
                await generations.note(world)
    return generations


@pytest.fixture(scope="module", params=[False, True], ids=["stopped", "killed"])
def restarted(request):
    return run(_succeed([VERSION, VERSION], kill=request.param))


@pytest.fixture(scope="module")
def upgraded():
    return run(_succeed([NEXT_VERSION, NEXT_VERSION, VERSION], kill=False))


def test_a_new_start_over_ready_clusters_writes_nothing_at_all(restarted):
    expected = {cluster["metadata"]["name"]: "ready" for cluster in CLUSTERS} | {"suspended": "suspended"}
    assert restarted.states[0] == expected
    assert len(restarted.pods[0]) == 20
    assert restarted.writes[1:] == [[], []]
    assert restarted.pods[1:] == [restarted.pods[0]] * 2


def test_another_version_restarts_no_pod(upgraded):
    uids = [{name: metadata["uid"] for name, metadata in pods.items()} for pods in upgraded.pods]
    assert len(uids[0]) == 20
    assert uids[1:] == [uids[0]] * 3


def test_another_version_stamps_only_the_head_of_a_cluster_that_recreates(upgraded):
    (head,) = (name for name in upgraded.pods[0] if name.startswith("recreating-head-"))
    assert upgraded.writes[1:] == [[("patch", head)], [], [("patch", head)]]
    stamps = [pods[head]["annotations"] for pods in upgraded.pods]
    assert [stamp[VERSION_ANNOTATION] for stamp in stamps] == [VERSION, NEXT_VERSION, NEXT_VERSION, VERSION]
    assert len({stamp[HASH_ANNOTATION] for stamp in stamps}) == 1


async def _run_jobs(modes):
    """Return the states of a job in each of these modes, and what a second operator wrote."""
    async with world_of(kinds=("RayCluster", "RayJob")) as world, RayOnPods(world, lasts=None):
        for mode in modes:
            await world.create(rayjob(mode.lower(), submissionMode=mode))
        await until_quiet(world)
        states = [obj["status"]["jobDeploymentStatus"] for obj in await world.list("RayJob")]
        await world.kill_operator()
        world.faults.sent.clear()
        await world.start_operator()
        await until_quiet(world)
        await world.pass_time(RESYNC)
        return states, world.writes()


def test_a_new_start_over_running_jobs_writes_nothing_at_all():
    modes = ("HTTPMode", "InteractiveMode", "K8sJobMode", "SidecarMode")
    states, writes = run(_run_jobs(modes))
    assert states == ["Running", "Waiting", "Running", "Running"]
    assert writes == []


async def _run_services(services, version):
    """Return what a second operator, of some version, wrote over ready services, and whether all Pods stayed."""
    async with serve_world(gateways=True) as (world, _):
        for service in services:
            await world.create(service)
        for service in services:
            await is_ready(world, service["metadata"]["name"])
        await until_quiet(world)
        before = {pod["metadata"]["uid"] for pod in await world.list("Pod")}
        await world.kill_operator()
        world.faults.sent.clear()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(assembly, "settings_of", settings_of_version(version))
            await world.start_operator()
        await until_quiet(world)
        await world.pass_time(RESYNC)
        return world.writes(), {pod["metadata"]["uid"] for pod in await world.list("Pod")} == before


@pytest.mark.case("RS-66", "RS-25")
@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param(VERSION, [], id="the same version writes nothing at all"),
        pytest.param(
            NEXT_VERSION, [("patch", "rayclusters.ray.io")] * 2, id="another one stamps the clusters anew"
        ),
    ],
)
def test_a_new_start_over_ready_services(version, expected):
    services = [rayservice("plain"), incremental("stepwise")]
    assert run(_run_services(services, version)) == (expected, True)
