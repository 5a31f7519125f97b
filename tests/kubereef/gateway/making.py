"""Gateways, routes, Services and endpoints, for tests."""

API = "gateway.networking.k8s.io/v1"
GATEWAYS = f"/apis/{API}/namespaces/default/gateways"
ROUTES = f"/apis/{API}/namespaces/default/httproutes"
CLASSES = f"/apis/{API}/gatewayclasses"
SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def listener(name="http", port=80, protocol="HTTP", **fields):
    return {"name": name, "port": port, "protocol": protocol, **fields}


def gateway(*listeners, name="gate", namespace="default", class_name="kubereef", **spec):
    return {
        "apiVersion": API,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"gatewayClassName": class_name, "listeners": list(listeners) or [listener()], **spec},
    }


def backend(name="web", weight=1, port=80, **fields):
    return {"name": name, "port": port, "weight": weight, **fields}


def rule(*backends, **fields):
    return {"backendRefs": list(backends) or [backend()], **fields}


def path(value, kind="PathPrefix"):
    return {"path": {"type": kind, "value": value}}


def route(*rules, name="route", namespace="default", parents=({"name": "gate"},), created="", **spec):
    meta = {"name": name, "namespace": namespace}
    if created:
        meta["creationTimestamp"] = created
    return {
        "apiVersion": API,
        "kind": "HTTPRoute",
        "metadata": meta,
        "spec": {"parentRefs": list(parents), "rules": list(rules) or [rule()], **spec},
    }


def service(name="web", port=80, address="10.96.1.1", labels=None, **spec):
    ports = [{"name": "http", "port": port, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"clusterIP": address, "ports": ports, **spec},
    }


def endpoint(address, ready=True, serving=True, terminating=False):
    return {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    }


def endpoint_slice(*endpoints, of="web", port=8080):
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{of}-{port}",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": of},
        },
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }
