"""Objects and lists as answers, in the form that was asked for."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubereef.kinds.resource import Object, ResourceType, TableMoment
from kubereef.server.media import JSON, Form, accepted_form, prettied, written
from kubereef.server.requests import Request, Response
from kubereef.server.tables import table
from kubereef.store.records import Record, decode, encode
from kubewire import errors, fielderrors

Headers = tuple[tuple[str, str], ...]

# How many characters the warnings of one answer may have in all; if they have more, how many each of them may have.
MAX_WARNINGS = 4096
MAX_CUT_WARNING = 256
# Characters that would end a header, or that no header may have.
_BLANKED = dict.fromkeys((*range(32), *range(127, 160)), " ")

_INCLUDED = ("", "Metadata", "None", "Object")


class Wish(NamedTuple):
    """What a request wants its answer to look like."""

    form: Form
    include: str
    moment: TableMoment

    @classmethod
    def of(cls, request: Request, now: float) -> "Wish":
        form, include = accepted_form(request), request.parameter("includeObject")
        if form.shape == "Table" and include not in _INCLUDED:
            wrong = fielderrors.invalid(
                ("includeObject",), include, "must be 'Metadata', 'Object', 'None', or empty"
            )
            raise errors.bad_request(f"Unable to convert to Table as requested: {wrong}")
        return cls(form, include if form.shape == "Table" else "", TableMoment(now))


def warning_headers(warnings: Iterable[str]) -> Headers:
    """Return the headers that make clients print warnings, each once; of too much text, the beginnings."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) > MAX_WARNINGS:
        texts = _cut_short(texts)
    return tuple(("Warning", f'299 - "{_escaped(text)}"') for text in texts)


def _cut_short(texts: list[str]) -> list[str]:
    """Return the beginnings of texts until there is enough of them, as Kubernetes does."""
    kept: list[str] = []
    length = 0
    for text in texts:
        if length >= MAX_WARNINGS:
            break
        kept.append(text[:MAX_CUT_WARNING])
        length += len(kept[-1])
    return kept


def object_bytes(resource_type: ResourceType, data: bytes) -> bytes:
    """Return a kept object in the form of a version, with its apiVersion and kind."""
    return resource_type.opening + shown(resource_type, data)[1:]


def shown(resource_type: ResourceType, data: bytes) -> bytes:
    """Return a kept object in the form of a version."""
    conversion = resource_type.conversion
    if conversion is None or not conversion.applies(data):
        return data
    return encode(conversion.from_stored(decode(data)))


def partial(obj: Object, version: str = "v1") -> Object:
    """Return only the metadata of an object, as an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": obj["metadata"],
    }


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
        value = partial(obj, form.version)
    elif form.shape == "Table":
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        value = table(resource_type, [obj], metadata, wish.include, wish.moment, version=form.version)
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
        value: Object = table(
            resource_type, objects, metadata, wish.include, wish.moment, version=form.version
        )
    elif form.shape == "PartialObjectMetadata":
        raise errors.NotAcceptable(
            "you requested PartialObjectMetadata, but the requested object is a list "
            f"(*core.{resource_type.list_kind})"
        )
    elif form.shape:
        value = {
            "kind": form.shape,
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": metadata,
            "items": [partial(obj, form.version) for obj in objects],
        }
    else:
        value = {
            "apiVersion": resource_type.api_version,
            "kind": resource_type.list_kind,
            "metadata": metadata,
            "items": list(objects),
        }
    return Response(200, written(value, form), form.media_type)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').translate(_BLANKED)
