"""Objects for the tests of controllers, and a few words to act on a cluster with."""

from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 1, tzinfo=UTC)

APPS = "/apis/apps/v1/namespaces/default"
CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"
EVENTS = f"{CORE}/events"


def at(seconds):
    """Return the time so many seconds after the start, as objects write it."""
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def template(image="i:1", labels=None, **spec):
    containers = [{"name": "c", "image": image}]
    return {"metadata": {"labels": labels or {"app": "a"}}, "spec": {"containers": containers, **spec}}


def workload(name="w", replicas=3, image="i:1", **spec):
    """Return a ReplicaSet or a Deployment, whichever address it is sent to."""
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "a"}},
            "template": template(image),
            **spec,
        },
    }


def pod(
    name="p",
    *,
    node="",
    phase="Pending",
    ready=None,
    created=0,
    labels=None,
    annotations=None,
    restarts=0,
    **spec,
):
    """Return a Pod as a server has it; `ready` is the second since which it is."""
    status = {"phase": phase}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}]
    if restarts:
        status["containerStatuses"] = [{"name": "c", "restartCount": restarts}]
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid of {name}",
        "creationTimestamp": at(created),
        "labels": labels if labels is not None else {"app": "a"},
    }
    if annotations:
        metadata["annotations"] = annotations
    containers = [{"name": "c", "image": "i:1"}]
    return {
        "metadata": metadata,
        "spec": {"containers": containers, **({"nodeName": node} if node else {}), **spec},
        "status": status,
    }


def node(name="n", *, cpu="4", memory="8Gi", pods="10", labels=None, taints=None, ready="True", **more):
    """Return a node that is ready, unless said otherwise."""
    offers = {"cpu": cpu, "memory": memory, "pods": pods, **more}
    obj = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {
            "capacity": offers,
            "allocatable": offers,
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": at(0)}],
        },
    }
    if taints:
        obj["spec"]["taints"] = taints
    return obj


async def register(client, obj):
    """Create a node together with its status."""
    name = obj["metadata"]["name"]
    await client.create("/api/v1/nodes", {"metadata": obj["metadata"], "spec": obj["spec"]})
    await client.patch(f"/api/v1/nodes/{name}/status", {"status": obj["status"]})


async def items(client, url):
    """Return the objects at an address, the oldest first."""
    found = (await client.get(url))["items"]
    return sorted(found, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))


async def names(client, url):
    return [one["metadata"]["name"] for one in await items(client, url)]


async def messages(client, reason, url=EVENTS):
    """Return what the events of a reason say."""
    return [event["message"] for event in await items(client, url) if event["reason"] == reason]


async def run_pod(client, name, *, since=0, ready=True):
    """Let a Pod run, as a kubelet would tell it."""
    state = "True" if ready else "False"
    condition = {"type": "Ready", "status": state, "lastTransitionTime": at(since)}
    status = {"phase": "Running", "conditions": [condition]}
    await client.patch(f"{PODS}/{name}/status", {"status": status}, "strategic")
