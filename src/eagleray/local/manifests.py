"""Manifests as people give them: files, folders or standard input, YAML or JSON, with many objects in each."""

import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from kubewire.paths import FieldPath
from kubewire.yamltext import MAX_BYTES, Position, YamlError, decode, load_all, locate

Object = dict[str, Any]

SUFFIXES = (".yaml", ".yml", ".json")


class BadManifest(ValueError):
    """Something that is no object of Kubernetes; `file` and `position` say where it stands."""

    def __init__(self, file: str, position: Position, problem: str) -> None:
        super().__init__(problem)
        self.file = file
        self.position = position


class Manifest(NamedTuple):
    """One object as it was given, and where it stands."""

    obj: Object
    file: str
    position: Position

    @property
    def title(self) -> str:
        """The object as people name it, such as RayJob/hello."""
        metadata = self.obj["metadata"]
        return f"{self.obj['kind']}/{metadata.get('name') or metadata['generateName']}"

    @property
    def place(self) -> str:
        return f"{self.file}:{self.position.line}"


def read_source(source: str) -> Iterator[tuple[str, bytes | str]]:
    """Yield name and content of each file that a source names, or why the content cannot be had."""
    if source == "-":
        yield "<stdin>", sys.stdin.buffer.read(MAX_BYTES + 1)
        return
    if not os.path.isdir(source):  # noqa: PTH112 - pathlib takes longer to import than `validate` may take to start
        yield source, _content(source)
        return
    inside = sorted(
        f"{folder}{os.sep}{file}"
        for folder, _, files in os.walk(source)
        for file in files
        if file.endswith(SUFFIXES)
    )
    if not inside:
        yield source, f"no manifests in this folder ({', '.join(f'*{suffix}' for suffix in SUFFIXES)})"
    for file in inside:
        yield file, _content(file)


def objects_in(value: object) -> Iterator[tuple[FieldPath, object]]:
    """Yield the objects of a document with their paths: itself, or the items of a list kind."""
    if value is None:
        return
    is_list = isinstance(value, dict) and str(value.get("kind", "")).endswith("List")
    if isinstance(value, dict) and is_list and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield ("items", index), item
    else:
        yield (), value


def manifests_in(file: str, raw: bytes) -> Iterator[Manifest]:
    """Yield the objects of a file in the order in which they stand there; BadManifest if one is none."""
    try:
        text = decode(raw)
        for index, document in enumerate(load_all(text)):
            for path, obj in objects_in(document.value):
                # An object that is the whole document needs no second reading of the text to be found.
                position = locate(text, index, [path])[0] if path else document.position
                yield Manifest(_checked(obj, file, position), file, position)
    except YamlError as bad:
        raise BadManifest(file, Position(bad.line, bad.column), bad.message) from bad


def _checked(obj: object, file: str, position: Position) -> Object:
    """Return an object that has what every object has to have to be sent to a server."""
    if not isinstance(obj, dict):
        raise BadManifest(file, position, "this is no object of Kubernetes: it has no fields")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            raise BadManifest(file, position, f"{field} is missing")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise BadManifest(file, position, "metadata is missing")
    names = [metadata.get(field) for field in ("name", "generateName")]
    if not any(isinstance(name, str) and name for name in names):
        raise BadManifest(file, position, "metadata.name is missing")
    if not isinstance(metadata.get("namespace", ""), str):
        raise BadManifest(file, position, "metadata.namespace has to be text; quote it")
    return obj


def _content(file: str) -> bytes | str:
    try:
        with open(file, "rb") as opened:  # noqa: PTH123 - as above
            return opened.read(MAX_BYTES + 1)
    except OSError as bad:
        return bad.strerror or str(bad)
