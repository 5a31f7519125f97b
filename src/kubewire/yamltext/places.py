"""Where values stand in a text: read a second time, only when something is to be reported."""

import yaml

from kubewire.paths import FieldPath
from kubewire.yamltext.events import Events, Position, YamlError, position
from kubewire.yamltext.jsontext import looks_like_json


class _Place:
    __slots__ = ("children", "position")

    def __init__(self, where: Position) -> None:
        self.position = where
        self.children: dict[str | int, _Place] = {}


def locate(text: str, document: int, paths: list[FieldPath]) -> list[Position]:
    """Return where each path of a document stands: a field at its key, a list item at its first character.

    A value that is not in the text itself is located by the nearest value around it that is.
    """
    root = _document_places(text, document)
    return [_find(root, path) for path in paths]


def _find(place: _Place, path: FieldPath) -> Position:
    for step in path:
        inner = place.children.get(step)
        if inner is None:
            break
        place = inner
    return place.position


def _document_places(text: str, document: int) -> _Place:
    if looks_like_json(text):
        # JSON may be indented with tabs, which YAML refuses; a space keeps every column where it is.
        text = text.replace("\t", " ")
    root = _Place(Position(1, 1))
    try:
        with Events(text) as events:
            index = -1
            while index < document:
                index += isinstance(events.next(), yaml.DocumentStartEvent)
            event = events.next()
            root.position = position(event)
            _fill(root, event, events)
    except YamlError:
        # The text was read before, so this is JSON beyond YAML's grammar: the places found so far serve.
        return root
    return root


def _fill(place: _Place, event: yaml.Event, events: Events) -> None:
    if isinstance(event, yaml.SequenceStartEvent):
        while not isinstance(event := events.next(), yaml.SequenceEndEvent):
            inner = place.children[len(place.children)] = _Place(position(event))
            _fill(inner, event, events)
    elif isinstance(event, yaml.MappingStartEvent):
        while not isinstance(event := events.next(), yaml.MappingEndEvent):
            inner = _Place(position(event))
            if isinstance(event, yaml.ScalarEvent):
                place.children[event.value] = inner
            _fill(inner, events.next(), events)
