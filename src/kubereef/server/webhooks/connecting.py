"""Connections to Pods, Services and nodes, as webhooks are told of them: by the options of the connection."""

from typing import NamedTuple

from kubereef.kinds.resource import Behaviour, Object, ResourceType
from kubereef.server.calls import Call
from kubereef.server.requests import Request
from kubereef.server.webhooks.admitting import admitted, are_asked


class _Options(NamedTuple):
    """The kind that describes a sort of connection, and which of its fields are flags, texts and lists."""

    kind: str
    flags: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()


_STREAMS = ("stdin", "stdout", "stderr", "tty")
_CONNECTIONS = {
    ("pods", "attach"): _Options("PodAttachOptions", _STREAMS, ("container",)),
    ("pods", "exec"): _Options("PodExecOptions", _STREAMS, ("container",), ("command",)),
    ("pods", "portforward"): _Options("PodPortForwardOptions", numbers=("ports",)),
    ("pods", "proxy"): _Options("PodProxyOptions"),
    ("services", "proxy"): _Options("ServiceProxyOptions"),
    ("nodes", "proxy"): _Options("NodeProxyOptions"),
}


async def connecting(call: Call, name: str) -> Call:
    """Return the call as webhooks leave it, who are asked about connections like about writes."""
    if not are_asked(call):
        return call
    kind = _CONNECTIONS[(call.resource_type.resource, call.target.subresource)]
    obj = _read(kind, call)
    before = dict(obj)
    await admitted(call, _type_of(kind), obj, operation="CONNECT", name=name)
    if obj == before:
        return call
    return call._replace(
        request=_written(kind, obj, call.request),
        target=call.target._replace(rest=str(obj["path"]).removeprefix("/"))
        if "path" in obj
        else call.target,
    )


def _type_of(kind: _Options) -> ResourceType:
    return ResourceType(
        group="",
        version="v1",
        kind=kind.kind,
        plural="",
        singular="",
        namespaced=True,
        verbs=frozenset(),
        behaviour=Behaviour(read=_without_metadata),
    )


def _without_metadata(obj: Object) -> list[str]:
    """Take off what every other object has; the options of a connection have no metadata."""
    obj.pop("metadata", None)
    return []


def _read(kind: _Options, call: Call) -> Object:
    request = call.request
    obj: Object = {flag: True for flag in kind.flags if request.flag(flag)}
    obj |= {text: request.parameter(text) for text in kind.texts if request.parameter(text)}
    obj |= {field: request.query[field] for field in kind.lists if field in request.query}
    for field in kind.numbers:
        given = [part for value in request.query.get(field, ()) for part in value.split(",")]
        if given:
            obj[field] = [int(part) for part in given if part.isdecimal()]
    if call.target.subresource == "proxy" and call.target.rest:
        obj["path"] = f"/{call.target.rest}"
    return obj


def _written(kind: _Options, obj: Object, request: Request) -> Request:
    query = dict(request.query)
    for field in (*kind.flags, *kind.texts, *kind.lists, *kind.numbers):
        query.pop(field, None)
        value = obj.get(field)
        if value:
            values = value if isinstance(value, list) else ["true" if value is True else value]
            query[field] = [str(one) for one in values]
    return request._replace(query=query)
