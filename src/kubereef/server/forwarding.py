"""Requests that are not for the API server itself: logs, exec and the like go to the kubelet, proxies to Pods."""

from collections.abc import AsyncIterator, Mapping
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import quote as escaped
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from kubereef.kinds.resource import Object
from kubereef.server.calls import Call
from kubereef.server.core import Handler, Server
from kubereef.server.endpoints import ready_endpoints
from kubereef.server.lines import Line, Lines, Unreachable
from kubereef.server.listing import number
from kubereef.server.requests import Request, Response
from kubereef.server.tunnels import Tunnel, opened
from kubereef.server.webhooks.connecting import connecting
from kubereef.store.records import Key
from kubewire import errors, fielderrors
from kubewire.fielderrors import FieldError
from kubewire.gotext import quote

_LOG_OPTIONS = (
    "follow",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "timestamps",
    "tailLines",
    "limitBytes",
    "stream",
)
# Headers that belong to one connection, or to the one who asks and the API server.
_KEPT_BACK = frozenset(
    (
        "authorization",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)
_MAX_ERROR_TEXT = 8 * 1024


class _Named(NamedTuple):
    """What a proxy path names: `https:web:8443` is the port 8443 of web, spoken to in TLS."""

    scheme: str
    name: str
    port: str


class Forwarding:
    """The handlers of everything that goes on to a node or a Pod."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def offer(self, server: Server) -> None:
        """Have a server forward what is not its own."""
        handlers: Mapping[tuple[str, str], Handler] = {
            ("pods", "log"): self.log,
            ("pods", "exec"): self.stream_to_container,
            ("pods", "attach"): self.stream_to_container,
            ("pods", "portforward"): self.stream_to_container,
            ("pods", "proxy"): self.pod_proxy,
            ("services", "proxy"): self.service_proxy,
            ("nodes", "proxy"): self.node_proxy,
        }
        server.subresources.update(handlers)

    async def log(self, call: Call) -> Response:
        """Answer with what a container has written, as long as the client wants to follow it."""
        pod = _found(call, call.target.name)
        _check_log_options(call.request)
        container = _container(pod, call.request.parameter("container"))
        node_name = (pod.get("spec") or {}).get("nodeName")
        if not node_name:
            return Response(200, b"", "text/plain")
        options = [
            (name, value) for name in _LOG_OPTIONS for value in call.request.query.get(name, ())[:1] if value
        ]
        metadata = pod["metadata"]
        path = f"/containerLogs/{metadata['namespace']}/{metadata['name']}/{container}"
        try:
            line = self._lines.to_node(_node(call, node_name))
            answer = await _sent(line, "GET", path, urlencode(options), {}, b"")
        except (Unreachable, aiohttp.ClientError, TimeoutError) as bad:
            raise errors.ApiError(_reason(bad)) from None
        if answer.status != 200:
            raise await _kubelet_error(call, answer)
        return Response(200, b"", "text/plain", stream=_relayed(answer))

    async def stream_to_container(self, call: Call) -> Response:
        """Join a client and a kubelet by a connection that both write to: exec, attach and port-forward."""
        pod = _found(call, call.target.name)
        call = await connecting(call, call.target.name)
        part = call.target.subresource
        container = "" if part == "portforward" else _container(pod, call.request.parameter("container"))
        node_name = (pod.get("spec") or {}).get("nodeName")
        if not node_name:
            raise errors.bad_request(f"pod {call.target.name} does not have a host assigned")
        try:
            line = self._lines.to_node(_node(call, node_name))
        except Unreachable as bad:
            raise errors.ApiError(_reason(bad)) from None
        if "upgrade" not in call.request.headers:
            raise errors.bad_request("Upgrade request required")
        path = _kubelet_path(part, pod["metadata"], container, call.request)
        headers = [
            (name, value) for name in call.request.headers for value in call.request.header_values(name)
        ]
        try:
            answer = await opened(line, call.request.method, path, headers)
        except (OSError, TimeoutError, EOFError) as bad:
            raise errors.ApiError(_reason(bad)) from None
        if isinstance(answer, Tunnel):
            return Response(101, tunnel=answer)
        raise _refusal(call, answer.status, answer.text)

    async def pod_proxy(self, call: Call) -> Response:
        """Hand a request to a port of a Pod."""
        named = _named(call.target.name)
        pod = _found(call, named.name)
        call = await connecting(call, named.name)
        address = (pod.get("status") or {}).get("podIP") or ""
        _check_address(address)
        port = named.port or _first_port(pod)
        if not port.isdigit():
            raise errors.bad_request(f"invalid pod port {quote(port)}")
        line = self._lines.to_address(named.scheme or "http", address, int(port))
        return await self._proxied(call, line)

    async def service_proxy(self, call: Call) -> Response:
        """Hand a request to one of the Pods behind a Service."""
        named = _named(call.target.name)
        service = _found(call, named.name)
        call = await connecting(call, named.name)
        port_name = _service_port(service, named)
        for address, port in ready_endpoints(call.store, call.namespace, named.name, port_name):
            _check_address(address)
            line = self._lines.to_address(named.scheme or "http", address, port)
            return await self._proxied(call, line)
        raise errors.service_unavailable(f"no endpoints available for service {quote(named.name)}")

    async def node_proxy(self, call: Call) -> Response:
        """Hand a request to the kubelet of a node."""
        named = _named(call.target.name)
        if named.port and not named.port.isdigit():
            raise errors.bad_request(f"invalid node request {quote(call.target.name)}")
        node = _found(call, named.name)
        call = await connecting(call, named.name)
        try:
            line = self._lines.to_node(node, int(named.port or 0))
        except Unreachable as bad:
            raise errors.service_unavailable(f"error trying to reach service: {_reason(bad)}") from None
        return await self._proxied(call, line)

    async def _proxied(self, call: Call, line: Line) -> Response:
        request = call.request
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in _KEPT_BACK and not name.startswith("impersonate-")
        }
        headers["X-Forwarded-Uri"] = escaped(request.path)
        query = urlencode([(name, value) for name, values in request.query.items() for value in values])
        try:
            path = "/" + escaped(call.target.rest, safe="/:@!$&'()*+,;=~")
            answer = await _sent(line, request.method, path, query, headers, request.body)
        except (aiohttp.ClientError, TimeoutError) as bad:
            raise errors.service_unavailable(f"error trying to reach service: {_reason(bad)}") from None
        passed = tuple(
            (name, value)
            for name, value in answer.headers.items()
            if name.lower() not in _KEPT_BACK and name.lower() != "content-type"
        )
        content_type = answer.headers.get("Content-Type", "application/octet-stream")
        return Response(answer.status, b"", content_type, passed, _relayed(answer))


async def _sent(
    line: Line, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> aiohttp.ClientResponse:
    url = URL(f"{line.url}{path}{'?' if query else ''}{query}", encoded=True)
    return await line.session.request(method, url, headers=headers, data=body or None, allow_redirects=False)


async def _relayed(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    finally:
        answer.close()


async def _kubelet_error(call: Call, answer: aiohttp.ClientResponse) -> errors.ApiError:
    try:
        text = (await answer.content.read(_MAX_ERROR_TEXT)).decode(errors="replace").strip()
    except aiohttp.ClientError:
        text = ""
    finally:
        answer.close()
    return _refusal(call, answer.status, text)


def _refusal(call: Call, status: int, text: str) -> errors.ApiError:
    """Return a kubelet's refusal as the API server passes it on."""
    if status == 404:
        return errors.not_found("pods", call.target.name)
    if status == 400:
        return errors.bad_request(text or "the node refused the request")
    because = text or f"the node answered with the status {status}"
    return errors.ApiError(because, code=max(status, 500))


# What a client calls the streams of a container, and what a kubelet calls them.
_STREAMS = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))


