"""Upgrades of services that wait, and what `eagleray why` says of each: which cluster, and why."""

import pytest

from kubereef.node.scripted import Fails, Running
from kubewire import errors
from tests.eagleray.dashboard.scripted import HANGS
from tests.eagleray.ray import host_of
from tests.eagleray.rayservice.situations import (
    active,
    change,
    change_cluster,
    has_condition,
    head_at,
    incremental,
    new_pending,
    pending,
    serving,
    set_image,
    side,
)
from tests.eagleray.why.asking import said
from tests.eagleray.why.services import (
    DEADLINE,
    LARGE,
    NO_IMAGE,
    NO_TORCH,
    change_heads,
    of_new_heads,
    refuse_configurations,
    stuck,
)
from tests.eagleray.world import rayservice

pytestmark = [pytest.mark.usefixtures("virtual_time"), pytest.mark.case("OP-189")]


# --- an upgrade


async def test_an_upgrade_that_goes_well():
    async with serving() as (world, ray):
        ray.deploys = 60
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(20)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - s-2: application app is DEPLOYING
            note: Pods that take requests: 2
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [NO_IMAGE],
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - RayCluster default/s-2 waits for its head Pod.
            - group headgroup, Pod s-2-head-xxxxx: container ray: ImagePullBackOff: no such
                image; check the image's name and tag, the registry, and imagePullSecrets
            note: Pods that take requests: 2
            note: s-2 is given up at xxxxx, in 569 s, unless it is healthy by then
            """,
            id="an image that cannot be pulled",
        ),
        pytest.param(
            [Running(), *[Fails(after=1, exit_code=2)] * 9],
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - RayCluster default/s-2 waits for its head Pod.
            - group headgroup, Pod s-2-head-xxxxx: container ray ended with exit code 2 (Error);
                see the logs of container ray
            note: Pods that take requests: 2
            note: s-2 is given up at xxxxx, in 569 s, unless it is healthy by then
            """,
            id="a head in a crash loop",
        ),
    ],
)
async def test_an_upgrade_whose_pods_do_not_run(steps, expected):
    async with serving(rayservice(metadata=DEADLINE), scripts=[of_new_heads(*steps)]) as (world, _):
        await change_heads(world)
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(expected)


async def test_an_upgrade_whose_pods_find_no_node():
    async with serving() as (world, _):
        containers = [{"name": "ray", "image": "rayproject/ray:2.53.0", **LARGE}]
        await change_cluster(world, headGroupSpec={"template": {"spec": {"containers": containers}}})
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - RayCluster default/s-2 waits for its head Pod.
            - group headgroup, Pod s-2-head-xxxxx: 0/1 nodes are available: 1 Insufficient cpu.
                no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption
                is not helpful for scheduling.; ask for less, free or add nodes, or change
                selectors and tolerations
            note: Pods that take requests: 2
            """
        )


async def test_an_upgrade_whose_dashboard_hangs():
    async with serving() as (world, _):
        await set_image(world, "2.53.0")
        world.dashboards.fault(host_of(await new_pending(world)), HANGS)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - s-2: Serve did not take serveConfigV2: PUT
                s-2-head-svc.default.svc.cluster.local:8265/api/serve/applications/: no answer
                in 15 s; see the head's logs, and whether a network policy keeps the operator
                from its dashboard
            note: Pods that take requests: 2
            """
        )


async def test_an_upgrade_whose_configuration_serve_refuses(monkeypatch):
    async with serving() as (world, _):
        refuse_configurations(monkeypatch)
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - s-2: Serve did not take serveConfigV2: PUT
                s-2-head-svc.default.svc.cluster.local:8265/api/serve/applications/: 400:
                ValidationError: 1 validation error for ServeDeploySchema:
                applications.0.import_path; mend spec.serveConfigV2
            note: Pods that take requests: 2
            """
        )


async def test_an_upgrade_whose_configuration_is_no_yaml():
    async with serving() as (world, _):
        await change(world, serveConfigV2="a: [")
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - spec.serveConfigV2 is no YAML: while parsing a flow node did not find expected
                node content
            note: Pods that take requests: 2
            """
        )


