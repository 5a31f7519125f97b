"""Clusters that are stuck, and what `eagleray why` says of each: the verdict, the causes, what comes next."""

import inspect
import re

import pytest

from eagleray.kube.client import Client
from eagleray.why.kinds import diagnosis_of
from eagleray.why.reading import Reader
from eagleray.why.report import lines
from kubereef.node.scripted import Evicted, Fails, Running, Script, Waits
from kubereef.server.requests import User
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.world import NAMESPACE, raycluster, world_of

pytestmark = [pytest.mark.usefixtures("virtual_time"), pytest.mark.case("OP-189")]

WORKERS = {"ray.io/node-type": "worker"}
HEADS = {"ray.io/node-type": "head"}


async def why(world, name="c", user=None):
    """Return what is printed and whether the cluster is ready; the random ends of names are taken off."""
    transport = transport_to(world.simulated.server, *([user] if user else []))
    client = Client(transport, world.clock, SeededEntropy("why"))
    reader = Reader(client, world.clock, SeededEntropy("why"))
    report = await diagnosis_of("raycluster").diagnose(reader, NAMESPACE, name)
    random = re.compile(r"(?<=-worker-)[a-z0-9]{5}\b|(?<=-head-)[a-z0-9]{5}\b|(?<=eagleray_)[0-9a-f-]{36}")
    shown = [random.sub("xxxxx", line) for line in lines(report)]
    return shown, report.is_ready


async def stuck(world):
    """Return what is printed about a cluster that is not ready."""
    shown, is_ready = await why(world)
    assert not is_ready
    return shown


def said(text):
    """Return the lines of a text whose long lines go on, further in, on the next one."""
    return re.sub(r"\n {4,}", " ", inspect.cleandoc(text)).splitlines()


async def test_a_ready_cluster_is_ready():
    async with world_of() as world:
        await world.create(raycluster())
        await world.ready()
        assert await why(world) == (
            ["RayCluster default/c is ready.", "next: nothing until something changes"],
            True,
        )


async def test_an_operator_that_has_gone_is_noticed():
    async with world_of(flags=("--enable-leader-election",)) as world:
        await world.create(raycluster())
        await world.ready()
        assert (await why(world))[0] == [
            "RayCluster default/c is ready.",
            "next: nothing until something changes",
        ]
        await world.kill_operator()
        await world.pass_time(20)
        assert (await why(world))[0] == said(
            """
            RayCluster default/c is ready.
            note: nobody holds the Lease ray-operator-leader: no operator is at work, unless one runs
                without election
            next: nothing until something changes
            """
        )


QUOTA = 'pods "w" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1'


