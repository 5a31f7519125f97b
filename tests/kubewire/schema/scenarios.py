"""Scenarios captured from a real API server, replayed against schemas alone.

A scenario is a YAML file of requests and a JSON file with the server's answer to each. `Replay` does with a request
what a server does between reading an object and storing it, and says what it would answer.
"""

import copy
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from kubewire import jsonpatch, mergepatch
from kubewire.paths import show
from kubewire.schema import Schema, apply_defaults, prune, validate

_STEP = re.compile(r"[^.\[\]]+")


class Exchange(NamedTuple):
    """A request with the body it carries, and the server's answer."""

    name: str
    verb: str
    target: str
    query: str
    body: Any
    patch_type: str
    answer: dict[str, Any]

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        details = self.answer.get("body", {}).get("details") or {}
        return sorted(
            (cause["field"], cause["message"], cause["reason"]) for cause in details.get("causes", ())
        )

    @property
    def unknown_fields(self) -> list[str]:
        pattern = re.compile(r'299 - "unknown field \\"(.*)\\""')
        return sorted(match[1] for match in map(pattern.fullmatch, self.answer["warnings"]) if match)


def exchanges(scenario: Path) -> list[Exchange]:
    """Return the requests of a scenario that write an object, with their answers."""
    written = yaml.safe_load(scenario.read_text())
    answers = json.loads(scenario.with_suffix("").with_suffix(".answers.json").read_text())["steps"]
    found = []
    for step, answer in zip(written["steps"], answers, strict=True):
        request = step.get("request") or step.get("poll") or ""
        verb, _, target = request.partition(" ")
        target, _, query = target.partition("?")
        if verb not in {"POST", "PATCH", "DELETE"}:
            continue
        body = copy.deepcopy(step["body"] if "body" in step else written["objects"].get(step.get("use")))
        for path, value in step.get("set", {}).items():
            _put(body, path, copy.deepcopy(value))
        for path in step.get("unset", ()):
            _put(body, path, _REMOVED)
        name = step.get("name", request)
        found.append(Exchange(name, verb, target, query, body, step.get("patch", "merge"), answer))
    return found


_REMOVED = object()


def _put(obj: Any, path: str, value: object) -> None:
    *steps, last = (int(step) if step.isdigit() else step for step in _STEP.findall(path))
    for step in steps:
        obj = obj[step] if isinstance(obj, list) else obj.setdefault(step, {})
    if value is _REMOVED:
        del obj[last]
    elif isinstance(obj, list) and last == len(obj):
        obj.append(value)
    else:
        obj[last] = value


class Verdict(NamedTuple):
    """What the schemas say of a request; `obj` is what would be stored."""

    causes: list[tuple[str, str, str]]
    unknown_fields: list[str]
    obj: dict[str, Any]


class Replay:
    """Objects by name, and the schema that judges changes of them."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.stored: dict[str, dict[str, Any]] = {}

    def send(self, exchange: Exchange, version: str = "", schema: Schema | None = None) -> Verdict:
        """Judge a request and store its object if it is accepted; `schema` is that of another `version`."""
        schema = schema or self.schema
        _, name, subresource = (*exchange.target.split("/", 2), "", "")[:3]
        old = copy.deepcopy(self.stored.get(name)) if exchange.verb == "PATCH" else None
        if old is not None and version:
            old["apiVersion"] = version
            prune(schema, old)  # what the other version does not know is not seen through it
        new = copy.deepcopy(exchange.body) if old is None else self._patched(old, exchange, subresource)
        unknown = prune(schema, new)
        apply_defaults(schema, new)
        errors = validate(schema, new, old, part=subresource)
        if not errors and "fieldValidation=Strict" not in exchange.query:
            self.stored[new["metadata"]["name"]] = new
        return Verdict(
            causes=sorted((error.field, error.message, error.reason) for error in errors),
            unknown_fields=sorted(show(path) for path in unknown),
            obj=new,
        )

    @staticmethod
    def _patched(old: dict[str, Any], exchange: Exchange, subresource: str) -> dict[str, Any]:
        if exchange.patch_type == "json":
            new = jsonpatch.apply(copy.deepcopy(old), jsonpatch.parse(exchange.body))
        else:
            new = mergepatch.apply(copy.deepcopy(old), exchange.body)
        assert isinstance(new, dict)
        if subresource == "status":
            return {**old, "status": new["status"]}
        return {**new, "status": old["status"]} if "status" in old else new


def at(obj: Any, path: str) -> Any:
    """Return what stands at a path of a captured answer, or `<absent>`."""
    for step in _STEP.findall(path):
        try:
            obj = obj[int(step)] if isinstance(obj, list) else obj[step]
        except (KeyError, IndexError):
            return "<absent>"
    return obj
