"""What may be wrong with the parts of a version besides its schema: columns, selectable fields, subresources."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubewire import fielderrors
from kubewire.fielderrors import FieldError
from kubewire.paths import FieldPath
from kubewire.schema import Schema, compile_schema
from kubewire.schema.fieldpaths import parsed_field_path

Problems = Iterator[FieldError]

_COLUMN_TYPES = "boolean,date,integer,number,string"
_COLUMN_FORMATS = "byte,date,date-time,double,float,int32,int64,password"
_MAX_SELECTABLE = 8
_MAX_WARNING = 256


def column_problems(at: FieldPath, columns: Sequence[Mapping[str, Any]] | None) -> Problems:
    for number, column in enumerate(columns or ()):
        yield from _column_problems((*at, number), column)


def _column_problems(at: FieldPath, column: Mapping[str, Any]) -> Problems:
    if not column.get("name"):
        yield fielderrors.required((*at, "name"))
    kind, choice = column.get("type") or "", f"must be one of {_COLUMN_TYPES}"
    if not kind:
        yield fielderrors.required((*at, "type"), choice)
    elif kind not in _COLUMN_TYPES.split(","):
        yield fielderrors.invalid((*at, "type"), kind, choice)
    format_name = column.get("format") or ""
    if format_name and format_name not in _COLUMN_FORMATS.split(","):
        yield fielderrors.invalid((*at, "format"), format_name, f"must be one of {_COLUMN_FORMATS}")
    if not column.get("jsonPath"):
        yield fielderrors.required((*at, "JSONPath"))
    else:
        yield from _path_problems((*at, "JSONPath"), column["jsonPath"])


def selectable_problems(
    at: FieldPath, fields: Sequence[Mapping[str, Any]] | None, schema: Mapping[str, Any] | None
) -> Problems:
    if not fields:
        return
    if schema is None:
        yield fielderrors.invalid(at, "", "may only be set when validations.schema is included")
        return
    root = compile_schema(schema)
    seen: set[tuple[str, ...]] = set()
    for number, field in enumerate(fields):
        where, path = (*at, number, "jsonPath"), field.get("jsonPath") or ""
        if not path:
            yield fielderrors.required(where)
            continue
        steps = parsed_field_path(path)
        node = None if steps is None else _node_at(root, steps)
        if steps is None or node is None:
            yield fielderrors.invalid(where, path, f"is an invalid path: {_path_problem(path)}")
            continue
        if steps[0] == "metadata":
            yield fielderrors.invalid(where, path, "must not point to fields in metadata")
        if node.type not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield fielderrors.invalid(where, path, detail)
        if steps in seen:
            yield fielderrors.duplicate(where, path)
        seen.add(steps)
    if len(seen) > _MAX_SELECTABLE:
        yield fielderrors.too_many(at, len(seen), _MAX_SELECTABLE)


def _path_problem(path: str) -> str:
    """Return why a path leads to no field."""
    opening = re.split(r"[.\[\]]", path, maxsplit=1)[0]
    if opening:
        return f"expected [ or . but got: {opening}"
    return "array notation is not allowed" if "[" in path else "does not refer to a valid field"


def _node_at(root: Schema, steps: tuple[str, ...]) -> Schema | None:
    node: Schema | None = root
    for step in steps:
        node = node.child(step) if node is not None else None
    return node


def subresource_problems(at: FieldPath, subresources: Mapping[str, Any] | None) -> Problems:
    scale = (subresources or {}).get("scale")
    if scale is None:
        return
    for field, roots, place in (
        ("specReplicasPath", (".spec.",), "under .spec"),
        ("statusReplicasPath", (".status.",), "under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "under either .spec or .status"),
    ):
        where, path = (*at, "scale", field), scale.get(field) or ""
        if not path:
            if field != "labelSelectorPath":
                yield fielderrors.required(where)
            continue
        problems = list(_path_problems(where, path))
        yield from problems
        if not problems and not path.startswith(roots):
            yield fielderrors.invalid(where, path, f"should be a json path {place}")


def _path_problems(at: FieldPath, path: str) -> Problems:
    if not path.startswith("."):
        yield fielderrors.invalid(at, path, "must be a simple json path starting with .")


def deprecation_problems(at: FieldPath, version: Mapping[str, Any]) -> Problems:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    where = (*at, "deprecationWarning")
    if not version.get("deprecated"):
        yield fielderrors.invalid(where, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > _MAX_WARNING:
        yield fielderrors.invalid(where, warning, f"must be <= {_MAX_WARNING} characters long")
    if not warning:
        yield fielderrors.invalid(where, warning, "must not be an empty string")
    bad = next((index for index, letter in enumerate(warning) if not letter.isprintable()), None)
    if bad is not None:
        index = len(warning[:bad].encode())
        detail = (
            f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        )
        yield fielderrors.invalid(where, warning, detail)


def conversion_problems(spec: Mapping[str, Any]) -> Problems:
    """Yield what is wrong with the conversion; the paths are those of the form that the server has inside."""
    at = ("spec", "conversion")
    conversion = spec.get("conversion") or {}
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    if not strategy:
        yield fielderrors.required((*at, "strategy"))
    elif strategy not in ("None", "Webhook"):
        yield fielderrors.not_supported((*at, "strategy"), strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        if webhook is not None:
            detail = "should not be set when strategy is not set to Webhook"
            if webhook.get("clientConfig") is not None:
                yield fielderrors.forbidden((*at, "webhookClientConfig"), detail)
            if webhook.get("conversionReviewVersions"):
                yield fielderrors.forbidden((*at, "conversionReviewVersions"), detail)
        return
    client = (webhook or {}).get("clientConfig")
    if client is None:
        yield fielderrors.required((*at, "webhookClientConfig"), "required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield fielderrors.required((*at, "webhookClientConfig"), "exactly one of url or service is required")
    yield from _review_problems(
        (*at, "conversionReviewVersions"), (webhook or {}).get("conversionReviewVersions")
    )
    if len(spec.get("versions") or ()) > 1:
        detail = "this server converts between versions only by None; serve one version, or convert nothing"
        yield fielderrors.forbidden((*at, "strategy"), detail)


def _review_problems(at: FieldPath, versions: Sequence[str] | None) -> Problems:
    if not versions:
        yield fielderrors.required(at)
        return
    for number, version in enumerate(versions):
        if version in versions[:number]:
            yield fielderrors.invalid((*at, number), version, "duplicate version")
    if not {"v1", "v1beta1"} & set(versions):
        yield fielderrors.invalid(at, list(versions), "must include at least one of v1, v1beta1")
