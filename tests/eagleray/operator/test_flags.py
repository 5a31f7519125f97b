"""What flags, gates and the configuration file do to a running operator."""

import json
from itertools import pairwise

import pytest

from eagleray.kube.transport import Answer, NotSent
from kubewire import errors
from tests.eagleray.world import raycluster, rayjob, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")


@pytest.fixture
def config(tmp_path):
    """Write a configuration file; returns the flag that names it."""

    def write(**fields):
        file = tmp_path / "config.json"
        file.write_text(
            json.dumps({"apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration", **fields})
        )
        return f"--config={file}"

    return write


async def create_namespaces(world, *names):
    for name in names:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await world.api.create("/api/v1/namespaces", namespace)
    await world.pass_time(1)


@pytest.mark.case("OP-10")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(("--watch-namespace=a, b",), ["a", "b"], id="those that are named"),
        pytest.param((), ["a", "b", "c"], id="all of them if none is named"),
    ],
)
async def test_clusters_in_watched_namespaces_are_reconciled(flags, expected):
    async with world_of(flags=flags) as world:
        await create_namespaces(world, "a", "b", "c")
        for namespace in ("a", "b", "c"):
            await world.create(raycluster(namespace=namespace))
        await world.pass_time(30)
        assert [name for name in ("a", "b", "c") if await world.list("Pod", namespace=name)] == expected


@pytest.mark.case("OP-9")
@pytest.mark.parametrize(
    ("flags", "reconciled"),
    [
        pytest.param((), ["last"], id="without a cap the others do not wait"),
        pytest.param(("--reconcile-concurrency=2",), [], id="with a cap of two the third waits"),
    ],
)
async def test_clusters_whose_requests_hang_hold_up_others_only_under_a_cap(flags, reconciled):
    async with world_of(flags=flags) as world:
        world.faults.next = ["hangs"] * 50
        for number in range(50):
            await world.create(raycluster(f"c{number:02}", workers=()))
        await world.pass_time(1)
        world.faults.next = []
        await world.create(raycluster("last", workers=()))
        await world.pass_time(1)
        heads = await world.list("Pod", "ray.io/node-type=head")
        assert [head["metadata"]["labels"]["ray.io/cluster"] for head in heads] == reconciled


@pytest.mark.case("OP-17")
async def test_requests_are_spaced_out_for_each_kind_of_object_by_itself():
    async with world_of(flags=("--qps=1", "--burst=1")) as world:
        await world.create(raycluster(workers=[{"replicas": 9}]))
        counts = []
        for _ in range(15):
            await world.pass_time(1)
            counts.append(len(await world.pods()))
        assert await world.get("Service", "c-head-svc") is not None
        growth = [after - before for before, after in pairwise(counts)]
        assert max(growth) == 1, counts
        assert counts[-1] == 10


@pytest.mark.case("OP-7")
async def test_without_leader_election_there_is_no_lease(world):
    await world.create(raycluster())
    await world.ready()
    assert await world.list("Lease") == []


@pytest.mark.case("OP-8", "OP-77", "OP-100")
async def test_the_lease_is_in_the_namespace_that_was_told_and_let_go_at_the_end():
    flags = ("--enable-leader-election", "--leader-election-namespace=ops")
    async with world_of(flags=flags, operator=False) as world:
        await create_namespaces(world, "ops")
        await world.start_operator()
        await world.pass_time(5)
        lease = await world.get("Lease", "ray-operator-leader", "ops")
        assert lease["spec"]["holderIdentity"].startswith("eagleray_")
        page = world.operator.registry.render()
        assert 'leader_election_master_status{name="ray-operator-leader"} 1' in page
        assert await world.stop_operator() == 0
        lease = await world.get("Lease", "ray-operator-leader", "ops")
        assert lease["spec"]["holderIdentity"] == ""


@pytest.mark.case("OP-76")
async def test_an_operator_whose_lease_is_taken_ends_with_an_error():
    async with world_of(flags=("--enable-leader-election",)) as world:
        await world.pass_time(5)
        theirs = {"holderIdentity": "another", "renewTime": "2040-01-01T00:00:00.000000Z"}
        await world.patch("Lease", "ray-operator-leader", {"spec": theirs})
        await world.pass_time(30)
        assert await world.stop_operator() == 1


@pytest.mark.case("OP-28", "OP-29")
async def test_sidecars_of_the_configuration_come_last_in_heads_and_in_workers(config):
    sidecars = {
        "headSidecarContainers": [{"name": "for-heads", "image": "i"}],
        "workerSidecarContainers": [{"name": "for-workers", "image": "i"}],
    }
    # With a file its fields count, so what keeps the test's operator quiet has to stand there.
    quiet = {"metricsAddr": "0", "probeAddr": "0", "enableLeaderElection": False}
    async with world_of(flags=(config(**sidecars, **quiet),)) as world:
        users = {"pod": {"containers": [{"name": "ray", "image": "i"}, {"name": "users", "image": "i"}]}}
        await world.create(raycluster(head=users, workers=[users], enableInTreeAutoscaling=True))
        await world.ready()
        names = [[one["name"] for one in pod["spec"]["containers"]] for pod in await world.pods()]
        assert sorted(names) == [["ray", "users", "autoscaler", "for-heads"], ["ray", "users", "for-workers"]]


