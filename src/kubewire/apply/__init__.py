"""Server-side apply: who owns which field of an object, and what an applied configuration makes of it.

Ownership is kept in `metadata.managedFields`, as sets of field paths in their wire form (`FieldsV1`). A schema says
where an object has fields of its own and where a value is owned as a whole; the rules are those of Kubernetes'
structured merge.
"""

from kubewire.apply.fieldsets import FieldSet, MalformedFields
from kubewire.apply.kinds import Converted, Kind, Versions
from kubewire.apply.managers import Conflict, Conflicted, Entry, Managers, Writer
from kubewire.apply.merging import MergeFailed
from kubewire.apply.shapes import Shape, custom_shape, definition_shape

__all__ = [
    "Conflict",
    "Conflicted",
    "Converted",
    "Entry",
    "FieldSet",
    "Kind",
    "MalformedFields",
    "Managers",
    "MergeFailed",
    "Shape",
    "Versions",
    "Writer",
    "custom_shape",
    "definition_shape",
]
