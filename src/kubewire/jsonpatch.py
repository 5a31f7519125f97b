"""JSON Patch (RFC 6902) as the API server applies it.

It differs from the RFC where the server's library does: `replace` of a missing key of an object adds
it, `copy` of one gives null, a `test` for null passes where nothing is, and negative indices count
from the end of an array.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kubewire.gotext import parse_int64

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
Container = dict[str, Json] | list[Json]

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
# Deeper documents than any API object, and shallower than what breaks recursive readers.
MAX_DEPTH: Final = 500

_JSON_NAMES: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
}


class PatchError(ValueError):
    """A patch that was not applied."""


class MalformedPatch(PatchError):
    """What was sent is no patch at all; the API server answers 400 BadRequest."""


class PatchTooLarge(PatchError):
    """The patch has more operations than are allowed; the API server answers 413."""


class PatchFailed(PatchError):
    """The patch does not fit the document, or one of its tests failed; the API server answers 422 Invalid."""


class Operation(NamedTuple):
    """One step of a patch. A missing `path` or `source` (the wire's `from`) is None and fails when used."""

    op: str
    path: str | None = None
    source: str | None = None
    value: Json = None

    def __str__(self) -> str:
        return f"{self.op} {self.path}" if self.source is None else f"{self.op} {self.source} to {self.path}"


def parse(patch: object) -> tuple[Operation, ...]:
    """Return the operations of a decoded patch document, or raise MalformedPatch or PatchTooLarge."""
    if patch is None:
        return ()
    if not isinstance(patch, list):
        raise MalformedPatch(cannot_unmarshal(patch, "Go value of type []handlers.jsonPatchOp"))
    if len(patch) > MAX_OPERATIONS:
        raise PatchTooLarge(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(patch)}"
        )
    return tuple(map(_operation, patch))


def apply(document: Any, operations: Sequence[Operation]) -> Any:
    """Return the patched document; the given one stays as it is and shares what was not touched.

    All operations apply, or PatchFailed names the first that does not.
    """
    draft = _Draft(document)
    for index, operation in enumerate(operations):
        try:
            draft.perform(operation)
        except PatchFailed as error:
            raise PatchFailed(f"operation {index} ({operation}): {error}") from None
    if is_deeper_than(draft.root, MAX_DEPTH):
        raise PatchFailed(f"the patched document is nested more than {MAX_DEPTH} levels deep")
    return draft.root


def cannot_unmarshal(value: object, into: str) -> str:
    """Return the API server's words for a JSON value of the wrong type."""
    return f"json: cannot unmarshal {_JSON_NAMES.get(type(value), type(value).__name__)} into {into}"


