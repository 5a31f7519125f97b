"""Property names as CEL identifiers: `cluster-name` is written `cluster__dash__name`, `namespace` `__namespace__`."""

KEYWORDS = frozenset({"true", "false", "null", "in"})
RESERVED = KEYWORDS | {
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
    "namespace", "return", "var", "void", "while",
}  # fmt: skip

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_ESCAPES = {".": "__dot__", "-": "__dash__", "/": "__slash__"}
_MEANINGS = {"underscores": "__", "dot": ".", "dash": "-", "slash": "/"}


def escape_name(name: str) -> str | None:
    """Return the identifier that selects this property, or None when no expression can reach it."""
    if not name or "0" <= name[0] <= "9":
        return None
    if name in RESERVED:
        return f"__{name}__"
    parts: list[str] = []
    for piece in name.replace("__", "\0"):  # a pair of underscores is one unit, read from the left
        if piece == "\0":
            parts.append("__underscores__")
        elif piece in _PLAIN:
            parts.append(piece)
        elif piece in _ESCAPES:
            parts.append(_ESCAPES[piece])
        else:
            return None
    return None if "\0" in name else "".join(parts)


def unescape_name(identifier: str) -> str | None:
    """Return the property that an identifier selects, or None when it holds an escape that does not exist."""
    if "__" not in identifier:
        return None if identifier in RESERVED else identifier
    parts: list[str] = []
    rest = identifier
    while (opening := rest.find("__")) >= 0:
        closing = rest.find("__", opening + 2)
        inside = rest[opening + 2 : closing] if closing > 0 else ""
        if not inside or "_" in inside:  # a lone pair of underscores is no escape and stays as it is
            parts.append(rest[: opening + 1])
            rest = rest[opening + 1 :]
            continue
        if inside in RESERVED and len(inside) + 4 == len(identifier):
            return inside
        if inside not in _MEANINGS:
            return None
        parts += (rest[:opening], _MEANINGS[inside])
        rest = rest[closing + 2 :]
    return "".join((*parts, rest))
