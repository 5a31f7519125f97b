"""RayCluster rules 5 to 10: where the head keeps its state, and how it must not be said twice."""

from eagleray.rayapi.rules.raycluster.view import FT_ENABLED_ANNOTATION, Cluster, rulebook
from eagleray.rayapi.rules.reading import Object, is_set, mapping, mappings, text
from eagleray.rayapi.rules.rulebook import Finding, Findings
from kubewire.paths import FieldPath

FAULT_TOLERANCE = rulebook()

STORAGE_NAMESPACE_ANNOTATION = "ray.io/external-storage-namespace"
STORAGE_VOLUME = "gcs-storage"
STORAGE_MOUNT_PATH = "/data/gcs"

_REDIS_ONLY = ("redisAddress", "redisUsername", "redisPassword", "externalStorageNamespace")
_OF_A_NEW_CLAIM = ("size", "storageClassName", "accessModes")


@FAULT_TOLERANCE.rule("raycluster-5")
def enabled_twice(cluster: Cluster) -> Findings:
    """Fault tolerance is configured by gcsFaultToleranceOptions or by the annotation, not by both."""
    if text(cluster.annotations, FT_ENABLED_ANNOTATION) and cluster.fault_tolerance is not None:
        yield Finding(
            ("metadata", "annotations", FT_ENABLED_ANNOTATION),
            "set beside gcsFaultToleranceOptions, which enable fault tolerance by themselves",
            "remove the annotation",
        )


@FAULT_TOLERANCE.rule("raycluster-6")
def redis_without_fault_tolerance(cluster: Cluster) -> Findings:
    """The head's environment names no Redis unless fault tolerance is enabled."""
    annotated = text(cluster.annotations, FT_ENABLED_ANNOTATION).lower() == "true"
    variable = cluster.head.variable("RAY_REDIS_ADDRESS")
    if variable and cluster.fault_tolerance is None and not annotated:
        yield Finding(
            variable,
            "RAY_REDIS_ADDRESS stores the head's state in Redis, but fault tolerance is not enabled",
            "use gcsFaultToleranceOptions.redisAddress instead",
        )


@FAULT_TOLERANCE.rule("raycluster-7a")
def password_as_start_param(cluster: Cluster) -> Findings:
    """With gcsFaultToleranceOptions the Redis password is not in rayStartParams."""
    if cluster.fault_tolerance is not None and cluster.head.start_params.get("redis-password"):
        yield Finding(
            cluster.head.at("rayStartParams", "redis-password"),
            "cannot be set beside gcsFaultToleranceOptions",
            "use gcsFaultToleranceOptions.redisPassword instead",
        )


@FAULT_TOLERANCE.rule("raycluster-7b")
def password_in_environment(cluster: Cluster) -> Findings:
    """With gcsFaultToleranceOptions the Redis password is not in the head's environment."""
    return _variable_beside_options(cluster, "REDIS_PASSWORD", "redisPassword")


@FAULT_TOLERANCE.rule("raycluster-7c")
def address_in_environment(cluster: Cluster) -> Findings:
    """With gcsFaultToleranceOptions the Redis address is not in the head's environment."""
    return _variable_beside_options(cluster, "RAY_REDIS_ADDRESS", "redisAddress")


@FAULT_TOLERANCE.rule("raycluster-7d")
def storage_namespace_annotation(cluster: Cluster) -> Findings:
    """With gcsFaultToleranceOptions the storage namespace is not an annotation."""
    if cluster.fault_tolerance is not None and text(cluster.annotations, STORAGE_NAMESPACE_ANNOTATION):
        yield Finding(
            ("metadata", "annotations", STORAGE_NAMESPACE_ANNOTATION),
            "cannot be set beside gcsFaultToleranceOptions",
            "use gcsFaultToleranceOptions.externalStorageNamespace instead",
        )


@FAULT_TOLERANCE.rule("raycluster-8a")
def rocksdb_gate(cluster: Cluster) -> Findings:
    """Backend rocksdb needs the GCSFaultToleranceEmbeddedStorage gate."""
    if _rocksdb(cluster) is not None and not cluster.scope.gate("GCSFaultToleranceEmbeddedStorage"):
        yield Finding(
            _option("backend"),
            "rocksdb requires the GCSFaultToleranceEmbeddedStorage feature gate to be enabled",
            "enable the gate, or use backend redis",
        )


