"""A definition as the API server has it inside, where messages take their paths and values from.

What all versions have in common stands once at the top there, under names of an older form: `spec.validation` is the
schema of every version. Values are printed by the names of Go's fields.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kubewire.fielderrors import Verbatim, as_json
from kubewire.paths import FieldPath

# What a version may say for itself: the field, and what it is called at the top.
_PER_VERSION = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}

# Deeper parts of a schema are cut short in messages.
_MAX_DEPTH = 64


class Place(NamedTuple):
    """Where something stands that a version, or all of them, declare."""

    path: FieldPath
    value: Any
    # The only version that declares it, or None if all do.
    version: Mapping[str, Any] | None


def declared(spec: Mapping[str, Any], field: str) -> list[Place]:
    """Return where a field of the versions stands: once at the top if all are equal, else in each version."""
    versions: Sequence[Mapping[str, Any]] = spec.get("versions") or []
    if is_common(versions, field):
        return [Place(("spec", _PER_VERSION[field]), versions[0].get(field), None)] if versions else []
    return [
        Place(("spec", "versions", number, field), version.get(field), version)
        for number, version in enumerate(versions)
    ]


def is_common(versions: Sequence[Mapping[str, Any]], field: str) -> bool:
    """Tell whether all versions say the same."""
    return all(version.get(field) == versions[0].get(field) for version in versions)


def printed_versions(spec: Mapping[str, Any]) -> Verbatim:
    """Return the versions as messages show them."""
    versions: Sequence[Mapping[str, Any]] = spec.get("versions") or []
    common = {field for field in _PER_VERSION if is_common(versions, field)}
    return Verbatim("[" + ",".join(_version(version, common) for version in versions) + "]")


def printed_schema(raw: Mapping[str, Any]) -> Verbatim:
    """Return a schema as messages show it."""
    return Verbatim(_schema(raw, 0))


def _version(version: Mapping[str, Any], common: set[str]) -> str:
    def own(field: str, write: Callable[[Any], str]) -> str:
        value = None if field in common else version.get(field)
        return "null" if value is None else write(value)

    return _struct(
        ("Name", as_json(version.get("name") or "")),
        ("Served", as_json(bool(version.get("served")))),
        ("Storage", as_json(bool(version.get("storage")))),
        ("Deprecated", as_json(bool(version.get("deprecated")))),
        ("DeprecationWarning", as_json(version.get("deprecationWarning"))),
        ("Schema", own("schema", _validation)),
        ("Subresources", own("subresources", _subresources)),
        ("AdditionalPrinterColumns", own("additionalPrinterColumns", _columns)),
        ("SelectableFields", own("selectableFields", _selectable)),
    )


def _struct(*fields: tuple[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in fields) + "}"


def _list(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda values: "[" + ",".join(map(write, values)) + "]"


def _validation(value: Mapping[str, Any]) -> str:
    raw = value.get("openAPIV3Schema")
    return _struct(("OpenAPIV3Schema", "null" if raw is None else _schema(raw, 0)))


def _subresources(value: Mapping[str, Any]) -> str:
    scale = value.get("scale")
    scale_text = "null"
    if scale is not None:
        scale_text = _struct(
            ("SpecReplicasPath", as_json(scale.get("specReplicasPath") or "")),
            ("StatusReplicasPath", as_json(scale.get("statusReplicasPath") or "")),
            ("LabelSelectorPath", as_json(scale.get("labelSelectorPath"))),
        )
    return _struct(("Status", as_json(value.get("status"))), ("Scale", scale_text))


def _column(value: Mapping[str, Any]) -> str:
    return _struct(
        ("Name", as_json(value.get("name") or "")),
        ("Type", as_json(value.get("type") or "")),
        ("Format", as_json(value.get("format") or "")),
        ("Description", as_json(value.get("description") or "")),
        ("Priority", as_json(value.get("priority") or 0)),
        ("JSONPath", as_json(value.get("jsonPath") or "")),
    )


_columns = _list(_column)
_selectable = _list(lambda value: _struct(("JSONPath", as_json(value.get("jsonPath") or ""))))

# The fields of a schema in Go's order: name, keyword, and what stands for one that is not given.
_FIELDS: tuple[tuple[str, str, str], ...] = (
    ("ID", "id", '""'),
    ("Schema", "$schema", '""'),
    ("Ref", "$ref", "null"),
    ("Description", "description", '""'),
    ("Type", "type", '""'),
    ("Nullable", "nullable", "false"),
    ("Format", "format", '""'),
    ("Title", "title", '""'),
    ("Default", "default", "null"),
    ("Maximum", "maximum", "null"),
    ("ExclusiveMaximum", "exclusiveMaximum", "false"),
    ("Minimum", "minimum", "null"),
    ("ExclusiveMinimum", "exclusiveMinimum", "false"),
    ("MaxLength", "maxLength", "null"),
    ("MinLength", "minLength", "null"),
    ("Pattern", "pattern", '""'),
    ("MaxItems", "maxItems", "null"),
    ("MinItems", "minItems", "null"),
    ("UniqueItems", "uniqueItems", "false"),
    ("MultipleOf", "multipleOf", "null"),
    ("Enum", "enum", "null"),
    ("MaxProperties", "maxProperties", "null"),
    ("MinProperties", "minProperties", "null"),
    ("Required", "required", "null"),
    ("Items", "items", "null"),
    ("AllOf", "allOf", "null"),
    ("OneOf", "oneOf", "null"),
    ("AnyOf", "anyOf", "null"),
    ("Not", "not", "null"),
    ("Properties", "properties", "null"),
    ("AdditionalProperties", "additionalProperties", "null"),
    ("PatternProperties", "patternProperties", "null"),
    ("Dependencies", "dependencies", "null"),
    ("AdditionalItems", "additionalItems", "null"),
    ("Definitions", "definitions", "null"),
    ("ExternalDocs", "externalDocs", "null"),
    ("Example", "example", "null"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", "null"),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", "false"),
    ("XIntOrString", "x-kubernetes-int-or-string", "false"),
    ("XListMapKeys", "x-kubernetes-list-map-keys", "null"),
    ("XListType", "x-kubernetes-list-type", "null"),
    ("XMapType", "x-kubernetes-map-type", "null"),
    ("XValidations", "x-kubernetes-validations", "null"),
)

GO_NAMES = {keyword: name for name, keyword, _ in _FIELDS}

_MAPS = frozenset(("definitions", "patternProperties", "properties"))
_LISTS = frozenset(("allOf", "anyOf", "oneOf"))
_EITHER = frozenset(("additionalItems", "additionalProperties"))


def _schema(raw: Mapping[str, Any], depth: int) -> str:
    if depth > _MAX_DEPTH:
        return '"…"'
    return _struct(*((name, _keyword(raw, keyword, empty, depth)) for name, keyword, empty in _FIELDS))


def _keyword(raw: Mapping[str, Any], keyword: str, empty: str, depth: int) -> str:
    value = raw.get(keyword)
    if value is None:
        return empty
    if keyword in _MAPS:
        pairs = sorted(value.items())
        return "{" + ",".join(f"{as_json(key)}:{_schema(one, depth + 1)}" for key, one in pairs) + "}"
    if keyword in _LISTS:
        return "[" + ",".join(_schema(one, depth + 1) for one in value) + "]"
    if keyword == "not":
        return _schema(value, depth + 1)
    if keyword == "items":
        if isinstance(value, list):
            schemas = "[" + ",".join(_schema(one, depth + 1) for one in value) + "]"
            return _struct(("Schema", "null"), ("JSONSchemas", schemas))
        return _struct(("Schema", _schema(value, depth + 1)), ("JSONSchemas", "null"))
    if keyword in _EITHER:
        if isinstance(value, bool):
            return _struct(("Allows", as_json(value)), ("Schema", "null"))
        return _struct(("Allows", "true"), ("Schema", _schema(value, depth + 1)))
    if keyword == "x-kubernetes-validations":
        return "[" + ",".join(map(_rule, value)) + "]"
    return as_json(value)


def _rule(rule: Mapping[str, Any]) -> str:
    return _struct(
        ("Rule", as_json(rule.get("rule") or "")),
        ("Message", as_json(rule.get("message") or "")),
        ("MessageExpression", as_json(rule.get("messageExpression") or "")),
        ("Reason", as_json(rule.get("reason"))),
        ("FieldPath", as_json(rule.get("fieldPath") or "")),
        ("OptionalOldSelf", as_json(rule.get("optionalOldSelf"))),
    )
