"""Ray versions as users write them in `rayVersion`.

There are two readings, since the reference reads with two libraries: a lenient one for the validation rules,
and semantic versioning where a job's metadata is passed on.
"""

from typing import NamedTuple

_BLANKS = "\t\n\f\r "
_DIGITS = "0123456789"
_IDENTIFIER = frozenset(_DIGITS + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_LARGEST_NUMBER = 2**64 - 1


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a version or None: an optional `v`, two or more dotted numbers, then any text.

    Trailing zeros are dropped, so that the results compare as versions do: 2.52 is 2.52.0.
    """
    rest = text.lstrip(_BLANKS).removeprefix("v")
    if "\n" in rest:
        return None
    written = rest[: len(rest) - len(rest.lstrip(f"{_DIGITS}."))].split(".")
    if "" in written:
        written = written[: written.index("")]  # in `2.52.` and `2..52` the version ends before the odd dot
    numbers = [_number(digits) for digits in written]
    if len(numbers) < 2 or (len(written[0]) > 1 and written[0][0] == "0"):
        return None
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return None
    while known and known[-1] == 0:
        known.pop()
    return tuple(known)


class SemanticVersion(NamedTuple):
    """A semantic version without its build part, which never counts."""

    major: int
    minor: int
    patch: int
    prerelease: str = ""

    def reaches(self, major: int, minor: int, patch: int) -> bool:
        """Return whether this is that release or a later one; a pre-release of anything does not count."""
        return not self.prerelease and self[:3] >= (major, minor, patch)


def parse_semantic(text: str) -> SemanticVersion | None:
    """Return the semantic version that the whole text is, or None; `v`, minor and patch are optional."""
    release, plus, build = text.removeprefix("v").partition("+")
    core, dash, prerelease = release.partition("-")
    if (plus and not _identifiers(build)) or (dash and not _identifiers(prerelease)):
        return None
    if any(_padded(part) for part in prerelease.split(".")):
        return None
    written = core.split(".")
    numbers = [number for number in map(_number, written) if number is not None]
    if len(numbers) < len(written) or len(numbers) > 3:
        return None
    major, minor, patch = (*numbers, 0, 0)[:3]
    return SemanticVersion(major, minor, patch, prerelease)


def _number(digits: str) -> int | None:
    """Return the number if the text is one that fits 64 bits; Python would read other scripts' digits too."""
    if not digits or digits.strip(_DIGITS):
        return None
    significant = digits.lstrip("0")
    if len(significant) > len(str(_LARGEST_NUMBER)):
        return None
    number = int(significant or "0")
    return number if number <= _LARGEST_NUMBER else None


def _identifiers(text: str) -> bool:
    return all(part and _IDENTIFIER.issuperset(part) for part in text.split("."))


def _padded(identifier: str) -> bool:
    """Return whether this is a number with a zero before it, which a pre-release must not have."""
    return len(identifier) > 1 and identifier[0] == "0" and not identifier.strip(_DIGITS)
