"""Whether a schema is structural: every field has its type outside of allOf, anyOf, oneOf and not.

Only then do pruning and defaulting know what each value is. `structural_problems` goes on from there to all
that an API server asks of the schema of a new custom resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubewire.schema.declarations import declaration_problems
from kubewire.schema.defaultchecks import default_problems
from kubewire.schema.nodes import INT_OR_STRING
from kubewire.schema.patterns import pattern_problem
from kubewire.schema.places import Place
from kubewire.schema.shapes import shape_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubewire.fielderrors import FieldError

    Raw = Mapping[str, Any]

# A schema with one of these is not even looked at as a structural one; the declaration is refused for them.
_UNSUPPORTED = (
    "$ref",
    "$schema",
    "additionalItems",
    "definitions",
    "dependencies",
    "id",
    "patternProperties",
)

_JUNCTORS = ("anyOf", "allOf", "oneOf")

_MISSING_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}

# What may not stand inside of a junctor, with the words for it.
_FORBIDDEN_INSIDE = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "externalDocs": "must be undefined to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_problems(openapi: Raw, at: str = "") -> list[FieldError]:
    """Return why an API server would refuse a definition with this schema; `at` is where the schema stands."""
    root = Place(at)
    problems = shape_problems(openapi, root)
    if problems:
        return problems
    unsupported = _first_unsupported(openapi)
    if not unsupported:
        problems = sorted(
            [*_invariants(openapi, "root", root), *_incomplete(openapi, openapi, root, root)], key=str
        )
        problems = problems or default_problems(openapi, root)
    problems += declaration_problems(openapi, root, rules=not problems and not unsupported)
    if not problems and unsupported:
        problems = [root.invalid("", f"OpenAPIV3Schema '{unsupported.lstrip('$')}' is not supported")]
    return problems


def _first_unsupported(raw: Raw) -> str:
    for keyword in _UNSUPPORTED:
        if raw.get(keyword) not in (None, "", {}):
            return keyword
    return next(filter(None, map(_first_unsupported, _below(raw))), "")


def _below(raw: Raw) -> Iterator[Raw]:
    yield from (raw.get("properties") or {}).values()
    for keyword in ("items", "additionalProperties", "not"):
        if isinstance(raw.get(keyword), dict):
            yield raw[keyword]
    for keyword in _JUNCTORS:
        yield from raw.get(keyword) or ()


def _invariants(raw: Raw, level: str, place: Place) -> Iterator[FieldError]:
    """Yield what keeps this part of the schema, on the spine of fields, items and values, from being structural."""
    if raw.get("type") == "array" and raw.get("items") is None:
        yield place.child("items").required("must be specified")
    if isinstance(raw.get("items"), dict):
        yield from _invariants(raw["items"], "item", place.child("items"))
    for name, below in (raw.get("properties") or {}).items():
        yield from _invariants(below, "field", place.property(name))
    additional = raw.get("additionalProperties")
    if additional is not None:
        if level == "root":
            yield place.child("additionalProperties").forbidden("must not be used at the root")
        if isinstance(additional, dict):
            yield from _invariants(additional, "field", place.child("additionalProperties"))
    yield from _extension_conflicts(raw, place)
    in_all_of = (raw.get("allOf") or [{}])[0]
    skipped = {
        "anyOf" if raw.get("anyOf") == INT_OR_STRING else "",
        "allOf" if in_all_of.get("anyOf") == INT_OR_STRING else "",
    }
    yield from _value_validation(raw, place, skipped)
    yield from _type_problems(raw, level, place)
    yield from _metadata_problems(raw, level, place)


def _extension_conflicts(raw: Raw, place: Place) -> Iterator[FieldError]:
    if raw.get("x-kubernetes-int-or-string"):
        for keyword in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if raw.get(keyword):
                yield place.child(keyword).invalid(
                    True, "must be false if x-kubernetes-int-or-string is true"
                )


def _type_problems(raw: Raw, level: str, place: Place) -> Iterator[FieldError]:
    type_name = raw.get("type") or ""
    embedded = raw.get("x-kubernetes-embedded-resource")
    if embedded and type_name != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        at = place.child("type")
        yield at.invalid(type_name, detail) if type_name else at.required(detail)
    elif (
        not type_name
        and not raw.get("x-kubernetes-int-or-string")
        and not raw.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield place.child("type").required(_MISSING_TYPE[level])
    if embedded and raw.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        yield place.child("additionalProperties").forbidden(detail)
    if level == "root" and type_name and type_name != "object":
        yield place.child("type").invalid(type_name, "must be object at the root")
    if embedded and not raw.get("x-kubernetes-preserve-unknown-fields") and not raw.get("properties"):
        yield place.child("properties").required(
            "must not be empty if x-kubernetes-embedded-resource is true without"
            " x-kubernetes-preserve-unknown-fields"
        )


def _metadata_problems(raw: Raw, level: str, place: Place) -> Iterator[FieldError]:
    fields = raw.get("properties") or {}
    is_resource = level == "root" or bool(raw.get("x-kubernetes-embedded-resource"))
    for name, type_name in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        if is_resource and name in fields and fields[name].get("type") != type_name:
            at = place.property(name).child("type")
            yield at.invalid(fields[name].get("type") or "", f"must be {type_name}")
    if level == "root" and "metadata" in fields and not _restricts_only_names(fields["metadata"]):
        yield place.property("metadata").forbidden(
            "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )


def _restricts_only_names(metadata: Raw) -> bool:
    """Whether a schema of metadata says nothing of it but how its name and generateName look."""
    meaningful = {keyword for keyword, value in metadata.items() if value not in (None, "", [], {}, False)}
    if not meaningful <= {"type", "default", "properties"}:
        return False
    return set(metadata.get("properties") or ()) <= {"name", "generateName"}


def _value_validation(raw: Raw, place: Place, skipped: set[str]) -> Iterator[FieldError]:
    """Yield what is wrong inside of this part's junctors; `skipped` are those that spell int-or-string."""
    for keyword in _JUNCTORS:
        for number, below in enumerate(raw.get(keyword) or ()):
            if keyword == "anyOf" and "anyOf" in skipped:
                continue
            first_of_all = keyword == "allOf" and number == 0 and "allOf" in skipped
            inner = {"anyOf"} if first_of_all else set()
            yield from _nested(below, place.child(keyword).index(number), inner)
    if isinstance(raw.get("not"), dict):
        yield from _nested(raw["not"], place.child("not"), set())
    if raw.get("pattern") and (problem := pattern_problem(raw["pattern"])):
        detail = f"must be a valid regular expression, but isn't: {problem}"
        yield place.child("pattern").invalid(raw["pattern"], detail)


