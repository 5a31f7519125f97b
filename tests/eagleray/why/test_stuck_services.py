"""Services that serve, or are not to, and what `eagleray why` says of each: verdict, causes, what comes next."""

import pytest

from kubereef.node.scripted import Fails, Running, Script
from kubereef.server.requests import User
from kubewire import errors
from tests.eagleray.rayservice.situations import (
    OTHER_CONFIG,
    active,
    change,
    change_cluster,
    has_condition,
    head_at,
    new_pending,
    promoted,
    serve_world,
    serving,
    set_image,
)
from tests.eagleray.why.asking import said
from tests.eagleray.why.services import (
    HEADS,
    NO_IMAGE,
    change_heads,
    of_new_heads,
    refuse_configurations,
    stuck,
    why,
)
from tests.eagleray.world import raycluster, rayservice

pytestmark = [pytest.mark.usefixtures("virtual_time"), pytest.mark.case("OP-189")]


# --- all is well


async def test_a_service_that_serves_is_well():
    async with serving() as (world, _):
        assert await why(world) == (
            said(
                """
                RayService default/s serves.
                note: Pods that take requests: 2
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
                RayService default/s serves.
                note: Pods that take requests: 2
                note: RayCluster s-1 is not used any more and is kept until xxxxx
                """
            ),
            True,
        )


async def test_a_worker_without_a_replica_is_not_ready_and_need_not_be():
    unready = Script(when={"ray.io/node-type": "worker"}, steps=[Running(ready=False)])
    async with serving(scripts=[unready]) as (world, _):
        assert await why(world) == (
            said(
                """
                RayService default/s serves.
                note: Pods that take requests: 1
                note: workers on which Serve takes no requests, as where no replica runs:
                    s-1-small-group-worker-xxxxx
                """
            ),
            True,
        )


async def test_a_worker_that_was_restarted_and_is_not_ready_is_told():
    steps = (Running(ready=False), Fails(after=1, exit_code=1), Running(ready=False))
    async with serving(scripts=[Script(when={"ray.io/node-type": "worker"}, steps=steps)]) as (world, _):
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayService default/s serves, but something is wrong.
            - RayCluster default/s-1 waits for 1 of 1 worker of group small-group.
            - Pod s-1-small-group-worker-xxxxx runs and is not ready; container ray was restarted after it
                ended with exit code 1 (Error): see its earlier logs (kubectl logs --previous)
            note: Pods that take requests: 1
            """
        )


async def test_clusters_of_somebody_else_are_none_of_its_business():
    async with serving() as (world, _):
        labels = {
            "ray.io/originated-from-cr-name": "s",
            "ray.io/originated-from-crd": "RayService",
        }
        await world.create(raycluster("mine", metadata={"labels": labels}))
        await world.pass_time(5)
        assert await why(world) == (
            ["RayService default/s serves.", "note: Pods that take requests: 2"],
            True,
        )


async def test_a_strategy_that_keeps_the_cluster_that_is_there():
    async with serving(rayservice(upgradeStrategy={"type": "None"})) as (world, _):
        await set_image(world, "2.53.0")
        await world.pass_time(30)
        assert await why(world) == (
            said(
                """
                RayService default/s serves.
                note: Pods that take requests: 2
                note: spec.rayClusterConfig describes another cluster than s-1;
                    spec.upgradeStrategy.type None keeps it
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
            RayService default/s waits for an operator.
            - generation 1 has not been looked at, and nobody holds a Lease ray-operator-leader:
                start the operator (eagleray operator)
            """
        )


async def test_an_operator_that_has_gone():
    async with serving(flags=("--enable-leader-election",)) as (world, _):
        await world.kill_operator()
        await world.pass_time(60)
        assert await why(world) == (
            said(
                """
                RayService default/s serves.
                note: Pods that take requests: 2
                note: nobody holds the Lease ray-operator-leader: no operator is at work,
                    unless one runs without election
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
            RayService default/s is invalid: nothing is done for it.
            - metadata.annotations[ray.io/initializing-timeout]: "soon" has an invalid format;
                use a duration such as 30m or 1h30m, or whole seconds such as 1800
            """
        )


async def test_a_service_that_was_made_invalid():
    async with serving() as (world, _):
        await change(world, upgradeStrategy={"type": "Sometimes"})
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayService default/s is invalid: nothing is done for it; what runs is left as it is.
            - spec.upgradeStrategy.type: "Sometimes" is unknown; use NewCluster,
                NewClusterWithIncrementalUpgrade or None
            """
        )


async def test_a_rule_that_only_eagleray_has_does_not_stop_what_runs():
    async with serving() as (world, _):
        groups = (await world.get("RayService", "s"))["spec"]["rayClusterConfig"]["workerGroupSpecs"]
        await change_cluster(world, workerGroupSpecs=[*groups, *groups])
        await world.pass_time(5)
        assert not any("is invalid" in line for line in (await why(world))[0])


async def test_a_service_of_another_manager():
    async with serve_world() as (world, _):
        await world.create(rayservice(managedBy="kueue.x-k8s.io/multikueue"))
        assert await stuck(world) == said(
            """
            RayService default/s is managed by kueue.x-k8s.io/multikueue.
            - spec.managedBy is kueue.x-k8s.io/multikueue: its clusters and its status are up to
                that controller alone
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
            RayService default/s serves, but something is wrong.
            - s-1: application app is UNHEALTHY
            - s-1: deployment Model of application app is UNHEALTHY: The deployment failed its
                health check: CUDA error: device lost
            note: Pods that take requests: 2
            note: what replicas print is in the Ray Pods under
                /tmp/ray/session_latest/logs/serve
            """
        )


