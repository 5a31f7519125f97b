"""Values from events, counted as they are built."""

from collections.abc import Iterator

import yaml

from kubewire.objects import copied
from kubewire.yamltext.events import (
    MAX_DEPTH,
    MAX_VALUES,
    Document,
    Duplicate,
    Events,
    error_at,
    position,
)
from kubewire.yamltext.scalars import key_text, scalar_value


def documents(text: str) -> Iterator[Document]:
    """Yield the documents of a YAML text; the limits hold for the whole text."""
    with Events(text) as events:
        builder = _Builder(events)
        while not isinstance(event := events.next(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                yield builder.document()


class _Builder:
    def __init__(self, events: Events) -> None:
        self._next = events.next
        self._left = MAX_VALUES
        self._anchors: dict[str, tuple[object, int] | None] = {}
        self._duplicates: list[Duplicate] = []
        self._path: list[str | int] = []

    def document(self) -> Document:
        self._anchors = {}
        self._duplicates = []
        event = self._next()
        value = self._value(event, 0)
        return Document(value, position(event), tuple(self._duplicates))

    def _value(self, event: yaml.Event, depth: int) -> object:
        self._left -= 1
        if self._left < 0:
            raise error_at(event, f"more than {MAX_VALUES} values; split the file")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        assert isinstance(event, yaml.NodeEvent)
        before = self._left
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None  # open: an alias to it now would contain itself
        value: object
        if isinstance(event, yaml.ScalarEvent):
            value = scalar_value(event)
        elif depth >= MAX_DEPTH:
            raise error_at(event, f"nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.MappingStartEvent):
            value = self._mapping(depth + 1)
        else:
            value = self._sequence(depth + 1)
        if anchor is not None:
            self._anchors[anchor] = (value, before - self._left)
        return value

    def _sequence(self, depth: int) -> list[object]:
        items: list[object] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            self._path.append(len(items))
            items.append(self._value(event, depth))
            self._path.pop()
        return items

    def _mapping(self, depth: int) -> dict[str, object]:
        entries: dict[str, object] = {}
        keys: dict[str, yaml.Event] = {}
        merged: list[dict[str, object]] = []
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                merged += self._merge_sources(self._next(), depth)
                continue
            key = key_text(event, self._value(event, depth))
            self._path.append(key)
            if key in keys:
                self._duplicates.append(Duplicate(tuple(self._path), position(keys[key]), position(event)))
            else:
                keys[key] = event
            entries[key] = self._value(self._next(), depth)
            self._path.pop()
        for source in merged:
            entries = {**source, **entries}
        return entries

    def _merge_sources(self, event: yaml.Event, depth: int) -> list[dict[str, object]]:
        value = self._value(event, depth)
        sources = value if isinstance(value, list) else [value]
        mappings = [source for source in sources if isinstance(source, dict)]
        if len(mappings) < len(sources):
            raise error_at(event, "'<<' merges mappings only")
        return mappings

    def _alias(self, event: yaml.AliasEvent) -> object:
        if event.anchor not in self._anchors:
            raise error_at(event, f"alias *{event.anchor} has no anchor before it")
        known = self._anchors[event.anchor]
        if known is None:
            raise error_at(event, f"anchor &{event.anchor} contains itself")
        value, size = known
        # A copy, so that changing one place never changes another; it is paid for by its size.
        self._left -= size
        if self._left < 0:
            raise error_at(event, f"the aliases stand for more than {MAX_VALUES} values; write fewer of them")
        return copied(value)
