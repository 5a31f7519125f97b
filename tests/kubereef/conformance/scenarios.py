"""Scenarios: requests in a YAML file, and beside it the answers that a real API server gave."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

DIRECTORY = Path(__file__).parents[2] / "data" / "conformance"
DEFINITIONS = Path(__file__).parents[3] / "config" / "crd"

_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_KEYS = frozenset(
    (
        *("name", "request", "poll", "watch", "while"),
        *("query", "headers", "as", "body", "text", "use", "set", "unset", "patch", "save", "pause"),
        *("compare", "fields", "unordered", "ignore", "managedFields"),
        *("until", "untilStatus", "timeout", "every", "count", "quiet", "bookmarks"),
    )
)

Step = dict[str, Any]


class NoValue(Exception):
    """A step needs a value that an earlier one did not bring."""


class Scenario(NamedTuple):
    """A story of requests, told once to a real server and now to ours."""

    name: str
    title: str
    steps: list[Step]
    answers: list[dict[str, Any]]
    variables: dict[str, Any]
    objects: dict[str, Any]
    definitions: list[str]
    namespaces: list[str]
    needs_controllers: bool = False


def names() -> list[str]:
    """Return the name of every scenario, such as `server/watch`."""
    return [f"{file.parent.name}/{file.stem}" for file in sorted(DIRECTORY.glob("*/*.yaml"))]


def load(name: str) -> Scenario:
    """Return a scenario with its answers."""
    text = (DIRECTORY / f"{name}.yaml").read_text()
    content = yaml.safe_load(text)
    for step in every_step(content["steps"]):
        if unknown := step.keys() - _KEYS:  # often a comma in an unquoted name
            raise ValueError(f"{name}: unknown keys {sorted(map(str, unknown))} in {label(step)}")
    return Scenario(
        name,
        content["title"],
        content["steps"],
        json.loads((DIRECTORY / f"{name}.answers.json").read_text())["steps"],
        content.get("vars", {}),
        content.get("objects", {}),
        content.get("crds", []),
        [variable for variable in ("ns", "ns2") if f"${{{variable}}}" in text],
        content.get("needs") == "controllers",
    )


def every_step(steps: list[Step]) -> list[Step]:
    """Return the steps in the order in which they end: those inside a watch come before it."""
    return [one for step in steps for one in (*every_step(step.get("while", [])), step)]


def label(step: Step) -> str:
    """Return what a step is called in the answers."""
    request: str = step.get("request") or step.get("poll") or f"watch {step['watch']}"
    return f"{step['name']} [{request}]" if "name" in step else request


def definition(name: str) -> dict[str, Any]:
    """Return a custom resource definition that scenarios ask for, such as `rayclusters.ray.io`."""
    plural, _, group = name.partition(".")
    text = (DEFINITIONS / f"{group}_{plural}.yaml").read_text()
    content: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return content


def fill(value: Any, variables: dict[str, Any]) -> Any:
    """Replace `${name}` everywhere in a value; a text that is nothing else becomes the value, whatever its type."""
    if isinstance(value, dict):
        return {fill(key, variables): fill(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, variables) for item in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    if whole := _VARIABLE.fullmatch(value):
        return _lookup(whole[1], variables)
    return _VARIABLE.sub(lambda match: str(_lookup(match[1], variables)), value)


def _lookup(name: str, variables: dict[str, Any]) -> Any:
    if name.startswith("repeat:"):
        _, text, times = name.split(":")
        return text * int(times)
    if name not in variables:
        raise NoValue(f"no value for ${{{name}}}: the step that saves it got another answer")
    return fill(variables[name], variables)
