"""Services that start, wait, change or end, and what `eagleray why` says of each: verdict, causes, what comes next."""

import pytest

from eagleray.kube.transport import Answer
from kubereef.node.scripted import Fails, Running, Script, Waits
from kubereef.server.requests import User
from kubewire import errors
from tests.eagleray.dashboard.scripted import HANGS, ScriptedHead
from tests.eagleray.ray import host_of
from tests.eagleray.rayservice.situations import (
    OTHER_CONFIG,
    active,
    change,
    change_cluster,
    has_condition,
    head_at,
    incremental,
    new_pending,
    pending,
    promoted,
    serve_world,
    serving,
    set_image,
    side,
)
from tests.eagleray.why import asking
from tests.eagleray.why.asking import said
from tests.eagleray.world import rayservice

pytestmark = [pytest.mark.usefixtures("virtual_time"), pytest.mark.case("OP-189")]

HEADS = {"ray.io/node-type": "head"}
LARGE = {"resources": {"requests": {"cpu": "1000"}}}
NO_IMAGE = Waits(reason="ImagePullBackOff", message="no such image")
DEADLINE = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "600"}}
TRACEBACK = """Deploying app 'app' failed with exception:
Traceback (most recent call last):
  File "/srv/app.py", line 1, in <module>
    import torch
ModuleNotFoundError: No module named 'torch'"""
NO_TORCH = {"app": ("DEPLOY_FAILED", TRACEBACK)}
REFUSAL = b"ValidationError: 1 validation error for ServeDeploySchema: applications.0.import_path"


async def why(world, user=None):
    """Return what is printed and whether all is well; clusters are numbered in the order in which they were made."""
    shown, is_well = await asking.why(world, "s", user, "rayservice")
    made = sorted(await world.list("RayCluster"), key=lambda one: one["metadata"]["creationTimestamp"])
    names = [one["metadata"]["name"] for one in made]
    names += [name for name in (await active(world), await pending(world)) if name]
    for number, name in enumerate(dict.fromkeys(names), start=1):
        shown = [line.replace(name, f"s-{number}") for line in shown]
    return shown, is_well


async def stuck(world):
    shown, is_well = await why(world)
    assert not is_well
    return shown


def of_new_heads(*steps):
    """Return what happens to heads that are not the first ones."""
    return Script(when={**HEADS, "generation": "new"}, steps=list(steps))


async def change_heads(world):
    """Describe a cluster whose head has a label by which it is known."""
    service = await world.get("RayService", "s")
    config = service["spec"]["rayClusterConfig"]
    config["headGroupSpec"]["template"]["metadata"] = {"labels": {"generation": "new"}}
    await change(world, rayClusterConfig=config)


async def refuse_configurations(monkeypatch):
    monkeypatch.setattr(ScriptedHead, "_put_serve", lambda _head, _configuration: Answer(400, REFUSAL))


# --- all is well


async def test_a_service_that_serves_is_well():
    async with serving() as (world, _):
        assert await why(world) == (
            said(
                """
                FILL
                """
            ),
            True,
        )


async def test_a_replaced_cluster_is_kept_for_a_while():
    async with serving() as (world, _):
        await set_image(world, "2.53.0")
        await promoted(world, await new_pending(world))
        await world.pass_time(5)
        assert await why(world) == (
            said(
                """
                FILL
                """
            ),
            True,
        )


async def test_a_strategy_that_keeps_the_cluster_that_is_there():
    async with serving(rayservice(upgradeStrategy={"type": "None"})) as (world, _):
        await set_image(world, "2.53.0")
        await world.pass_time(30)
        assert await why(world) == (
            said(
                """
                FILL
                """
            ),
            True,
        )


# --- nobody is at work


async def test_a_service_that_no_operator_has_seen():
    async with serve_world(operator=False) as (world, _):
        await world.create(rayservice())
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_an_operator_that_has_gone():
    async with serving(flags=("--enable-leader-election",)) as (world, _):
        await world.kill_operator()
        await world.pass_time(60)
        assert await why(world) == (
            said(
                """
                FILL
                """
            ),
            True,
        )


async def test_an_invalid_service():
    async with serve_world() as (world, _):
        await world.create(rayservice(metadata={"annotations": {"ray.io/initializing-timeout": "soon"}}))
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_service_that_was_made_invalid():
    async with serving() as (world, _):
        await change(world, upgradeStrategy={"type": "Sometimes"})
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_service_of_another_manager():
    async with serve_world() as (world, _):
        await world.create(rayservice(managedBy="kueue.x-k8s.io/multikueue"))
        assert await stuck(world) == said(
            """
            FILL
            """
        )


