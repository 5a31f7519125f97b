"""What lets Ray's autoscaler and Ray's users in: service account, role, binding, and the token's Secret."""

from typing import Any

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, owner_of

Object = dict[str, Any]

_RULES = (
    ("", "pods", ("get", "list", "watch", "patch")),
    ("", "pods/resize", ("patch",)),
    ("ray.io", "rayclusters", ("get", "patch")),
)
_RBAC = "rbac.authorization.k8s.io"


def autoscaler_account_name(cluster: Cluster) -> str:
    """Return the service account of an autoscaling head: the user's, as given, or the cluster's own."""
    return user_account(cluster) or naming.checked_name(cluster.name)


def user_account(cluster: Cluster) -> str:
    """Return the service account that the head's template names, if any."""
    spec = (cluster.head.get("template") or {}).get("spec") or {}
    return spec.get("serviceAccountName") or ""


def autoscaler_account(cluster: Cluster) -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(cluster)}


def autoscaler_role(cluster: Cluster) -> Object:
    """Return what the autoscaler may do: see and resize the cluster's Pods, and change the cluster."""
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        for group, resource, verbs in _RULES
    ]
    return {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": _metadata(cluster), "rules": rules}


def autoscaler_binding(cluster: Cluster) -> Object:
    name = autoscaler_account_name(cluster)
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(cluster),
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": naming.checked_name(cluster.name)},
    }


def needs_auth_secret(cluster: Cluster) -> bool:
    """Tell whether the operator makes the cluster's token: authentication is on and nobody brings a token."""
    options = cluster.spec.get("authOptions")
    if options is None or options.get("mode") == "disabled":
        return False
    return not options.get("enableK8sTokenAuth") and not options.get("secretName")


def auth_secret(cluster: Cluster, token: str) -> Object:
    """Return the Secret with the cluster's token."""
    metadata = _metadata(cluster)
    metadata["labels"] = {naming.CLUSTER_LABEL: cluster.name}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {"auth_token": token},
    }


def _metadata(cluster: Cluster) -> Object:
    return {
        "name": naming.checked_name(cluster.name),
        "namespace": cluster.namespace,
        "labels": {naming.CLUSTER_LABEL: cluster.name, **naming.APP_LABELS},
        "ownerReferences": [owner_of(cluster)],
    }
