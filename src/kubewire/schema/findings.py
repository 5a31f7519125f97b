"""What a validation found, in the words of Kubernetes' OpenAPI validator, which spells paths its own way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire import fielderrors
from kubewire.gotext import quote
from kubewire.paths import FieldPath, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubewire.fielderrors import FieldError
    from kubewire.schema.nodes import Schema

NOWHERE = "<nil>"


def dotted(path: FieldPath) -> str:
    """Return a path as the OpenAPI validator writes it: every key after a dot, whatever it looks like."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).removeprefix(".")


def spelled(schema: Schema, path: FieldPath) -> str:
    """Return a path as Kubernetes' walks over structural schemas write it: `.property`, `[key of a map]`."""
    node: Schema | None = schema
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
            node = node.items if node else None
        else:
            known = node.field(step) if node else None
            is_entry = known is None and node is not None and node.additional is not None
            text += f"[{step}]" if is_entry else f".{step}"
            node = known or (node.additional if node else None)
    return text.removeprefix(".") or NOWHERE


class Findings:
    """The errors found so far in a value that stands at `base`, a path written `base_text`."""

    __slots__ = ("base", "base_text", "errors")

    def __init__(self, base: FieldPath = (), base_text: str = "") -> None:
        self.base = base
        self.base_text = base_text or show(base)
        self.errors: list[FieldError] = []

    def _place(self, path: FieldPath) -> tuple[FieldPath, str]:
        """Return the whole path, and its spelling if that is a special one."""
        whole = self.base + path
        text = dotted(path)
        if self.base_text:
            text = f"{self.base_text}.{text}" if text else self.base_text
        return whole, "" if text and text == show(whole) else text or NOWHERE

    def wrong_type(self, path: FieldPath, wanted: str, found: str) -> None:
        detail = f"{dotted(path)} in body must be of type {wanted}: {quote(found)}"
        place, written = self._place(path)
        self.errors.append(fielderrors.type_invalid(place, found, detail, written))

    def invalid(self, path: FieldPath, value: object, clause: str) -> None:
        place, written = self._place(path)
        self.errors.append(fielderrors.invalid(place, value, f"{dotted(path)} in body {clause}", written))

    def forbidden_property(self, path: FieldPath, key: str) -> None:
        detail = f"{dotted(path)}.{key} in body is a forbidden property"
        place, written = self._place(path)
        self.errors.append(fielderrors.invalid(place, key, detail, written))

    def required(self, path: FieldPath) -> None:
        place, written = self._place(path)
        self.errors.append(fielderrors.required(place, "", written))

    def not_supported(self, path: FieldPath, value: object, supported: Sequence[object]) -> None:
        place, written = self._place(path)
        self.errors.append(fielderrors.not_supported(place, value, supported, written))

    def too_long(self, path: FieldPath, maximum: int) -> None:
        place, written = self._place(path)
        self.errors.append(fielderrors.too_long(place, maximum, written))

    def too_many(self, path: FieldPath, actual: int, maximum: int) -> None:
        place, written = self._place(path)
        self.errors.append(fielderrors.too_many(place, actual, maximum, written))

    def general(self, path: FieldPath, detail: str) -> None:
        """Report what the server says of the object as a whole: the field it names is none."""
        written = self.base_text or NOWHERE
        self.errors.append(fielderrors.invalid(self.base + path, "", detail, written))