# --- the first start


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            Script(when=HEADS, steps=[NO_IMAGE]),
            """
            FILL
            """,
            id="an image that cannot be pulled",
        ),
        pytest.param(
            Script(when=HEADS, steps=[Running(), *[Fails(after=1, exit_code=2)] * 9]),
            """
            FILL
            """,
            id="a head in a crash loop",
        ),
    ],
)
async def test_a_first_cluster_whose_pods_do_not_run(script, expected):
    async with serve_world(scripts=[script]) as (world, _):
        await world.create(rayservice(metadata={"annotations": {"ray.io/initializing-timeout": "10m"}}))
        await world.pass_time(30)
        assert await stuck(world) == said(expected)


async def test_pods_that_find_no_node():
    async with serve_world() as (world, _):
        await world.create(rayservice(cluster={"head": {"container": LARGE}}))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_cluster_that_may_not_be_made():
    async with serve_world() as (world, _):
        quota = "exceeded quota: team, requested: count/rayclusters.ray.io=1"
        world.faults.refuse("create", "rayclusters.ray.io", errors.Forbidden(quota))
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_pods_that_may_not_be_made():
    async with serve_world() as (world, _):
        world.faults.refuse("create", "pods", errors.Forbidden("exceeded quota: team"))
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_dashboard_that_hangs():
    async with serve_world() as (world, _):
        await world.create(rayservice())
        world.dashboards.fault(host_of(await new_pending(world)), HANGS)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_configuration_that_is_no_yaml():
    async with serve_world() as (world, _):
        await world.create(rayservice(serveConfigV2="applications:\n- name: [app\n"))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_configuration_that_serve_refuses(monkeypatch):
    await refuse_configurations(monkeypatch)
    async with serve_world() as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_configuration_without_applications():
    async with serve_world() as (world, _):
        await world.create(rayservice(serveConfigV2="applications: []\n"))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_an_application_that_cannot_be_deployed():
    async with serve_world(application_faults=NO_TORCH) as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_an_application_that_takes_its_time():
    async with serve_world(deploys=3600) as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_message_of_many_lines_is_cut_in_the_middle():
    long = "\n".join(["Deploying app failed:", *["  a line of a traceback"] * 100, "ValueError: the cause"])
    async with serve_world(application_faults={"app": ("DEPLOY_FAILED", long)}) as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        (cause,) = [line for line in await stuck(world) if line.startswith("- ")]
        assert cause.startswith("- s-1: application app is DEPLOY_FAILED: Deploying app failed: a line")
        assert " … " in cause
        assert cause.endswith("ValueError: the cause")
        assert len(cause) < 1100


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {},
            """
            FILL
            """,
            id="the proxy on the head is not healthy",
        ),
        pytest.param(
            {"excludeHeadPodFromServeSvc": True},
            """
            FILL
            """,
            id="the head is to take none",
        ),
    ],
)
async def test_nobody_takes_requests(spec, expected):
    async with serve_world() as (world, ray):
        ray.takes_traffic = False
        await world.create(rayservice(cluster={"workers": []}, **spec))
        await world.pass_time(30)
        assert await stuck(world) == said(expected)


