"""What the rules need to know about a kind of object."""

from typing import Any, NamedTuple, Protocol

from kubewire.apply.fieldsets import FieldSet
from kubewire.apply.shapes import Shape


class Converted(NamedTuple):
    """An object in another version than the one it was given in."""

    shape: Shape
    obj: dict[str, Any]


class Versions(Protocol):
    """The versions of a kind: others may have written in another one."""

    def converted(self, obj: dict[str, Any], source: str, target: str) -> Converted | None:
        """Return an object of one version in another; None if that is no longer there. The object stays as it is."""


class Kind(NamedTuple):
    """A kind in the version of a write, and the fields that this way of writing leaves alone whatever it is sent."""

    shape: Shape
    resets: FieldSet
    versions: Versions
