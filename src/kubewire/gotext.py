"""How Go reads and writes plain values, where Kubernetes' formats and messages show it."""

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

# An int64 has at most 19 digits. Longer digit strings are cut off here because Go accepts leading
# zeros without limit, while converting a huge text would cost more than its answer is worth.
_LONGEST_NUMBER = 100

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quote(text: str) -> str:
    """Return the text in double quotes, as Go's `%q` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    number = ord(character)
    if number < 0x20 or number == 0x7F:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def parse_int64(text: str) -> int | None:
    """Return the number that `strconv.ParseInt(text, 10, 64)` reads, or None where it refuses."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _LONGEST_NUMBER:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None
