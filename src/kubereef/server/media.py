"""Which form a body has and which form an answer should have."""

from contextlib import suppress
from typing import NamedTuple

from kubereef.server.requests import Request
from kubereef.store.records import encode
from kubewire import errors
from kubewire.badjson import complaint, without_half_characters
from kubewire.gotext import quote
from kubewire.jsonpatch import is_deeper_than

JSON = "application/json"
YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_OFFERED = (JSON, YAML, _PROTOBUF)

MAX_BODY = 3 * 1024 * 1024
# What goes on to a Pod is no object: files are uploaded that way, such as those of a Ray job.
MAX_PROXIED_BODY = 128 * 1024 * 1024
MAX_DEPTH = 500

_SHAPES = frozenset(("Table", "PartialObjectMetadata", "PartialObjectMetadataList"))


class Form(NamedTuple):
    """How an answer is written, and whether it is the object itself or a summary of it."""

    media_type: str = JSON
    shape: str = ""
    pretty: bool = False
    # The version of the summary.
    version: str = "v1"


class Body(NamedTuple):
    """A decoded body, and the keys that it gives twice; if it is YAML, what its reader says of them."""

    value: object
    duplicates: tuple[str, ...] = ()
    repetitions: tuple[str, ...] = ()


def accepted_form(request: Request, *, shapes: bool = True) -> Form:
    """Return the first form of the Accept header that can be had."""
    pretty = request.flag("pretty")
    is_known = False
    for wanted in request.headers.get("accept", "*/*").split(","):
        media_type, *pairs = (part.strip() for part in wanted.split(";"))
        parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if media_type in ("*/*", ""):
            media_type = JSON
        if media_type not in (JSON, YAML):
            continue
        is_known = True
        shape = parameters.get("as", "")
        if not shape:
            return Form(media_type, "", pretty)
        version = parameters.get("v", "v1")
        fits = parameters.get("g", "meta.k8s.io") == "meta.k8s.io" and version in ("v1", "v1beta1")
        if shapes and shape in _SHAPES and fits:
            return Form(media_type, shape, pretty, version)
    if is_known:
        raise errors.NotAcceptable(f"only the following media types are accepted: {', '.join(_OFFERED)}")
    raise errors.NotAcceptable(
        f"406: Not Acceptable\n\nAvailable representations: {', '.join(_OFFERED)}", details=errors.Details()
    )


def written(value: object, form: Form) -> bytes:
    """Return a value in the form's media type."""
    if form.media_type == YAML:
        import yaml  # few clients ask for it

        return yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True).encode()
    data = encode(value)
    return prettied(data) if form.pretty else data


def prettied(data: bytes) -> bytes:
    import msgspec

    return msgspec.json.format(data, indent=2) + b"\n"


def content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def decoded(request: Request) -> Body:
    """Return the body of a request that carries an object; its content type decides how it is read."""
    media_type = content_type(request)
    if media_type in ("", JSON):
        return decoded_json(request.body)
    if media_type == YAML:
        return _decoded_yaml(request.body)
    if media_type == _PROTOBUF:
        return _decoded_protobuf(request.body)
    raise errors.unsupported_media_type(_OFFERED)


def decoded_json(raw: bytes) -> Body:
    """Return the value of JSON text, noting keys that come twice; ValueError in Go's words if it is none."""
    import json

    twice: list[str] = []

    def pairs(entries: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(entries)
        if len(found) != len(entries):
            seen: set[str] = set()
            for key, _ in entries:
                if key in seen:
                    twice.append(key)
                seen.add(key)
        return found

    def refuse(constant: str) -> object:
        raise ValueError(f"invalid character '{constant[0]}' looking for beginning of value")

    text = raw.decode(errors="replace")  # as Go does with bytes that are no UTF-8
    if r"\u" in text:
        text = without_half_characters(text)
    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=refuse)
    except RecursionError:
        raise ValueError("exceeded max depth") from None
    except ValueError as bad:
        raise ValueError(complaint(text, bad)) from None
    if is_deeper_than(value, MAX_DEPTH):
        raise ValueError("exceeded max depth")
    return Body(value, tuple(_paths_of(raw, twice)) if twice else ())


def decoded_json_or_yaml(raw: bytes) -> Body:
    """Return the value of a text in either language; ValueError if it is none."""
    if raw[:1] == b"{":
        with suppress(ValueError):
            body = decoded_json(raw)
            if not body.duplicates:
                return body
    return _decoded_yaml(raw)


def _decoded_protobuf(raw: bytes) -> Body:
    from kubewire import protobuf

    try:
        value = protobuf.decode(raw)
    except protobuf.Malformed as bad:
        raise errors.bad_request(str(bad)) from None
    if is_deeper_than(value, MAX_DEPTH):
        raise errors.bad_request("exceeded max depth")
    return Body(value)


def _decoded_yaml(raw: bytes) -> Body:
    from kubewire.paths import show
    from kubewire.yamltext import YamlError, decode
    from kubewire.yamltext.builder import documents

    text = decode(raw)
    try:
        document = next(iter(documents(text)), None)
    except YamlError as bad:
        raise ValueError(f"yaml: {bad.verdict}") from None
    if document is None:
        return Body(None)
    return Body(
        document.value,
        tuple(show(twice.path) for twice in document.duplicates),
        tuple(
            f"line {twice.again.line}: key {quote(str(twice.path[-1]))} already set in map"
            for twice in document.duplicates
        ),
    )


def _paths_of(raw: bytes, keys: list[str]) -> list[str]:
    """Return the full paths of keys given twice; the slower reader knows them, the quick one only the keys."""
    from kubewire.paths import show
    from kubewire.yamltext import YamlError
    from kubewire.yamltext.builder import documents

    try:
        (document,) = documents(raw.decode().replace("\t", " "))
    except (YamlError, ValueError):
        return keys  # JSON that YAML cannot follow: the bare keys must do
    return [show(twice.path) for twice in document.duplicates]
