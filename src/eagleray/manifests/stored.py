"""What all of Ray's kinds have in common when builders and controllers read them."""

from typing import Any

Object = dict[str, Any]


class Stored:
    """An object as stored, with names for the questions that are asked about it. Nothing here changes it."""

    __slots__ = ("metadata", "obj", "spec", "status")

    def __init__(self, obj: Object) -> None:
        self.obj = obj
        self.metadata: Object = obj["metadata"]
        self.spec: Object = obj.get("spec") or {}
        self.status: Object = obj.get("status") or {}

    @property
    def name(self) -> str:
        return str(self.metadata["name"])

    @property
    def namespace(self) -> str:
        return str(self.metadata["namespace"])

    @property
    def place(self) -> str:
        """Namespace and name, as messages give them."""
        return f"{self.namespace}/{self.name}"

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation", 0))

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.get("annotations") or {}
