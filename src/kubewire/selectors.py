"""Label selectors (`app=web,!old`, or as objects) and field selectors (`status.phase!=Running`)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kubewire.gotext import parse_int64, quote
from kubewire.names import label_key, label_value

_SPACE: Final = " \t\r\n"
_SYMBOLS: Final = "=!(),<>"
_BINARY_OPERATORS: Final = {
    "in": "in",
    "notin": "notin",
    "=": "=",
    "==": "==",
    "!=": "!=",
    ">": "gt",
    "<": "lt",
}
_OBJECT_OPERATORS: Final = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_END: Final = ""


class SelectorError(ValueError):
    """A selector that cannot be understood; the message is the API server's."""


class Requirement(NamedTuple):
    """One condition on one label.

    The operators are `exists` and `!` without a value, `=`, `==`, `!=`, `gt` and `lt` with one,
    `in` and `notin` with several.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet the condition; a missing label meets `!=`, `notin` and `!`."""
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value is not None and value in self.values
            case "notin" | "!=":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number = None if value is None else parse_int64(value)
        bound = parse_int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == "gt" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
            case "gt":
                return f"{self.key}>{self.values[0]}"
            case "lt":
                return f"{self.key}<{self.values[0]}"
            case operator:
                return f"{self.key}{operator}{self.values[0]}"


class LabelSelector(NamedTuple):
    """Which labels to choose: all requirements must hold, so that none at all chooses everything."""

    requirements: tuple[Requirement, ...] = ()
    chooses_nothing: bool = False

    @classmethod
    def parse(cls, text: str) -> "LabelSelector":
        """Return the selector of a query such as `app=web,tier in (front, back),!old`."""
        return cls(_in_order(_LabelParser(text).parse()))

    @classmethod
    def of(cls, selector: Mapping[str, object] | None) -> "LabelSelector":
        """Return the selector of an object's field (`matchLabels`, `matchExpressions`).

        An empty one chooses everything, a missing one nothing.
        """
        if selector is None:
            return NOTHING
        requirements = [
            _requirement(key, "=", (value,)) for key, value in _match_labels(selector.get("matchLabels"))
        ]
        requirements += map(_match_expression, _sequence(selector, "matchExpressions"))
        return cls(_in_order(requirements))

    @classmethod
    def exactly(cls, labels: Mapping[str, str]) -> "LabelSelector":
        """Return the selector of objects that carry all these labels, whether valid or not."""
        return cls(_in_order(Requirement(key, "=", (value,)) for key, value in labels.items()))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is chosen; None stands for no labels."""
        if self.chooses_nothing:
            return False
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(chooses_nothing=True)


class FieldTerm(NamedTuple):
    """One condition on one field: that it has the value, or, negated, that it has not."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'!=' if self.negated else '='}{value}"