async def test_a_full_quota():
    async with world_of() as world:
        world.faults.refuse("create", "pods", errors.Forbidden(QUOTA), named="-worker-")
        await world.create(raycluster(workers=[{"replicas": 2}]))
        await world.pass_time(30)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for 2 of 2 workers of group small-group.
            - FailedCreateWorkerPod: pods "w" is forbidden: exceeded quota: team, requested: pods=1, used:
                pods=1, limited: pods=1; raise the ResourceQuota of the namespace, ask for less, or free what
                others hold
            next: create 2 workers of group small-group
            """
        )


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        pytest.param(
            Script(when=WORKERS, steps=[Waits(reason="ImagePullBackOff", message="no such image")]),
            said(
                """
                RayCluster default/c waits for 1 of 1 worker of group small-group.
                - group small-group, Pod c-small-group-worker-xxxxx: container ray: ImagePullBackOff: no
                    such image; check the image's name and tag, the registry, and imagePullSecrets
                next: nothing until something changes
                """
            ),
            id="an image that cannot be pulled",
        ),
        pytest.param(
            Script(
                when=HEADS, steps=[Waits(reason="CreateContainerConfigError", message='secret "s" not found')]
            ),
            said(
                """
                RayCluster default/c waits for its head Pod.
                - group headgroup, Pod c-head-xxxxx: container ray: CreateContainerConfigError: secret "s"
                    not found; create the Secret, ConfigMap or volume that it names
                next: nothing until something changes
                """
            ),
            id="a Secret that does not exist",
        ),
        pytest.param(
            Script(when=HEADS, steps=[Running(), *[Fails(after=1, exit_code=2)] * 9]),
            said(
                """
                RayCluster default/c waits for its head Pod.
                - group headgroup, Pod c-head-xxxxx: container ray ended with exit code 2 (Error); see the
                    logs of container ray
                next: nothing until something changes
                """
            ),
            id="a head in a crash loop",
        ),
        pytest.param(
            Script(when=HEADS, steps=[Running(), *[Fails(after=1, exit_code=137, reason="OOMKilled")] * 9]),
            said(
                """
                RayCluster default/c waits for its head Pod.
                - group headgroup, Pod c-head-xxxxx: container ray ended with exit code 137 (OOMKilled);
                    raise the memory limit of container ray
                next: nothing until something changes
                """
            ),
            id="a head that is killed for its memory",
        ),
        pytest.param(
            Script(when=WORKERS, steps=[Running(ready=False)]),
            said(
                """
                RayCluster default/c waits for 1 of 1 worker of group small-group.
                - Pod c-small-group-worker-xxxxx runs and is not ready: see its logs and its readiness probe
                next: nothing until something changes
                """
            ),
            id="a worker that does not become ready",
        ),
    ],
)
async def test_a_container_in_trouble(script, expected):
    async with world_of(scripts=[script]) as world:
        await world.create(raycluster())
        await world.pass_time(100)
        assert await stuck(world) == expected


async def test_a_group_that_keeps_failing():
    async with world_of(scripts=[Script(when=WORKERS, steps=[Running(), Evicted(after=1)])]) as world:
        await world.create(raycluster())
        await world.pass_time(100)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for 1 of 1 worker of group small-group.
            - group small-group failed 5 times in a row (The node was low on resource: memory.); its node
                ran out of something: raise requests to what it needs; next try at 2030-01-01T00:02:36Z
            next: try group small-group again at 2030-01-01T00:02:36Z
            """
        )


async def test_a_pod_that_fits_nowhere():
    async with world_of() as world:
        big = {"resources": {"requests": {"cpu": "1000"}}}
        await world.create(raycluster(workers=[{"container": big}]))
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for 1 of 1 worker of group small-group.
            - group small-group, Pod c-small-group-worker-xxxxx: 0/1 nodes are available: 1 Insufficient
                cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not
                helpful for scheduling.; ask for less, free or add nodes, or change selectors and tolerations
            next: nothing until something changes
            """
        )


async def test_two_heads():
    async with world_of() as world:
        await world.create(raycluster())
        await world.ready()
        second = await world.head()
        second["metadata"] = {
            "name": "c-head-second",
            "namespace": NAMESPACE,
            **{key: second["metadata"][key] for key in ("labels", "ownerReferences")},
        }
        second |= {"apiVersion": "v1", "kind": "Pod"}
        second.pop("status")
        second["spec"].pop("nodeName")
        await world.create(second)
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayCluster default/c has all its Pods, but something is wrong.
            - RayCluster default/c has more than one head Pod: c-head-xxxxx, c-head-second; delete all but
                one
            next: nothing more until that is mended
            """
        )


async def test_a_service_account_that_does_not_exist():
    async with world_of() as world:
        await world.create(
            raycluster(enableInTreeAutoscaling=True, head={"pod": {"serviceAccountName": "ours"}})
        )
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for its head Pod and 1 of 1 worker of group small-group.
            - The head's template names service account default/ours, which does not exist; create it, or
                leave serviceAccountName out to have one made
            next: nothing more until that is mended
            """
        )


async def test_an_init_container_that_fails():
    async with world_of(scripts=[Script(when=WORKERS, steps=[])]) as world:
        await world.create(raycluster())
        await world.pass_time(5)
        (worker,) = await world.workers()
        ended = {"terminated": {"exitCode": 3, "reason": "Error", "startedAt": None, "finishedAt": None}}
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
        init = {"name": "wait-gcs-ready", "state": waiting, "lastState": ended, "ready": False}
        init |= {"restartCount": 1, "image": "i", "imageID": ""}
        change = {"status": {"phase": "Pending", "initContainerStatuses": [init]}}
        await world.patch("Pod", worker["metadata"]["name"], change, part="/status")
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for 1 of 1 worker of group small-group.
            - group small-group, Pod c-small-group-worker-xxxxx: container wait-gcs-ready ended with exit
                code 3 (Error); see the logs of container wait-gcs-ready
            next: nothing until something changes
            """
        )


