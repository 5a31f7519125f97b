"""Ray Pods: the user's template with everything that makes it a node of a Ray cluster."""

import copy
from typing import Any, NamedTuple

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, owner_of
from eagleray.manifests.environment import (
    Environment,
    add_auth,
    add_common,
    add_fault_tolerance,
    add_head_address,
    storage_namespace,
    token_volume,
)
from eagleray.manifests.hashing import recreate_hash
from eagleray.manifests.probes import add_probes
from eagleray.manifests.settings import Settings
from eagleray.manifests.startparams import METRICS_PORT, Params, head_params, start_command, worker_params
from eagleray.manifests.storage import volume_and_mount

Object = dict[str, Any]

OVERWRITE_COMMAND = "ray.io/overwrite-container-cmd"
# Labels that tell the operator which Pod is whose: no template may change them.
_FIXED_LABELS = frozenset((naming.NODE_TYPE_LABEL, naming.GROUP_LABEL, naming.CLUSTER_LABEL))
_ULIMIT = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "
_AUTOSCALER_COMMAND = (
    "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
)


class Place(NamedTuple):
    """Which host of which replica of its group a worker is."""

    replica: int
    replica_name: str = ""
    host: int = 0


def head_pod(cluster: Cluster, suffix: str, settings: Settings) -> Object:
    """Return the head Pod; `suffix` completes its name unless names are deterministic."""
    group = cluster.head
    params = head_params(cluster)
    pod = _pod(cluster, group, "head", naming.HEAD_GROUP, settings)
    prefix = naming.head_pod_prefix(cluster.name)
    given = (group.get("template", {}).get("metadata") or {}).get("name")
    if settings.deterministic_head_name:
        pod["metadata"]["name"] = prefix
    else:
        pod["metadata"]["generateName"] = f"{prefix}-"
        pod["metadata"]["name"] = given or f"{prefix}-{suffix}"
    annotations = pod["metadata"]["annotations"]
    annotations["ray.io/ft-enabled"] = "true" if cluster.is_fault_tolerant else "false"
    if cluster.is_fault_tolerant and not cluster.has_embedded_storage:
        annotations["ray.io/external-storage-namespace"] = storage_namespace(cluster)
    annotations["ray.io/upgrade-strategy-recreate-hash"] = recreate_hash(cluster.spec)
    annotations["ray.io/kuberay-version"] = settings.version
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    environment = Environment(container.get("env"))
    if cluster.autoscaling:
        _add_autoscaler(cluster, spec, environment, settings)
    add_fault_tolerance(cluster, environment, head=True)
    container["env"] = environment.entries
    if cluster.has_embedded_storage:
        volume, mount = volume_and_mount(cluster)
        _add_volume(spec, volume)
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
    spec["containers"] += copy.deepcopy(list(settings.head_sidecars))
    _finish(cluster, pod, params, settings, head=True)
    return pod


def worker_pod(
    cluster: Cluster, group: Object, suffix: str, place: Place | None, settings: Settings
) -> Object:
    """Return a worker Pod of a group; `place` is set where replicas are indexed."""
    params = worker_params(cluster, group, settings)
    pod = _pod(cluster, group, "worker", group["groupName"], settings)
    prefix = naming.worker_pod_prefix(cluster.name, group["groupName"])
    pod["metadata"] |= {"generateName": prefix, "name": f"{prefix}{suffix}"}
    labels = pod["metadata"]["labels"]
    if place is not None:
        labels[naming.REPLICA_INDEX_LABEL] = str(place.replica)
        if (group.get("numOfHosts") or 1) > 1:
            labels[naming.REPLICA_NAME_LABEL] = place.replica_name
            labels[naming.HOST_INDEX_LABEL] = str(place.host)
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    if settings.init_container:
        waiting = _wait_container(cluster, container, settings)
        spec["initContainers"] = [*(spec.get("initContainers") or []), waiting]
    environment = Environment(container.get("env"))
    add_fault_tolerance(cluster, environment, head=False)
    container["env"] = environment.entries
    spec["containers"] += copy.deepcopy(list(settings.worker_sidecars))
    _finish(cluster, pod, params, settings, head=False)
    return pod


