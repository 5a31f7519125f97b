"""A service and its clusters as values, on which plans are carried out, without an API server, a clock or Ray.

scene = Scene(service())
scene.settle()
scene.serve("s-…")      # the cluster's applications run
scene.settle()
"""

import copy
from datetime import timedelta
from typing import Any

from eagleray.dashboard.errors import Unreachable
from eagleray.dashboard.orders import PutServe
from eagleray.dashboard.questions import Observation
from eagleray.dashboard.words import Application, ServeDetails
from eagleray.manifests.gateway import weights
from eagleray.manifests.rayservice import RayService
from eagleray.raycluster.views import pod_view
from eagleray.rayservice.look import Config, Look, Put, Seen
from eagleray.rayservice.planning import plan
from eagleray.rayservice.serving import is_ready
from eagleray.runtime.actions import Create, Delete, Patch, Refuse, Replace, Tell
from kubewire import mergepatch
from kubewire.sources import SeededEntropy
from kubewire.times import format_time, parse_time
from tests.eagleray.manifests.clusters import cluster, stored

NOW = parse_time("2030-01-01T01:00:00Z")
CONFIG = "applications:\n- name: app\n"
GATEWAY_OPEN = {"conditions": [{"type": kind, "status": "True"} for kind in ("Accepted", "Programmed")]}
ROUTE_OPEN = {
    "parents": [{"conditions": [{"type": kind, "status": "True"} for kind in ("Accepted", "ResolvedRefs")]}]
}
_MOST_PASSES = 60


def service(name="s", *, metadata=None, config=None, status=None, **spec):
    """Return a RayService as stored; `config` are arguments of `cluster` for the cluster that it describes."""
    described = {"workers": [{"minReplicas": 1, "maxReplicas": 5}], **(config or {})}
    obj = stored(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayService",
            "metadata": {"name": name, "namespace": "ns"},
            "spec": {"rayClusterConfig": cluster(**described).spec, "serveConfigV2": CONFIG, **spec},
        }
    )
    obj["metadata"] |= {"uid": "su", "generation": 1, "resourceVersion": "1", **(metadata or {})}
    return {**obj, **({"status": status} if status else {})}


def incremental(*, step=25, interval=10, surge=50, config=None, **more):
    """Return a RayService with incremental upgrades."""
    options = {
        "gatewayClassName": "g",
        "stepSizePercent": step,
        "intervalSeconds": interval,
        "maxSurgePercent": surge,
    }
    strategy = {"type": "NewClusterWithIncrementalUpgrade", "clusterUpgradeOptions": options}
    return service(
        upgradeStrategy=strategy, config={"enableInTreeAutoscaling": True, **(config or {})}, **more
    )


class Ray:
    """What Ray on one cluster is like: whether its head is up, and what its applications are doing."""

    def __init__(self):
        self.head = False
        self.applications: tuple[tuple[str, str, str], ...] = ()
        self.error = None
        self.put = None
        self.deployed = None