async def test_a_lost_node():
    async with world_of() as world:
        await world.create(raycluster())
        await world.ready()
        world.nodes.lose("node-1")
        await world.pass_time(100)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for its head Pod and 1 of 1 worker of group small-group.
            - Pod c-head-xxxxx is on node node-1, which is not ready; bring the node back, or delete it
            - Pod c-small-group-worker-xxxxx is on node node-1, which is not ready; bring the node back, or
                delete it
            next: nothing until something changes
            """
        )
        await world.pass_time(400)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for its head Pod and 1 of 1 worker of group small-group.
            - group headgroup, Pod c-head-xxxxx: 0/1 nodes are available: 1 node(s) had untolerated
                taint(s). no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not
                helpful for scheduling.; ask for less, free or add nodes, or change selectors and tolerations
            - group small-group, Pod c-small-group-worker-xxxxx: 0/1 nodes are available: 1 node(s) had
                untolerated taint(s). no new claims to deallocate, preemption: 0/1 nodes are available: 1
                Preemption is not helpful for scheduling.; ask for less, free or add nodes, or change selectors
                and tolerations
            - Pod c-head-xxxxx cannot end because its node node-1 is lost: it is replaced all the same;
                bring the node back, or delete it (kubectl delete node node-1)
            - Pod c-small-group-worker-xxxxx cannot end because its node node-1 is lost: it is replaced all
                the same; bring the node back, or delete it (kubectl delete node node-1)
            next: nothing until something changes
            """
        )


async def test_an_invalid_spec():
    async with world_of() as world:
        await world.create(raycluster(workers=[{"minReplicas": 5, "maxReplicas": 2}]))
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayCluster default/c is invalid: nothing is done for it.
            - The RayCluster spec is invalid default/c: spec.workerGroupSpecs[0].maxReplicas: 2 is below
                minReplicas 5; raise it or lower minReplicas
            """
        )


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(
            raycluster(suspend=True),
            said(
                """
                RayCluster default/c is suspended.
                - spec.suspend is true; set it to false to have its Pods made
                next: nothing until something changes
                """
            ),
            id="by its user",
        ),
        pytest.param(
            raycluster(suspend=True, metadata={"labels": {"kueue.x-k8s.io/queue-name": "team"}}),
            said(
                """
                RayCluster default/c is suspended.
                - Kueue holds it in queue team until there is room: see its Workload (kubectl get workloads
                    -n default); do not set spec.suspend by hand
                next: nothing until something changes
                """
            ),
            id="by Kueue",
        ),
        pytest.param(
            raycluster(
                suspend=True,
                metadata={
                    "labels": {"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "j"}
                },
            ),
            said(
                """
                RayCluster default/c is suspended.
                - spec.suspend is true, as its RayJob j wants it
                next: nothing until something changes
                """
            ),
            id="by its RayJob",
        ),
        pytest.param(
            raycluster(managedBy="kueue.x-k8s.io/multikueue"),
            said(
                """
                RayCluster default/c is managed by kueue.x-k8s.io/multikueue.
                - spec.managedBy is kueue.x-k8s.io/multikueue: its Pods and its status are up to that
                    controller alone
                """
            ),
            id="managed by another controller",
        ),
    ],
)
async def test_a_cluster_that_is_not_to_run(cluster, expected):
    async with world_of() as world:
        await world.create(cluster)
        await world.pass_time(5)
        assert await stuck(world) == expected


async def test_no_operator_at_work():
    async with world_of(operator=False) as world:
        await world.create(raycluster())
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for an operator.
            - generation 1 has not been looked at, and nobody holds a Lease ray-operator-leader: start the
                operator (eagleray operator)
            """
        )


