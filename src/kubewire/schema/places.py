"""Places inside of a schema, and errors about them: `spec.validation.openAPIV3Schema.properties[spec].type`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire import fielderrors
from kubewire.schema.findings import NOWHERE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubewire.fielderrors import FieldError
    from kubewire.paths import FieldPath


class Place:
    """A path into a schema together with the text that Kubernetes writes for it."""

    __slots__ = ("path", "text")

    def __init__(self, text: str = "", path: FieldPath = ()) -> None:
        self.text = text
        self.path = path

    def __str__(self) -> str:
        return self.text or NOWHERE

    def child(self, name: str) -> Place:
        return Place(f"{self.text}.{name}" if self.text else name, (*self.path, name))

    def key(self, name: str) -> Place:
        return Place(f"{self.text}[{name}]", (*self.path, name))

    def index(self, number: int) -> Place:
        return Place(f"{self.text}[{number}]", (*self.path, number))

    def property(self, name: str) -> Place:
        return self.child("properties").key(name)

    def required(self, detail: str) -> FieldError:
        return fielderrors.required(self.path, detail, str(self))

    def forbidden(self, detail: str) -> FieldError:
        return fielderrors.forbidden(self.path, detail, str(self))

    def invalid(self, value: object, detail: str) -> FieldError:
        return fielderrors.invalid(self.path, value, detail, str(self))

    def not_supported(self, value: object, supported: Iterable[str]) -> FieldError:
        return fielderrors.not_supported(self.path, value, supported, str(self))
