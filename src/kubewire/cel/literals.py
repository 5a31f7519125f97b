"""The inside of string and bytes literals: escapes into the characters or bytes they stand for."""

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_HEX_LENGTHS = {"x": 2, "X": 2, "u": 4, "U": 8}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_OCTAL_DIGITS = frozenset("01234567")


class _BadEscape(ValueError):
    """An escape that stands for nothing."""


def read_text(body: str, *, raw: bool, as_bytes: bool) -> str | bytes:
    """Return what a literal stands for, given the text between its quotes."""
    if raw or "\\" not in body:
        return body.encode() if as_bytes else body
    pieces: list[tuple[str, bool]] = []
    at = 0
    while at < len(body):
        escape = body.find("\\", at)
        if escape < 0:
            escape = len(body)
        if escape > at:
            pieces.append((body[at:escape], False))
            at = escape
            continue
        character, is_byte, at = _escaped(body, escape + 1, as_bytes=as_bytes)
        pieces.append((character, is_byte))
    if as_bytes:
        return b"".join(text.encode("latin-1" if is_byte else "utf-8") for text, is_byte in pieces)
    return "".join(text for text, _ in pieces)


def text_problem(body: str, *, raw: bool, as_bytes: bool) -> str | None:
    """Return why a literal cannot be read, or None."""
    try:
        read_text(body, raw=raw, as_bytes=as_bytes)
    except _BadEscape as bad:
        return str(bad)
    return None


def _escaped(body: str, at: int, *, as_bytes: bool) -> tuple[str, bool, int]:
    """Return the character after a backslash, whether it is one byte rather than a character, and what follows."""
    letter = body[at : at + 1]
    if letter in _SIMPLE:
        return _SIMPLE[letter], False, at + 1
    if letter in _HEX_LENGTHS:
        length, base, digits, start = _HEX_LENGTHS[letter], 16, _HEX_DIGITS, at + 1
    else:
        length, base, digits, start = 3, 8, _OCTAL_DIGITS, at
    code = body[start : start + length]
    if len(code) < length or not digits.issuperset(code):
        raise _BadEscape("unable to unescape string")
    number = int(code, base)
    by_number = letter not in ("u", "U")
    too_large = number > (0xFF if by_number else 0x10FFFF)
    if too_large or 0xD800 <= number < 0xE000 or (as_bytes and not by_number):
        raise _BadEscape("unable to unescape string")
    return chr(number), as_bytes and by_number, start + length
