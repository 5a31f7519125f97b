"""The facts about Go's types: which fields a struct has, of which type, and when they are left out.

`scripts/go-types` takes them from the published Go modules; its README describes the notation of types.
"""

import json
import os.path
from functools import cache
from typing import NamedTuple

_FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "go-types-1.36.json")  # noqa: PTH118, PTH120 - pathlib costs start-up time

_loaded: dict[str, list[list[str]]] = {}


class Field(NamedTuple):
    """A field of a struct as Go declares it."""

    name: str
    type: str
    # "omitempty", "omitzero" or nothing.
    omission: str = ""
    # The Go names of the structs it is embedded with, which messages show: `VolumeSource`.
    embedded: str = ""


def is_known(definition: str) -> bool:
    """Tell whether there are facts about a type."""
    return definition in _facts()


@cache
def fields_of(definition: str) -> tuple[Field, ...]:
    """Return the fields of a struct in Go's order; KeyError if it is not known."""
    return tuple(Field(*field) for field in _facts()[definition])


def go_name(definition: str) -> str:
    """Return a struct's name as Go prints it, with the package: `v1.PodSpec`."""
    return ".".join(definition.rsplit(".", 2)[-2:])


def _facts() -> dict[str, list[list[str]]]:
    if not _loaded:
        with open(_FILE, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            _loaded.update(json.load(file))
    return _loaded