async def test_an_operator_that_looks_elsewhere():
    flags = ("--enable-leader-election", "--watch-namespace=elsewhere")
    async with world_of(flags=flags) as world:
        await world.create(raycluster())
        await world.pass_time(5)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for an operator.
            - generation 1 has not been looked at, though eagleray_xxxxx holds the Lease: see its log, and
                whether it watches namespace default (--watch-namespace)
            """
        )


async def test_a_name_that_somebody_else_has():
    async with world_of() as world:
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "c-head-svc"}}
        await world.create({**service, "spec": {"ports": [{"port": 80}]}})
        await world.create(raycluster())
        await world.pass_time(10)
        assert await stuck(world) == said(
            """
            RayCluster default/c waits for its head Pod and 1 of 1 worker of group small-group.
            - Service default/c-head-svc has the name that this cluster needs and belongs to nobody; delete
                or rename it, or give the cluster another name
            next: nothing more until that is mended
            """
        )


async def test_a_deletion_that_waits_for_the_cleanup_of_redis():
    cleanup = Script(when={"ray.io/node-type": "redis-cleanup"}, steps=[Running(ready=False)])
    async with world_of(scripts=[cleanup]) as world:
        await world.create(raycluster(gcsFaultToleranceOptions={"redisAddress": "redis:6379"}))
        await world.ready()
        await world.delete("RayCluster", "c")
        await world.pass_time(60)
        assert await stuck(world) == said(
            """
            RayCluster default/c is being deleted.
            - Job default/c-redis-cleanup is removing its state from Redis; see the Job's Pods
            - it is let go in 240 s at the latest, 300 s after its deletion (annotation
                ray.io/gcs-ft-deletion-timeout)
            next: nothing until something changes
            """
        )


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        pytest.param(
            raycluster(workers=[{"replicas": 0}]),
            said(
                """
                RayCluster default/c is ready.
                note: group small-group has no workers and autoscaling is off: raise its replicas, or set
                    enableInTreeAutoscaling
                next: nothing until something changes
                """
            ),
            id="autoscaling is off",
        ),
        pytest.param(
            raycluster(workers=[{"replicas": 0}], enableInTreeAutoscaling=True),
            said(
                """
                RayCluster default/c is ready.
                note: group small-group has no workers: autoscaling is on, and they come when Ray asks for
                    them
                next: nothing until something changes
                """
            ),
            id="autoscaling is on",
        ),
        pytest.param(
            raycluster(workers=[{"replicas": 5, "maxReplicas": 2}]),
            said(
                """
                RayCluster default/c is ready.
                note: group small-group asks for 5 replicas and gets 2, as minReplicas and maxReplicas say
                next: nothing until something changes
                """
            ),
            id="more than the bounds allow",
        ),
        pytest.param(
            raycluster(workers=[{"suspend": True}]),
            said(
                """
                RayCluster default/c is ready.
                note: group small-group is suspended: it has no workers until its suspend is false
                next: nothing until something changes
                """
            ),
            id="a suspended group",
        ),
    ],
)
async def test_a_number_of_workers_that_may_surprise_is_explained(cluster, expected):
    async with world_of() as world:
        await world.create(cluster)
        await world.ready()
        shown, is_ready = await why(world)
        assert is_ready
        assert shown == expected


async def test_what_a_user_may_not_read_is_said():
    async with world_of() as world:
        await world.create(raycluster())
        await world.ready()
        role = {"rules": [{"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get"]}]}
        about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
        await world.create({**about, "kind": "Role", **role})
        binding = {
            "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "Role", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"},
        }
        await world.create({**about, "kind": "RoleBinding", **binding})
        shown, is_ready = await why(world, user=User("ann"))
        assert is_ready
        assert shown == said(
            """
            RayCluster default/c is ready, as its status says.
            note: pods were not looked at: pods is forbidden: User "ann" cannot list resource "pods" in API
                group "" in the namespace "default"
            note: services were not looked at: services is forbidden: User "ann" cannot list resource
                "services" in API group "" in the namespace "default"
            note: events were not looked at: events.events.k8s.io is forbidden: User "ann" cannot list
                resource "events" in API group "events.k8s.io" in the namespace "default"
            """
        )
        with pytest.raises(errors.Forbidden):
            await why(world, user=User("bob"))