@pytest.mark.case("OP-30", "OP-31")
async def test_defaults_of_the_configuration_are_in_every_pod_unless_the_user_says_otherwise(config):
    defaults = {
        "defaultContainerEnvs": [{"name": "GIVEN", "value": "default"}, {"name": "OWN", "value": "default"}],
        "defaultPodLabels": {"given": "default", "own": "default"},
        "defaultPodAnnotations": {"given": "default", "own": "default"},
    }
    quiet = {"metricsAddr": "0", "probeAddr": "0", "enableLeaderElection": False}
    async with world_of(flags=(config(**defaults, **quiet),)) as world:
        metadata = {"labels": {"own": "user"}, "annotations": {"own": "user"}}
        group = {
            "container": {"env": [{"name": "OWN", "value": "user"}]},
            "template": {"metadata": metadata},
        }
        await world.create(raycluster(head=group, workers=[group]))
        await world.ready()
        for pod in await world.pods():
            env = {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}
            assert (env["GIVEN"], env["OWN"]) == ("default", "user")
            for given in (pod["metadata"]["labels"], pod["metadata"]["annotations"]):
                assert (given["given"], given["own"]) == ("default", "user")


@pytest.mark.case("OP-41")
async def test_without_their_gate_there_are_no_conditions_and_suspend_works_all_the_same():
    async with world_of(flags=("--feature-gates=RayClusterStatusConditions=false",)) as world:
        await world.create(raycluster())
        await world.ready()
        assert "conditions" not in await world.status()
        await world.patch_spec("c", {"suspend": True})
        await world.pass_time(60)
        assert (await world.pods(), (await world.status())["state"]) == ([], "suspended")


@pytest.mark.case("OP-41")
async def test_by_default_there_are_conditions(world):
    await world.create(raycluster())
    await world.ready()
    assert (await world.condition("RayClusterProvisioned"))["status"] == "True"


INDEXES = {
    "ray.io/worker-group-replica-index",
    "ray.io/worker-group-replica-name",
    "ray.io/replica-host-index",
}


@pytest.mark.case("OP-43")
@pytest.mark.parametrize(
    ("flags", "hosts", "expected"),
    [
        pytest.param((), 1, {"ray.io/worker-group-replica-index"}, id="one host"),
        pytest.param((), 2, INDEXES, id="several hosts"),
        pytest.param(("--feature-gates=RayMultiHostIndexing=false",), 2, set(), id="switched off"),
    ],
)
async def test_workers_are_labelled_with_their_indexes(flags, hosts, expected):
    async with world_of(flags=flags) as world:
        await world.create(raycluster(workers=[{"numOfHosts": hosts}]))
        await world.ready()
        for worker in await world.workers():
            assert INDEXES & worker["metadata"]["labels"].keys() == expected


@pytest.mark.case("OP-52")
@pytest.mark.parametrize("value", ["true", "false"])
async def test_the_gate_of_asynchronous_polling_changes_nothing(value):
    async with world_of(flags=(f"--feature-gates=AsyncJobInfoQuery={value}",)) as world:
        await world.create(raycluster())
        await world.ready()


@pytest.mark.case("OP-73")
async def test_a_cluster_that_fails_on_every_pass_holds_nobody_up_and_recovers():
    async with world_of() as world:
        mend = world.faults.refuse("create", "pods", errors.Forbidden("no"), named="bad-head")
        await world.create(raycluster("bad"))
        await world.pass_time(100)
        await world.create(raycluster("good"))
        await world.ready("good", seconds=5)
        mend()
        await world.ready("bad", seconds=1000)


@pytest.mark.case("OP-15")
async def test_ray_is_asked_through_the_api_server_alone_if_that_is_told():
    flags = ("--use-kubernetes-proxy",)
    async with world_of(kinds=("RayCluster", "RayJob"), flags=flags, operator=False) as world:
        world.carrier = None
        await world.start_operator()
        await world.create(rayjob(submissionMode="HTTPMode"))
        await world.pass_time(30)
        name = (await world.status("j", "RayJob"))["rayClusterName"]
        asked = {request.path for request in world.faults.sent if "/proxy" in request.path}
        way = f"/api/v1/namespaces/default/services/{name}-head-svc:dashboard/proxy"
        assert f"{way}/api/version" in asked
        assert all(path.startswith(way) for path in asked)
        assert world.dashboards.requests == []


@pytest.mark.case("OP-46")
@pytest.mark.parametrize(
    ("minor", "starts"), [("34", False), ("34+", False), ("35", True), ("36+", True), ("odd", False)]
)
async def test_restarts_of_sidecar_submitters_need_a_server_that_knows_them(minor, starts, caplog):
    flags = ("--feature-gates=SidecarSubmitterRestart=true",)
    async with world_of(kinds=("RayCluster", "RayJob"), flags=flags, operator=False) as world:
        send = world.faults.send

        async def answer(request):
            if request.path == "/version":
                return Answer(200, json.dumps({"major": "1", "minor": minor}).encode())
            return await send(request)

        world.faults.send = answer
        await world.start_operator()
        await world.create(rayjob(submissionMode="SidecarMode"))
        await world.pass_time(10)
        if starts:
            head = await world.head((await world.status("j", "RayJob"))["rayClusterName"])
            policies = {one["name"]: one.get("restartPolicy") for one in head["spec"]["containers"]}
            assert policies["ray-job-submitter"] == "OnFailure"
        else:
            assert await world.stop_operator() == 1
            assert f"needs Kubernetes 1.35, and this is 1.{minor}" in caplog.text


@pytest.mark.case("OP-78")
async def test_a_server_that_cannot_be_reached_at_the_start_is_asked_again_for_two_minutes(caplog):
    async with world_of(operator=False) as world:
        send = world.faults.send

        async def nobody(_request):
            raise NotSent("connection refused")

        world.faults.send = nobody
        await world.start_operator()
        await world.create(raycluster())
        await world.pass_time(60)
        assert "The API server does not say what it serves" in caplog.text
        world.faults.send = send
        await world.ready()
        await world.stop_operator()
        world.faults.send = nobody
        await world.start_operator()
        await world.pass_time(300)
        assert await world.stop_operator() == 1
