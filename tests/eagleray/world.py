"""A whole cluster in one process under virtual time, with the operator in it.

    async with world_of() as world:
        await world.create(raycluster("hello", workers=[{"replicas": 2}]))
        await world.until(lambda: ...)

The API server and Kubernetes' own controllers are Kubereef's, Pods live on scripted nodes, and the operator speaks to
the server through a transport on which things can be made to go wrong. Where all this takes place can be exchanged:
tests/kubernetes lets the same worlds live on a real control plane.
"""

import asyncio
import copy
from collections.abc import Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import msgspec

from eagleray.kube.transport import Stream
from eagleray.operator.assembly import Operator
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from eagleray.runtime.events import GATHERING_SECONDS
from eagleray.runtime.options import read_options
from kubereef.controllers.standard import CONTROLLERS
from kubereef.node.scripted import NodeShape, ScriptedNodes
from kubereef.simulation import SimulatedCluster, VirtualLoop, settle
from kubereef.store.records import Key
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.dashboard.scripted import ScriptedDashboards
from tests.eagleray.gateways import GATEWAY_KINDS, gateway_crd
from tests.eagleray.kube.local import FaultyTransport, status, transport_to

NAMESPACE = "default"
NODES = (NodeShape(),)
QUIET = ("--metrics-addr=0", "--health-probe-bind-address=0", "--enable-leader-election=false")

PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "Event": "/apis/events.k8s.io/v1/namespaces/{}/events",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Ingress": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "RayCluster": "/apis/ray.io/v1/namespaces/{}/rayclusters",
    "RayJob": "/apis/ray.io/v1/namespaces/{}/rayjobs",
    "RayService": "/apis/ray.io/v1/namespaces/{}/rayservices",
    "RayCronJob": "/apis/ray.io/v1/namespaces/{}/raycronjobs",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "Gateway": "/apis/gateway.networking.k8s.io/v1/namespaces/{}/gateways",
    "HTTPRoute": "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes",
}


_stored_crds: dict[str, Any] = {}


@cache
def definition_of(name):
    """Return the CRD of a kind."""
    if name in GATEWAY_KINDS:
        return gateway_crd(name)
    (kind,) = (kind for kind in KINDS if kind.name == name)
    definition = crd(kind)
    # One version is enough, and takes the server half as long to check.
    return {**definition, "spec": {**definition["spec"], "versions": definition["spec"]["versions"][:1]}}


def raycluster(name="c", *, namespace=NAMESPACE, head=None, workers=({},), metadata=None, **spec):
    """Return a RayCluster as a user writes it; `head` and each of `workers` are laid over a plain group.

    In a group, `container` is laid over its container and `pod` over its Pod spec.
    """
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {
            "headGroupSpec": _group(head or {}),
            "workerGroupSpecs": [
                _group(
                    {"groupName": "small-group", "replicas": 1, "minReplicas": 0, "maxReplicas": 10, **group}
                )
                for group in workers
            ],
            **copy.deepcopy(spec),
        },
    }


def rayjob(name="j", *, namespace=NAMESPACE, metadata=None, cluster=None, **spec):
    """Return a RayJob as a user writes it; `cluster` are arguments of `raycluster` for the cluster that it makes."""
    described = {"rayClusterSpec": raycluster(**(cluster or {}))["spec"]} if cluster is not False else {}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"entrypoint": "python job.py", **described, **copy.deepcopy(spec)},
    }


SERVE_CONFIG = "applications:\n- name: app\n  import_path: app.graph\n  route_prefix: /\n"


def rayservice(name="s", *, namespace=NAMESPACE, metadata=None, cluster=None, **spec):
    """Return a RayService as a user writes it; `cluster` are arguments of `raycluster` for what it makes."""
    described = raycluster(**{"workers": [{"minReplicas": 1}], **(cluster or {})})["spec"]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"rayClusterConfig": described, "serveConfigV2": SERVE_CONFIG, **copy.deepcopy(spec)},
    }


def _group(given):
    given = copy.deepcopy(given)
    container = {"name": "ray", "image": "rayproject/ray:2.52.0", **given.pop("container", {})}
    pod = {"containers": [container], **given.pop("pod", {})}
    template = {"spec": pod, **given.pop("template", {})}
    return {"rayStartParams": {}, "template": template, **given}


