"""Which image a name means, as far as defaults need to know."""

import re

# What follows the registry: lower case words joined by separators, then a tag, then a digest.
_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REST = re.compile(
    rf"{_WORD}(?:/{_WORD})*"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = re.compile(rf"(?:{_HOST}(?:\.{_HOST})*|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?")
_IDENTIFIER = re.compile(r"[0-9a-f]{64}")

_LONGEST_PATH = 255
_LONGEST_NAME = 4096  # no registry has names that long


def is_latest(image: str) -> bool:
    """Tell whether a name means whatever is newest: it has the tag `latest`, or neither a tag nor a digest.

    A name that is no image's means nothing, and so not the newest.
    """
    if len(image) > _LONGEST_NAME or _IDENTIFIER.fullmatch(image):
        return False
    registry, slash, rest = image.partition("/")
    if not slash or not _is_registry(registry):
        registry, rest = "", image
    elif not _REGISTRY.fullmatch(registry):
        return False
    found = _REST.fullmatch(rest)
    if found is None or len(re.split("[:@]", rest, maxsplit=1)[0]) > _LONGEST_PATH:
        return False
    tag = found["tag"]
    return bool(tag == "latest") if tag or found["digest"] else True


def _is_registry(first: str) -> bool:
    """Tell whether the part before the first slash names a host rather than a folder."""
    return "." in first or ":" in first or first == "localhost" or first != first.lower()
