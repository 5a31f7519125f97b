"""A service that comes up: what is made when, what its status says, and who refuses it."""

import base64
from collections import Counter
from typing import Any

import pytest

from tests.eagleray.dashboard.scripted import REFUSES
from tests.eagleray.ray import proxy_of
from tests.eagleray.rayservice.situations import (
    ROUND,
    active,
    clusters,
    condition,
    has_condition,
    head_at,
    is_ready,
    new_pending,
    pending,
    puts,
    selected,
    serve_world,
    serving,
    set_image,
    side,
    status_of,
    told,
    whole_condition,
)
from tests.eagleray.world import rayservice

pytestmark = pytest.mark.usefixtures("virtual_time")

FINALIZER = "ray.io/rayservice-finalizer"
NO_WORKERS: dict[str, Any] = {"workers": []}
PORTS = [{"containerPort": 8000, "name": "serve"}, {"containerPort": 8265, "name": "dashboard"}]


async def created(world, obj):
    await world.create(obj)
    await world.pass_time(ROUND)


# --- what comes first


async def test_a_service_that_comes_up_costs_few_requests():
    async with serving() as (world, _):
        await world.pass_time(60)
        writes = Counter(world.writes())
    assert writes.pop(("patch", "rayservices.ray.io")) <= 6  # its finalizer is one
    assert writes == {
        ("create", "rayclusters.ray.io"): 1,
        ("create", "services"): 3,
        ("create", "pods"): 2,
        ("patch", "pods"): 1,
        ("patch", "rayclusters.ray.io"): 2,
    }


async def test_words_that_change_all_the_time_are_written_together():
    async with serving() as (world, _):
        before = len(world.bodies("patch", "rayservices.ray.io"))
        cluster = await active(world)
        for number in range(20):
            change = {"status": {"reason": f"for the {number}th time"}}
            await world.patch("RayCluster", cluster, change, part="/status")
            await world.pass_time(0.1)
        await world.pass_time(5)
        assert 1 <= len(world.bodies("patch", "rayservices.ray.io")) - before <= 3
        assert (await side(world, "active"))["rayClusterStatus"]["reason"] == "for the 19th time"


@pytest.mark.case("RS-9")
async def test_a_service_names_its_cluster_before_it_makes_it():
    async with serve_world() as (world, _):
        let_go = world.faults.refuse("create", "rayclusters.ray.io")
        await created(world, rayservice())
        assert await condition(world, "Ready") == ("False", "Initializing")
        assert await condition(world, "UpgradeInProgress") == ("False", "Initializing")
        named = await pending(world)
        assert named.startswith("s-")
        assert len(named) == len("s-") + 5
        assert await clusters(world) == []
        let_go()
        await is_ready(world, seconds=300)
        assert await clusters(world) == [named]


async def test_a_head_takes_requests_as_soon_as_its_applications_run_however_long_that_took():
    """Its Serve proxy refuses connections until then, and what fails for long is asked ever more rarely."""
    async with serve_world(deploys=300) as (world, _):
        await world.create(rayservice(cluster=NO_WORKERS))
        await world.pass_time(ROUND)
        head = await world.head(await pending(world))
        world.dashboards.fault(proxy_of(head), REFUSES)
        await world.until(lambda: has_application(world, "RUNNING"))
        world.dashboards.heal(proxy_of(head))
        await is_ready(world, seconds=ROUND)


async def has_application(world, status):
    told = [(await side(world, which)).get("applicationStatuses") or {} for which in ("active", "pending")]
    return status in [one["status"] for applications in told for one in applications.values()]


@pytest.mark.case("RS-8")
async def test_the_finalizer_is_there_before_the_first_cluster():
    async with serve_world() as (world, _):
        world.faults.refuse("patch", "rayservices.ray.io", named="finalizers")
        await created(world, rayservice())
        assert await clusters(world) == []
        world.faults.refusals.clear()
        await is_ready(world, seconds=300)
        service = await world.get("RayService", "s")
        assert service["metadata"]["finalizers"] == [FINALIZER]
        assert service["metadata"]["generation"] == 1


@pytest.mark.case("RS-8")
async def test_a_service_that_is_deleted_goes_after_its_clusters():
    async with serving() as (world, _):
        name = await active(world)
        await world.patch("RayCluster", name, {"metadata": {"finalizers": ["example.org/held"]}})
        await world.delete("RayService", "s")
        await world.pass_time(ROUND)
        assert FINALIZER in (await world.get("RayService", "s"))["metadata"]["finalizers"]
        assert (await world.get("RayCluster", name))["metadata"]["deletionTimestamp"]
        await world.patch("RayCluster", name, {"metadata": {"finalizers": None}})
        await world.pass_time(ROUND)
        assert await world.get("RayService", "s") is None
        assert await world.list("Service", "ray.io/originated-from-crd=RayService") == []
        before = len(world.dashboards.requests)
        await world.pass_time(60)
        assert len(world.dashboards.requests) == before  # nobody asks a Ray that is gone


