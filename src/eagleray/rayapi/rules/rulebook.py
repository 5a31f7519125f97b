"""How a rule is declared and run."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from eagleray.gates import DEFAULT_GATES, Gates
from eagleray.rayapi.problems import Problem, Severity
from kubewire.paths import FieldPath

Subject = TypeVar("Subject")


class ValidationConfig(NamedTuple):
    """What a verdict depends on besides the object."""

    gates: Gates = DEFAULT_GATES


class Scope(NamedTuple):
    """One validation: its configuration, and the rules it leaves out, also in embedded objects."""

    config: ValidationConfig = ValidationConfig()
    skip: frozenset[str] = frozenset()

    def gate(self, name: str) -> bool:
        return self.config.gates.enabled(name)


class Finding(NamedTuple):
    """Where a rule is broken, how, and what to do about it."""

    path: FieldPath
    message: str
    way_out: str


Findings = Iterator[Finding]


class Rule(NamedTuple, Generic[Subject]):
    """A rule of one kind: `check` yields a problem for each place of the subject that breaks it."""

    id: str
    kind: str
    doc: str
    check: Callable[[Subject], Iterable[Problem]]


class Rulebook(Generic[Subject]):
    """Collects the rules of a kind in the order they are written, which is the order they are checked in."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.rules: list[Rule[Subject]] = []

    def rule(
        self, name: str, *, severity: Severity = "error", stricter: bool = False
    ) -> Callable[[Callable[[Subject], Findings]], Callable[[Subject], Findings]]:
        """Make a rule of a function; its docstring's first line says what the rule asks for."""

        def enter(find: Callable[[Subject], Findings]) -> Callable[[Subject], Findings]:
            def check(subject: Subject) -> Iterator[Problem]:
                for path, message, way_out in find(subject):
                    yield Problem(name, path, message, way_out, severity, stricter)

            self._add(name, find, check)
            return find

        return enter

    def embedding(
        self, name: str
    ) -> Callable[[Callable[[Subject], Iterable[Problem]]], Callable[[Subject], Iterable[Problem]]]:
        """Make a rule of a function that passes on the problems of an embedded object as they are."""

        def enter(check: Callable[[Subject], Iterable[Problem]]) -> Callable[[Subject], Iterable[Problem]]:
            self._add(name, check, check)
            return check

        return enter

    def _add(
        self, name: str, declared: Callable[..., object], check: Callable[[Subject], Iterable[Problem]]
    ) -> None:
        doc = (declared.__doc__ or "").partition("\n")[0]
        self.rules.append(Rule(name, self.kind, doc, check))


def broken(rules: Iterable[Rule[Subject]], subject: Subject, scope: Scope) -> Iterator[Problem]:
    """Yield what the rules find, in their order."""
    for rule in rules:
        if rule.id not in scope.skip:
            yield from rule.check(subject)