async def test_an_upgrade_whose_application_cannot_be_deployed():
    async with serving() as (world, ray):
        ray.application_faults = NO_TORCH
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - s-2: application app is DEPLOY_FAILED: Deploying app 'app' failed with exception:
                Traceback (most recent call last): File "/srv/app.py", line 1, in <module>
                import torch ModuleNotFoundError: No module named 'torch'
            note: Pods that take requests: 2
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )


async def test_an_upgrade_on_which_nobody_takes_requests():
    async with serving(rayservice(cluster={"workers": []})) as (world, ray):
        ray.takes_traffic = False
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - Pod s-2-head-xxxxx takes no requests: its Serve proxy does not answer at
                :8000/-/healthz, so its label ray.io/serve is false; see Serve's logs on it
            note: Pods that take requests: 1
            """
        )


async def test_an_upgrade_that_may_not_be_made():
    async with serving() as (world, _):
        world.faults.refuse("create", "rayclusters.ray.io", errors.Forbidden("exceeded quota: team"))
        await set_image(world, "2.53.0")
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - RayCluster default/s-2 does not exist (yet)
            - FailedToCreateRayCluster: Failed to create the RayCluster default/s-2: exceeded
                quota: team; raise the ResourceQuota of the namespace, ask for less, or free
                what others hold
            note: Pods that take requests: 2
            """
        )


async def test_an_upgrade_that_was_given_up():
    deadline = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}
    async with serving(rayservice(metadata=deadline)) as (world, ray):
        ray.application_faults = NO_TORCH
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await world.pass_time(70)
        assert await pending(world) != new
        assert await stuck(world) == said(
            """
            RayService default/s serves on s-1; its upgrade has been given up.
            - Gave up the upgrade of default/s: RayCluster s-2 was not healthy within 60s:
                application app is DEPLOY_FAILED: Deploying app 'app' failed with exception:
                Traceback (most recent call last): File "/srv/app.py", line 1, in <module>
                import torch ModuleNotFoundError: No module named 'torch'
            - the same is not tried again: change spec.rayClusterConfig, or have it tried again
                by taking the annotation off (kubectl annotate raycluster s-1 -n default
                eagleray.io/abandoned-upgrade-)
            note: Pods that take requests: 2
            note: RayCluster s-2 is not used any more and is kept until xxxxx
            """
        )
        for event in await world.events("UpgradeDeadlineExceeded"):
            await world.delete("Event", event["metadata"]["name"])
        assert (await stuck(world))[1] == (
            "- its upgrade to what spec.rayClusterConfig describes has been given up"
        )


# --- step by step


async def traffic_reached(world, percent):
    async def is_so():
        return ((await side(world, "pending")).get("trafficRoutedPercent") or 0) >= percent

    await world.until(is_so, 600, step=0.1)


async def test_an_incremental_upgrade_tells_its_shares_and_the_next_step():
    async with serving(incremental(interval=60)) as (world, _):
        await set_image(world, "2.53.0")
        await new_pending(world)
        await traffic_reached(world, 25)
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 75% of the requests
            note: s-2 has 50% of the capacity and gets 25% of the requests
            next: give s-2 50% of the requests at xxxxx, in 50 s
            """
        )


async def test_a_gateway_that_nobody_takes_on():
    async with serving(incremental(gateway_class="istio"), accepts=False) as (world, _):
        assert await stuck(world) == said(
            """
            RayService default/s serves, but something is wrong.
            - Gateway s-gateway is not accepted and programmed; see whether a controller runs
                for GatewayClass istio
            note: Pods that take requests: 2
            """
        )
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(60)
        words = "Waiting for controller"
        waiting = {"type": "Accepted", "status": "Unknown", "reason": "Pending", "message": words}
        await world.patch("Gateway", "s-gateway", {"status": {"conditions": [waiting]}}, part="/status")
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - Gateway s-gateway is not accepted and programmed (Accepted: Unknown: Pending:
                Waiting for controller); see whether a controller runs for GatewayClass istio
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 100% of the requests
            note: s-2 has 0% of the capacity and gets 0% of the requests
            """
        )