@pytest.mark.case("RS-10", "RS-69")
@pytest.mark.parametrize("name", ["s", "a" * 47], ids=["a short name", "the longest name"])
async def test_a_cluster_that_serves_gets_the_services_and_becomes_the_active_one(name):
    async with serve_world() as (world, _):
        await world.create(rayservice(name))
        await world.pass_time(1)
        first = await pending(world, name)
        assert await world.get("Service", f"{name}-serve-svc") is None
        await is_ready(world, name)
        assert (await active(world, name), await pending(world, name)) == (first, "")
        assert (
            await selected(world, f"{name}-head-svc") == await selected(world, f"{name}-serve-svc") == first
        )
        assert (await side(world, "pending", name)).keys() == {"rayClusterStatus"}
        assert (await side(world, "active", name))["applicationStatuses"] == {"app": {"status": "RUNNING"}}


@pytest.mark.case("RS-11")
async def test_a_ready_endpoint_makes_a_service_ready():
    async with serving(rayservice(cluster=NO_WORKERS)) as (world, _):
        status = await status_of(world)
        assert status["numServeEndpoints"] == 1
        assert status["serviceStatus"] == "Running"
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")
        assert await condition(world, "UpgradeInProgress") == ("False", "NoPendingCluster")


def endpoint_slice(name, kind, *endpoints):
    """Return a slice of the serve Service that somebody else keeps."""
    labels = {
        "kubernetes.io/service-name": "s-serve-svc",
        "ray.io/originated-from-crd": "RayService",
        "ray.io/serve": "s-serve",
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": labels},
        "addressType": kind,
        "endpoints": list(endpoints),
        "ports": [],
    }


def endpoint(address, uid, *, ready=True):
    target = {"kind": "Pod", "name": uid, "namespace": "default", "uid": uid}
    return {"addresses": [address], "conditions": {"ready": ready}, "targetRef": target}


@pytest.mark.case("RS-12")
async def test_a_pod_counts_once_and_only_if_it_is_ready():
    async with serving(rayservice(cluster=NO_WORKERS)) as (world, _):
        (present,) = await world.list("EndpointSlice", "kubernetes.io/service-name=s-serve-svc")
        uid = present["endpoints"][0]["targetRef"]["uid"]
        await world.create(endpoint_slice("six", "IPv6", endpoint("fd00::1", uid)))
        await world.create(endpoint_slice("late", "IPv4", endpoint("10.9.9.9", "another", ready=False)))
        await world.pass_time(ROUND)
        assert (await status_of(world))["numServeEndpoints"] == 1
        await world.create(endpoint_slice("more", "IPv4", endpoint("10.9.9.8", "a-third")))
        await world.pass_time(1)
        assert (await status_of(world))["numServeEndpoints"] == 2


@pytest.mark.case("RS-13")
async def test_a_service_without_endpoints_is_not_ready_any_more():
    async with serving(rayservice(cluster=NO_WORKERS)) as (world, _):
        head_at(world, await active(world)).takes_traffic = False
        await has_condition(world, "Ready", "False", "ZeroServeEndpoints", seconds=30)
        status = await status_of(world)
        assert "numServeEndpoints" not in status
        assert "serviceStatus" not in status


@pytest.mark.case("RS-13")
async def test_a_service_that_was_never_ready_goes_on_initializing():
    async with serve_world(deploys=3600) as (world, _):
        await created(world, rayservice())
        before = await whole_condition(world, "Ready")
        await world.pass_time(600)
        assert await whole_condition(world, "Ready") == before
        assert before["reason"] == "Initializing"


@pytest.mark.case("RS-14")
async def test_whether_an_upgrade_goes_on_follows_from_which_clusters_there_are():
    async with serving() as (world, _):
        assert await condition(world, "UpgradeInProgress") == ("False", "NoPendingCluster")
        await set_image(world, "2.53.0")
        await new_pending(world)
        assert await condition(world, "UpgradeInProgress") == ("True", "BothActivePendingClustersExist")


@pytest.mark.case("RS-14")
async def test_a_service_without_clusters_that_does_not_initialize_says_so():
    async with serving(operator=True) as (world, _):
        await world.stop_operator()
        empty = {"rayClusterName": None}
        await world.patch(
            "RayService",
            "s",
            {"status": {"activeServiceStatus": empty, "pendingServiceStatus": empty}},
            part="/status",
        )
        world.faults.refuse("create", "rayclusters.ray.io")
        await world.start_operator()
        await world.pass_time(ROUND)
        assert await condition(world, "UpgradeInProgress") == ("Unknown", "NoActiveCluster")


