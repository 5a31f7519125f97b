"""Semantic versions: `semver('1.2.3').isLessThan(semver('1.10.0'))`."""

import re
from functools import total_ordering

from kubewire.cel.cost import traversal
from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function, method
from kubewire.cel.types import SEMVER
from kubewire.cel.values import held_by

_NUMBER = r"0|[1-9][0-9]*"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?", re.ASCII
)
# Numbers are held in 64 bits.
_LARGEST = 2**64 - 1


@total_ordering
class SemanticVersion:
    """Major, minor and patch, and what is released before it; what follows a plus sign does not count."""

    __slots__ = ("before", "numbers")

    def __init__(self, numbers: tuple[int, ...], before: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.before = before

    def _rank(self) -> tuple[object, ...]:
        """Return what decides the order: a release comes after what was before it, numbers before words."""
        steps = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.before)
        return (self.numbers, not self.before, steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemanticVersion) and self._rank() == other._rank()

    def __lt__(self, other: "SemanticVersion") -> bool:
        return self._rank() < other._rank()

    def __hash__(self) -> int:
        return hash(self._rank())


held_by(SEMVER, SemanticVersion)


def _read(text: str, *, tolerant: bool = False) -> SemanticVersion | None:
    match = _VERSION.fullmatch(_normalised(text) if tolerant else text)
    if match is None:
        return None
    numbers = tuple(map(int, match.group(1, 2, 3)))
    before = tuple(match[4].split(".")) if match[4] else ()
    padded = any(part.isdigit() and part[0] == "0" and part != "0" for part in before)
    return None if padded or max(numbers) > _LARGEST else SemanticVersion(numbers, before)


def _normalised(text: str) -> str:
    """Return a version without a leading `v` and without leading zeros, with the numbers that it leaves out."""
    parts = text.removeprefix("v").split(".", 2)
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        return text  # only whole numbers are completed
    parts = [re.sub(r"^0+(?=[0-9])", "", part) for part in parts]
    return ".".join([*parts, "0", "0"][: max(3, len(parts))])


@function("semver", "string -> semver", cost=traversal)
def semver_of(text: str) -> SemanticVersion:
    return _required(_read(text), text)


@function("semver", "string, bool -> semver", cost=traversal)
def tolerant_semver_of(text: str, normalize: bool) -> SemanticVersion:
    return _required(_read(text, tolerant=normalize), text)


def _required(found: SemanticVersion | None, text: str) -> SemanticVersion:
    if found is None:
        raise EvaluationError(f"{text!r} is no semantic version")
    return found


@function("isSemver", "string -> bool", cost=traversal)
def is_semver(text: str) -> bool:
    return _read(text) is not None


@function("isSemver", "string, bool -> bool", cost=traversal)
def is_tolerant_semver(text: str, normalize: bool) -> bool:
    return _read(text, tolerant=normalize) is not None


@method("major", "semver -> int")
def major(version: SemanticVersion) -> int:
    return version.numbers[0]


@method("minor", "semver -> int")
def minor(version: SemanticVersion) -> int:
    return version.numbers[1]


@method("patch", "semver -> int")
def patch(version: SemanticVersion) -> int:
    return version.numbers[2]


@method("isGreaterThan", "semver, semver -> bool")
def is_newer(one: SemanticVersion, other: SemanticVersion) -> bool:
    return one > other


@method("isLessThan", "semver, semver -> bool")
def is_older(one: SemanticVersion, other: SemanticVersion) -> bool:
    return one < other


@method("compareTo", "semver, semver -> int")
def compare_versions(one: SemanticVersion, other: SemanticVersion) -> int:
    return (one > other) - (one < other)
