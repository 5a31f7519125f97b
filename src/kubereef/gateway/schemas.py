"""Words for structural schemas, as far as the kinds of Gateway API need them."""

from typing import Any

Schema = dict[str, Any]

_HOST = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def text(most: int, least: int = 0) -> Schema:
    """Return the schema of a text; 0 is no bound."""
    found: Schema = {"type": "string"}
    if least:
        found["minLength"] = least
    if most:
        found["maxLength"] = most
    return found


def integer(least: int, most: int) -> Schema:
    """Return the schema of a whole number within bounds."""
    return {"type": "integer", "format": "int32", "minimum": least, "maximum": most}


def one_of(*values: str) -> Schema:
    """Return the schema of a text with so many values."""
    return {"type": "string", "enum": list(values)}


def record(properties: dict[str, Schema], *required: str) -> Schema:
    """Return the schema of an object with named fields."""
    found: Schema = {"type": "object", "properties": properties}
    if required:
        found["required"] = sorted(required)
    return found


def array(items: Schema, most: int, least: int = 0) -> Schema:
    """Return the schema of a list that is replaced as a whole."""
    found: Schema = {"type": "array", "items": items, "maxItems": most, "x-kubernetes-list-type": "atomic"}
    if least:
        found["minItems"] = least
    return found


def listed_map(items: Schema, most: int, *keys: str, least: int = 0) -> Schema:
    """Return the schema of a list whose entries are told apart by these fields."""
    found = array(items, most, least)
    return {**found, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def labels(most: int, longest: int = 63) -> Schema:
    """Return the schema of texts by name."""
    return {"type": "object", "additionalProperties": text(longest), "maxProperties": most}


def hostname(*, wildcard: bool = True) -> Schema:
    """Return the schema of a name of a host, or of all hosts below one."""
    star = r"(\*\.)?" if wildcard else ""
    return text(253, 1) | {"pattern": f"^{star}{_HOST}$"}


def selector() -> Schema:
    """Return the schema of a label selector."""
    expression = record(
        {
            "key": text(0),
            "operator": text(0),
            "values": {"type": "array", "items": text(0), "x-kubernetes-list-type": "atomic"},
        },
        "key",
        "operator",
    )
    return record(
        {
            "matchLabels": {"type": "object", "additionalProperties": text(0)},
            "matchExpressions": {"type": "array", "items": expression, "x-kubernetes-list-type": "atomic"},
        }
    ) | {"x-kubernetes-map-type": "atomic"}


def conditions() -> Schema:
    """Return the schema of the conditions of a status."""
    condition = record(
        {
            "type": text(316),
            "status": one_of("True", "False", "Unknown"),
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "reason": text(1024, 1) | {"pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
            "message": text(32768),
        },
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    )
    return listed_map(condition, 8, "type")


def kind_schema(description: str, spec: Schema, status: Schema) -> Schema:
    """Return the schema of a whole kind."""
    plain = {"apiVersion": text(0), "kind": text(0), "metadata": {"type": "object"}}
    return record({**plain, "spec": spec, "status": status}, "spec") | {"description": description}