class PickyTransport(FaultyTransport):
    """A faulty transport that also refuses whatever a test has picked, for as long as it likes."""

    def __init__(self, inner):
        super().__init__(inner)
        self.refusals = []
        self._gates = {}

    def hold(self, resource):
        """Keep the news of a resource back; the others go on."""
        self._gates[resource] = asyncio.Event()

    def release(self, resource):
        self._gates.pop(resource).set()

    @asynccontextmanager
    async def stream(self, request):
        async with super().stream(request) as (answer, chunks):
            yield Stream(answer, self._behind_gate(request.resource, chunks))

    async def _behind_gate(self, resource, chunks):
        async for chunk in chunks:
            if resource in self._gates:
                await self._gates[resource].wait()
            yield chunk

    def refuse(self, verb, resource, error=None, *, named=""):
        """Answer requests of a verb for a resource, or only those about a name, with an error; returns what ends it."""
        refusal = (verb, resource, named, error or errors.Forbidden("the quota is used up"))
        self.refusals.append(refusal)
        return lambda: self.refusals.remove(refusal)

    async def send(self, request):
        for verb, resource, named, error in self.refusals:
            if (verb, resource) == (
                request.verb,
                request.resource,
            ) and named in f"{request.path} {request.body}":
                self.sent.append(request)
                return status(error)
        return await super().send(request)


class SimulatedPlace:
    """A Kubereef in this process that a world lives on."""

    def __init__(self, seed):
        self.simulated = SimulatedCluster(seed)
        self.clock = self.simulated.clock
        self.api = self.simulated.client

    def transport(self):
        return transport_to(self.simulated.server)

    async def start(self, kinds):
        """Make the place ready, with Kubernetes' controllers and with those of these kinds that are known."""
        for kind in kinds:
            if kind in _stored_crds:
                key, stored = _stored_crds[kind]
                own = {**stored, "metadata": dict(stored["metadata"])}  # which the store notes its version in
                await self.simulated.store.put(key, own, None).done()
        await self.simulated.start()
        await self.simulated.run(*CONTROLLERS)

    async def complete(self, kinds):
        """Install the kinds that no world of this process has had; the nodes run by now, as they do in later ones."""
        for kind in kinds:
            if kind not in _stored_crds:
                await self.install(kind)

    async def install(self, kind):
        """Create a CRD, and remember how the server keeps it: checking one takes longer than most tests.

        No time passes, so that the first world of a process is like all others.
        """
        definition = definition_of(kind)
        await self.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        await settle()
        key = Key("customresourcedefinitions.apiextensions.k8s.io", "", definition["metadata"]["name"])
        record = self.simulated.store.get(key)
        assert record is not None
        stored = record.object()
        conditions = {one["type"]: one["status"] for one in stored["status"]["conditions"]}
        assert conditions["Established"] == "True"
        _stored_crds[kind] = (key, stored)

    async def stop(self):
        await self.simulated.stop()


# Where worlds live, and the loop that they live in.
place_of: Callable[[int], Any] = SimulatedPlace
loop_of: Callable[[], asyncio.AbstractEventLoop] = VirtualLoop


