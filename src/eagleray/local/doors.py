"""Which places inside of a cluster a person wants to open from outside: dashboards and Serve applications. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from eagleray.local.story import Picture, is_ready, is_service_ready
from eagleray.manifests import naming
from eagleray.manifests.probes import DASHBOARD_PORT, SERVE_PORT
from eagleray.manifests.rayservice import RayService, cluster_serve_name
from eagleray.manifests.stored import Stored
from eagleray.raycluster.views import pod_view


class Door(NamedTuple):
    """A place that can be opened: whose it is, in words, and where it is inside."""

    name: str
    title: str
    address: str
    port: int


def doors_of(picture: Picture) -> Iterator[Door]:
    """Yield what can be opened now: the dashboard of each head that is ready, and each service that is."""
    for obj in picture.pods:
        pod = pod_view(obj)
        if pod.is_head and pod.status.pod_ip and is_ready(pod) and not pod.is_terminating:
            cluster = pod.metadata.labels.get(naming.CLUSTER_LABEL, "")
            title = f"dashboard of RayCluster {cluster}"
            port = _port(obj["spec"]["containers"][0].get("ports"), "dashboard", DASHBOARD_PORT)
            yield Door(f"{pod.metadata.namespace}/{cluster}", title, pod.status.pod_ip, port)
    for service in map(RayService, picture.services):
        if not is_service_ready(service.obj):
            continue
        # An incremental upgrade has a front for each cluster; the active one has the traffic.
        names = (service.serve_service_name, cluster_serve_name(service.active.name))
        for front in map(Stored, picture.kube_services):
            address = front.spec.get("clusterIP")
            if (
                front.namespace == service.namespace
                and front.name in names
                and address not in (None, "", "None")
            ):
                port = _port(front.spec.get("ports"), "serve", SERVE_PORT, field="port")
                yield Door(f"{service.place} serve", f"RayService {service.name}", str(address), port)
                break


def _port(ports: object, name: str, default: int, field: str = "containerPort") -> int:
    for port in ports if isinstance(ports, list) else ():
        if port.get("name") == name and isinstance(port.get(field), int):
            return int(port[field])
    return default
