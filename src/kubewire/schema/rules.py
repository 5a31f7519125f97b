"""Rules written in CEL: evaluating the x-kubernetes-validations of every part of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubewire import fielderrors
from kubewire.fielderrors import OMITTED
from kubewire.gotext import quote
from kubewire.paths import show
from kubewire.schema.correlation import UNRELATED, OldItems, old_entry, unchanged
from kubewire.schema.fieldpaths import parsed_field_path
from kubewire.schema.findings import spelled
from kubewire.schema.nodes import MAX_DEPTH, TooDeep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kubewire.cel import Budget, CelType, CompileError, CostExceeded, EvaluationError, Program
    from kubewire.fielderrors import FieldError
    from kubewire.paths import FieldPath
    from kubewire.schema.nodes import Schema

    # A value that has an old state: the schema of both, the value, and what it was.
    _Related = tuple[Schema, object, object]

_LONGEST_MESSAGE = 5 * 1024


def broken_rules(schema: Schema, obj: object, old: object = None) -> list[FieldError]:
    """Return what the rules of a whole object say of it; `old` is the object that it updates."""
    evaluation = _Evaluation(schema)
    evaluation.visit(schema, obj, (), UNRELATED if old is None else old, None)
    return evaluation.errors


class Rule:
    """One rule of a schema, compiled, or with the reason why it cannot be."""

    __slots__ = ("message_problem", "message_program", "optional_old", "problem", "program", "raw", "steps")

    def __init__(self, raw: Mapping[str, Any], self_type: CelType) -> None:
        from kubewire.cel import STRING, CompileError, compile_rule

        self.raw = raw
        self.optional_old = bool(raw.get("optionalOldSelf"))
        self.steps = parsed_field_path(raw.get("fieldPath") or "") or ()
        self.program: Program | None = None
        self.problem = ""
        self.message_program: Program | None = None
        self.message_problem = ""
        if str(raw.get("rule") or "").strip():
            try:
                self.program = compile_rule(
                    raw["rule"], self_type, "optional" if self.optional_old else "required"
                )
            except CompileError as error:
                self.problem = _why(error, "")
        if raw.get("messageExpression"):
            try:
                self.message_program = compile_rule(
                    raw["messageExpression"], self_type, "required", result=STRING
                )
            except CompileError as error:
                self.message_problem = _why(error, "messageExpression ")

    @property
    def uses_old(self) -> bool:
        return self.program is not None and self.program.uses_old_self

    @property
    def name(self) -> str:
        """What errors call the rule: its message, or else the rule itself."""
        return str(self.raw.get("message") or self.raw["rule"]).strip()

    @property
    def complaint(self) -> str:
        """What is said when the rule is broken."""
        return self.name if self.raw.get("message") else f"failed rule: {self.name}"


def _why(error: CompileError, subject: str) -> str:
    if error.message.startswith("cel expression must evaluate to"):
        return error.message.replace("cel expression ", subject) if subject else error.message
    return f"{subject}compilation failed: {error}"


def rules_of(node: Schema, *, resource: bool) -> Sequence[Rule]:
    """Return the node's rules; they are compiled once."""
    if node.compiled_rules is None:
        from kubewire.schema.celtypes import cel_type

        self_type = cel_type(node, resource=resource)
        node.compiled_rules = [Rule(raw, self_type) for raw in node.rules]
    return node.compiled_rules


