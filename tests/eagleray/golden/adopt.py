"""Puts a recording back into a world, as another operator would have left it there."""

import base64
import copy
import re

from kubewire.times import format_time
from tests.eagleray.golden.samples import apply, until_quiet
from tests.eagleray.world import PATHS

_RANDOM = re.compile(r"<rand(\d*)>")
_BYTES = re.compile(r"<(\d+) bytes>")

# The copy of the status of a cluster that is not there.
NO_CLUSTER = {"desiredCPU": "0", "desiredGPU": "0", "desiredMemory": "0", "desiredTPU": "0", "head": {}}

# What others refer to comes first.
_ORDER = (
    "RayJob",
    "RayCluster",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Secret",
    "PersistentVolumeClaim",
    "Service",
    "Job",
    "Pod",
    "Gateway",
    "HTTPRoute",
)


async def leave_behind(world, samples):
    """Create the samples with everything that was recorded of them, their Pods running and their status written."""
    for sample in samples:
        await apply(world, sample, named_only=True)
        for recorded in sample.recorded["resources"]:
            await _give_metadata(world, sample.namespace, recorded)
        for recorded in sorted(sample.recorded["created"], key=lambda obj: _ORDER.index(obj["kind"])):
            await _create(world, sample.namespace, recorded)
    await until_quiet(world)
    for sample in samples:
        resources = [*sample.recorded["resources"], *sample.recorded["created"]]
        # The status of a job or a service has a copy of its cluster's.
        for kind in ("RayCluster", "RayJob", "RayService"):
            for recorded in resources:
                if recorded["kind"] == kind and recorded.get("status"):
                    await _write_status(world, sample.namespace, recorded)


async def _give_metadata(world, namespace, recorded):
    """Give a resource the finalizers that it was recorded with, in the way that made its generation what it was."""
    metadata = recorded["metadata"]
    live = await world.get(recorded["kind"], metadata["name"], namespace)
    if metadata.get("finalizers"):
        live["metadata"]["finalizers"] = metadata["finalizers"]
        if metadata["generation"] > 1:
            live["spec"] = _as_typed(live["spec"])
        path = PATHS[recorded["kind"]].format(namespace)
        live = await world.api.replace(f"{path}/{metadata['name']}", live)
    assert live["metadata"]["generation"] == metadata["generation"], metadata["name"]


def _as_typed(spec):
    """Return the spec of a cluster, a job or a service with the empty fields that writing typed objects brings."""
    spec = copy.deepcopy(spec)
    cluster = spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec
    for group in (cluster["headGroupSpec"], *cluster.get("workerGroupSpecs", ())):
        group["template"].setdefault("metadata", {})
    for group in cluster.get("workerGroupSpecs", ()):
        group.setdefault("scaleStrategy", {})
    return spec


async def _create(world, namespace, recorded):
    owners = [
        await world.get(owner["kind"], _filled(owner["name"]), namespace)
        for owner in recorded["metadata"].get("ownerReferences", ())
    ]
    words = {"<namespace>": namespace, "<uid>": owners[0]["metadata"]["uid"] if owners else ""}
    obj = _filled(recorded, words)
    for reference, owner in zip(obj["metadata"].get("ownerReferences", ()), owners, strict=True):
        reference["uid"] = owner["metadata"]["uid"]
    if obj["kind"] == "Service":
        _let_server_choose_addresses(obj["spec"])
    if obj["kind"] == "Job":
        _let_server_choose_selector(obj["spec"])
    await world.create(obj)


def _let_server_choose_selector(spec):
    """Leave out how a Job finds its Pods, which a server chose."""
    del spec["selector"]
    labels = spec["template"]["metadata"]["labels"]
    for label in [label for label in labels if label.endswith(("controller-uid", "job-name"))]:
        del labels[label]


def _let_server_choose_addresses(spec):
    """Leave out the addresses and ports that a server chose."""
    if spec.get("clusterIP") == "<ip>":
        del spec["clusterIP"], spec["clusterIPs"]
    for port in spec.get("ports", ()):
        port.pop("nodePort", None)


async def _write_status(world, namespace, recorded):
    """Write a status, with the addresses and ports that this world has given."""
    words = {"<namespace>": namespace, "<time>": format_time(world.clock.now())}
    status = _filled(recorded["status"], words)
    for part in (status, status.get("activeServiceStatus") or {}, status.get("pendingServiceStatus") or {}):
        if part.get("rayClusterStatus") == "<snapshot>":
            name = part.get("rayClusterName")
            cluster = await world.get("RayCluster", name, namespace) if name else {"status": NO_CLUSTER}
            part["rayClusterStatus"] = cluster["status"]
    if head := status.get("head"):
        pod = await world.get("Pod", head["podName"], namespace)
        service = await world.get("Service", head["serviceName"], namespace)
        address = service["spec"]["clusterIP"]
        head["podIP"] = pod["status"]["podIP"]
        head["serviceIP"] = head["podIP"] if address == "None" else address
        ports = {port["name"]: port for port in service["spec"]["ports"]}
        for name, port in status["endpoints"].items():
            if port == "<nodePort>":
                status["endpoints"][name] = str(ports[name]["nodePort"])
    if status:
        await world.patch(
            recorded["kind"],
            _filled(recorded["metadata"]["name"]),
            {"status": status},
            namespace=namespace,
            part="/status",
        )


def _filled(value, words=None):
    """Return a recorded value with texts for its placeholders."""
    if isinstance(value, dict):
        return {key: _filled(item, words) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, words) for item in value]
    if not isinstance(value, str):
        return value
    for placeholder, text in (words or {}).items():
        value = value.replace(placeholder, text)
    if size := _BYTES.fullmatch(value):
        return base64.b64encode(b"x" * int(size[1])).decode()
    return _RANDOM.sub(lambda found: f"{int(found[1] or 0):05d}", value)
