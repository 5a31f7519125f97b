"""The types that Kubernetes itself defines, as it publishes them (OpenAPI v2 definitions of 1.36)."""

import json
from collections.abc import Mapping
from typing import Any

import kubewire

_loaded: dict[str, dict[str, Any]] = {}


def definition(name: str) -> Mapping[str, Any]:
    """Return one definition by its full name, as in `io.k8s.api.core.v1.Pod`; KeyError if there is none."""
    return definitions()[name]


def definitions() -> Mapping[str, Mapping[str, Any]]:
    """Return all definitions by their full names. They are read from disk once, at the first call."""
    if not _loaded:
        path = f"{kubewire.__path__[0]}/data/definitions-1.36.json"
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
            _loaded.update(json.load(file)["definitions"])
    return _loaded
