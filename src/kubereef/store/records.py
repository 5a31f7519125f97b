"""What the store holds: objects under keys, and the changes that made them."""

from typing import Any, Literal, NamedTuple

import msgspec

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


class Key(NamedTuple):
    """Where an object is kept. `resource` is plural and group, as in `pods` or `deployments.apps`."""

    resource: str
    namespace: str  # empty for what belongs to no namespace
    name: str


class Record:
    """An object as it is kept: encoded once, decoded whenever somebody wants to read or change it."""

    __slots__ = ("data", "key", "revision")

    def __init__(self, key: Key, revision: int, data: bytes) -> None:
        self.key = key
        self.revision = revision
        self.data = data

    def object(self) -> dict[str, Any]:
        """Return a copy of the object, the caller's to change."""
        value: dict[str, Any] = decode(self.data)
        return value

    def __repr__(self) -> str:
        return f"Record({'/'.join(self.key)} at {self.revision})"


class Change:
    """One step of the history: what happened to a record, and what it was before."""

    __slots__ = ("cache", "previous", "record", "type")

    def __init__(self, type: ChangeType, record: Record, previous: Record | None) -> None:  # noqa: A002 - wire name
        self.type: ChangeType = type
        self.record = record
        self.previous = previous
        # What readers derive from the change, such as its encoded form: made once, used by every watcher.
        self.cache: dict[object, Any] = {}

    @property
    def key(self) -> Key:
        return self.record.key

    @property
    def revision(self) -> int:
        return self.record.revision

    @property
    def weight(self) -> int:
        """How many bytes keeping this change costs, roughly."""
        return len(self.record.data) + 200

    def __repr__(self) -> str:
        return f"Change({self.type} {self.record!r})"
