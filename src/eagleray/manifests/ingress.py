"""The way in from outside: an Ingress, or a Route on OpenShift."""

from typing import Any

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster, owner_of
from eagleray.manifests.services import head_ports, head_selector

Object = dict[str, Any]

_CLASS = "kubernetes.io/ingress.class"


def head_ingress(cluster: Cluster) -> Object:
    """Return the Ingress to the head's dashboard."""
    options = cluster.head.get("ingressOptions") or {}
    port = head_ports(cluster).get("dashboard", 8265)
    path = {
        "path": options.get("path") or "/",
        "pathType": options.get("pathType") or "Prefix",
        "backend": {"service": {"name": cluster.head_service_name, "port": {"number": port}}},
    }
    rule: Object = {"http": {"paths": [path]}}
    if options.get("host"):
        rule["host"] = options["host"]
    spec: Object = {"rules": [rule]}
    if options.get("tls"):
        spec["tls"] = options["tls"]
    annotations = dict(cluster.annotations)
    if ingress_class := annotations.pop(_CLASS, ""):
        spec["ingressClassName"] = ingress_class
    metadata = _metadata(cluster, naming.checked_name(f"{cluster.name}-head-ingress"), annotations)
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def head_route(cluster: Cluster) -> Object:
    """Return the Route to the head's dashboard."""
    name = naming.checked_route_name(f"{cluster.name}-head-route", cluster.namespace)
    spec = {
        "to": {"kind": "Service", "name": cluster.head_service_name, "weight": 100},
        "port": {"targetPort": "dashboard"},
        "wildcardPolicy": "None",
    }
    metadata = _metadata(cluster, name, dict(cluster.annotations))
    return {"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata, "spec": spec}


def _metadata(cluster: Cluster, name: str, annotations: dict[str, str]) -> Object:
    selector = head_selector(cluster)
    metadata: Object = {
        "name": name,
        "namespace": cluster.namespace,
        "labels": {
            naming.CLUSTER_LABEL: cluster.name,
            naming.IDENTIFIER_LABEL: selector[naming.IDENTIFIER_LABEL],
            **naming.APP_LABELS,
        },
        "ownerReferences": [owner_of(cluster)],
    }
    if annotations:
        metadata["annotations"] = annotations
    return metadata
