"""The fieldPath of a rule, which names the field that a broken rule is reported for: `.spec['my.key']`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubewire.schema.nodes import Schema

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def parsed_field_path(text: str) -> tuple[str, ...] | None:
    """Return the names along the path, or None if it is not written as one."""
    steps = []
    at = 0
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            return None
        name = step[1]
        if name is None:
            if any(letter not in _ESCAPES for letter in _ESCAPE.findall(step[2])):
                return None
            name = _ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], step[2])
        steps.append(name)
        at = step.end()
    return tuple(steps)


def leads_to_field(schema: Schema, text: str) -> bool:
    """Whether the path leads from the schema to one of its fields."""
    steps = parsed_field_path(text)
    if steps is None:
        return False
    node: Schema | None = schema
    for name in steps:
        node = node and node.child(name)
        if node is None:
            return False
    return True