def _pod(cluster: Cluster, group: Object, node_type: str, group_name: str, settings: Settings) -> Object:
    """Return the template as a Pod of the cluster, with the labels and annotations of its part."""
    template = copy.deepcopy(group.get("template") or {})
    given = template.get("metadata") or {}
    labels = {
        naming.IS_RAY_NODE_LABEL: "yes",
        naming.CLUSTER_LABEL: cluster.name,
        naming.NODE_TYPE_LABEL: node_type,
        naming.GROUP_LABEL: group_name,
        naming.IDENTIFIER_LABEL: naming.checked_label(f"{cluster.name}-{node_type}"),
        **naming.APP_LABELS,
    }
    for extra in (given.get("labels") or {}, group.get("labels") or {}):
        labels |= {key: value for key, value in extra.items() if key not in _FIXED_LABELS}
    for key, value in settings.pod_labels.items():
        labels.setdefault(key, value)
    if cluster.crd_type == "RayService":
        labels[naming.SERVE_LABEL] = "false" if node_type == "head" else "true"
    annotations = dict(given.get("annotations") or {})
    if cluster.annotations.get(OVERWRITE_COMMAND, "").lower() == "true":
        annotations[OVERWRITE_COMMAND] = "true"
    for key, value in settings.pod_annotations.items():
        annotations.setdefault(key, value)
    metadata: Object = {
        "namespace": cluster.namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner_of(cluster)],
    }
    if given.get("finalizers"):
        metadata["finalizers"] = given["finalizers"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def _finish(cluster: Cluster, pod: Object, params: Params, settings: Settings, *, head: bool) -> None:
    """Do what heads and workers have in common, in the order that the environment shows."""
    spec = pod["spec"]
    container = spec["containers"][0]
    ports = container.get("ports") or []
    if not any(port.get("name") == "metrics" for port in ports):
        container["ports"] = [*ports, {"name": "metrics", "containerPort": METRICS_PORT}]
    if cluster.autoscaling and cluster.autoscaler_version == "v2":
        spec["restartPolicy"] = "Never"
    add_auth(cluster, container)
    if volume := token_volume(cluster):
        _add_volume(spec, volume)
    command = start_command(params, head=head)
    environment = Environment(container.get("env"))
    add_common(cluster, environment, command, settings, head=head)
    container["env"] = environment.entries
    _set_command(container, pod["metadata"]["annotations"], command, settings)
    host = cluster.head_host(settings)
    for init in spec.get("initContainers") or []:
        inherited = Environment(init.get("env"))
        add_head_address(inherited, host)
        init["env"] = inherited.entries
    if settings.probes:
        add_probes(cluster, container, params, head=head, period=settings.readiness_period)
    if "plasma-directory" not in params:
        _add_shared_memory(spec, container)
    if head and cluster.autoscaling:
        for mounting in (container, spec["containers"][_autoscaler_index(spec)]):
            _mount(spec, mounting, {"name": "ray-logs", "emptyDir": {}}, "/tmp/ray")  # noqa: S108 - Ray's own place
    if not pod["metadata"]["annotations"]:
        del pod["metadata"]["annotations"]


def _set_command(container: Object, annotations: Object, command: str, settings: Settings) -> None:
    """Wrap the start command and what the user runs before it, unless the user wants to start Ray alone."""
    own = "".join(f" {part} " for part in [*(container.get("command") or []), *(container.get("args") or [])])
    if annotations.get(OVERWRITE_COMMAND, "").lower() == "true" or "ray start" in own:
        return
    started = f"{_ULIMIT}{command}"
    container["command"] = shell(settings)
    container["args"] = [f"{own} && {started}" if own else started]


def shell(settings: Settings, letters: str = "") -> list[str]:
    """Return the command that runs a text as a script; `letters` are options of bash besides."""
    return ["/bin/bash", f"-c{letters}{'l' if settings.login_shell else ''}", "--"]


def _add_autoscaler(cluster: Cluster, spec: Object, environment: Environment, settings: Settings) -> None:
    options = cluster.autoscaler_options
    if cluster.autoscaler_version:
        environment.add("RAY_enable_autoscaler_v2", "true" if cluster.autoscaler_version == "v2" else "false")
    spec["serviceAccountName"] = spec.get("serviceAccountName") or naming.checked_name(cluster.name)
    container: Object = {
        "name": "autoscaler",
        "image": options.get("image") or spec["containers"][0].get("image"),
        "imagePullPolicy": options.get("imagePullPolicy") or "IfNotPresent",
        "command": options.get("command") or shell(settings),
        "args": options.get("args") or [_AUTOSCALER_COMMAND],
        "resources": options.get("resources") or _fixed_resources("500m", "512Mi"),
    }
    own = Environment(None)
    own.add_field("RAY_CLUSTER_NAME", f"metadata.labels['{naming.CLUSTER_LABEL}']")
    own.add_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace")
    own.add_field("RAY_HEAD_POD_NAME", "metadata.name")
    own.add("KUBERAY_CRD_VER", "v1")
    own.add("KUBERAY_GEN_AUTOSCALER_START_CMD", _AUTOSCALER_COMMAND)
    container["env"] = own.entries
    add_auth(cluster, container)
    container["env"] = [*container["env"], *(options.get("env") or [])]
    for field in ("securityContext", "envFrom"):
        if options.get(field) is not None:
            container[field] = options[field]
    if options.get("volumeMounts"):
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), *options["volumeMounts"]]
    spec["containers"].append(container)