def equal(left: object, right: object) -> bool:
    """Whether two JSON values are the same; unlike in Python, true is not 1 and 1.0 is not 1."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if type(one) is not type(other):
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs += [(value, other[key]) for key, value in one.items()]
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def is_deeper_than(document: object, limit: int) -> bool:
    """Whether arrays and objects are nested in more levels than the limit."""
    level = [document] if isinstance(document, dict | list) else []
    while level and limit > 0:
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        limit -= 1
    return bool(level)


class _Draft:
    """A document under change: containers are copied when first written to, and then written in place."""

    __slots__ = ("_copied_bytes", "_own", "root")

    def __init__(self, document: Json) -> None:
        self.root = document
        # The containers that were made here, by id; holding them keeps their ids theirs.
        self._own: dict[int, Container] = {}
        self._copied_bytes = 0

    def perform(self, operation: Operation) -> None:
        path = operation.path
        if path is None:
            raise PatchFailed("it has no path")
        match operation.op:
            case "add":
                self._add(path, operation.value)
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, operation.value)
            case "move":
                self._add(path, self._remove(_source(operation)))
            case "copy":
                self._add(path, self._copy(self._value_at(_source(operation))))
            case "test":
                if not equal(self._value_at(path, whole=True), operation.value):
                    raise PatchFailed("the value is another one")
            case unknown:
                raise PatchFailed(f"there is no operation {unknown!r}")

    def _add(self, path: str, value: Json) -> None:
        container, key = self._writable_parent(path)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    def _remove(self, path: str) -> Json:
        container, key = self._writable_parent(path)
        if isinstance(container, list):
            return container.pop(_index(key, len(container)))
        if key not in container:
            raise PatchFailed("there is nothing to remove")
        return container.pop(key)

    def _replace(self, path: str, value: Json) -> None:
        if path == "":
            if not isinstance(value, dict | list):
                raise PatchFailed("only an object or an array can replace the whole document")
            self.root = value
            return
        container, key = self._writable_parent(path)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container))] = value

    def _value_at(self, path: str, *, whole: bool = False) -> Json:
        """Return the value there; a missing key of an object counts as null."""
        if path == "" and whole:
            return self.root
        steps = _steps(path)
        container = self._container(self.root)
        for step in steps[:-1]:
            container = self._container(_child(container, step))
        return _child(container, steps[-1])

    def _writable_parent(self, path: str) -> tuple[Container, str]:
        """Return the container that holds the path's last step, made ours, and that step."""
        steps = _steps(path)
        container = self._owned(self._container(self.root))
        self.root = container
        for step in steps[:-1]:
            child = self._owned(self._container(_child(container, step)))
            if isinstance(container, dict):
                container[step] = child
            else:
                container[_index(step, len(container))] = child
            container = child
        return container, steps[-1]

    def _container(self, value: Json) -> Container:
        if not isinstance(value, dict | list):
            raise PatchFailed("the path leads nowhere")
        return value

    def _owned(self, container: Container) -> Container:
        if id(container) in self._own:
            return container
        copy = container.copy()
        self._own[id(copy)] = copy
        return copy

    def _copy(self, value: Json) -> Json:
        """Return a deep copy, within what all copies of a patch may add together.

        Two places that shared one container would both change when it is written to, and a patch
        could double a document again and again at no cost.
        """
        holder: list[Json] = [None]
        pending: list[tuple[Json, Container, Any]] = [(value, holder, 0)]
        while pending:
            source, target, key = pending.pop()
            self._copied_bytes += _own_size(source)
            if self._copied_bytes > MAX_COPIED_BYTES:
                raise PatchFailed(f"the copies of this patch exceed {MAX_COPIED_BYTES} bytes")
            if isinstance(source, dict):
                keyed: dict[str, Json] = dict.fromkeys(source)
                target[key] = keyed
                pending += [(child, keyed, name) for name, child in source.items()]
            elif isinstance(source, list):
                listed: list[Json] = [None] * len(source)
                target[key] = listed
                pending += [(child, listed, index) for index, child in enumerate(source)]
            else:
                target[key] = source
        return holder[0]


def _operation(fields: object) -> Operation:
    if fields is None:
        return Operation("unknown")
    if not isinstance(fields, dict):
        raise MalformedPatch(cannot_unmarshal(fields, "Go value of type handlers.jsonPatchOp"))
    op, path, source = (_text(fields, name) for name in ("op", "path", "from"))
    return Operation("unknown" if op is None else op, path, source, fields.get("value"))


def _text(fields: dict[str, Any], name: str) -> str | None:
    text = fields.get(name)
    if text is not None and not isinstance(text, str):
        raise MalformedPatch(cannot_unmarshal(text, f"Go struct field jsonPatchOp.{name} of type string"))
    return text


def _source(operation: Operation) -> str:
    if operation.source is None:
        raise PatchFailed("it has no from")
    return operation.source


def _steps(path: str) -> list[str]:
    """Return the steps of a JSON pointer; the server ignores what stands before the first slash."""
    steps = path.split("/")[1:]
    if not steps:
        raise PatchFailed("the path leads nowhere")
    if "~" in path:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in steps]
    return steps


def _child(container: Container, step: str) -> Json:
    if isinstance(container, dict):
        return container.get(step)
    return container[_index(step, len(container))]


def _index(step: str, length: int) -> int:
    """Return the index that a step names in an array; negative ones count from its end."""
    index = parse_int64(step)
    if index is None:
        raise PatchFailed(f"{step!r} is no index of an array")
    if not -length <= index < length:
        raise PatchFailed(f"index {index} is out of range")
    return index % length


def _own_size(value: Json) -> int:
    """Return about how many bytes the value takes in JSON, without what it contains."""
    if isinstance(value, dict):
        return 2 + sum(len(key) + 4 for key in value)
    if isinstance(value, list):
        return 2 + len(value)
    return len(value) + 2 if isinstance(value, str) else 8
