"""Situations that the cases of a RayService start from, and the questions that they ask."""

import copy
from contextlib import asynccontextmanager

from tests.eagleray.gateways import GATEWAY_KINDS, ScriptedGateways
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.world import rayservice, world_of

KINDS = ("RayCluster", "RayService")
# Whatever happens at once in a world where nothing is slow has happened by then, and Ray has been asked again.
ROUND = 8
INCREMENTAL = "NewClusterWithIncrementalUpgrade"
# What SERVE_CONFIG says.
GRAPH = {"applications": [{"name": "app", "import_path": "app.graph", "route_prefix": "/"}]}
OTHER_CONFIG = "applications:\n- name: app\n  import_path: app.other\n  route_prefix: /\n"


def incremental(name="s", *, step=25, interval=10, surge=50, cluster=None, gateway_class="g", **more):
    """Return a RayService with incremental upgrades."""
    options = {
        "gatewayClassName": gateway_class,
        "stepSizePercent": step,
        "intervalSeconds": interval,
        "maxSurgePercent": surge,
    }
    strategy = {"type": INCREMENTAL, "clusterUpgradeOptions": options}
    described = {"enableInTreeAutoscaling": True, **(cluster or {})}
    return rayservice(name, upgradeStrategy=strategy, cluster=described, **more)


@asynccontextmanager
async def serve_world(
    *, gateways=False, accepts=True, flags=(), variables=None, scripts=(), operator=True, nodes=None, **ray
):
    """Give a world whose heads answer, and the Ray that lives in it; with `gateways`, also the Gateway API.

    `world.gateways` is whoever takes Gateways on.
    """
    kinds = (*KINDS, *(GATEWAY_KINDS if gateways else ()))
    options = {"flags": flags, "variables": variables, "scripts": scripts, "operator": operator}
    options |= {"nodes": nodes} if nodes is not None else {}
    async with world_of(kinds=kinds, **options) as world, RayOnPods(world, **ray) as lives:
        if not gateways:
            yield world, lives
            return
        async with ScriptedGateways(world, accepts=accepts) as world.gateways:
            yield world, lives


@asynccontextmanager
async def serving(service=None, **options):
    """Give a world in which the service `s` is ready."""
    service = service or rayservice()
    gateways = options.pop("gateways", service["spec"].get("upgradeStrategy", {}).get("type") == INCREMENTAL)
    async with serve_world(gateways=gateways, **options) as (world, ray):
        await world.create(service)
        await is_ready(world)
        await world.pass_time(ROUND)
        yield world, ray


# --- asking


async def status_of(world, name="s"):
    return await world.status(name, "RayService")


async def side(world, which, name="s"):
    return (await status_of(world, name)).get(f"{which}ServiceStatus") or {}


async def active(world, name="s"):
    return (await side(world, "active", name)).get("rayClusterName", "")


async def pending(world, name="s"):
    return (await side(world, "pending", name)).get("rayClusterName", "")


async def shares(world):
    """Return capacity and traffic of both clusters as the status has them."""
    sides = [await side(world, which) for which in ("active", "pending")]
    return tuple((one.get("targetCapacity"), one.get("trafficRoutedPercent")) for one in sides)


async def condition(world, kind, name="s"):
    """Return a condition as (status, reason); None if it is not told."""
    one = await whole_condition(world, kind, name)
    return (one["status"], one["reason"]) if one else None


async def whole_condition(world, kind, name="s"):
    found = (await status_of(world, name)).get("conditions") or ()
    return next((one for one in found if one["type"] == kind), None)


async def message(world, kind, name="s"):
    return (await whole_condition(world, kind, name))["message"]


async def clusters(world):
    return sorted(one["metadata"]["name"] for one in await world.list("RayCluster"))


async def selected(world, name="s-serve-svc"):
    """Return the cluster that a Service leads to; empty if there is no such Service."""
    found = await world.get("Service", name)
    return found["spec"]["selector"]["ray.io/cluster"] if found else ""


async def weights(world):
    """Return the weights of the route by cluster."""
    route = await world.get("HTTPRoute", "s-httproute")
    backends = route["spec"]["rules"][0]["backendRefs"] if route else ()
    return {one["name"].removesuffix("-serve-svc"): one["weight"] for one in backends}


async def told(world, reason, name="s"):
    """Return the notes of the events of a reason about a service."""
    return [event["note"] for event in await world.events(reason, name)]


def head_at(world, cluster):
    """Return the scripted head of a cluster."""
    return world.dashboards.heads[host_of(cluster)]


def configured(world, cluster):
    """Return the last configuration that Serve on a cluster was handed."""
    return head_at(world, cluster).serve_configurations[-1]


def puts(world, cluster):
    """Return how often Serve on a cluster was handed something."""
    return world.dashboards.asked(host_of(cluster), "PUT")


# --- waiting


async def until(world, holds, seconds=600, step=0.5):
    return await world.until(holds, seconds, step=step)


async def is_ready(world, name="s", seconds=120):
    async def ready():
        return (await condition(world, "Ready", name) or ("",))[0] == "True"

    await world.until(ready, seconds)


async def has_condition(world, kind, status, reason, name="s", seconds=300):
    async def holds():
        return await condition(world, kind, name) == (status, reason)

    await world.until(holds, seconds)


async def new_pending(world, name="s", other_than="", seconds=60):
    """Wait until another cluster is on its way, and exists; returns its name."""

    async def is_there():
        found = await pending(world, name)
        return found if found and found != other_than and await world.get("RayCluster", found) else None

    return await world.until(is_there, seconds)


async def promoted(world, cluster, name="s", seconds=600):
    """Wait until a cluster is the only one that serves."""

    async def is_so():
        return (await active(world, name), await pending(world, name)) == (cluster, "")

    await world.until(is_so, seconds)


# --- changing


async def change(world, name="s", **spec):
    return await world.patch("RayService", name, {"spec": spec})


async def change_cluster(world, name="s", **spec):
    """Change fields of the described cluster."""
    return await change(world, name, rayClusterConfig=spec)


async def set_image(world, tag, name="s"):
    """Describe another cluster, whose Pods have another image."""
    service = await world.get("RayService", name)
    config = copy.deepcopy(service["spec"]["rayClusterConfig"])
    config["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = f"rayproject/ray:{tag}"
    return await change(world, name, rayClusterConfig=config)


async def edit_group(world, name="s", index=0, **fields):
    """Change fields of a described worker group, or add one at the end."""
    service = await world.get("RayService", name)
    groups = copy.deepcopy(service["spec"]["rayClusterConfig"]["workerGroupSpecs"])
    if index == len(groups):
        groups.append(copy.deepcopy(groups[0]))
    groups[index] |= fields
    return await change_cluster(world, name, workerGroupSpecs=groups)