def _nested(raw: Raw, place: Place, skipped: set[str]) -> Iterator[FieldError]:
    yield from _value_validation(raw, place, skipped)
    if isinstance(raw.get("items"), dict):
        yield from _nested(raw["items"], place.child("items"), set())
    for name, below in (raw.get("properties") or {}).items():
        yield from _nested(below, place.property(name), set())
    for keyword, detail in _FORBIDDEN_INSIDE.items():
        if raw.get(keyword) not in (None, "", [], False):
            yield place.child(keyword).forbidden(detail)
    if "metadata" in (raw.get("properties") or {}):
        yield place.property("metadata").forbidden("must not be specified in a nested context")


def _incomplete(nested: Raw, spine: Raw | None, at: Place, nested_at: Place) -> Iterator[FieldError]:
    """Yield the fields and items that stand inside of the root's junctors and not on the spine.

    Kubernetes asks this of the root's junctors only.
    """
    if spine is None:
        yield at.required(f"because it is defined in {nested_at}")
        return
    if isinstance(nested.get("not"), dict):
        yield from _incomplete_branch(nested["not"], spine, at, nested_at.child("not"))
    for keyword in ("allOf", "anyOf", "oneOf"):
        for number, below in enumerate(nested.get(keyword) or ()):
            yield from _incomplete_branch(below, spine, at, nested_at.child(keyword).index(number))


def _incomplete_branch(branch: Raw, spine: Raw, at: Place, branch_at: Place) -> Iterator[FieldError]:
    yield from _incomplete(branch, spine, at, branch_at)
    if isinstance(branch.get("items"), dict):
        items, items_at = spine.get("items"), at.child("items")
        if items is None:
            yield items_at.required(f"because it is defined in {branch_at.child('items')}")
        else:
            yield from _incomplete_branch(branch["items"], items, items_at, branch_at.child("items"))
    for name, below in (branch.get("properties") or {}).items():
        field = (spine.get("properties") or {}).get(name)
        if field is None:
            yield at.property(name).required(f"because it is defined in {branch_at.property(name)}")
        else:
            yield from _incomplete_branch(below, field, at.property(name), branch_at.property(name))