def _autoscaler_index(spec: Object) -> int:
    return next(i for i, container in enumerate(spec["containers"]) if container.get("name") == "autoscaler")


def _wait_container(cluster: Cluster, ray: Object, settings: Settings) -> Object:
    """Return the init container that waits for the head, so that a worker does not crash until it is there."""
    address = f"{cluster.head_host(settings)}:{cluster.head_port}"
    check = f"ray health-check --address {address}"
    script = (
        "elapsed=0\n"
        "while true; do\n"
        '  if [ "$elapsed" -lt 120 ]; then\n'
        f"    {check} > /dev/null 2>&1 && break\n"
        "  else\n"
        f"    {check} && break\n"
        "  fi\n"
        f'  echo "waited $elapsed s for Ray\'s head at {address}"\n'
        "  sleep 5\n"
        "  elapsed=$((elapsed + 5))\n"
        "done\n"
        'echo "Ray\'s head is up"\n'
    )
    container: Object = {
        "name": "wait-gcs-ready",
        "image": ray.get("image"),
        "command": shell(settings),
        "args": [script],
        "resources": _fixed_resources("200m", "256Mi"),
    }
    for field in ("imagePullPolicy", "securityContext", "env", "volumeMounts"):
        if ray.get(field) is not None:
            container[field] = copy.deepcopy(ray[field])
    add_auth(cluster, container)
    return container


def _fixed_resources(cpu: str, memory: str) -> Object:
    return {"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": cpu, "memory": memory}}


def _add_shared_memory(spec: Object, container: Object) -> None:
    resources = container.get("resources") or {}
    size = (resources.get("limits") or {}).get("memory") or (resources.get("requests") or {}).get("memory")
    volume: Object = {"name": "shared-mem", "emptyDir": {"medium": "Memory"}}
    if size:
        volume["emptyDir"]["sizeLimit"] = size
    _mount(spec, container, volume, "/dev/shm")  # noqa: S108 - where Ray keeps its objects


def _mount(spec: Object, container: Object, volume: Object, path: str) -> None:
    """Mount a volume in a container unless something is mounted there already."""
    mounts = container.get("volumeMounts") or []
    if any(mount.get("mountPath") == path for mount in mounts):
        return
    _add_volume(spec, volume)
    container["volumeMounts"] = [*mounts, {"name": volume["name"], "mountPath": path}]


def _add_volume(spec: Object, volume: Object) -> None:
    volumes = spec.get("volumes") or []
    if not any(known.get("name") == volume["name"] for known in volumes):
        spec["volumes"] = [*volumes, volume]
