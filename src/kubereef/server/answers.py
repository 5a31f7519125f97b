"""Objects and lists as answers, in the form that was asked for."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubereef.kinds.resource import Object, ResourceType, TableMoment
from kubereef.server.media import JSON, Form, accepted_form, prettied, written
from kubereef.server.requests import Request, Response
from kubereef.server.tables import table
from kubereef.store.records import Record, decode, encode
from kubewire import errors

Headers = tuple[tuple[str, str], ...]


class Wish(NamedTuple):
    """What a request wants its answer to look like."""

    form: Form
    include: str
    moment: TableMoment

    @classmethod
    def of(cls, request: Request, now: float) -> "Wish":
        return cls(accepted_form(request), request.parameter("includeObject"), TableMoment(now))


def warning_headers(warnings: Iterable[str]) -> Headers:
    """Return the headers that make clients print warnings, each once."""
    return tuple(("Warning", f'299 - "{_escaped(text)}"') for text in dict.fromkeys(warnings))


def object_bytes(resource_type: ResourceType, data: bytes) -> bytes:
    """Return a kept object in the form of a version, with its apiVersion and kind."""
    return resource_type.opening + shown(resource_type, data)[1:]


def shown(resource_type: ResourceType, data: bytes) -> bytes:
    """Return a kept object in the form of a version."""
    conversion = resource_type.conversion
    if conversion is None or not conversion.applies(data):
        return data
    return encode(conversion.from_stored(decode(data)))


def partial(obj: Object) -> Object:
    """Return only the metadata of an object, as an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def object_response(
    resource_type: ResourceType, data: bytes, wish: Wish, status: int = 200, headers: Headers = ()
) -> Response:
    """Answer with one object; `data` is the object as it is kept."""
    form = wish.form
    if form.media_type == JSON and not form.shape:
        body = object_bytes(resource_type, data)
        return Response(status, prettied(body) if form.pretty else body, headers=headers)
    obj = decode(shown(resource_type, data))
    if form.shape == "PartialObjectMetadata":
        value = partial(obj)
    elif form.shape == "Table":
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        value = table(resource_type, [obj], metadata, wish.include, wish.moment)
    elif form.shape:
        raise errors.NotAcceptable(
            f"you requested {form.shape}, but the requested object is not a list (*core.{resource_type.kind})"
        )
    else:
        value = {"apiVersion": resource_type.api_version, "kind": resource_type.kind, **obj}
    return Response(status, written(value, form), form.media_type, headers)


def list_response(
    resource_type: ResourceType, records: Sequence[Record], metadata: Object, wish: Wish
) -> Response:
    """Answer with a list. Items of built-in kinds leave out apiVersion and kind, as Kubernetes does."""
    form = wish.form
    if form.media_type == JSON and not form.shape:
        opening = resource_type.opening if resource_type.custom else b"{"
        if resource_type.custom:
            metadata = {"continue": "", **metadata}
        items = b",".join(opening + shown(resource_type, record.data)[1:] for record in records)
        head = {
            "apiVersion": resource_type.api_version,
            "kind": resource_type.list_kind,
            "metadata": metadata,
        }
        body = encode(head)[:-1] + b',"items":[' + items + b"]}"
        return Response(200, prettied(body) if form.pretty else body)
    objects = (decode(shown(resource_type, record.data)) for record in records)
    if form.shape == "Table":
        value: Object = table(resource_type, objects, metadata, wish.include, wish.moment)
    elif form.shape == "PartialObjectMetadata":
        raise errors.NotAcceptable(
            "you requested PartialObjectMetadata, but the requested object is a list "
            f"(*core.{resource_type.list_kind})"
        )
    elif form.shape:
        items_of = [partial(obj) for obj in objects]
        value = {"kind": form.shape, "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items_of}
    else:
        value = {
            "apiVersion": resource_type.api_version,
            "kind": resource_type.list_kind,
            "metadata": metadata,
            "items": list(objects),
        }
    return Response(200, written(value, form), form.media_type)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
