"""The name of an object that a pass is about."""

from typing import NamedTuple


class Key(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-wide one is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
