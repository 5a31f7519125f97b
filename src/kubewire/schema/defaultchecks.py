"""Whether the defaults of a schema fit the schema they stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubewire.schema.nodes import compile_schema
from kubewire.schema.pruning import unknown_fields
from kubewire.schema.validation import structure_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubewire.fielderrors import FieldError
    from kubewire.schema.places import Place


def default_problems(raw: Mapping[str, Any], place: Place) -> Iterator[FieldError]:
    """Yield the defaults that their own schema would prune or refuse, in this part of a schema and below.

    Values of maps are left out: Kubernetes does not look at defaults there.
    """
    default = raw.get("default")
    if default is not None:
        node = compile_schema(raw)
        at = place.child("default")
        if unknown_fields(node, default, resource=node.embedded):
            yield at.invalid(default, "must not have unknown fields")
        yield from structure_errors(node, default, base=at.path, base_text=at.text)
    if isinstance(raw.get("items"), dict):
        yield from default_problems(raw["items"], place.child("items"))
    for name, below in (raw.get("properties") or {}).items():
        yield from default_problems(below, place.property(name))