@pytest.mark.case("RS-15")
@pytest.mark.parametrize("state", ["DEPLOYING", "UNHEALTHY", "DEPLOY_FAILED", "NOT_STARTED", "DELETING"])
async def test_an_application_that_does_not_run_makes_no_service(state):
    async with serve_world(application_faults={"app": (state, "some words")}) as (world, _):
        await created(world, rayservice())
        assert await world.get("Service", "s-serve-svc") is None
        told_of = (await side(world, "pending"))["applicationStatuses"]["app"]
        assert told_of["status"] == state
        head_at(world, await pending(world)).set_application("app", "RUNNING")
        await is_ready(world, seconds=10)


@pytest.mark.case("RS-15")
async def test_a_cluster_without_applications_does_not_serve():
    async with serve_world() as (world, _):
        await created(world, rayservice(serveConfigV2=""))
        await world.pass_time(60)
        assert await world.get("Service", "s-serve-svc") is None
        assert len(puts(world, await pending(world))) == 1


async def test_deployments_are_told_with_their_messages():
    async with serving() as (world, _):
        head = head_at(world, await active(world))
        head.set_application("app", "UNHEALTHY", "see below", model="UNHEALTHY")
        head.applications["app"]["deployments"]["model"]["message"] = "out of memory"
        await world.pass_time(ROUND)
        assert (await side(world, "active"))["applicationStatuses"]["app"] == {
            "status": "UNHEALTHY",
            "message": "see below",
            "serveDeploymentStatuses": {"model": {"status": "UNHEALTHY", "message": "out of memory"}},
        }


# --- what is made


