"""Names: of the objects themselves, and of what users name inside them."""

from typing import NamedTuple

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.reading import Object, mapping, text
from eagleray.rayapi.rules.rulebook import Finding, Findings
from kubewire.names import dns1035_label
from kubewire.paths import FieldPath

# The API server cuts generateName to 58 characters and puts five random ones behind it.
_LONGEST_GENERATED_BASE = 58
_GENERATED = "xxxxx"


class ObjectName(NamedTuple):
    """The name that an object has or will get, and the field that decides it."""

    value: str
    path: FieldPath


def name_of(obj: Object) -> ObjectName:
    """Return the object's name, or one as the API server would make of its generateName."""
    metadata = mapping(obj, "metadata")
    base = text(metadata, "generateName")
    if text(metadata, "name") or not base:
        return ObjectName(text(metadata, "name"), ("metadata", "name"))
    return ObjectName(base[:_LONGEST_GENERATED_BASE] + _GENERATED, ("metadata", "generateName"))


def too_long(kind: str, name: ObjectName, limit: int) -> Findings:
    if len(name.value) > limit:
        yield Finding(
            name.path,
            f"{kind} name should be no more than {limit} characters, this one has {len(name.value)}",
            "shorten it, since the names of other objects are made from it",
        )


def not_a_label(kind: str, name: ObjectName) -> Findings:
    # That an object has a name at all is asked of every kind, before these rules.
    if name.value and dns1035_label(name.value):
        yield Finding(
            name.path,
            f"{kind} name {quoted(name.value)} is not a DNS-1035 label",
            "use at most 63 lower-case letters, digits and '-', with a letter first and no '-' at the end",
        )
