"""Ways from the API server to nodes and Pods."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import aiohttp

from kubereef.kinds.resource import Object

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace

# The order in which Kubernetes tries the addresses of a node.
_PREFERRED_ADDRESSES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_CONNECT_SECONDS = 5.0
_KUBELET_PORT = 10250


class Unreachable(Exception):
    """There is no way to the node or Pod."""


Dial = Callable[[str, int], Awaitable[socket.socket]]
"""Opens a connection to a port of a host; OSError if there is no way."""


class Passage(Protocol):
    """A way to hosts that this machine's own network does not lead to, such as those inside a node."""

    def covers(self, host: str) -> bool:
        """Tell whether a host, by name or address, is reached this way."""
        ...

    async def dial(self, host: str, port: int) -> socket.socket:
        """Return a connection that does not block; OSError if there is none to be had."""
        ...


class Line(NamedTuple):
    """A client and the address that requests are sent to with it."""

    session: aiohttp.ClientSession
    url: str
    # For connections that are more than requests and answers.
    tls: ssl.SSLContext | None = None
    # How to connect, where it is not done directly.
    dial: Dial | None = None


class Lines(Protocol):
    """Finds ways to nodes and Pods."""

    def to_node(self, node: Object, port: int = 0) -> Line:
        """Return the line to the kubelet of a node, or raise Unreachable."""
        ...

    def to_address(self, scheme: str, address: str, port: int) -> Line:
        """Return the line to a port of a Pod."""
        ...

    def passage(self, host: str) -> Dial | None:
        """Return how to connect to a host that this machine's own network does not lead to; None if it does."""
        ...

    async def close(self) -> None: ...


class DirectLines:
    """Reaches nodes and Pods at the addresses that they publish, through passages where there are any."""

    def __init__(self, kubelet_tls: ssl.SSLContext | None = None) -> None:
        self.passages: list[Passage] = []
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
            self._to_nodes = _session(self._kubelet_tls, self.passages)
        url = f"https://{_host(address)}:{port}"
        return Line(self._to_nodes, url, self._kubelet_tls, self.passage(address))

    def to_address(self, scheme: str, address: str, port: int) -> Line:
        if self._to_pods is None:
            self._to_pods = _session(None, self.passages)
        return Line(self._to_pods, f"{scheme}://{_host(address)}:{port}")

    def passage(self, host: str) -> Dial | None:
        found = _passage_to(host, self.passages)
        return None if found is None else found.dial

    async def close(self) -> None:
        for session in (self._to_nodes, self._to_pods):
            if session is not None:
                await session.close()


class _Connector(aiohttp.TCPConnector):
    """Connects through a passage to what one covers."""

    def __init__(self, tls: ssl.SSLContext | None, passages: Sequence[Passage]) -> None:
        # A Pod that speaks HTTPS shows a certificate that nobody here can check; as in Kubernetes, it is not asked to.
        super().__init__(ssl=tls if tls is not None else False)
        self._tls = tls if tls is not None else unchecked_tls()
        self._passages = passages

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: "list[Trace]",
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the connector's own signature
    ) -> "ResponseHandler":
        host, port = req.url.raw_host or "", req.url.port or 0
        passage = _passage_to(host, self._passages)
        if passage is None:
            return await super()._create_connection(req, traces, timeout)
        tls, name = (self._tls, host) if req.is_ssl() else (None, None)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                connection = await passage.dial(host, port)
                _, protocol = await self._loop.create_connection(
                    self._factory, sock=connection, ssl=tls, server_hostname=name
                )
        except OSError as problem:  # a TimeoutError is one
            reason = str(problem) or "the connection timed out"
            raise aiohttp.ClientConnectionError(f"dial tcp {host}:{port}: {reason}") from problem
        return protocol


def _passage_to(host: str, passages: Sequence[Passage]) -> Passage | None:
    return next((one for one in passages if one.covers(host)), None)


def unchecked_tls() -> ssl.SSLContext:
    """Return how to speak TLS to somebody of whose certificate nothing is known."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _session(tls: ssl.SSLContext | None, passages: Sequence[Passage]) -> aiohttp.ClientSession:
    connector = _Connector(tls, passages)
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