class World:
    """The cluster, its node, and the operator."""

    def __init__(self, *, seed=1, scripts=(), nodes=NODES, flags=(), variables=None, kinds=("RayCluster",)):
        self.kinds = kinds
        self.place = place_of(seed)
        self.clock = self.place.clock
        self.api = self.place.api
        self.nodes = ScriptedNodes(self.api, self.clock, nodes=nodes, scripts=scripts)
        self.faults = PickyTransport(self.place.transport())
        self.flags = (*QUIET, *flags)
        self.variables = variables or {}
        self.printed = []
        self.dashboards = ScriptedDashboards(self.clock)
        self.carrier: ScriptedDashboards | None = self.dashboards  # None has the operator find its own way
        self.operator = None
        self._seed = seed
        self._starts = 0
        self._stop = asyncio.Event()
        self._running = None

    @property
    def simulated(self):
        """The Kubereef of this process, for those who look inside."""
        return self.place.simulated

    # --- life

    async def start(self, *, operator=True):
        await self.place.start(self.kinds)
        await self.nodes.start()
        await self.place.complete(self.kinds)
        await self.pass_time(1)
        if operator:
            await self.start_operator()

    async def start_operator(self, transport=None):
        """Start an operator that remembers nothing."""
        self._starts += 1
        self.operator = Operator(
            read_options(self.flags, self.variables),
            transport or self.faults,
            clock=self.clock,
            entropy=SeededEntropy(f"{self._seed} {self._starts}"),
            printed=self.printed.append,
            carrier=self.carrier,
        )
        self._stop = asyncio.Event()
        self._running = asyncio.create_task(self.operator.run(self._stop), name="operator")
        await settle()

    async def stop_operator(self):
        """Stop the operator in order; returns its exit code."""
        if self._running is None:
            return None
        self._stop.set()
        code = await self._running
        self._running = None
        return code

    async def kill_operator(self):
        """End the operator as kill -9 would: whatever it was doing, and without a word."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
            self._running = None

    async def stop(self):
        await self.kill_operator()
        await self.nodes.stop()
        await self.place.stop()

    async def pass_time(self, seconds):
        """Let time pass, and whatever it brings happen."""
        await asyncio.sleep(seconds)
        await settle()

    async def until(self, holds, seconds=600, step=0.5):
        """Let time pass until an async function returns something true, which is returned; fail after so long."""
        left = seconds
        while True:
            await settle()
            if found := await holds():
                return found
            if left <= 0:
                raise AssertionError(f"it did not happen in {seconds} s of virtual time")
            await self.pass_time(step)
            left -= step

    # --- objects

    async def create(self, obj):
        namespace = obj["metadata"].setdefault("namespace", NAMESPACE)
        return await self.api.create(PATHS[obj["kind"]].format(namespace), obj)

    async def get(self, kind, name, namespace=NAMESPACE):
        """Return an object; None if there is none."""
        try:
            return await self.api.get(f"{PATHS[kind].format(namespace)}/{name}")
        except errors.NotFound:
            return None

    async def list(self, kind, labels="", namespace=NAMESPACE):
        query = f"?labelSelector={labels}" if labels else ""
        return (await self.api.get(f"{PATHS[kind].format(namespace)}{query}"))["items"]

    async def patch(self, kind, name, change, *, namespace=NAMESPACE, part=""):
        return await self.api.patch(f"{PATHS[kind].format(namespace)}/{name}{part}", change)

    async def patch_spec(self, name, change, namespace=NAMESPACE):
        """Change a RayCluster's spec by a merge patch."""
        return await self.patch("RayCluster", name, {"spec": change}, namespace=namespace)

    async def set_group(self, name, *, group=0, **fields):
        """Change fields of a worker group."""
        cluster = await self.get("RayCluster", name)
        cluster["spec"]["workerGroupSpecs"][group] |= fields
        return await self.api.replace(f"{PATHS['RayCluster'].format(NAMESPACE)}/{name}", cluster)

    async def delete(self, kind, name, namespace=NAMESPACE):
        return await self.api.delete(f"{PATHS[kind].format(namespace)}/{name}")

    async def pods(self, cluster="c", *, node_type="", group=""):
        """Return the Pods of a cluster in order of creation."""
        labels = f"ray.io/cluster={cluster}"
        labels += f",ray.io/node-type={node_type}" if node_type else ""
        labels += f",ray.io/group={group}" if group else ""
        found = await self.list("Pod", labels)
        return sorted(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    async def workers(self, cluster="c", group=""):
        return await self.pods(cluster, node_type="worker", group=group)

    async def head(self, cluster="c"):
        heads = await self.pods(cluster, node_type="head")
        return heads[0] if heads else None

    async def status(self, name="c", kind="RayCluster"):
        obj = await self.get(kind, name)
        return (obj or {}).get("status") or {}

    async def condition(self, kind, name="c"):
        conditions = (await self.status(name)).get("conditions") or []
        return next((found for found in conditions if found["type"] == kind), None)

    async def ready(self, name="c", seconds=600):
        """Wait until a cluster is ready; returns it."""

        async def is_ready():
            obj = await self.get("RayCluster", name)
            return obj if (obj.get("status") or {}).get("state") == "ready" else None

        return await self.until(is_ready, seconds)

    async def events(self, reason="", name=""):
        """Return the operator's events, all or those of a reason or about an object, oldest first.

        What went well is told a moment later.
        """
        await self.pass_time(GATHERING_SECONDS)
        found = [
            event
            for event in await self.list("Event")
            if event.get("reportingController", "").startswith("ray")
            and reason in ("", event["reason"])
            and name in ("", event["regarding"]["name"])
        ]
        return sorted(found, key=lambda event: event["eventTime"])

    async def reasons(self, name=""):
        return [event["reason"] for event in await self.events(name=name)]

    # --- what the operator asked for

    def writes(self):
        """Return the operator's writes as (verb, resource), events left out."""
        return [
            (request.verb, request.resource)
            for request in self.faults.sent
            if request.verb not in ("get", "list", "watch") and not request.resource.startswith("events")
        ]

    def bodies(self, verb, resource):
        return [
            msgspec.json.decode(request.body)
            for request in self.faults.sent
            if (request.verb, request.resource) == (verb, resource)
        ]


@asynccontextmanager
async def world_of(**options):
    """Give a started world; `operator=False` leaves the operator out at first."""
    operator = options.pop("operator", True)
    world = World(**options)
    await world.start(operator=operator)
    try:
        yield world
    finally:
        await world.stop()
