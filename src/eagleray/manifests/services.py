"""The Services of a RayCluster."""

import copy
from typing import Any

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, owner_of, ray_container
from eagleray.manifests.settings import Settings

Object = dict[str, Any]

_DEFAULT_PORTS = {"client": 10001, "gcs-server": 6379, "dashboard": 8265, "metrics": 8080, "serve": 8000}


class NoServePort(ValueError):
    """A Service for Serve was asked for, and the head has no port for it."""


def head_ports(cluster: Cluster) -> dict[str, int]:
    """Return the ports under which the head is reached, by name."""
    declared = ray_container(cluster.head).get("ports") or []
    ports = {
        port.get("name") or f"{port['containerPort']}-port": int(port["containerPort"]) for port in declared
    }
    if not ports:
        ports = dict(_DEFAULT_PORTS)
    ports.setdefault("metrics", _DEFAULT_PORTS["metrics"])
    return dict(sorted(ports.items()))


def head_selector(cluster: Cluster) -> dict[str, str]:
    """Return the labels that choose the head Pod, with the values that the Pod really carries."""
    selector = {
        naming.CLUSTER_LABEL: cluster.name,
        naming.NODE_TYPE_LABEL: "head",
        naming.IDENTIFIER_LABEL: naming.checked_label(f"{cluster.name}-head"),
        **naming.APP_LABELS,
    }
    template = ((cluster.head.get("template") or {}).get("metadata") or {}).get("labels") or {}
    for given in (template, cluster.head.get("labels") or {}):
        for key in (naming.IDENTIFIER_LABEL, naming.NAME_LABEL, naming.CREATED_BY_LABEL):
            if key in given:
                selector[key] = given[key]
    return selector


def head_service(cluster: Cluster, settings: Settings) -> Object:
    """Return the Service of the head: headless unless a type, a user's Service or a switch says otherwise."""
    selector = head_selector(cluster)
    ports = [{"name": name, "port": port, "appProtocol": "tcp"} for name, port in head_ports(cluster).items()]
    service_type = cluster.head.get("serviceType") or "ClusterIP"
    annotations = dict(cluster.spec.get("headServiceAnnotations") or {})
    given = cluster.head.get("headService")
    if given is None:
        spec: Object = {"type": service_type, "selector": selector, "ports": ports}
        if service_type == "ClusterIP" and not settings.head_cluster_ip:
            spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
        return _service(cluster, cluster.head_service_name, selector, annotations, spec)
    metadata = given.get("metadata") or {}
    spec = copy.deepcopy(given.get("spec") or {})
    taken = {port.get("name") for port in spec.get("ports") or []}
    spec["ports"] = [*(spec.get("ports") or []), *(port for port in ports if port["name"] not in taken)]
    spec["selector"] = selector
    spec["type"] = spec.get("type") or service_type
    labels = {**(metadata.get("labels") or {}), **selector}
    annotations = {**(metadata.get("annotations") or {}), **annotations}
    return _service(cluster, cluster.head_service_name, labels, annotations, spec)


def headless_service(cluster: Cluster) -> Object | None:
    """Return the Service that gives workers of several hosts names of their own, if there are any."""
    if not any((group.get("numOfHosts") or 1) > 1 for group in cluster.workers):
        return None
    spec = {
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {naming.CLUSTER_LABEL: cluster.name, naming.NODE_TYPE_LABEL: "worker"},
    }
    return _service(cluster, f"{cluster.name}-headless", {naming.HEADLESS_LABEL: cluster.name}, {}, spec)


def serve_service(cluster: Cluster) -> Object | None:
    """Return the Service for Serve on a plain RayCluster, if the cluster asks for one."""
    if cluster.annotations.get("ray.io/enable-serve-service") != "true":
        return None
    ports = [
        {"name": name, "port": port}
        for name, port in head_ports(cluster).items()
        if name == "serve" or name.startswith("serve-")
    ]
    if not ports:
        raise NoServePort(
            "the head has no port named serve or serve-…; name one, or remove ray.io/enable-serve-service"
        )
    labels = {
        naming.ORIGIN_NAME_LABEL: cluster.name,
        naming.ORIGIN_KIND_LABEL: "RayCluster",
        naming.SERVE_LABEL: f"{cluster.name}-serve",
    }
    spec = {
        "type": cluster.head.get("serviceType") or "ClusterIP",
        "selector": {naming.CLUSTER_LABEL: cluster.name},
        "ports": ports,
    }
    return _service(cluster, f"{cluster.name}-serve-svc", labels, {}, spec)


def _service(
    cluster: Cluster, name: str, labels: dict[str, str], annotations: dict[str, str], spec: Object
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": cluster.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner_of(cluster)],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