class FieldSelector(NamedTuple):
    """Which objects to choose by their fields: all terms must hold, so that none chooses everything."""

    terms: tuple[FieldTerm, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "FieldSelector":
        r"""Return the selector of a query such as `metadata.name=a,status.phase!=Running`.

        In values, `,`, `=` and `\` are written `\,`, `\=` and `\\`.
        """
        terms = (_field_term(term, text) for term in sorted(_split_terms(text)) if term)
        return cls(tuple(term for term in terms if term.field or term.value))

    def matches(self, get_field: Callable[[str], str]) -> bool:
        """Whether an object is chosen whose field of a given name `get_field` returns, "" if it has none."""
        return all((get_field(term.field) == term.value) != term.negated for term in self.terms)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


class _LabelParser:
    """Reads a label query in Kubernetes' grammar, with its messages."""

    __slots__ = ("_next", "_tokens")

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _END]
        self._next = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek() == _END:
            return requirements
        if not (_is_word(self._peek()) or self._peek() == "!"):
            raise SelectorError(f"found '{self._peek()}', expected: !, identifier, or 'end of string'")
        while True:
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            separator = self._take()
            if separator == _END:
                return requirements
            if separator != ",":
                raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
            if not (_is_word(self._peek()) or self._peek() == "!"):
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._take()
        key = self._take()
        if not _is_word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := label_key(key):
            # Kubernetes has no path to show here, and says so.
            raise SelectorError(f"<nil>: Invalid value: {quote(key)}: {'; '.join(problems)}")
        if negated:
            return Requirement(key, "!")
        if self._peek() in (_END, ","):
            return Requirement(key, "exists")
        symbol = self._take()
        if symbol not in _BINARY_OPERATORS:
            operators = ", ".join(_BINARY_OPERATORS.values())
            raise SelectorError(f"found '{symbol}', expected: {operators}")
        values = self._values() if symbol in ("in", "notin") else (self._value(),)
        return _requirement(key, _BINARY_OPERATORS[symbol], values)

    def _value(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        value = self._take()
        if not _is_word(value):
            raise SelectorError(f"found '{value}', expected: identifier")
        return value

    def _values(self) -> tuple[str, ...]:
        """Read values in parentheses; between two commas, and in `()`, stands an empty one."""
        opening = self._take()
        if opening != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        if not (_is_word(self._peek()) or self._peek() in (",", ")")):
            raise SelectorError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            given = _is_word(self._peek())
            values.add(self._take() if given else "")
            separator = self._take()
            if separator == ")":
                return tuple(sorted(values))
            if separator != ",":
                expected = "',' or ')'" if given else "',', or identifier"
                raise SelectorError(f"found '{separator}', expected: {expected}")

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next += 1
        return token


def _tokens(text: str) -> list[str]:
    """Split a query into words and operators; `in` and `notin` are words that the grammar knows."""
    tokens: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in _SPACE:
            at += 1
            continue
        end = at + 1
        if text[at : at + 2] in ("==", "!="):
            end = at + 2
        elif text[at] not in _SYMBOLS:
            while end < len(text) and text[end] not in _SPACE + _SYMBOLS:
                end += 1
        tokens.append(text[at:end])
        at = end
    return tokens


def _is_word(token: str) -> bool:
    return token != _END and token[0] not in _SYMBOLS


def _in_order(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Return the requirement if Kubernetes accepts it; the error names all that is wrong with it."""
    problems: list[str] = []
    if found := label_key(key):
        problems.append(f"key: Invalid value: {quote(key)}: {'; '.join(found)}")
    if operator in ("in", "notin") and not values:
        problems.append("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty")
    if operator in ("exists", "!") and values:
        listed = "[" + ",".join(map(quote, values)) + "]"
        because = "values set must be empty for exists and does not exist"
        problems.append(f"values: Invalid value: {listed}: {because}")
    if operator in ("gt", "lt") and parse_int64(values[0]) is None:
        because = "for 'Gt', 'Lt' operators, the value must be an integer"
        problems.append(f"values[0]: Invalid value: {quote(values[0])}: {because}")
    for index, value in enumerate(values):
        if found := label_value(value):
            problems.append(f"values[{index}][{key}]: Invalid value: {quote(value)}: {'; '.join(found)}")
    if problems:
        raise SelectorError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
    return Requirement(key, operator, values)


def _match_labels(labels: object) -> list[tuple[str, str]]:
    if labels is None:
        return []
    if not isinstance(labels, Mapping):
        raise SelectorError("matchLabels: must be an object of strings")
    for value in labels.values():
        if not isinstance(value, str):
            raise SelectorError("matchLabels: must be an object of strings")
    return list(labels.items())


def _match_expression(expression: object) -> Requirement:
    if not isinstance(expression, Mapping):
        raise SelectorError("matchExpressions: must be a list of objects")
    key, operator = expression.get("key", ""), expression.get("operator", "")
    values = _sequence(expression, "values")
    if not (isinstance(key, str) and isinstance(operator, str)):
        raise SelectorError("matchExpressions: key and operator must be strings")
    if operator not in _OBJECT_OPERATORS:
        raise SelectorError(f"{quote(operator)} is not a valid label selector operator")
    texts = tuple(value for value in values if isinstance(value, str))
    if len(texts) != len(values):
        raise SelectorError("matchExpressions: values must be strings")
    return _requirement(key, _OBJECT_OPERATORS[operator], texts)


def _sequence(parent: Mapping[str, object], key: str) -> Sequence[object]:
    found = parent.get(key)
    if found is None:
        return ()
    if not isinstance(found, list | tuple):
        raise SelectorError(f"{key}: must be a list")
    return found


def _split_terms(text: str) -> list[str]:
    """Split at commas that no backslash precedes; the backslashes stay."""
    terms: list[str] = []
    start = 0
    escaped = False
    for at, character in enumerate(text):
        if character == "," and not escaped:
            terms.append(text[start:at])
            start = at + 1
        escaped = character == "\\" and not escaped
    terms.append(text[start:])
    return terms


def _field_term(term: str, text: str) -> FieldTerm:
    for at, character in enumerate(term):
        if character == "=":
            skip = 2 if term[at + 1 : at + 2] == "=" else 1
            return FieldTerm(term[:at], _unescape(term[at + skip :]))
        if term[at : at + 2] == "!=":
            return FieldTerm(term[:at], _unescape(term[at + 2 :]), negated=True)
    raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")


def _unescape(value: str) -> str:
    plain: list[str] = []
    escaped = False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{character}")
            plain.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            # The server prints the character's number, and so do we.
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            plain.append(character)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(plain)
