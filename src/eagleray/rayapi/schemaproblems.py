"""Schema errors in the words of this tool: what is wrong and the way out, instead of a Status cause."""

from typing import TYPE_CHECKING

from eagleray.rayapi.problems import Problem, quoted

if TYPE_CHECKING:
    from kubewire.fielderrors import FieldError
    from kubewire.paths import FieldPath

_WAYS_OUT = {
    "FieldValueRequired": "add it",
    "FieldValueNotSupported": "use one of these",
    "FieldValueDuplicate": "keep one of them",
    "FieldValueTooLong": "shorten it",
    "FieldValueTooMany": "remove some",
    "FieldValueForbidden": "remove it",
}
_SCHEMA_RULES = {
    "FieldValueRequired": "schema-required",
    "FieldValueTypeInvalid": "schema-type",
    "FieldValueNotSupported": "schema-enum",
}

# The controllers' rules read an object by its types, so they are left out where these are wrong.
BLOCKING_RULES = frozenset(("schema-required", "schema-type"))


def schema_problem(error: "FieldError", obj: object) -> Problem:
    """Return the problem that a schema error is to whoever wrote the object."""
    message = error.message
    way_out = _WAYS_OUT.get(error.reason, "correct it")
    if error.reason == "FieldValueRequired":
        message = "missing"
    elif error.reason == "FieldValueTypeInvalid":
        # `Invalid value: "string": spec.suspend in body must be of type boolean: "string"`
        wanted = message.rpartition(" must be of type ")[2].partition(":")[0]
        message = f"must be of type {wanted}"
        way_out = _right_type(_value_at(obj, error.path), wanted)
    rule = _SCHEMA_RULES.get(error.reason, "schema")
    return Problem(rule, error.path, message, way_out)


def _right_type(value: object, wanted: str) -> str:
    if wanted == "string" and isinstance(value, bool | int | float):
        return "put it in quotes"
    if isinstance(value, str) and wanted in ("integer", "number", "boolean"):
        return f"write {quoted(value)} as a plain {wanted}, without quotes"
    return f"write {'an' if wanted[:1] in 'aio' else 'a'} {wanted}"


def _value_at(value: object, path: "FieldPath") -> object:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value