@pytest.mark.case("RS-28")
async def test_a_cluster_carries_what_its_service_has():
    metadata = {"labels": {"team": "a"}, "annotations": {"example.org/x": "y"}}
    async with serve_world() as (world, _):
        await created(world, rayservice(metadata=metadata))
        (cluster,) = await world.list("RayCluster")
        labels = {
            "team": "a",
            "ray.io/originated-from-cr-name": "s",
            "ray.io/originated-from-crd": "RayService",
        }
        assert cluster["metadata"]["labels"].items() >= labels.items()
        annotations = cluster["metadata"]["annotations"]
        assert annotations["example.org/x"] == "y"
        assert annotations["ray.io/num-worker-groups"] == "1"
        assert annotations["ray.io/kuberay-version"].startswith("eagleray-")
        assert annotations["ray.io/hash-without-replicas-and-workers-to-delete"]
        (owner,) = cluster["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("RayService", "s", True)


@pytest.mark.case("RS-30")
@pytest.mark.parametrize(
    ("excluded", "healthy", "label"),
    [(True, True, "false"), (True, False, "false"), (False, True, "true"), (False, False, "false")],
)
async def test_the_head_gets_requests_if_its_proxy_takes_them_and_nobody_minds(excluded, healthy, label):
    async with serve_world() as (world, _):
        await world.create(rayservice(excludeHeadPodFromServeSvc=excluded))
        await world.pass_time(ROUND)
        name = await active(world)
        head_at(world, name).takes_traffic = healthy
        await world.pass_time(ROUND)
        pod = await world.head(name)
        assert pod["metadata"]["labels"]["ray.io/serve"] == label
        if excluded:
            assert not any(path == "/-/healthz" for _, _, path in world.dashboards.requests)


async def test_a_serve_label_that_somebody_else_changes_is_put_right():
    async with serve_world(deploys=3600) as (world, ray):
        ray.takes_traffic = False
        await created(world, rayservice())
        pod = (await world.head(await pending(world)))["metadata"]["name"]
        await world.patch("Pod", pod, {"metadata": {"labels": {"ray.io/serve": "true"}}})
        await world.pass_time(1)
        assert (await world.get("Pod", pod))["metadata"]["labels"]["ray.io/serve"] == "false"


async def test_a_service_that_has_lost_its_labels_is_named_and_not_made_again_and_again():
    async with serving() as (world, _):
        before = len(world.writes())
        labels = {"ray.io/originated-from-crd": None}
        await world.patch("Service", "s-head-svc", {"metadata": {"labels": labels}})
        await world.pass_time(600)
        assert len(world.writes()) - before < 60
        assert any("s-head-svc: it has no effect" in note for note in await told(world, "ReconcileFailed"))
        assert await condition(world, "Ready") == ("True", "NonZeroServeEndpoints")


@pytest.mark.case("RS-34")
async def test_services_that_lead_elsewhere_are_led_back_and_others_left_alone():
    async with serving() as (world, _):
        before = await world.get("Service", "s-serve-svc")
        name = await active(world)
        await world.patch("Service", "s-head-svc", {"spec": {"selector": {"ray.io/cluster": "elsewhere"}}})
        await world.pass_time(ROUND)
        assert await selected(world, "s-head-svc") == name
        assert await world.get("Service", "s-serve-svc") == before
        assert await told(world, "UpdatedService") == ["Updated the service default/s-head-svc"]


@pytest.mark.case("RS-35")
async def test_a_head_without_a_port_for_serve_is_told_and_gets_no_serve_service():
    ports = [{"containerPort": 8265, "name": "dashboard"}, {"containerPort": 8000, "name": "server"}]
    async with serve_world() as (world, _):
        await created(world, rayservice(cluster={"head": {"container": {"ports": ports}}}))
        assert await world.get("Service", "s-serve-svc") is None
        (note, *_) = await told(world, "FailedToCreateService")
        assert "default/s-serve-svc" in note
        assert "serve" in note
        assert any("Step services failed" in note for note in await told(world, "ReconcileFailed"))


@pytest.mark.case("RS-35")
async def test_all_ports_for_serve_are_led_to_and_no_other():
    ports = [*PORTS, {"containerPort": 9000, "name": "serve-grpc"}, {"containerPort": 6379, "name": "gcs"}]
    async with serving(rayservice(cluster={"head": {"container": {"ports": ports}}})) as (world, _):
        service = await world.get("Service", "s-serve-svc")
        assert {one["name"]: one["port"] for one in service["spec"]["ports"]} == {
            "serve": 8000,
            "serve-grpc": 9000,
        }


@pytest.mark.case("RS-36")
async def test_a_users_serve_service_is_his_but_for_whom_it_leads_to():
    given = {
        "metadata": {"name": "mine", "namespace": "elsewhere", "annotations": {"a": "b"}},
        "spec": {
            "type": "NodePort",
            "selector": {"app": "other"},
            "ports": [{"name": "serve", "port": 12345}, {"name": "extra", "port": 1}],
        },
    }
    head = {"container": {"ports": PORTS}}
    async with serving(rayservice(serveService=given, cluster={"head": head})) as (world, _):
        service = await world.get("Service", "mine")
        assert service["spec"]["type"] == "NodePort"
        assert service["metadata"]["annotations"] == {"a": "b"}
        assert service["spec"]["selector"] == {
            "ray.io/cluster": await active(world),
            "ray.io/serve": "true",
        }
        assert [(one["name"], one["port"]) for one in service["spec"]["ports"]] == [("serve", 12345)]
        assert await world.get("Service", "s-serve-svc") is None
        assert (await status_of(world))["numServeEndpoints"] == 2


@pytest.mark.case("RS-36")
async def test_a_users_ports_are_kept_where_the_head_has_none_for_serve():
    ports = [{"name": "mine", "port": 8000, "appProtocol": "kubernetes.io/h2c"}]
    given = {"metadata": {"name": "mine"}, "spec": {"ports": ports}}
    head = {"container": {"ports": [{"containerPort": 8265, "name": "dashboard"}]}}
    async with serve_world() as (world, _):
        await created(world, rayservice(serveService=given, cluster={"head": head}))
        (port,) = (await world.get("Service", "mine"))["spec"]["ports"]
        assert (port["name"], port["appProtocol"]) == ("mine", "kubernetes.io/h2c")


@pytest.mark.case("RS-37")
async def test_a_cluster_that_asks_for_a_token_is_asked_with_it():
    options = {"authOptions": {"mode": "token", "secretName": "mine"}, "rayVersion": "2.52.0"}
    async with serve_world(token="its-token") as (world, _):
        secret = {"auth_token": base64.b64encode(b"its-token").decode()}
        await world.create(
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine"}, "data": secret}
        )
        await world.create(rayservice(cluster=options))
        await is_ready(world)
        for pod in await world.pods(await active(world)):
            names = {one["name"] for one in pod["spec"]["containers"][0]["env"]}
            assert {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN"} <= names


@pytest.mark.case("RS-67")
async def test_the_head_service_follows_a_label_that_the_head_overrides():
    template = {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}}
    service = rayservice()
    service["spec"]["rayClusterConfig"]["headGroupSpec"]["template"] |= template
    async with serving(service) as (world, _):
        selector = (await world.get("Service", "s-head-svc"))["spec"]["selector"]
        labels = (await world.head(await active(world)))["metadata"]["labels"]
        assert selector["app.kubernetes.io/name"] == "mine"
        assert selector.items() <= labels.items()
