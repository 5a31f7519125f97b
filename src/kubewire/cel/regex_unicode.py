"""The ranges behind `\\pL` and `\\p{Lu}` in a regular expression. Scripts such as `\\p{Greek}` are not known here."""

import unicodedata
from functools import cache

from kubewire.cel.regex_syntax import Range

_CATEGORIES = frozenset({
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No",
    "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
})  # fmt: skip


@cache
def category(name: str) -> tuple[Range, ...] | None:
    """Return the characters of a general category, or None when there is none of this name."""
    if name == "Any":
        return ((0, 0x10FFFF),)
    if name not in _CATEGORIES:
        return None
    ranges: list[Range] = []
    start = -1
    for code in range(0x110000):
        of_character = unicodedata.category(chr(code))
        inside = of_character != "Cn" and of_character.startswith(name)
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            ranges.append((start, code - 1))
            start = -1
    return tuple(ranges) if start < 0 else (*ranges, (start, 0x10FFFF))
