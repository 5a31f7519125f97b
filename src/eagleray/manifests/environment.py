"""The environment of Ray's containers, in the order in which it is appended."""

from typing import Any

from eagleray.manifests import storage
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.naming import CLUSTER_LABEL, GROUP_LABEL, checked_name
from eagleray.manifests.settings import Settings

Object = dict[str, Any]

TOKEN_VOLUME = "ray-token"  # noqa: S105 - the name of a volume
TOKEN_MOUNT = "/var/run/secrets/ray.io/serviceaccount"  # noqa: S105 - a path


class Environment:
    """A container's variables; a user's value is never replaced by a default."""

    def __init__(self, given: list[Object] | None) -> None:
        self.entries: list[Object] = list(given or [])

    def has(self, name: str) -> bool:
        return any(entry.get("name") == name for entry in self.entries)

    def add(self, name: str, value: str) -> None:
        self.entries.append({"name": name, "value": value})

    def default(self, name: str, value: str) -> None:
        if not self.has(name):
            self.add(name, value)

    def add_field(self, name: str, path: str) -> None:
        self.entries.append({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})

    def default_entry(self, entry: Object) -> None:
        if not self.has(entry["name"]):
            self.entries.append(entry)


def add_auth(cluster: Cluster, container: Object) -> None:
    """Give a container what it needs to talk to a cluster with token authentication."""
    if cluster.auth.get("mode") != "token":
        return
    environment = Environment(container.get("env"))
    environment.default("RAY_AUTH_MODE", "token")
    if cluster.auth.get("enableK8sTokenAuth"):
        environment.default("RAY_ENABLE_K8S_TOKEN_AUTH", "true")
        mount = {"name": TOKEN_VOLUME, "mountPath": TOKEN_MOUNT, "readOnly": True}
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
    else:
        secret = cluster.auth.get("secretName") or checked_name(cluster.name)
        key = {"name": secret, "key": "auth_token"}
        environment.default_entry({"name": "RAY_AUTH_TOKEN", "valueFrom": {"secretKeyRef": key}})
    container["env"] = environment.entries


def token_volume(cluster: Cluster) -> Object | None:
    """Return the volume with the Pod's own token, where Kubernetes' tokens are used."""
    if cluster.auth.get("mode") != "token" or not cluster.auth.get("enableK8sTokenAuth"):
        return None
    return {"name": TOKEN_VOLUME, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def add_fault_tolerance(cluster: Cluster, environment: Environment, *, head: bool) -> None:
    """Tell Ray where its state survives the head."""
    if not cluster.is_fault_tolerant:
        return
    if not head:
        environment.default("RAY_gcs_rpc_server_reconnect_timeout_s", "600")
        return
    if cluster.has_embedded_storage:
        environment.default("RAY_gcs_storage", "rocksdb")
        environment.default("RAY_gcs_storage_path", storage.PATH)
        return
    environment.default("RAY_external_storage_namespace", storage_namespace(cluster))
    options = cluster.fault_tolerance
    if options is None:
        if password := (cluster.head.get("rayStartParams") or {}).get("redis-password"):
            environment.default("REDIS_PASSWORD", password)
        return
    environment.add("RAY_REDIS_ADDRESS", options.get("redisAddress") or "")
    for name, field in (("REDIS_USERNAME", "redisUsername"), ("REDIS_PASSWORD", "redisPassword")):
        credential = options.get(field)
        if credential is not None:
            environment.entries.append({"name": name, **credential})


def storage_namespace(cluster: Cluster) -> str:
    """Return the name under which a cluster keeps its state: as asked for, else the cluster's uid."""
    options = cluster.fault_tolerance or {}
    asked = options.get("externalStorageNamespace") or cluster.annotations.get(
        "ray.io/external-storage-namespace"
    )
    return asked or cluster.uid


def add_common(
    cluster: Cluster, environment: Environment, command: str, settings: Settings, *, head: bool
) -> None:
    """Append what every Ray container gets, after the parts that depend on features."""
    for entry in settings.container_env:
        environment.default_entry(entry)
    host, port = cluster.head_host(settings), cluster.head_port
    if not head:
        add_head_address(environment, host)
    environment.add_field("RAY_CLUSTER_NAME", f"metadata.labels['{CLUSTER_LABEL}']")
    environment.add_field("RAY_CLUSTER_NAMESPACE", "metadata.namespace")
    environment.add_field("RAY_CLOUD_INSTANCE_ID", "metadata.name")
    environment.add_field("RAY_NODE_TYPE_NAME", f"metadata.labels['{GROUP_LABEL}']")
    environment.add("KUBERAY_GEN_RAY_START_CMD", command)
    environment.default("RAY_PORT", port)
    if cluster.crd_type == "RayService":
        environment.default("RAY_timeout_ms_task_wait_for_death_info", "0")
        environment.default("RAY_gcs_server_request_timeout_seconds", "5")
        environment.default("RAY_SERVE_KV_TIMEOUT_S", "5")
    environment.default("RAY_ADDRESS", f"127.0.0.1:{port}" if head else f"{host}:{port}")
    environment.default("RAY_USAGE_STATS_KUBERAY_IN_USE", "1")
    if head:
        tags = f"kuberay_version={settings.version};kuberay_crd={cluster.crd_type}"
        environment.add("RAY_USAGE_STATS_EXTRA_TAGS", tags)
    environment.default("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")


def add_head_address(environment: Environment, host: str) -> None:
    """Tell a container where the head is: its full name and its short one."""
    environment.add("FQ_RAY_IP", host)
    environment.add("RAY_IP", host.partition(".")[0])
