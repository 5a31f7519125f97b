"""Lists whose items may not repeat: sets by their items, maps by the keys of their items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire import fielderrors
from kubewire.schema.values import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kubewire.fielderrors import FieldError
    from kubewire.paths import FieldPath
    from kubewire.schema.nodes import Schema

    # Makes the error, given the path and how it is written.
    Maker = Callable[[FieldPath, str], FieldError]


def list_problems(node: Schema, value: Sequence[object]) -> Iterator[tuple[int, Maker]]:
    """Yield the index of each item that a list of type set or map may not have, with the error it makes."""
    if node.list_type == "set":
        for index in repeated(value):
            yield index, _duplicate(value[index])
    elif node.list_type == "map":
        for index, item in enumerate(value):
            if item is not None and not isinstance(item, dict):
                yield index, _no_object(item)
                return
        keys = [_key_of(node, item) for item in value]
        for index in repeated(keys):
            yield index, _duplicate(keys[index])


def repeated(values: Sequence[object]) -> list[int]:
    """Return the index of the second of each group of same values."""
    seen: dict[object, int] = {}
    second = []
    for index, value in enumerate(values):
        key = frozen(value)
        seen[key] = times = seen.get(key, 0) + 1
        if times == 2:
            second.append(index)
    return second


def _key_of(node: Schema, item: object) -> dict[str, object]:
    return {key: item[key] for key in node.map_keys if key in item} if isinstance(item, dict) else {}


def _duplicate(value: object) -> Maker:
    return lambda path, written: fielderrors.duplicate(path, value, written)


def _no_object(value: object) -> Maker:
    detail = "must be an object for an array of list-type map"
    return lambda path, written: fielderrors.invalid(path, value, detail, written)
