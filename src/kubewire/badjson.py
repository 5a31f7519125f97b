"""What Go's JSON parser says of a text that is no JSON. Clients know its words, Python's are others."""

import re
from json import JSONDecodeError

from kubewire.gotext import quote

_END = "unexpected end of JSON input"
# Strings, whose brackets do not count, and brackets.
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]', re.DOTALL)
# A backslash and what it escapes; half of a pair of surrogates is the one thing that Go does not take as it is.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def without_half_characters(text: str) -> str:
    """Return JSON text in which escapes that mean half a character are replaced, as Go does when it decodes them."""
    return _ESCAPE.sub(lambda found: r"\ufffd" if found["half"] else found[0], text)


def complaint(text: str, bad: ValueError) -> str:
    """Return what Go says of a text that Python's parser has refused."""
    if not isinstance(bad, JSONDecodeError):
        is_long = str(bad).startswith("Exceeds the limit")
        return "a number has more digits than are read here" if is_long else str(bad)
    problem, at = bad.msg, bad.pos
    if problem.startswith("Unterminated string"):
        is_escaping = (len(text) - len(text.rstrip("\\"))) % 2
        return _invalid_inside(text, len(text), "in string escape code") if is_escaping else _END
    if problem.startswith("Invalid control character"):
        return _invalid(text, at, "in string literal")
    if problem.startswith("Invalid \\uXXXX"):
        return _bad_hexadecimal(text, at)
    if problem.startswith("Invalid \\escape"):
        return _invalid_inside(text, at + 1, "in string escape code")
    if problem.startswith("Illegal trailing comma"):  # Python 3.13 and later
        at = len(text) - len(text[at + 1 :].lstrip(" \t\r\n"))
        problem = "Expecting property name" if text[at : at + 1] == "}" else "Expecting value"
    if problem.startswith(("Expecting value", "Unexpected UTF-8 BOM")):
        return _no_value(text, at)
    if problem.startswith("Expecting property name"):
        return _invalid(text, at, "looking for beginning of object key string")
    if problem.startswith("Expecting ':'"):
        return _invalid(text, at, "after object key")
    return _unfinished_number(text, at) or _invalid(text, at, _after(text, at))


def _invalid(text: str, at: int, where: str) -> str:
    return _invalid_inside(text, at, where) if at < len(text) else _END


def _invalid_inside(text: str, at: int, where: str) -> str:
    """Return the complaint about a character inside a word or number; Go ends an unfinished one with a space."""
    character = text[at] if at < len(text) else " "
    byte = chr(character.encode("utf-8", "replace")[0])  # Go looks at bytes
    shown = {"'": r"'\''", '"': "'\"'"}.get(byte) or f"'{quote(byte)[1:-1]}'"
    return f"invalid character {shown} {where}"


def _no_value(text: str, at: int) -> str:
    for word in ("true", "false", "null"):
        if text[at : at + 1] == word[0]:
            same = next(n for n in range(1, len(word)) if text[at + n : at + n + 1] != word[n])
            return _invalid_inside(text, at + same, f"in literal {word} (expecting '{word[same]}')")
    if text[at : at + 1] == "-":
        return _invalid_inside(text, at + 1, "in numeric literal")
    return _invalid(text, at, "looking for beginning of value")


def _unfinished_number(text: str, at: int) -> str:
    """Return the complaint about a number that ends in its point or exponent, where Python saw a whole one before."""
    number = text[len(text[:at].rstrip("+-.eE0123456789")) : at].lower()
    if not number or "e" in number:
        return ""
    if text[at : at + 1] == "." and "." not in number:
        return _invalid_inside(text, at + 1, "after decimal point in numeric literal")
    if text[at : at + 1] in ("e", "E"):
        signed = text[at + 1 : at + 2] in ("+", "-")
        return _invalid_inside(text, at + 1 + signed, "in exponent of numeric literal")
    return ""


def _bad_hexadecimal(text: str, at: int) -> str:
    start = text.index("u", at - 1) + 1
    wrong = next((n for n in range(4) if text[start + n : start + n + 1] not in _HEXADECIMAL), None)
    if wrong is None:
        return _END
    return _invalid_inside(text, start + wrong, r"in \u hexadecimal character escape")


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def _after(text: str, at: int) -> str:
    """Return after what a character stands that may not follow."""
    opened = []
    for found in _NESTING.finditer(text, 0, at):
        if found[0] in ("[", "{"):
            opened.append(found[0])
        elif found[0] in ("]", "}"):
            opened.pop()
    if not opened:
        return "after top-level value"
    return "after array element" if opened[-1] == "[" else "after object key:value pair"
