"""What Go makes of an object of a built-in kind when it decodes and encodes it, as every API server does.

An object that came in as JSON is not what is stored: fields the type does not know are gone, and so are nulls and most
empty values, while some fields are always there; quantities, times and bytes have one spelling. `read` does all that,
driven by facts about the Go types that were taken from Kubernetes' own modules.
"""

from typing import Any

from kubewire.gotypes.facts import is_known
from kubewire.gotypes.problems import DecodeError, Mismatch, kind_of
from kubewire.gotypes.readers import struct_reader
from kubewire.gotypes.walk import Walk

__all__ = ["DecodeError", "empty", "is_known", "kind_of", "read"]


def read(definition: str, obj: dict[str, Any]) -> list[str]:
    """Make an object what it would be in storage; return the paths of the fields that were dropped as unknown.

    The definition is the full name of the type, as in `io.k8s.api.core.v1.Pod`. The object is changed in place, or not
    at all if a value has the wrong type: then DecodeError says so in Go's words, about the first such value.
    """
    walk = Walk()
    try:
        result = struct_reader(definition).read(obj, None, walk)
    except Mismatch as bad:
        raise bad.error() from None
    obj.clear()
    obj.update(result)
    return walk.unknown


def empty(definition: str) -> dict[str, Any]:
    """Return what Go writes for an object in which nothing is set, such as `{"metadata": {}, "status": {}}`."""
    return struct_reader(definition).zero()