async def test_a_service_that_has_lost_its_head():
    broken = Script(when=HEADS, steps=[Running(), *[Fails(after=60, exit_code=137, reason="OOMKilled")] * 9])
    async with serving(rayservice(cluster={"workers": []}), scripts=[broken]) as (world, _):
        await has_condition(world, "Ready", "False", "ZeroServeEndpoints")
        assert await stuck(world) == said(
            """
            RayService default/s does not serve any more.
            - RayCluster default/s-1 waits for its head Pod.
            - group headgroup, Pod s-1-head-xxxxx: container ray ended with exit code 137
                (OOMKilled); raise the memory limit of container ray
            note: Pods that take requests: 0
            """
        )


async def test_a_new_configuration_that_serve_refuses(monkeypatch):
    async with serving() as (world, _):
        refuse_configurations(monkeypatch)
        await change(world, serveConfigV2=OTHER_CONFIG)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, but something is wrong.
            - FailedToUpdateServeApplications: Failed to update serve applications to the
                RayCluster default/s-1: PUT
                s-1-head-svc.default.svc.cluster.local:8265/api/serve/applications/: 400:
                ValidationError: 1 validation error for ServeDeploySchema:
                applications.0.import_path; mend spec.serveConfigV2
            note: Pods that take requests: 2
            """
        )


async def test_a_refused_configuration_that_was_taken_back_is_soon_forgotten(monkeypatch):
    async with serving() as (world, _):
        before = (await world.get("RayService", "s"))["spec"]["serveConfigV2"]
        with monkeypatch.context() as patched:
            refuse_configurations(patched)
            await change(world, serveConfigV2=OTHER_CONFIG)
            await world.pass_time(600)
            assert any("FailedToUpdateServeApplications" in line for line in await stuck(world))
        await change(world, serveConfigV2=before)
        await world.pass_time(200)
        assert (await why(world))[1]


async def test_a_new_configuration_that_is_no_yaml_and_is_taken_back():
    async with serving() as (world, _):
        before = (await world.get("RayService", "s"))["spec"]["serveConfigV2"]
        await change(world, serveConfigV2="- app\n")
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s serves, but something is wrong.
            - spec.serveConfigV2 is no mapping; begin with `applications:`
            note: Pods that take requests: 2
            """
        )
        await change(world, serveConfigV2=before)
        await world.pass_time(5)
        assert (await why(world))[1]


# --- a service that is not to serve


async def test_a_suspended_service():
    async with serving() as (world, _):
        await change(world, suspend=True)
        await has_condition(world, "Suspended", "True", "SuspendComplete")
        assert await stuck(world) == said(
            """
            RayService default/s is suspended.
            - spec.suspend is true; set it to false to have it serve
            """
        )
        await world.patch("RayService", "s", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "team"}}})
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayService default/s is suspended.
            - Kueue holds it in queue team until there is room: see its Workload (kubectl get
                workloads -n default); do not set spec.suspend by hand
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
            RayService default/s is being suspended.
            - RayCluster s-1 is not gone yet, held by example.com/hold
            - Service s-serve-svc is not gone yet, held by example.com/hold
            """
        )
        await change(world, suspend=False)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s is being suspended, and resumed after that.
            - RayCluster s-1 is not gone yet, held by example.com/hold
            - Service s-serve-svc is not gone yet, held by example.com/hold
            """
        )


async def test_a_cluster_that_may_not_be_deleted():
    async with serving() as (world, _):
        world.faults.refuse("delete", "rayclusters.ray.io", errors.Forbidden("a policy says no: forbidden"))
        await change(world, suspend=True)
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayService default/s is being suspended.
            - RayCluster s-1 is not gone yet
            - Service s-head-svc is not gone yet
            - Service s-serve-svc is not gone yet
            - FailedToDeleteRayCluster: Failed to delete the RayCluster default/s-1: a policy
                says no: forbidden; an admission policy or missing rights refuse it: change the
                template, the policy or the rights
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
            RayService default/s is being deleted.
            - RayCluster s-1 is not gone yet, held by example.com/hold
            - finalizers that others have to remove: example.com/wait
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
            RayService default/s serves.
            note: Pods that take requests: 2
            note: rayclusters were not looked at: rayclusters.ray.io is forbidden: User "ann"
                cannot list resource "rayclusters" in API group "ray.io" in the namespace
                "default"
            note: events were not looked at: events.events.k8s.io is forbidden: User "ann"
                cannot list resource "events" in API group "events.k8s.io" in the namespace
                "default"
            """
        )
        await change_heads(world)
        await new_pending(world)
        await world.pass_time(30)
        shown, is_well = await why(world, user=User("ann"))
        assert not is_well
        assert shown[:3] == said(
            """
            RayService default/s serves, and goes from s-1 to s-2.
            - s-2: group headgroup, Pod s-2-head-xxxxx: container ray: ImagePullBackOff: no such
                image; check the image's name and tag, the registry, and imagePullSecrets
            note: Pods that take requests: 2
            """
        )
        with pytest.raises(errors.Forbidden):
            await why(world, user=User("bob"))
