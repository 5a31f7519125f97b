"""Names by which both sides of a Gateway find each other."""

from hashlib import sha256
from typing import Final

from kubereef.controllers.resources import Resource
from kubewire.names import dns1035_label

GROUP: Final = "gateway.networking.k8s.io"
GATEWAY_CLASSES: Final = Resource(GROUP, "v1", "gatewayclasses", "GatewayClass", namespaced=False)
GATEWAYS: Final = Resource(GROUP, "v1", "gateways", "Gateway")
HTTP_ROUTES: Final = Resource(GROUP, "v1", "httproutes", "HTTPRoute")

CLASS: Final = "kubereef"
DATA_PLANE_ROLE: Final = "kubereef:gateway-data-plane"
CONTROLLER: Final = "kubereef.io/gateway-controller"

GATEWAY_LABEL: Final = "gateway.networking.k8s.io/gateway-name"
PROXY_LABEL: Final = "service.kubernetes.io/service-proxy-name"
PROXY_NAME: Final = "kubereef-gateway"
"""The label by which the Service of a Gateway says that the data plane serves it, not the ordinary Service proxy."""


def service_name(gateway: str) -> str:
    """Return the name of the Service that holds the address of a Gateway."""
    plain = f"{gateway}-kubereef"
    # Names of Gateways may be longer than those of Services, and have dots.
    return (
        plain if not dns1035_label(plain) else f"gateway-{sha256(gateway.encode()).hexdigest()[:16]}-kubereef"
    )