async def test_a_route_whose_references_are_not_resolved():
    async with serving(incremental(), accepts=False) as (world, _):
        accepted = [{"type": kind, "status": "True"} for kind in ("Accepted", "Programmed")]
        await world.patch("Gateway", "s-gateway", {"status": {"conditions": accepted}}, part="/status")
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(60)
        unresolved = [
            {"type": "Accepted", "status": "True", "reason": "Accepted"},
            {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound", "message": "no Service"},
        ]
        parents = [{"parentRef": {"name": "s-gateway"}, "controllerName": "x", "conditions": unresolved}]
        await world.patch("HTTPRoute", "s-httproute", {"status": {"parents": parents}}, part="/status")
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - HTTPRoute s-httproute is not accepted with all its references resolved
                (ResolvedRefs: False: BackendNotFound: no Service); see Gateway s-gateway
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 100% of the requests
            note: s-2 has 0% of the capacity and gets 0% of the requests
            """
        )


async def test_a_cluster_without_the_gateway_api():
    async with serving(incremental(), gateways=False) as (world, _):
        assert await stuck(world) == said(
            """
            RayService default/s serves, but something is wrong.
            - FailedToCreateGateway: Failed to create Gateway for RayService default/s-gateway:
                gateways.gateway.networking.k8s.io and httproutes.gateway.networking.k8s.io (v1)
                are not served here, so that no traffic can be moved step by step; install the
                Gateway API, or use upgradeStrategy.type NewCluster
            note: Pods that take requests: 2
            """
        )
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - gateways.gateway.networking.k8s.io and httproutes.gateway.networking.k8s.io (v1)
                are not served here, so that no traffic can be moved step by step; install the
                Gateway API, or use upgradeStrategy.type NewCluster
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 100% of the requests
            note: s-2 has 0% of the capacity and gets 0% of the requests
            """
        )


async def test_steps_of_nothing():
    async with serving(incremental(step=0, interval=1)) as (world, _):
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - stepSizePercent is 0, so no traffic moves; raise it
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 100% of the requests
            note: s-2 has 50% of the capacity and gets 0% of the requests
            """
        )


async def test_an_application_that_fails_in_the_middle_of_an_incremental_upgrade():
    async with serving(incremental(interval=30)) as (world, _):
        await set_image(world, "2.53.0")
        new = await new_pending(world)
        await traffic_reached(world, 25)
        head_at(world, new).set_application("app", "UNHEALTHY", "replicas died", Model="UNHEALTHY")
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - s-2: application app is UNHEALTHY: replicas died
            - s-2: deployment Model of application app is UNHEALTHY
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 75% of the requests
            note: s-2 has 50% of the capacity and gets 25% of the requests
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )


async def test_a_service_that_rolls_back():
    async with serving(incremental(interval=30)) as (world, _):
        before = (await world.get("RayService", "s"))["spec"]["rayClusterConfig"]
        await set_image(world, "2.53.0")
        await new_pending(world)
        await traffic_reached(world, 50)
        await change(world, rayClusterConfig=before)
        await has_condition(world, "RollbackInProgress", "True", "DesiredClusterSpecChanged")
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes back from s-2 to s-1.
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 50% of the requests
            note: s-2 has 50% of the capacity and gets 50% of the requests
            next: give s-1 75% of the requests at xxxxx, in 20 s
            """
        )


async def test_a_rollback_to_a_cluster_whose_application_does_not_run():
    async with serving(incremental(interval=5)) as (world, _):
        before = (await world.get("RayService", "s"))["spec"]["rayClusterConfig"]
        old = await active(world)
        await set_image(world, "2.53.0")
        await new_pending(world)
        await traffic_reached(world, 50)
        head_at(world, old).set_application("app", "DEPLOY_FAILED", "no room for replicas")
        await change(world, rayClusterConfig=before)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, and goes back from s-2 to s-1.
            - s-1: application app is DEPLOY_FAILED: no room for replicas
            note: Pods that take requests: 4
            note: s-1 has 100% of the capacity and gets 50% of the requests
            note: s-2 has 50% of the capacity and gets 50% of the requests
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )
