"""JSONPath as kubectl writes it: how definitions say where a column or a selectable field finds its value.

`.spec.size`, `.metadata.labels['app.kubernetes.io/name']`, `.status.conditions[?(@.type=="Ready")].status`,
`.spec.parts[0:2].name`, `.spec.parts[*].name`, `..name`. A path that leads nowhere finds nothing.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# Whoever writes a definition writes its paths, but whoever writes an object decides how much they find.
_MAX_FOUND = 10_000
_MAX_LENGTH = 4096

_NAME = re.compile(r"((?:[^.\[\]\\{}()'\"\s=!<>]|\\.)+)")
_SLICE = re.compile(r"\s*(-?\d+)?\s*(:)?\s*(-?\d+)?\s*(?::\s*(-?\d+)\s*)?")
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""")
_COMPARISON = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")

Step = Callable[[Any], Iterator[Any]]


class BadPath(ValueError):
    """The text is no path."""


class JsonPath:
    """A compiled path."""

    __slots__ = ("_steps",)

    def __init__(self, text: str) -> None:
        if len(text) > _MAX_LENGTH:
            raise BadPath("the path is too long")
        reader = _Reader(text)
        self._steps = reader.steps()
        if not reader.is_done:
            raise BadPath(f"unexpected {reader.rest!r}")

    def find(self, value: object) -> list[Any]:
        """Return the values that the path leads to, in order."""
        return _followed(self._steps, value)

    def first(self, value: object) -> Any:
        """Return the first value that the path leads to, or None."""
        found = self.find(value)
        return found[0] if found else None


def _followed(steps: tuple[Step, ...], value: object) -> list[Any]:
    found: list[Any] = [value]
    for step in steps:
        following: list[Any] = []
        for one in found:
            for below in step(one):
                following.append(below)
                if len(following) >= _MAX_FOUND:
                    return following
        found = following
    return found


class _Literal(NamedTuple):
    value: object


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at >= len(self._text)

    @property
    def rest(self) -> str:
        return self._text[self._at : self._at + 20]

    def steps(self) -> tuple[Step, ...]:
        """Read steps as long as there are any."""
        steps: list[Step] = []
        while not self.is_done:
            if self._took(".."):
                steps.append(_everything_below)
                if self.rest[:1] not in ("[", "*"):
                    steps.append(_field(self._name()))
            elif any(map(self._took, (".*", "*"))):
                steps.append(_all_children)
            elif self._took("."):
                # A lone dot is the object itself.
                if not self.rest or self.rest[0] in "[ )=!<>":
                    continue
                steps.append(_field(self._name()))
            elif self._took("["):
                steps.append(self._bracket())
            else:
                break
        return tuple(steps)

    def _took(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _name(self) -> str:
        found = self._match(_NAME)
        if found is None:
            raise BadPath(f"a name is missing before {self.rest!r}")
        return _unescaped(found[1])

    def _bracket(self) -> Step:
        if self._took("?("):
            step: Step = self._filter()
            self._expect(")")
        elif self._took("*"):
            step = _all_children
        else:
            step = _union(self._subscripts())
        self._expect("]")
        return step

    def _expect(self, text: str) -> None:
        while self.rest[:1] == " ":
            self._at += 1
        if not self._took(text):
            raise BadPath(f"{text!r} is missing before {self.rest!r}")

    def _subscripts(self) -> list[Step]:
        steps = [self._subscript()]
        while self._took(","):
            steps.append(self._subscript())
        return steps

    def _subscript(self) -> Step:
        quoted = self._match(_QUOTED)
        if quoted is not None:
            return _field(_unescaped(quoted[1] if quoted[1] is not None else quoted[2]))
        found = self._match(_SLICE)
        if found is None or not found[0].strip():
            raise BadPath(f"a subscript is missing before {self.rest!r}")
        if found[2] is None:
            return _item(int(found[1]))
        start, stop, stride = (None if number is None else int(number) for number in found.group(1, 3, 4))
        return _items(start, stop, stride)

    def _filter(self) -> Step:
        left = self._operand()
        comparison = self._match(_COMPARISON)
        if comparison is None:
            if isinstance(left, _Literal):
                raise BadPath("a filter compares something with something")
            return _having(left)
        return _comparing(left, comparison[1], self._operand())

    def _operand(self) -> "tuple[Step, ...] | _Literal":
        while self.rest[:1] == " ":
            self._at += 1
        quoted = self._match(_QUOTED)
        if quoted is not None:
            return _Literal(_unescaped(quoted[1] if quoted[1] is not None else quoted[2]))
        if self._took("@"):
            return self.steps()
        for word, value in (("true", True), ("false", False)):
            if self._took(word):
                return _Literal(value)
        number = self._match(_NUMBER)
        if number is None:
            raise BadPath(f"cannot compare with {self.rest!r}")
        return _Literal(float(number[0]) if number[1] else int(number[0]))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _item(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _items(start: int | None, stop: int | None, stride: int | None) -> Step:
    if stride is not None and stride <= 0:
        raise BadPath("a step must be above 0")

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[start:stop:stride]

    return step


def _union(steps: list[Step]) -> Step:
    return steps[0] if len(steps) == 1 else lambda value: (one for step in steps for one in step(value))


def _all_children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (value[key] for key in sorted(value))
    elif isinstance(value, list):
        yield from value


def _everything_below(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(list(_all_children(one))))


def _having(path: tuple[Step, ...]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        return (one for one in _all_children(value) if _followed(path, one))

    return step


def _comparing(
    left: "tuple[Step, ...] | _Literal", operator: str, right: "tuple[Step, ...] | _Literal"
) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for one in _all_children(value):
            first, second = _operand_values(left, one), _operand_values(right, one)
            if len(first) == 1 and len(second) == 1 and _holds(first[0], operator, second[0]):
                yield one

    return step


def _operand_values(operand: "tuple[Step, ...] | _Literal", value: Any) -> list[Any]:
    return [operand.value] if isinstance(operand, _Literal) else _followed(operand, value)


def _holds(left: Any, operator: str, right: Any) -> bool:
    if operator == "==":
        return _kind(left) == _kind(right) and bool(left == right)
    if operator == "!=":
        return not (_kind(left) == _kind(right) and bool(left == right))
    if _kind(left) != _kind(right) or _kind(left) not in ("text", "number"):
        return False
    if operator == "<":
        return bool(left < right)
    if operator == "<=":
        return bool(left <= right)
    return bool(left > right) if operator == ">" else bool(left >= right)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "text" if isinstance(value, str) else type(value).__name__
