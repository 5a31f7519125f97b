"""Services on their first cluster, and what `eagleray why` says that they wait for."""

import pytest

from kubereef.node.scripted import Fails, Running, Script
from kubewire import errors
from tests.eagleray.dashboard.scripted import HANGS, SERVER_ERROR
from tests.eagleray.ray import host_of
from tests.eagleray.rayservice.situations import (
    has_condition,
    new_pending,
    pending,
    serve_world,
)
from tests.eagleray.why.asking import said
from tests.eagleray.why.services import (
    HEADS,
    LARGE,
    NO_IMAGE,
    NO_TORCH,
    refuse_configurations,
    stuck,
)
from tests.eagleray.world import rayservice

pytestmark = [pytest.mark.usefixtures("virtual_time"), pytest.mark.case("OP-189")]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            Script(when=HEADS, steps=[NO_IMAGE]),
            """
            RayService default/s does not serve yet.
            - RayCluster default/s-1 waits for its head Pod.
            - group headgroup, Pod s-1-head-xxxxx: container ray: ImagePullBackOff: no such
                image; check the image's name and tag, the registry, and imagePullSecrets
            note: Pods that take requests: 0
            note: it is given up by the initializing timeout at xxxxx, in 570 s
            """,
            id="an image that cannot be pulled",
        ),
        pytest.param(
            Script(when=HEADS, steps=[Running(), *[Fails(after=1, exit_code=2)] * 9]),
            """
            RayService default/s does not serve yet.
            - RayCluster default/s-1 waits for its head Pod.
            - group headgroup, Pod s-1-head-xxxxx: container ray ended with exit code 2 (Error);
                see the logs of container ray
            note: Pods that take requests: 0
            note: it is given up by the initializing timeout at xxxxx, in 570 s
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
            RayService default/s does not serve yet.
            - RayCluster default/s-1 waits for its head Pod.
            - group headgroup, Pod s-1-head-xxxxx: 0/1 nodes are available: 1 Insufficient cpu.
                no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption
                is not helpful for scheduling.; ask for less, free or add nodes, or change
                selectors and tolerations
            note: Pods that take requests: 0
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
            RayService default/s does not serve yet.
            - RayCluster default/s-1 does not exist (yet)
            - FailedToCreateRayCluster: Failed to create the RayCluster default/s-1: exceeded
                quota: team, requested: count/rayclusters.ray.io=1; raise the ResourceQuota of
                the namespace, ask for less, or free what others hold
            note: Pods that take requests: 0
            """
        )


async def test_pods_that_may_not_be_made():
    async with serve_world() as (world, _):
        world.faults.refuse("create", "pods", errors.Forbidden("exceeded quota: team"))
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - RayCluster default/s-1 waits for its head Pod and 1 of 1 worker of group
                small-group.
            - FailedCreateHeadPod: exceeded quota: team; raise the ResourceQuota of the
                namespace, ask for less, or free what others hold
            note: Pods that take requests: 0
            """
        )


async def test_a_dashboard_that_hangs():
    async with serve_world() as (world, _):
        await world.create(rayservice())
        world.dashboards.fault(host_of(await new_pending(world)), HANGS)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - s-1: Serve did not take serveConfigV2: PUT
                s-1-head-svc.default.svc.cluster.local:8265/api/serve/applications/: no answer
                in 15 s; see the head's logs, and whether a network policy keeps the operator
                from its dashboard
            note: Pods that take requests: 0
            """
        )


async def test_a_dashboard_that_fails_while_an_application_is_deployed():
    async with serve_world(deploys=3600) as (world, _):
        await world.create(rayservice())
        await world.pass_time(10)
        world.dashboards.fault(host_of(await pending(world)), SERVER_ERROR)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - s-1: application app is DEPLOYING
            - s-1: Serve cannot be asked: GET
                s-1-head-svc.default.svc.cluster.local:8265/api/serve/applications/: 500:
                RuntimeError: GCS is away; see the head's logs, and whether a network policy
                keeps the operator from its dashboard
            note: Pods that take requests: 0
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )


async def test_a_configuration_that_is_no_yaml():
    async with serve_world() as (world, _):
        await world.create(rayservice(serveConfigV2="applications:\n- name: [app\n"))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - spec.serveConfigV2 is no YAML: while parsing a flow sequence did not find expected
                ',' or ']'
            note: Pods that take requests: 0
            """
        )


async def test_a_configuration_that_serve_refuses(monkeypatch):
    refuse_configurations(monkeypatch)
    async with serve_world() as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - s-1: Serve did not take serveConfigV2: PUT
                s-1-head-svc.default.svc.cluster.local:8265/api/serve/applications/: 400:
                ValidationError: 1 validation error for ServeDeploySchema:
                applications.0.import_path; mend spec.serveConfigV2
            note: Pods that take requests: 0
            """
        )


async def test_a_configuration_without_applications():
    async with serve_world() as (world, _):
        await world.create(rayservice(serveConfigV2="applications: []\n"))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - spec.serveConfigV2 has no applications, so there is nothing to serve; name some
            note: Pods that take requests: 0
            """
        )


async def test_an_application_that_cannot_be_deployed():
    async with serve_world(application_faults=NO_TORCH) as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - s-1: application app is DEPLOY_FAILED: Deploying app 'app' failed with exception:
                Traceback (most recent call last): File "/srv/app.py", line 1, in <module>
                import torch ModuleNotFoundError: No module named 'torch'
            note: Pods that take requests: 0
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )


async def test_an_application_that_takes_its_time():
    async with serve_world(deploys=3600) as (world, _):
        await world.create(rayservice())
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s does not serve yet.
            - s-1: application app is DEPLOYING
            note: Pods that take requests: 0
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
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
            RayService default/s does not serve yet.
            - Pod s-1-head-xxxxx takes no requests: its Serve proxy does not answer at
                :8000/-/healthz, so its label ray.io/serve is false; see Serve's logs on it
            note: Pods that take requests: 0
            """,
            id="the proxy on the head is not healthy",
        ),
        pytest.param(
            {"excludeHeadPodFromServeSvc": True},
            """
            RayService default/s does not serve yet.
            - Pod s-1-head-xxxxx takes no requests: spec.excludeHeadPodFromServeSvc keeps the
                head out, so workers have to be there for them
            note: Pods that take requests: 0
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
            RayService default/s does not serve yet.
            - FailedToCreateService: Failed to create the service default/s-serve-svc, Operation
                cannot be fulfilled on services "s-serve-svc": an object of this name exists,
                which nobody controls; delete or rename one of them
            note: Pods that take requests: 0
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
            RayService default/s has been given up.
            - RayService failed to become ready within the configured timeout of 1m0s. Time
                spent initializing: 1m0s; mend what kept it, then suspend and resume it
                (spec.suspend), or create it anew
            - RayCluster s-1: group headgroup, Pod s-1-head-xxxxx: container ray:
                ImagePullBackOff: no such image; check the image's name and tag, the registry,
                and imagePullSecrets
            note: RayCluster s-1 is not used any more and is kept until xxxxx
            """
        )
        await world.pass_time(120)
        assert await stuck(world) == said(
            """
            RayService default/s has been given up.
            - RayService failed to become ready within the configured timeout of 1m0s. Time
                spent initializing: 1m0s; mend what kept it, then suspend and resume it
                (spec.suspend), or create it anew
            """
        )
