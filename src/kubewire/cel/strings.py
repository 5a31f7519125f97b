"""Strings: the standard functions and Kubernetes' extended ones. Positions count characters, not bytes."""

from kubewire.cel.cost import deep_traversal, double_traversal, search_price, tenth, traversal
from kubewire.cel.errors import EvaluationError, no_such_overload
from kubewire.cel.library import function, method
from kubewire.cel.values import Value

_LOWER = {ord(letter): letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_UPPER = {ord(letter): letter.upper() for letter in "abcdefghijklmnopqrstuvwxyz"}
# What Go's strings.TrimSpace takes for space; Python would also take the ASCII separators.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_QUOTED = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


@method("startsWith", "string, string -> bool", cost=traversal)
def starts_with(text: str, prefix: str) -> bool:
    return text.startswith(prefix)


@method("endsWith", "string, string -> bool", cost=traversal)
def ends_with(text: str, suffix: str) -> bool:
    return text.endswith(suffix)


@method("contains", "string, string -> bool", cost=search_price)
def contains(text: str, part: str) -> bool:
    return part in text


@method("charAt", "string, int -> string")
def char_at(text: str, index: int) -> str:
    """Return the character at a position; the position just behind the end is empty."""
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _out_of_range(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


@method("indexOf", "string, string -> int", "string, string, int -> int", cost=deep_traversal)
def index_of(text: str, part: str, start: int = 0) -> int:
    """Return where a part begins at or after a position; an empty part is found at that position, wherever it is."""
    if not part:
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(part, start)


@method("lastIndexOf", "string, string -> int", cost=deep_traversal)
def last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


@method("lastIndexOf", "string, string, int -> int", cost=deep_traversal)
def last_index_up_to(text: str, part: str, last: int) -> int:
    """Return where a part begins for the last time, beginning no later than a position."""
    if not part:
        return last
    if last < 0:
        raise _out_of_range(last)
    if last >= len(text):
        return -1
    return text.rfind(part, 0, last + len(part))


@method("lowerAscii", "string -> string", cost=traversal)
def lower_ascii(text: str) -> str:
    return text.translate(_LOWER)


@method("upperAscii", "string -> string", cost=traversal)
def upper_ascii(text: str) -> str:
    return text.translate(_UPPER)


def _replacement_price(text: str, part: str, substitute: str, limit: int = -1) -> int:
    """The price of a replacement, or of its result where that is larger: nothing may grow without being paid."""
    most = len(text) // len(part) if part else len(text) + 1
    count = most if limit < 0 else min(limit, most)
    grown = count * (len(substitute) - len(part))
    return double_traversal(text) + (tenth(grown) if grown > 10 * len(text) + 1000 else 0)


@method(
    "replace",
    "string, string, string -> string",
    "string, string, string, int -> string",
    cost=_replacement_price,
)
def replace(text: str, part: str, substitute: str, limit: int = -1) -> str:
    return text.replace(part, substitute, limit)


@method(
    "split", "string, string -> list(string)", "string, string, int -> list(string)", cost=double_traversal
)
def split(text: str, separator: str, limit: int = -1) -> list[str]:
    """Split into at most `limit` parts; an empty separator splits between all characters."""
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


@method("substring", "string, int -> string", cost=traversal)
def substring_from(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


@method("substring", "string, int, int -> string", cost=traversal)
def substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


@method("trim", "string -> string", cost=traversal)
def trim(text: str) -> str:
    return text.strip(_SPACE)


def _join_price(texts: list[Value], separator: str = "") -> int:
    sizes = [len(text) for text in texts if type(text) is str]
    return tenth(2 * (sum(sizes) + len(separator) * max(0, len(texts) - 1)))


@method("join", "list(string) -> string", "list(string), string -> string", cost=_join_price)
def join(texts: list[Value], separator: str = "") -> str:
    if not all(type(text) is str for text in texts):
        raise no_such_overload()
    return separator.join(texts)


@function("strings.quote", "string -> string")
def quote(text: str) -> str:
    """Return a literal that stands for this string."""
    return '"' + "".join(_QUOTED.get(character, character) for character in text) + '"'
