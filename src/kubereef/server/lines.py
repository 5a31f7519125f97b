"""Ways from the API server to nodes and Pods."""

import ssl
from typing import NamedTuple, Protocol

import aiohttp

from kubereef.kinds.resource import Object

# The order in which Kubernetes tries the addresses of a node.
_PREFERRED_ADDRESSES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_CONNECT_SECONDS = 5.0
_KUBELET_PORT = 10250


class Unreachable(Exception):
    """There is no way to the node or Pod."""


class Line(NamedTuple):
    """A client and the address that requests are sent to with it."""

    session: aiohttp.ClientSession
    url: str
    # For connections that are more than requests and answers.
    tls: ssl.SSLContext | None = None


class Lines(Protocol):
    """Finds ways to nodes and Pods."""

    def to_node(self, node: Object, port: int = 0) -> Line:
        """Return the line to the kubelet of a node, or raise Unreachable."""
        ...

    def to_address(self, scheme: str, address: str, port: int) -> Line:
        """Return the line to a port of a Pod."""
        ...

    async def close(self) -> None: ...


class DirectLines:
    """Reaches nodes and Pods at the addresses that they publish."""

    def __init__(self, kubelet_tls: ssl.SSLContext | None = None) -> None:
        self._kubelet_tls = kubelet_tls
        self._to_nodes: aiohttp.ClientSession | None = None
        self._to_pods: aiohttp.ClientSession | None = None

    def to_node(self, node: Object, port: int = 0) -> Line:
        status = node.get("status") or {}
        addresses = {one.get("type"): one.get("address", "") for one in status.get("addresses") or ()}
        address = next((addresses[kind] for kind in _PREFERRED_ADDRESSES if addresses.get(kind)), "")
        if not address:
            known = " ".join(f"{{{kind} {value}}}" for kind, value in addresses.items())
            raise Unreachable(f"no preferred addresses found; known addresses: [{known}]")
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        port = port or endpoint.get("Port") or _KUBELET_PORT
        if self._to_nodes is None:
            self._to_nodes = _session(self._kubelet_tls)
        return Line(self._to_nodes, f"https://{_host(address)}:{port}", self._kubelet_tls)

    def to_address(self, scheme: str, address: str, port: int) -> Line:
        if self._to_pods is None:
            self._to_pods = _session(None)
        return Line(self._to_pods, f"{scheme}://{_host(address)}:{port}")

    async def close(self) -> None:
        for session in (self._to_nodes, self._to_pods):
            if session is not None:
                await session.close()


def _session(tls: ssl.SSLContext | None) -> aiohttp.ClientSession:
    # A Pod that speaks HTTPS shows a certificate that nobody here can check; as in Kubernetes, it is not asked to.
    connector = aiohttp.TCPConnector(ssl=tls if tls is not None else False)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        # What a Pod sets in one answer must not reach it with the request of another user.
        cookie_jar=aiohttp.DummyCookieJar(),
    )


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address