def _kubelet_path(part: str, metadata: Object, container: str, request: Request) -> str:
    """Return the path of a kubelet's own API for a part of a Pod."""
    place = f"{metadata['namespace']}/{metadata['name']}"
    if part == "portforward":
        options = [("port", port) for ports in request.query.get("ports", ()) for port in ports.split(",")]
        return f"/portForward/{place}?{urlencode(options)}"
    options = [(theirs, "1") for ours, theirs in _STREAMS if request.flag(ours)]
    if part == "exec":
        options += [("command", word) for word in request.query.get("command", ())]
    return f"/{part}/{place}/{escaped(container)}?{urlencode(options)}"


def _reason(bad: BaseException) -> str:
    return str(bad) or ("the connection timed out" if isinstance(bad, TimeoutError) else type(bad).__name__)


def _found(call: Call, name: str) -> Object:
    record = call.store.get(call.key_of(name))
    if record is None:
        raise errors.not_found(call.resource_type.plural, name, group=call.resource_type.group)
    return record.object()


def _node(call: Call, name: str) -> Object:
    record = call.store.get(Key("nodes", "", name))
    if record is None:
        raise errors.not_found("nodes", name)
    return record.object()


def _container(pod: Object, wanted: str) -> str:
    """Return the container that is meant, which is the only one if none is named."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    containers = [one["name"] for one in spec.get("containers") or ()]
    initial = [one["name"] for one in spec.get("initContainers") or ()]
    others = [one["name"] for one in spec.get("ephemeralContainers") or ()]
    if wanted:
        if wanted not in (*containers, *initial, *others):
            raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(containers) == 1:
        return str(containers[0])
    message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]"
    if initial:
        message += f" or one of the init containers: [{' '.join(initial)}]"
    raise errors.bad_request(message)


def _check_log_options(request: Request) -> None:
    problems: list[FieldError] = []
    for name, least, detail in (
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
        ("sinceSeconds", 1, "must be greater than 0"),
    ):
        value = number(request, name)
        if value is not None and value < least:
            problems.append(fielderrors.invalid((name,), value, detail))
    if request.parameter("sinceSeconds") and request.parameter("sinceTime"):
        detail = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(fielderrors.forbidden((), detail))
    if problems:
        raise errors.invalid("PodLogOptions", "", problems)


def _named(text: str) -> _Named:
    parts = text.split(":")
    if len(parts) == 1:
        return _Named("", text, "")
    if len(parts) == 2 and parts[0]:
        return _Named("", parts[0], parts[1])
    if len(parts) == 3 and parts[0] in ("", "http", "https") and parts[1]:
        return _Named(parts[0], parts[1], parts[2])
    raise errors.bad_request(f"invalid proxy request {quote(text)}")


def _first_port(pod: Object) -> str:
    for container in (pod.get("spec") or {}).get("containers") or ():
        for port in container.get("ports") or ():
            return str(port["containerPort"])
    return "80"


def _service_port(service: Object, named: _Named) -> str:
    """Return the name of the Service's port that is meant; the only port may be without one."""
    ports = (service.get("spec") or {}).get("ports") or []
    for port in ports:
        if named.port in (port.get("name", ""), str(port.get("port"))):
            return str(port.get("name", ""))
    if not named.port and len(ports) == 1:
        return str(ports[0].get("name", ""))
    raise errors.service_unavailable(
        f"no service port {quote(named.port)} found for service {quote(named.name)}"
    )


def _check_address(address: str) -> None:
    """Refuse addresses that would lead back to this machine's own services."""
    try:
        parsed = ip_address(address)
    except ValueError:
        raise errors.bad_request("address not allowed") from None
    if parsed.is_loopback or parsed.is_link_local or parsed.is_multicast or parsed.is_unspecified:
        raise errors.bad_request("address not allowed")