class _Evaluation:
    """One pass over an object; `over` is set once no further rule may be evaluated."""

    __slots__ = ("budget", "errors", "over", "schema")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.errors: list[FieldError] = []
        self.budget: Budget | None = None
        self.over = False

    def visit(
        self,
        node: Schema,
        value: object,
        path: FieldPath,
        old: object,
        ancestor: _Related | None,
    ) -> None:
        """Evaluate the rules here and below; `ancestor` is the nearest value above with a known old state."""
        if len(path) > MAX_DEPTH:
            raise TooDeep
        if value is None or self.over:
            return
        if node.rules:
            self._evaluate(node, value, path, old, ancestor)
        if old is not UNRELATED:
            ancestor = (node, value, old)
        if isinstance(value, dict):
            olds = old if node.map_type != "atomic" else UNRELATED
            for key, entry in value.items():
                child = node.child(key)
                if child is not None and (child.rules or isinstance(entry, (dict, list))):
                    self.visit(child, entry, (*path, key), old_entry(olds, key, path), ancestor)
        elif isinstance(value, list) and node.items is not None:
            items, old_items = node.items, OldItems(node, old)
            for index, item in enumerate(value):
                self.visit(items, item, (*path, index), old_items.like(item), ancestor)

    def _evaluate(
        self,
        node: Schema,
        value: object,
        path: FieldPath,
        old: object,
        ancestor: _Related | None,
    ) -> None:
        from kubewire.cel import ABSENT, Budget  # here, because most objects meet no rule at all

        self.budget = self.budget or Budget()
        was = ABSENT if old is UNRELATED or old is None else old
        related = ancestor if old is UNRELATED else (node, value, old)
        for rule in rules_of(node, resource=not path or node.embedded):
            if self.over:
                return
            if rule.problem:
                self._report(path, node.type, f"rule compile error: {rule.problem}")
                continue
            if rule.program is None or (rule.uses_old and was is ABSENT and not rule.optional_old):
                continue
            if self._holds(rule, node, value, path, was):
                continue
            # What was as wrong before, and nobody touched, is only warned about.
            tolerated = not rule.uses_old and related is not None and unchanged(*related)
            self._report_broken(rule, node, value, path, was, tolerated=tolerated)

    def _holds(self, rule: Rule, node: Schema, value: object, path: FieldPath, was: object) -> bool:
        """Whether the value obeys the rule; a rule that cannot be evaluated is reported here and holds."""
        from kubewire.cel import CostExceeded, EvaluationError

        assert rule.program is not None
        try:
            return bool(rule.program.evaluate(value, was, self.budget))
        except CostExceeded as error:
            self.over = True
            self._report(path, node.type, _too_expensive(error, rule))
        except EvaluationError as error:
            self._report(path, node.type, _failure(error, rule))
        return True

    def _report(self, path: FieldPath, value: object, detail: str) -> None:
        self.errors.append(fielderrors.invalid(path, value, detail, self._written(path)))

    def _written(self, path: FieldPath) -> str:
        text = spelled(self.schema, path)
        return "" if text == show(path) else text

    def _report_broken(
        self, rule: Rule, node: Schema, value: object, path: FieldPath, was: object, *, tolerated: bool
    ) -> None:
        detail = self._computed_message(rule, node, value, path, was)
        if self.over:
            return
        detail = detail or rule.complaint
        written = self._written(path)
        if rule.steps:
            path = (*path, *rule.steps)
            written = self._written(path)
        shown = OMITTED if isinstance(value, (dict, list)) else value
        reason = rule.raw.get("reason")
        if reason == "FieldValueForbidden":
            error = fielderrors.forbidden(path, detail, written)
        elif reason == "FieldValueRequired":
            error = fielderrors.required(path, detail, written)
        elif reason == "FieldValueDuplicate":
            error = fielderrors.duplicate(path, shown, written)
        else:
            error = fielderrors.invalid(path, shown, detail, written)
        self.errors.append(error._replace(tolerated=tolerated))

    def _computed_message(self, rule: Rule, node: Schema, value: object, path: FieldPath, was: object) -> str:
        """Return what the rule's messageExpression says; nothing if it fails or says nothing fit to print."""
        from kubewire.cel import CostExceeded, EvaluationError

        if rule.message_program is None:
            return ""
        try:
            text = str(rule.message_program.evaluate(value, was, self.budget)).strip()
        except CostExceeded as error:
            self.over = True
            self._report(path, node.type, _message_too_expensive(error, rule))
            return ""
        except EvaluationError:
            return ""  # Kubernetes, too, falls back to the fixed message and says nothing of it
        return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE else text


def _failure(error: EvaluationError, rule: Rule) -> str:
    if error.message.startswith("no such overload"):
        return (
            f"'{error.message}': call arguments did not match a supported operator, function or macro signature for"
            f" rule: {rule.name}"
        )
    return f"{error.message} evaluating rule: {rule.name}"


def _too_expensive(error: CostExceeded, rule: Rule) -> str:
    if error.of_budget:
        return "validation failed due to running out of cost budget, no further validation rules will be run"
    return (
        f"'{error.message}': no further validation rules will be run due to call cost exceeds limit for rule:"
        f" {rule.name}"
    )


def _message_too_expensive(error: CostExceeded, rule: Rule) -> str:
    if error.of_budget:
        return (
            "messageExpression evaluation failed due to running out of cost budget, no further validation rules"
            " will be run"
        )
    expression = quote(rule.raw["messageExpression"])
    return f"no further validation rules will be run due to call cost exceeds limit for messageExpression: {expression}"
