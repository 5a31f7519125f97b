"""Validation of a value against a schema: types, bounds, combinations, lists that are sets or maps, then rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire import fielderrors
from kubewire.fielderrors import OMITTED
from kubewire.schema.checks import quoted_path, type_problem
from kubewire.schema.correlation import UNRELATED, OldItems, old_entry, unchanged
from kubewire.schema.findings import NOWHERE, Findings, spelled
from kubewire.schema.nodes import MAX_DEPTH, TooDeep

if TYPE_CHECKING:
    from kubewire.fielderrors import FieldError
    from kubewire.paths import FieldPath
    from kubewire.schema.nodes import Schema

# After one of these a rule could meet a value it was not written for, so rules are left out.
_BLOCKS_RULES = frozenset(
    (
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    )
)


def validate(
    schema: Schema,
    obj: object,
    old: object = None,
    *,
    cel: bool = True,
    part: str = "",
    tolerated: bool = False,
) -> list[FieldError]:
    """Return what is wrong with an object, as a Kubernetes API server says it.

    With `old`, the object is an update of it: what was wrong before and is unchanged is let pass, and rules that
    compare with the old value are evaluated. `cel=False` leaves rules out. `part` names the only field that is
    looked at besides them, as in an update of a status. `tolerated` also returns the rules that an unchanged value
    may go on breaking. Never raises for a value made of dicts, lists, texts,
    numbers, booleans and None.
    """
    try:
        errors = _part_errors(schema, obj, old, part) if part else structure_errors(schema, obj, old)
        if cel:
            errors += _rule_errors(schema, obj, old, errors)
        return errors if tolerated else [error for error in errors if not error.tolerated]
    except TooDeep as problem:
        return [fielderrors.invalid((), OMITTED, str(problem), NOWHERE)]


def _part_errors(schema: Schema, obj: object, old: object, part: str) -> list[FieldError]:
    node = schema.field(part)
    if node is None or not isinstance(obj, dict) or part not in obj:
        return []
    before = old.get(part) if isinstance(old, dict) else None
    return structure_errors(node, obj[part], before, (part,))


def structure_errors(
    schema: Schema, value: object, old: object = None, base: FieldPath = (), base_text: str = ""
) -> list[FieldError]:
    """Return what is wrong with a value apart from rules; `base`, written `base_text`, is where it stands."""
    walk = _Walk(schema, Findings(base, base_text))
    walk.visit(schema, value, (), UNRELATED if old is None else old)
    errors = walk.findings.errors + walk.resources
    if walk.duplicates and not (old is not None and _has_duplicates(schema, old)):
        errors += walk.duplicates
    return errors


def _rule_errors(schema: Schema, obj: object, old: object, errors: list[FieldError]) -> list[FieldError]:
    if any(error.reason in _BLOCKS_RULES for error in errors):
        detail = (
            "some validation rules were not checked because the object was invalid; correct the existing errors"
            " to complete validation"
        )
        return [fielderrors.invalid((), None, detail, NOWHERE)] if schema.has_rules else []
    from kubewire.schema.rules import broken_rules  # rules are not free to load

    return broken_rules(schema, obj, old)


def _has_duplicates(schema: Schema, old: object) -> bool:
    """Whether the old object already broke its sets and maps, in which case it may go on doing so."""
    walk = _Walk(schema, Findings())
    walk.visit(schema, old, (), UNRELATED)
    return bool(walk.duplicates)


class _Walk:
    """One pass over an object, its schema and, where both can be told to be the same thing, its old state."""

    __slots__ = ("duplicates", "findings", "resources", "schema")

    def __init__(self, schema: Schema, findings: Findings) -> None:
        self.schema = schema
        self.findings = findings
        # Embedded resources and lists are judged by other walks in the server, so their errors come later.
        self.resources: list[FieldError] = []
        self.duplicates: list[FieldError] = []

    def visit(self, node: Schema, value: object, path: FieldPath, old: object) -> None:
        if len(path) > MAX_DEPTH:
            raise TooDeep
        errors = self.findings.errors
        before = len(errors)
        if type(value) is not node.expected:
            problem = type_problem(node, value)
            if problem is not None:
                self.findings.wrong_type(path, *problem)
        if node.combined and type(value) not in node.exempt:
            self._combine(node, value, path)
        for check in node.checks:
            check(value, path, self.findings)
        if isinstance(value, dict):
            self._visit_object(node, value, path, old)
        elif isinstance(value, list):
            self._visit_list(node, value, path, old)
        if len(errors) > before and old is not UNRELATED and unchanged(node, value, old):
            del errors[before:]  # it was as wrong before, and nobody touched it

    def _visit_object(self, node: Schema, value: dict[str, object], path: FieldPath, old: object) -> None:
        raw = node.raw
        findings = self.findings
        if "minProperties" in raw and len(value) < raw["minProperties"]:
            findings.invalid(path, len(value), f"should have at least {raw['minProperties']} properties")
        if "maxProperties" in raw and len(value) > raw["maxProperties"]:
            findings.too_many(path, len(value), raw["maxProperties"])
        closed = raw.get("additionalProperties") is False
        for key, entry in value.items():
            child = node.child(key)
            if child is not None and not (child.trivial and type(entry) is child.expected):
                if closed and node.field(key) is None:
                    findings.forbidden_property(path, key)
                self.visit(child, entry, (*path, key), old_entry(old, key, path))
        for name in node.required:
            if name not in value:
                findings.required((*path, name))
        if node.embedded:
            self._visit_resource(value, path)

    def _visit_resource(self, value: dict[str, object], path: FieldPath) -> None:
        from kubewire.schema.resources import resource_problems  # embedded resources are rare

        for step, make in resource_problems(value):
            whole = (*path, step)
            written = spelled(self.schema, whole)
            self.resources.append(make(self.findings.base + whole, written))

    def _visit_list(self, node: Schema, value: list[object], path: FieldPath, old: object) -> None:
        raw = node.raw
        findings = self.findings
        items = node.items
        if items is not None:
            olds = OldItems(node, old)
            for index, item in enumerate(value):
                if not (items.trivial and type(item) is items.expected):
                    self.visit(items, item, (*path, index), olds.like(item))
        if "minItems" in raw and len(value) < raw["minItems"]:
            findings.invalid(path, len(value), f"should have at least {raw['minItems']} items")
        if "maxItems" in raw and len(value) > raw["maxItems"]:
            findings.too_many(path, len(value), raw["maxItems"])
        if node.list_type in {"set", "map"} or raw.get("uniqueItems"):
            self._visit_unique(node, value, path)

    def _visit_unique(self, node: Schema, value: list[object], path: FieldPath) -> None:
        from kubewire.schema.uniqueness import list_problems, repeated  # most lists are neither sets nor maps

        if node.raw.get("uniqueItems") and repeated(value):
            self.findings.invalid(path, "", "shouldn't contain duplicates")
        for index, make in list_problems(node, value):
            whole = (*path, index)
            self.duplicates.append(make(self.findings.base + whole, spelled(self.schema, whole)))

    def _combine(self, node: Schema, value: object, path: FieldPath) -> None:
        findings = self.findings
        if "anyOf" in node.raw:
            outcomes = [self._alone(branch, value, path) for branch in node.branches("anyOf")]
            if all(outcomes):
                findings.general(path, f"{quoted_path(path)} must validate at least one schema (anyOf)")
                findings.errors.extend(_fewest(outcomes))
        if "oneOf" in node.raw:
            outcomes = [self._alone(branch, value, path) for branch in node.branches("oneOf")]
            valid = sum(not errors for errors in outcomes)
            if valid != 1:
                found = f"Found {valid} valid alternatives" if valid else "Found none valid"
                whole = f"{quoted_path(path)} must validate one and only one schema (oneOf). {found}"
                findings.general(path, whole)
                if not valid:
                    findings.errors.extend(_fewest(outcomes))
        if "allOf" in node.raw:
            outcomes = [self._alone(branch, value, path) for branch in node.branches("allOf")]
            for errors in outcomes:
                findings.errors.extend(errors)
            if any(outcomes):
                none = ". None validated" if all(outcomes) else ""
                findings.general(path, f"{quoted_path(path)} must validate all the schemas (allOf){none}")
        if "not" in node.raw and not self._alone(node.branches("not")[0], value, path):
            findings.general(path, f"{quoted_path(path)} must not validate the schema (not)")

    def _alone(self, branch: Schema, value: object, path: FieldPath) -> list[FieldError]:
        """Return what one branch of a combination says of the value."""
        walk = _Walk(self.schema, Findings(self.findings.base, self.findings.base_text))
        walk.visit(branch, value, path, UNRELATED)
        return walk.findings.errors


def _fewest(outcomes: list[list[FieldError]]) -> list[FieldError]:
    return min(outcomes, key=len) if outcomes else []
