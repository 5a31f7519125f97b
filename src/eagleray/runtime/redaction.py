"""Secrets taken out of text that people other than their owners read: logs and events."""

import re
from collections.abc import Mapping

REDACTED = "[redacted]"

# Names of fields, headers and variables whose values are secret. A Secret's *name* is none, so that is left alone.
_SECRET_KEY = re.compile(
    r"[a-z0-9_-]*(?:password|passwd|token|authorization|api[_-]?key|private[_-]?key|credentials?)\Z",
    re.IGNORECASE,
)
_KEYS = r"(?:password|passwd|token|api[_-]?key|private[_-]?key)[\"']?"
_VALUE = r"(?!\[redacted\])[^\s\"',;&}]{1,4096}"
_PATTERNS = (
    # Authorization: Bearer x, Bearer x
    (re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    # redis://user:password@host
    (
        re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://[^\s:/@]{0,256}):[^\s/@]{1,512}@", re.IGNORECASE),
        rf"\1:{REDACTED}@",
    ),
    # a key with an equals sign: password=x, ?token=x
    (re.compile(rf"({_KEYS}\s{{0,4}}=\s{{0,4}}[\"']?){_VALUE}", re.IGNORECASE), rf"\1{REDACTED}"),
    # "token": "x", but not an object's place: default/my-token: x
    (
        re.compile(rf"(?<![\w/-])([\w-]{{0,64}}{_KEYS}\s{{0,4}}:\s{{0,4}}[\"']?){_VALUE}", re.IGNORECASE),
        rf"\1{REDACTED}",
    ),
    # a JSON web token wherever it stands
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{0,4096}"), REDACTED),
)
# Longer texts are cut before they are searched: a log line is for people, and the search has to stay cheap.
LONGEST_TEXT = 64 * 1024
_DEEPEST = 8


def redacted(text: str) -> str:
    """Return the text without passwords, tokens and keys that can be told as such, and of bounded length."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]}…"
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redacted_value(value: object, name: str = "", depth: int = 0) -> object:
    """Return a value that stands under a name, as plain data, without the secrets in it."""
    if _SECRET_KEY.match(name) and value is not None:
        return REDACTED
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return redacted(value)
    if depth >= _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): redacted_value(item, str(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redacted_value(item, "", depth + 1) for item in value]
    return redacted(str(value))
