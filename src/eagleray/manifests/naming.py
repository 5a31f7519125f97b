"""Names and labels that the operator gives, in the reference's patterns."""

import string

NAME_LIMIT = 50
LABEL_LIMIT = 63
ROUTE_LIMIT = 51

CLUSTER_LABEL = "ray.io/cluster"
NODE_TYPE_LABEL = "ray.io/node-type"
GROUP_LABEL = "ray.io/group"
IDENTIFIER_LABEL = "ray.io/identifier"
IS_RAY_NODE_LABEL = "ray.io/is-ray-node"
SERVE_LABEL = "ray.io/serve"
HEADLESS_LABEL = "ray.io/headless-worker-svc"
ORIGIN_NAME_LABEL = "ray.io/originated-from-cr-name"
ORIGIN_KIND_LABEL = "ray.io/originated-from-crd"
REPLICA_INDEX_LABEL = "ray.io/worker-group-replica-index"
REPLICA_NAME_LABEL = "ray.io/worker-group-replica-name"
HOST_INDEX_LABEL = "ray.io/replica-host-index"

NAME_LABEL = "app.kubernetes.io/name"
CREATED_BY_LABEL = "app.kubernetes.io/created-by"
APP_LABELS = {NAME_LABEL: "kuberay", CREATED_BY_LABEL: "kuberay-operator"}

HEAD_GROUP = "headgroup"


def checked_name(name: str) -> str:
    """Return a name that fits: its last 50 characters, beginning with a letter."""
    name = name[-NAME_LIMIT:]
    return f"r{name[1:]}" if name[0] in string.digits + string.punctuation else name


def checked_label(value: str) -> str:
    """Return a label value that fits: its last 63 characters, not beginning with punctuation."""
    value = value[-LABEL_LIMIT:]
    return f"r{value[1:]}" if value[0] in string.punctuation else value


def checked_route_name(name: str, namespace: str) -> str:
    """Return a Route's name: short enough to make a host name together with its namespace."""
    return checked_name(name[: max(1, ROUTE_LIMIT - len(namespace))])


def head_pod_prefix(cluster: str) -> str:
    """Return what a head Pod's name begins with, without the dash."""
    return f"{cluster[:NAME_LIMIT]}-head".lower()


def worker_pod_prefix(cluster: str, group: str) -> str:
    """Return what a worker Pod's name begins with, up to and with the dash."""
    return f"{f'{cluster}-{group}'[:NAME_LIMIT]}-worker-".lower()
