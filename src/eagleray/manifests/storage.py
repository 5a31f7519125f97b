"""Where a head keeps its state itself: Ray's embedded database on a volume of the head's own."""

from typing import Any

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, owner_of

Object = dict[str, Any]

PATH = "/data/gcs"
VOLUME = "gcs-storage"
DEFAULT_SIZE = "1Gi"
DEFAULT_MODES = ("ReadWriteOnce",)


def options_of(cluster: Cluster) -> Object:
    """Return what a cluster says about its volume."""
    return (cluster.fault_tolerance or {}).get("storage") or {}


def claim_name(cluster: Cluster) -> str:
    """Return the claim that the head mounts: the user's, or the one that is made for it."""
    return options_of(cluster).get("claimName") or f"{cluster.name}-gcs-pvc"


def is_kept(cluster: Cluster) -> bool:
    """Tell whether the claim outlives the cluster."""
    return options_of(cluster).get("deletionPolicy") == "Retain"


def storage_claim(cluster: Cluster) -> Object:
    """Return the claim that is made for a cluster; it goes with it unless it is to be kept."""
    options = options_of(cluster)
    spec: Object = {
        "accessModes": list(options.get("accessModes") or DEFAULT_MODES),
        "resources": {"requests": {"storage": options.get("size") or DEFAULT_SIZE}},
    }
    if options.get("storageClassName") is not None:
        spec["storageClassName"] = options["storageClassName"]
    metadata: Object = {
        "name": claim_name(cluster),
        "namespace": cluster.namespace,
        "labels": {naming.CLUSTER_LABEL: cluster.name},
    }
    if not is_kept(cluster):
        metadata["ownerReferences"] = [owner_of(cluster)]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def volume_and_mount(cluster: Cluster) -> tuple[Object, Object]:
    """Return the head's volume and how its Ray container mounts it."""
    mount: Object = {"name": VOLUME, "mountPath": PATH}
    if options_of(cluster).get("subPath"):
        mount["subPath"] = options_of(cluster)["subPath"]
    return {"name": VOLUME, "persistentVolumeClaim": {"claimName": claim_name(cluster)}}, mount
