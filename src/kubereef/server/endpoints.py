"""The Pods behind a Service, as its endpoint slices tell."""

from kubereef.store.store import Store

_SLICES = "endpointslices.discovery.k8s.io"
_SERVICE = "kubernetes.io/service-name"


def ready_endpoints(store: Store, namespace: str, service: str, port_name: str) -> list[tuple[str, int]]:
    """Return address and port of every ready endpoint of a Service's port, which may be without a name."""
    found = []
    for record in store.records(_SLICES, namespace):
        obj = record.object()
        if (obj["metadata"].get("labels") or {}).get(_SERVICE) != service:
            continue
        ports = [port["port"] for port in obj.get("ports") or () if (port.get("name") or "") == port_name]
        for endpoint in obj.get("endpoints") or ():
            if ports and (endpoint.get("conditions") or {}).get("ready", True):
                found += [(address, ports[0]) for address in endpoint["addresses"][:1]]
    return found