class Scene:
    """A service with what its plans have made; time passes only when told to."""

    def __init__(self, obj, *, config: Config | None = None, auto_gateway=True):
        self.obj = obj
        self.now = NOW
        self.config = config or Config()
        self.children: dict[tuple[str, str], dict[str, Any]] = {}
        self.rays: dict[str, Ray] = {}
        self.events: list[str] = []
        self.notes: list[str] = []
        self.raised: list[str] = []
        self.puts: list[tuple[str, Any, int | None]] = []
        self.auto_gateway = auto_gateway
        self.again: float | None = None
        self._entropy = SeededEntropy("scene")
        self._version = 1

    # --- seeing

    @property
    def status(self):
        return self.obj.get("status") or {}

    def side(self, which):
        return self.status.get(f"{which}ServiceStatus") or {}

    @property
    def active(self):
        return self.side("active").get("rayClusterName", "")

    @property
    def pending(self):
        return self.side("pending").get("rayClusterName", "")

    @property
    def clusters(self):
        return sorted(name for kind, name in self.children if kind == "RayCluster")

    def condition(self, kind):
        found = [entry for entry in self.status.get("conditions", ()) if entry["type"] == kind]
        return (found[0]["status"], found[0]["reason"]) if found else None

    def message(self, kind):
        return next(entry["message"] for entry in self.status["conditions"] if entry["type"] == kind)

    @property
    def shares(self):
        """Capacity and traffic of both sides as the status has them."""
        sides = (self.side("active"), self.side("pending"))
        return tuple((side.get("targetCapacity"), side.get("trafficRoutedPercent")) for side in sides)

    @property
    def weights(self):
        """The weights of the route by cluster."""
        found = weights(self.children.get(("HTTPRoute", "s-httproute")), "ns")
        return {name.removesuffix("-serve-svc"): weight for name, weight in found.items()}

    def selected(self, name):
        return self.children[("Service", name)]["spec"]["selector"]["ray.io/cluster"]

    def look(self):
        return Look(
            RayService(copy.deepcopy(self.obj)),
            self.now,
            self._entropy,
            self.config,
            active=self.seen(self.active),
            pending=self.seen(self.pending),
            clusters=[obj for (kind, _), obj in sorted(self.children.items()) if kind == "RayCluster"],
            services={name: obj for (kind, name), obj in self.children.items() if kind == "Service"},
            slices=list(self._slices()),
            gateway=self.children.get(("Gateway", "s-gateway")),
            route=self.children.get(("HTTPRoute", "s-httproute")),
        )

    def seen(self, name):
        obj = self.children.get(("RayCluster", name))
        if obj is None:
            return Seen()
        ray = self.rays[name]
        head = {"type": "HeadPodReady", "status": str(ray.head), "reason": "Some", "message": "as told"}
        obj = {**obj, "status": {"state": "ready" if ray.head else "", "conditions": [head]}}
        details = ServeDetails(tuple(Application(*app) for app in ray.applications))
        serve = Observation(None if ray.error else details, ray.error, self.now) if ray.head else None
        return Seen(obj, (_head_pod(name),) if ray.head else (), serve, put=ray.put, deployed=ray.deployed)

    def is_ready(self, name):
        return is_ready(self.look(), self.seen(name))

    def _slices(self):
        """Yield an EndpointSlice for each serve Service, with one endpoint if its cluster serves."""
        for (kind, name), obj in self.children.items():
            if kind == "Service" and name.endswith("-serve-svc"):
                served = obj["spec"]["selector"]["ray.io/cluster"]
                ready = served in self.rays and self.is_serving(served)
                endpoint = {"conditions": {"ready": ready}, "targetRef": {"uid": f"pod of {served}"}}
                labels = {"kubernetes.io/service-name": name}
                yield {"metadata": {"name": name, "labels": labels}, "endpoints": [endpoint]}

    def is_serving(self, name):
        ray = self.rays[name]
        apps = ray.applications
        return ray.head and not ray.error and bool(apps) and all(app[1] == "RUNNING" for app in apps)

    # --- happening

    def serve(self, name, status="RUNNING", message=""):
        """Have the applications of a cluster be in some state."""
        self.rays[name].head = True
        self.rays[name].applications = (("app", status, message),)

    def fail(self, name):
        """Have the head of a cluster answer nothing any more."""
        self.rays[name].error = Unreachable("no answer", certainly_not_done=True)

    def lose_head(self, name):
        """Have a cluster lose its head, and Serve with it."""
        self.rays[name].head = False
        self.rays[name].applications = ()

    def edit(self, generation=True, **spec):
        self.obj = {**self.obj, "spec": {**self.obj["spec"], **spec}}
        if generation:
            self.obj["metadata"] = {
                **self.obj["metadata"],
                "generation": self.obj["metadata"]["generation"] + 1,
            }

    def describe(self, **changes):
        """Change fields of the described cluster."""
        self.edit(rayClusterConfig={**self.obj["spec"]["rayClusterConfig"], **changes})

    def advance(self, seconds):
        self.now += timedelta(seconds=seconds)

    # --- acting

    def step(self):
        """Make one pass; return whether anything has changed."""
        decision = plan(self.look())
        self.again = decision.again
        changed = False
        complaints = [decision.complaint] if decision.complaint is not None else []
        for stage in (*decision.stages, *complaints):
            for action in stage.actions:
                changed |= self._act(action)
        if decision.status is not None and decision.status != self.status:
            self.obj = {**self.obj, "status": decision.status}
            changed = True
        for handover in decision.handovers:
            order = handover.order.action
            assert isinstance(order, PutServe)
            self.puts.append((handover.cluster, dict(order.configuration), handover.capacity))
            self._tell(handover.said.done)
            self.rays[handover.cluster].put = Put(handover.text, handover.capacity, self.now)
            changed = True
        return changed

    def settle(self):
        """Make passes until nothing changes; return how many it took."""
        for count in range(_MOST_PASSES):
            if not self.step():
                return count
        raise AssertionError("it does not come to rest")

    def _act(self, action):
        match action:
            case Create(resource, obj, said):
                key = resource.kind, obj["metadata"]["name"]
                assert key not in self.children, f"{key} is made twice"
                self._store(key, {**obj, "metadata": {**obj["metadata"], "uid": f"uid of {key[1]}"}})
                self.children[key]["metadata"]["creationTimestamp"] = format_time(self.now)
                if resource.kind == "RayCluster":
                    self.rays[key[1]] = Ray()
                self._tell(said.done)
            case Replace(resource, obj, said):
                key = resource.kind, obj["metadata"]["name"]
                assert obj["metadata"]["resourceVersion"] == self._versions(key)
                self._note_raised(key, obj)
                self._store(key, obj)
                self._tell(said.done)
            case Patch(resource, ref, change, said):
                key = resource.kind, ref.name
                if resource.kind == "RayService":
                    self.obj = mergepatch.apply(self.obj, change)
                elif resource.kind != "Pod":
                    assert ref.version == self._versions(key)
                    self._store(key, mergepatch.apply(self.children[key], change))
                self._tell(said.done)
            case Delete(resource, ref, said):
                del self.children[(resource.kind, ref.name)]
                self._tell(said.done)
            case Tell(say) | Refuse(_, say):
                self._tell(say)
                return False
        return True

    def _store(self, key, obj):
        self._version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self._version)
        if self.auto_gateway and key[0] in ("Gateway", "HTTPRoute"):
            obj["status"] = GATEWAY_OPEN if key[0] == "Gateway" else ROUTE_OPEN
        self.children[key] = obj

    def _versions(self, key):
        return self.children[key]["metadata"]["resourceVersion"]

    def _note_raised(self, key, obj):
        """Remember which clusters get more traffic although they do not serve."""
        if key[0] != "HTTPRoute":
            return
        before = self.weights
        for name, weight in weights(obj, "ns").items():
            cluster_name = name.removesuffix("-serve-svc")
            if weight > before.get(cluster_name, 0) and not self.is_serving(cluster_name):
                self.raised.append(cluster_name)

    def _tell(self, say):
        if say is not None:
            self.events.append(say.reason)
            self.notes.append(say.note)


def _head_pod(name):
    return pod_view(
        {
            "metadata": {"name": f"{name}-head", "namespace": "ns", "labels": {"ray.io/node-type": "head"}},
            "status": {"phase": "Running", "podIP": "10.0.0.1"},
        }
    )


def running(obj, **more):
    """Return a scene in which a service runs on its first cluster."""
    scene = Scene(obj, **more)
    scene.settle()
    scene.serve(scene.pending)
    scene.settle()
    return scene
