"""Where the dashboard of a cluster is: its name and port, and the way to it through the API server. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

DASHBOARD_PORT: Final = "dashboard"

# <service>.<namespace>.svc.<domain>:<port>, as it stands in a status.
_SERVICE_HOST = re.compile(
    r"(?P<service>[a-z0-9-]{1,63})\.(?P<namespace>[a-z0-9-]{1,63})\.svc(\.[a-z0-9-]{1,63})+"
)


class AddressError(ValueError):
    """Something that leads to no dashboard."""


class Address(NamedTuple):
    """Where to ask, and with whose token."""

    namespace: str
    # Name and port without a scheme, as in `status.dashboardURL`. It tells one dashboard from another.
    host: str
    # The path of the API server behind which the same place is.
    proxied: str
    # The Secret in the namespace whose token the dashboard asks for; empty if it asks for none.
    secret: str = ""

    def __str__(self) -> str:
        return self.host


def head_address(service: Mapping[str, Any], *, domain: str, secret: str = "") -> Address:
    """Return where the dashboard behind a head Service is."""
    metadata = service.get("metadata") or {}
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "")
    ports = (service.get("spec") or {}).get("ports") or ()
    for port in ports:
        if port.get("name") == DASHBOARD_PORT:
            return Address(
                namespace,
                f"{name}.{namespace}.svc.{domain}:{port['port']}",
                _service_proxy(namespace, name),
                secret,
            )
    raise AddressError(
        f"Service {namespace}/{name}: no port is named {DASHBOARD_PORT}; name the head container's dashboard port so"
    )


def status_address(namespace: str, url: str, *, secret: str = "") -> Address:
    """Return the address that a `status.dashboardURL` of an object in this namespace stands for.

    A status that leads out of its own namespace is refused: whoever may write it may not send the operator anywhere.
    """
    host, _, port = url.removeprefix("http://").rpartition(":")
    found = _SERVICE_HOST.fullmatch(host)
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536
    if found is None or not is_port or found["namespace"] != namespace:
        raise AddressError(
            f"status.dashboardURL: {url[:300]!r} is no <service>.{namespace}.svc.<domain>:<port>; "
            "clear it to have it found again"
        )
    return Address(namespace, f"{host}:{port}", _service_proxy(namespace, found["service"]), secret)


def serve_address(namespace: str, pod: str, ip: str, port: int) -> Address:
    """Return where the Serve proxy of a Pod is."""
    host = f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"
    proxied = f"/api/v1/namespaces/{_step(namespace)}/pods/{_step(pod)}:{port}/proxy"
    return Address(namespace, host, proxied)


def _service_proxy(namespace: str, service: str) -> str:
    return f"/api/v1/namespaces/{_step(namespace)}/services/{_step(service)}:{DASHBOARD_PORT}/proxy"


def _step(text: str) -> str:
    return quote(text, safe="")