@FAULT_TOLERANCE.rule("raycluster-8b")
def rocksdb_with_redis_options(cluster: Cluster) -> Findings:
    """Backend rocksdb has none of the options that belong to Redis."""
    options = _rocksdb(cluster) or {}
    for name in _REDIS_ONLY:
        if is_set(options, name) and options[name] != "":
            yield Finding(
                _option(name),
                "cannot be set when the backend is rocksdb",
                "remove it, or use backend redis",
            )


@FAULT_TOLERANCE.rule("raycluster-8c")
def claim_described_and_named(cluster: Cluster) -> Findings:
    """An existing claim named by claimName is not described as if it were to be created."""
    storage = mapping(_rocksdb(cluster) or {}, "storage")
    described = [name for name in _OF_A_NEW_CLAIM if is_set(storage, name) and storage[name] != []]
    if text(storage, "claimName") and described:
        yield Finding(
            _option("storage", "claimName"),
            f"names an existing claim, but {', '.join(described)} would describe a new one",
            "keep claimName alone, or remove it",
        )


@FAULT_TOLERANCE.rule("raycluster-8d")
def rocksdb_variables(cluster: Cluster) -> Findings:
    """With backend rocksdb the head's environment leaves the storage to the operator."""
    if _rocksdb(cluster) is None:
        return
    for name in ("RAY_gcs_storage", "RAY_gcs_storage_path"):
        if variable := cluster.head.variable(name):
            yield Finding(
                variable,
                f"{name} is set by the operator when the backend is rocksdb",
                "remove it",
            )


@FAULT_TOLERANCE.rule("raycluster-8e")
def rocksdb_mounts(cluster: Cluster) -> Findings:
    """With backend rocksdb the Ray container has no mount where the operator mounts the storage."""
    if _rocksdb(cluster) is None:
        return
    for i, mount in enumerate(cluster.head.mounts):
        if mount.get("name") == STORAGE_VOLUME or mount.get("mountPath") == STORAGE_MOUNT_PATH:
            yield Finding(
                cluster.head.at_ray_container("volumeMounts", i),
                f"the operator mounts {STORAGE_VOLUME} at {STORAGE_MOUNT_PATH} when the backend is rocksdb",
                "use another volume name and another path, or remove it",
            )


@FAULT_TOLERANCE.rule("raycluster-8f")
def rocksdb_volumes(cluster: Cluster) -> Findings:
    """With backend rocksdb the head's Pod has no volume of the name the operator uses."""
    if _rocksdb(cluster) is None:
        return
    for i, volume in enumerate(mappings(cluster.head.pod, "volumes")):
        if volume.get("name") == STORAGE_VOLUME:
            yield Finding(
                cluster.head.at_pod("volumes", i, "name"),
                f"the operator adds the volume {STORAGE_VOLUME} when the backend is rocksdb",
                "use another name, or remove it",
            )


@FAULT_TOLERANCE.rule("raycluster-9")
def redis_with_storage(cluster: Cluster) -> Findings:
    """`storage` is for backend rocksdb alone."""
    options = cluster.fault_tolerance
    if options is not None and _rocksdb(cluster) is None and is_set(options, "storage"):
        yield Finding(
            _option("storage"),
            "only backend rocksdb has a storage, and the backend is redis",
            "remove it, or set backend to rocksdb",
        )


@FAULT_TOLERANCE.rule("raycluster-10")
def redis_username_outside_options(cluster: Cluster) -> Findings:
    """A Redis user name is given in gcsFaultToleranceOptions only."""
    way_out = "use gcsFaultToleranceOptions.redisUsername instead"
    if cluster.head.start_params.get("redis-username"):
        path = cluster.head.at("rayStartParams", "redis-username")
        yield Finding(path, "a Redis user name cannot be set in rayStartParams", way_out)
    if variable := cluster.head.variable("REDIS_USERNAME"):
        yield Finding(variable, "a Redis user name cannot be set in the environment", way_out)


def _variable_beside_options(cluster: Cluster, name: str, option: str) -> Findings:
    if cluster.fault_tolerance is not None and (variable := cluster.head.variable(name)):
        yield Finding(
            variable,
            f"{name} cannot be set beside gcsFaultToleranceOptions",
            f"use gcsFaultToleranceOptions.{option} instead",
        )


def _rocksdb(cluster: Cluster) -> Object | None:
    """Return the options if their backend is rocksdb; without a word about it the backend is Redis."""
    options = cluster.fault_tolerance
    return options if options is not None and options.get("backend") == "rocksdb" else None


def _option(*steps: str) -> FieldPath:
    return ("spec", "gcsFaultToleranceOptions", *steps)
