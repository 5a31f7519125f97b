"""Pods carry the labels that say where their node is, so that they can see for themselves."""

from kubereef.server.admission import Attempt
from kubereef.store.records import Key
from kubereef.store.store import Store

_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def topology_labels(store: Store, node_name: str) -> dict[str, str]:
    """Return the labels of a node that say where it is; none if nobody knows the node."""
    record = store.latest(Key("nodes", "", node_name))
    if record is None:
        return {}
    labels = record.object()["metadata"].get("labels") or {}
    return {label: labels[label] for label in _LABELS if label in labels}


def pod_topology(store: Store, attempt: Attempt) -> list[str]:
    """Label a Pod that is on a node with where that is, whatever it says itself."""
    if attempt.operation == "DELETE" or attempt.resource_type.resource != "pods" or attempt.subresource:
        return []
    node_name = (attempt.obj.get("spec") or {}).get("nodeName")
    found = topology_labels(store, node_name) if node_name else {}
    if found:
        metadata = attempt.obj["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **found}
    return []
