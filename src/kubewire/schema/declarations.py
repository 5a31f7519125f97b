"""What a definition's schema may not declare, keyword by keyword, and whether its rules compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kubewire.fielderrors import Verbatim, as_json
from kubewire.schema.fieldpaths import leads_to_field
from kubewire.schema.nodes import compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubewire.fielderrors import FieldError
    from kubewire.schema.nodes import Schema
    from kubewire.schema.places import Place
    from kubewire.schema.rules import Rule

    Raw = Mapping[str, Any]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_OF_EVERY_RESOURCE = frozenset(("apiVersion", "kind", "metadata"))
_NOT_SUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


class _Context(NamedTuple):
    """What the surroundings of a part of the schema mean for it."""

    root: bool = False
    inside_metadata: bool = False
    no_defaults: str | None = None
    uncorrelatable: str = ""
    # How often values of this part occur in one object at most; None if the schema sets no bound.
    occurrences: int | None = 1
    rules: bool = True

    def without_old(self, place: Place) -> _Context:
        """Below here nobody can tell which old value a new one had; the outermost such place is named."""
        return self if self.uncorrelatable else self._replace(uncorrelatable=str(place))


def declaration_problems(openapi: Raw, place: Place, *, rules: bool) -> list[FieldError]:
    """Return what the declaration does wrong; `rules` tells whether to compile the rules as well."""
    rule_errors: list[FieldError] = []
    costs: list[tuple[int, Place]] = []
    errors = _visit(openapi, place, _Context(root=True, rules=rules), rule_errors, costs)
    return errors + rule_errors + _total_cost_problems(place, costs)


def _visit(
    raw: Raw, place: Place, context: _Context, rule_errors: list[FieldError], costs: list[tuple[int, Place]]
) -> list[FieldError]:
    """Return the errors of the schema, here and below; errors of rules and their costs are added to the lists.

    The rules of a part are compiled only if nothing is wrong with the part itself.
    """
    errors = [*_keyword_problems(raw, place, context)]
    for below, below_place, below_context in _below(raw, place, context):
        errors += _visit(below, below_place, below_context, rule_errors, costs)
    errors += _extension_problems(raw, place)
    errors += _list_problems(raw, place)
    # In a part with faults, nobody can tell where a path leads.
    part = None if errors else raw
    for number, rule in enumerate(raw.get("x-kubernetes-validations") or ()):
        at = place.child("x-kubernetes-validations").index(number)
        errors += _rule_text_problems(part, rule, at)
    if context.rules and not errors and raw.get("x-kubernetes-validations"):
        rule_errors += _rule_problems(raw, place, context, costs)
    return errors


def _below(raw: Raw, place: Place, context: _Context) -> Iterator[tuple[Raw, Place, _Context]]:
    inner = context._replace(root=False)
    inside = inner._replace(occurrences=_occurrences_inside(raw, context))
    if isinstance(raw.get("additionalProperties"), dict):
        values = inside
        if context.inside_metadata:
            values = inside._replace(no_defaults="inside additionalProperties applying to object metadata")
        yield raw["additionalProperties"], place.child("additionalProperties"), values
    is_resource = context.root or bool(raw.get("x-kubernetes-embedded-resource"))
    for name, below in (raw.get("properties") or {}).items():
        field = inside.without_old(place) if raw.get("x-kubernetes-map-type") == "atomic" else inside
        if is_resource and name in _OF_EVERY_RESOURCE:
            field = field._replace(inside_metadata=True)
            if context.root:
                field = field._replace(no_defaults=f"in top-level {name}")
        yield below, place.property(name), field
    unruled = inner._replace(rules=False)
    if isinstance(raw.get("not"), dict):
        yield raw["not"], place.child("not"), unruled
    for keyword in ("allOf", "oneOf", "anyOf"):
        for number, below in enumerate(raw.get(keyword) or ()):
            yield below, place.child(keyword).index(number), unruled
    items = inside if raw.get("x-kubernetes-list-type") == "map" else inside.without_old(place)
    if isinstance(raw.get("items"), dict):
        yield raw["items"], place.child("items"), items


def _occurrences_inside(raw: Raw, context: _Context) -> int | None:
    """Return how often the values inside of a list, a map or an object occur at most."""
    if raw.get("type") == "array":
        each = raw.get("maxItems")
    elif isinstance(raw.get("additionalProperties"), dict):
        each = raw.get("maxProperties")
    else:
        each = 1
    return None if each is None or context.occurrences is None else context.occurrences * max(0, each)


def _keyword_problems(raw: Raw, place: Place, context: _Context) -> Iterator[FieldError]:
    type_name = raw.get("type") or ""
    if type_name and type_name not in _TYPES:
        yield place.child("type").not_supported(type_name, _TYPES)
    if raw.get("default") is not None and context.no_defaults is not None:
        yield place.child("default").forbidden(f"must not be set {context.no_defaults}")
    for keyword in _NOT_SUPPORTED:
        if raw.get(keyword) not in (None, "", {}):
            yield place.child(keyword).forbidden(f"{keyword} is not supported")
    if type_name == "null":
        yield place.child("type").forbidden("type cannot be set to null, use nullable as an alternative")
    if isinstance(raw.get("items"), list):
        yield place.child("items").forbidden("items must be a schema object and not an array")
    if context.inside_metadata and raw.get("x-kubernetes-embedded-resource"):
        yield place.child("x-kubernetes-embedded-resource").forbidden(
            "must not be used inside of resource meta"
        )
    if raw.get("uniqueItems"):
        yield place.child("uniqueItems").forbidden(
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        )
    if raw.get("properties") and raw.get("additionalProperties") not in (None, True):
        yield place.child("additionalProperties").forbidden(
            "additionalProperties and properties are mutual exclusive"
        )


def _extension_problems(raw: Raw, place: Place) -> Iterator[FieldError]:
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        at = place.child("x-kubernetes-preserve-unknown-fields")
        yield at.invalid(False, "must be true or undefined")
    for keyword, type_name, supported in (
        ("x-kubernetes-map-type", "object", ("atomic", "granular")),
        ("x-kubernetes-list-type", "array", ("atomic", "set", "map")),
    ):
        value = raw.get(keyword)
        if value is None:
            continue
        if raw.get("type") != type_name:
            at, detail = place.child("type"), f"must be {type_name} if {keyword} is specified"
            yield at.invalid(raw["type"], detail) if raw.get("type") else at.required(detail)
        if value not in supported:
            yield place.child(keyword).not_supported(value, supported)


def _list_problems(raw: Raw, place: Place) -> Iterator[FieldError]:
    list_type, keys, items = (
        raw.get("x-kubernetes-list-type"),
        raw.get("x-kubernetes-list-map-keys"),
        raw.get("items"),
    )
    if keys and list_type != "map":
        at, detail = (
            place.child("x-kubernetes-list-type"),
            "must be map if x-kubernetes-list-map-keys is non-empty",
        )
        yield at.required(detail) if list_type is None else at.invalid(list_type, detail)
    if list_type == "set" and isinstance(items, dict) and raw.get("type") == "array":
        yield from _set_item_problems(items, place.child("items"))
    if list_type == "map":
        yield from _map_list_problems(keys or [], items, place)
    if list_type in {"set", "map"} and isinstance(items, dict) and items.get("nullable"):
        at = place.child("items").child("nullable")
        yield at.forbidden(f"cannot be nullable when x-kubernetes-list-type is {list_type}")


def _set_item_problems(items: Raw, place: Place) -> Iterator[FieldError]:
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield place.child("x-kubernetes-list-type").invalid(list_type, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield place.child("x-kubernetes-map-type").invalid(list_type, detail)


def _map_list_problems(keys: list[str], items: object, place: Place) -> Iterator[FieldError]:
    at = place.child("x-kubernetes-list-map-keys")
    if not keys:
        yield at.required("must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield place.child("items").required("must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield place.child("items").child("type").invalid(items.get("type") or "", detail)
        return
    fields = items.get("properties") or {}
    for number, key in enumerate(keys):
        if key not in fields:
            yield at.invalid(keys, "entries must all be names of item properties")
        else:
            yield from _map_key_problems(key, fields[key], items, place.child("items").property(key))
        if key in keys[:number]:
            yield at.invalid(keys, "must not contain duplicate entries")


def _map_key_problems(key: str, field: Raw, items: Raw, place: Place) -> Iterator[FieldError]:
    if field.get("type") in {"array", "object"}:
        detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        yield place.child("type").invalid(items["type"], detail)
    if key not in (items.get("required") or ()) and field.get("default") is None:
        yield place.child("default").required(
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        )
    if field.get("nullable"):
        yield place.child("nullable").forbidden(
            "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
        )


def _rule_text_problems(part: Raw | None, rule: Raw, place: Place) -> Iterator[FieldError]:
    """Yield what is wrong with a rule before anybody compiles it."""
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        yield place.child("rule").required("rule is not specified")
    elif message and not message.strip():
        yield place.child("message").invalid(message, "must be non-empty if specified")
    elif _has_line_breaks(message.strip()):
        yield place.child("message").invalid(message, "must not contain line breaks")
    elif _has_line_breaks(text) and not message:
        yield place.child("message").required("message must be specified if rule contains line breaks")
    expression = rule.get("messageExpression")
    if expression and not expression.strip():
        yield place.child("messageExpression").required("messageExpression must be non-empty if specified")
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield place.child("reason").not_supported(reason, _REASONS)
    field_path = rule.get("fieldPath")
    if field_path:
        at = place.child("fieldPath")
        if not field_path.strip():
            yield at.invalid(field_path, "must be non-empty if specified")
        if _has_line_breaks(field_path):
            yield at.invalid(field_path, "must not contain line breaks")
        if part is not None and not leads_to_field(compile_schema(part), field_path):
            yield at.invalid(field_path, "must be a valid path")


def _has_line_breaks(text: str) -> bool:
    return "\n" in text or "\r" in text


def _rule_problems(
    raw: Raw, place: Place, context: _Context, costs: list[tuple[int, Place]]
) -> Iterator[FieldError]:
    """Yield which rules of this part do not compile, are too expensive, or need an old value that none can find."""
    from kubewire.schema.rules import rules_of  # loads the compiler of rules

    schema = compile_schema(raw)
    for number, rule in enumerate(rules_of(schema, resource=context.root)):
        at = place.child("x-kubernetes-validations").index(number)
        yield from _cost_problems(rule, schema, at, context, costs)
        if rule.problem:
            yield at.child("rule").invalid(_as_go(rule), rule.problem)
        if rule.message_problem:
            yield at.child("messageExpression").invalid(_as_go(rule), rule.message_problem)
        if rule.uses_old:
            if context.uncorrelatable:
                yield at.child("rule").invalid(
                    rule.raw["rule"],
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within"
                    f" {context.uncorrelatable}",
                )
        elif rule.raw.get("optionalOldSelf") is not None and not rule.problem:
            at_option = at.child("optionalOldSelf")
            yield at_option.invalid(
                rule.raw["optionalOldSelf"], "may not be set if oldSelf is not used in rule"
            )


def _cost_problems(
    rule: Rule, schema: Schema, place: Place, context: _Context, costs: list[tuple[int, Place]]
) -> Iterator[FieldError]:
    from kubewire.schema.costs import PER_RULE_LIMIT, estimated_cost, excess, largest_count

    times = largest_count(schema) if context.occurrences is None else context.occurrences
    for keyword, subject, program, count in (
        ("rule", "estimated rule cost", rule.program, times),
        ("messageExpression", "estimated messageExpression cost", rule.message_program, 1),
    ):
        if program is None:
            continue
        cost = count * estimated_cost(program.source, schema)
        costs.append((cost, place.child(keyword)))
        if cost > PER_RULE_LIMIT:
            yield place.child(keyword).forbidden(excess(subject, cost, PER_RULE_LIMIT))


# A total that is too high is blamed on so many rules at most, and on none below a hundredth of the limit.
_BLAMED = 4


def _total_cost_problems(place: Place, costs: list[tuple[int, Place]]) -> list[FieldError]:
    if not costs:
        return []
    from kubewire.schema.costs import PER_DEFINITION_LIMIT, excess

    total = sum(cost for cost, _ in costs)
    if total <= PER_DEFINITION_LIMIT:
        return []
    dearest = sorted(costs, key=lambda entry: -entry[0])[:_BLAMED]
    detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    problems = [at.forbidden(detail) for cost, at in dearest if cost >= PER_DEFINITION_LIMIT // 100]
    subject = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    return [*problems, place.forbidden(excess(subject, total, PER_DEFINITION_LIMIT))]


def _as_go(rule: Rule) -> Verbatim:
    """Return the rule as the server prints it: every field, in the order of its declaration in Go."""
    raw = rule.raw
    fields = {
        "Rule": raw.get("rule") or "",
        "Message": raw.get("message") or "",
        "MessageExpression": raw.get("messageExpression") or "",
        "Reason": raw.get("reason"),
        "FieldPath": raw.get("fieldPath") or "",
        "OptionalOldSelf": raw.get("optionalOldSelf"),
    }
    return Verbatim("{" + ",".join(f'"{name}":{as_json(value)}' for name, value in fields.items()) + "}")