async def test_a_service_of_somebody_else_in_the_place_of_the_serve_service():
    async with serve_world() as (world, _):
        spec = {"ports": [{"port": 80}]}
        await world.create(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s-serve-svc"}, "spec": spec}
        )
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_service_that_was_given_up():
    timeout = {"annotations": {"ray.io/initializing-timeout": "1m"}}
    async with serve_world(scripts=[Script(when=HEADS, steps=[NO_IMAGE])]) as (world, _):
        await world.create(rayservice(metadata=timeout))
        await has_condition(world, "Ready", "False", "InitializingTimeout")
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            FILL
            """
        )
        await world.pass_time(120)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


# --- what served


async def test_an_unhealthy_deployment_of_a_service_that_serves():
    async with serving() as (world, _):
        head = head_at(world, await active(world))
        head.set_application("app", "UNHEALTHY", "", Model="UNHEALTHY", Ingress="HEALTHY")
        message = "The deployment failed its health check: CUDA error: device lost"
        head.applications["app"]["deployments"]["Model"]["message"] = message
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_service_that_has_lost_its_head():
    broken = Script(when=HEADS, steps=[Running(), *[Fails(after=60, exit_code=137, reason="OOMKilled")] * 9])
    async with serving(rayservice(cluster={"workers": []}), scripts=[broken]) as (world, _):
        await has_condition(world, "Ready", "False", "ZeroServeEndpoints")
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_new_configuration_that_serve_refuses(monkeypatch):
    async with serving() as (world, _):
        await refuse_configurations(monkeypatch)
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_new_configuration_that_is_no_yaml_and_is_taken_back():
    async with serving() as (world, _):
        before = (await world.get("RayService", "s"))["spec"]["serveConfigV2"]
        await change(world, serveConfigV2="- app\n")
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )
        await change(world, serveConfigV2=before)
        await world.pass_time(5)
        assert (await why(world))[1]


# --- an upgrade


async def test_an_upgrade_that_goes_well():
    async with serving() as (world, ray):
        ray.deploys = 60
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(20)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            [NO_IMAGE],
            """
            FILL
            """,
            id="an image that cannot be pulled",
        ),
        pytest.param(
            [Running(), *[Fails(after=1, exit_code=2)] * 9],
            """
            FILL
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
            FILL
            """
        )


async def test_an_upgrade_whose_dashboard_hangs():
    async with serving() as (world, _):
        await set_image(world, "2.53.0")
        world.dashboards.fault(host_of(await new_pending(world)), HANGS)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_an_upgrade_whose_configuration_serve_refuses(monkeypatch):
    async with serving() as (world, _):
        await refuse_configurations(monkeypatch)
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
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
            FILL
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
            FILL
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
            FILL
            """
        )


async def test_an_upgrade_that_may_not_be_made():
    async with serving() as (world, _):
        world.faults.refuse("create", "rayclusters.ray.io", errors.Forbidden("exceeded quota: team"))
        await set_image(world, "2.53.0")
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
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
            FILL
            """
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
            FILL
            """
        )


async def test_a_gateway_that_nobody_takes_on():
    async with serving(incremental(gateway_class="istio"), accepts=False) as (world, _):
        assert await stuck(world) == said(
            """
            FILL
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
            FILL
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
            FILL
            """
        )


async def test_a_cluster_without_the_gateway_api():
    async with serving(incremental(), gateways=False) as (world, _):
        assert await stuck(world) == said(
            """
            FILL
            """
        )
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_steps_of_nothing():
    async with serving(incremental(step=0, interval=1)) as (world, _):
        await set_image(world, "2.53.0")
        await new_pending(world)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
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
            FILL
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
            FILL
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
            FILL
            """
        )


# --- a service that is not to serve


async def test_a_suspended_service():
    async with serving() as (world, _):
        await change(world, suspend=True)
        await has_condition(world, "Suspended", "True", "SuspendComplete")
        assert await stuck(world) == said(
            """
            FILL
            """
        )
        await world.patch("RayService", "s", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}})
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_suspension_that_finalizers_hold_up():
    async with serving() as (world, _):
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        await world.patch("RayCluster", await active(world), hold)
        await world.patch("Service", "s-serve-svc", hold)
        await change(world, suspend=True)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )
        await change(world, suspend=False)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_cluster_that_may_not_be_deleted():
    async with serving() as (world, _):
        world.faults.refuse("delete", "rayclusters.ray.io", errors.Forbidden("a policy says no: forbidden"))
        await change(world, suspend=True)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


async def test_a_deletion_that_finalizers_hold_up():
    async with serving() as (world, _):
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        await world.patch("RayCluster", await active(world), hold)
        finalizers = ["ray.io/rayservice-finalizer", "example.com/wait"]
        await world.patch("RayService", "s", {"metadata": {"finalizers": finalizers}})
        await world.delete("RayService", "s")
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            FILL
            """
        )


# --- a reader with few rights


async def test_what_a_user_may_not_read_is_said():
    async with serving(scripts=[of_new_heads(NO_IMAGE)]) as (world, _):
        about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
        rules = [{"apiGroups": ["ray.io"], "resources": ["rayservices"], "verbs": ["get"]}]
        await world.create({**about, "kind": "Role", "rules": rules})
        binding = {
            "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
        }
        await world.create({**about, "kind": "RoleBinding", **binding})
        shown, is_well = await why(world, user=User("ann"))
        assert is_well
        assert shown == said(
            """
            FILL
            """
        )
        await change_heads(world)
        await new_pending(world)
        await world.pass_time(30)
        shown, is_well = await why(world, user=User("ann"))
        assert not is_well
        assert shown[:3] == said(
            """
            FILL
            """
        )
        with pytest.raises(errors.Forbidden):
            await why(world, user=User("bob"))
