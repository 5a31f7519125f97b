"""What one attacker sends, where to, and by which names its objects go."""

from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.kubereef.hostile.surface import Operation, Position, Surface

JSON = "application/json"
STANDING = "standing"
# So many names are in use at a time, so that writes meet objects that are there.
_NAMES = 12


class Attack(NamedTuple):
    """One request. `family` says what is wrong with it."""

    family: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    # What ends a stream as far as this request is concerned; without it, what comes at once is enough.
    until: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


class Aim:
    """The place of one attacker: a namespace and names of its own, so that nobody else undoes what it was told."""

    def __init__(self, surface: Surface, seed: int, number: int) -> None:
        self.surface = surface
        self.random = Random(f"{seed}/{number}")
        self.namespace = f"hostile-{number}"
        self.prefix = f"h{number}"
        # Each attacker begins at another place of the schemas, and so does each day.
        self._next = Random(seed).randrange(len(surface.positions)) + number * len(surface.positions) // 4

    def position(self) -> Position:
        """Return the next field of the schemas; they come round."""
        self._next += 1
        return self.surface.positions[self._next % len(self.surface.positions)]

    def name(self) -> str:
        """Return one of the names that this attacker uses again and again."""
        return f"{self.prefix}-{self.random.randrange(_NAMES)}"

    def standing(self) -> str:
        """Return the name of the object of each kind that is mostly there."""
        return f"{self.prefix}-{STANDING}"

    def path(self, operation: Operation, name: str = "") -> str:
        """Return where an operation is asked for."""
        path = operation.path.replace("{namespace}", self.namespace)
        if operation.kind == "Namespace" and "{name}" in path:
            name = self.namespace  # the others are not for this attacker to touch
        return path.replace("{name}", quote(name or self._named(operation), safe=""))

    def named(self, operation: Operation, body: dict[str, Any], name: str = "") -> dict[str, Any]:
        """Give a body a name, unless what stands for its metadata is none."""
        if operation.kind.endswith("Review"):
            return body
        metadata = body.setdefault("metadata", {})
        if isinstance(metadata, dict) and "name" not in metadata:
            metadata["name"] = name or self._named(operation)
            if operation.definition.endswith(".CustomResourceDefinition"):
                self._as_definition(body, metadata["name"])
        for about in (body.get("involvedObject"), body.get("regarding")):
            if isinstance(about, dict):
                about.setdefault("namespace", self.namespace)
        return body

    def _named(self, operation: Operation) -> str:
        if operation.kind == "CustomResourceDefinition":
            return f"things-{self.random.randrange(3)}.{self.prefix}.example.com"
        if operation.kind == "ServiceAccount" and self.random.random() < 0.5:
            return "default"  # without it there are no Pods
        return self.standing() if self.random.random() < 0.6 else self.name()

    def _as_definition(self, body: dict[str, Any], name: str) -> None:
        """Make group and plural of a definition those of its name, so that it comes to be served."""
        plural, _, group = name.partition(".")
        spec = body.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("group"), str):
            spec["group"] = group
            if isinstance(spec.get("names"), dict):
                kind = plural.replace("-", "").title()
                spec["names"].update(plural=plural, kind=kind, singular=kind.lower(), listKind=f"{kind}List")
