"""Tables of Pods, one for each thing that a node promises: what is asked for, and what has to come of it.

An entry of a table (`*.yaml` beside this file) is

    sentence   what it shows
    objects    what has to be there before: [{path: /api/v1/…, body: …}]
    metadata   labels and annotations of the Pod
    spec       the Pod's own, in short: `run` is a script for the shell, `python` a program for Python, names and images
               may be left out, and grace is a second
    when, then requests to send once the Pod looks like `when`: [{method, path, body}]
    pod        what the Pod has to look like in the end, as far as it is told here
    logs       what its containers have to have said
    events     what has to have been told of it: [reason, message]
    gone       the Pod has to be gone instead, and to have left these words in {kept}/{name}
    lasts      for how many seconds it has to stay so; else it is enough that it was so once
    needs      what the machine must be able to do for it, as the sandbox calls it

In everything that is expected, a text that begins with ~ is a regular expression for the whole, null means that there
is nothing, and lists of named things are compared by name. {name} is the Pod's name, and what else stands in braces is
listed in `conftest.Reef.values`.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import yaml

HERE = Path(__file__).parent
SHELL, PYTHON = "busybox", "example.com/python:3"


class Entry(NamedTuple):
    """One Pod and what is expected of it."""

    name: str
    sentence: str
    pod: dict[str, Any]
    objects: list[dict[str, Any]]
    when: dict[str, Any] | None
    then: list[dict[str, Any]]
    expected: dict[str, Any]
    lasts: float
    needs: str


def read_table(name: str) -> list[Entry]:
    """Return the entries of a table."""
    entries = yaml.safe_load((HERE / f"{name}.yaml").read_text())
    return [_entry(f"{name}-{number}", entry) for number, entry in enumerate(entries)]


def _entry(name: str, given: dict[str, Any]) -> Entry:
    spec = {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False, **given.pop("spec")}
    for field in ("initContainers", "containers"):
        if field in spec:
            spec[field] = [_container(one, f"{field[0]}{number}") for number, one in enumerate(spec[field])]
    metadata = {"name": name, **given.pop("metadata", {})}
    return Entry(
        name,
        given.pop("sentence"),
        {"metadata": metadata, "spec": spec},
        given.pop("objects", []),
        given.pop("when", None),
        given.pop("then", []),
        lasts=given.pop("lasts", 0.0),
        needs=given.pop("needs", ""),
        expected=given,
    )


def _container(given: dict[str, Any], name: str) -> dict[str, Any]:
    container = {"name": name, **given}
    if "run" in container:
        container |= {"image": SHELL, "command": ["sh", "-c", container.pop("run")]}
    if "python" in container:
        container |= {"image": PYTHON, "command": ["python3", "-uc", container.pop("python")]}
    return {**container, **{field: given[field] for field in ("image", "command") if field in given}}


def differences(want: Any, got: Any, values: dict[str, str], place: str = "") -> list[str]:
    """Return in words where something is not as expected."""
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return [f"{place}: {got!r} is not {want!r}"]
        return [
            line
            for key, value in want.items()
            for line in differences(value, got.get(key), values, f"{place}.{key}")
        ]
    if isinstance(want, list) and want and isinstance(want[0], dict) and isinstance(got, list):
        key = next(key for key in ("name", "type") if key in want[0])
        known = {one.get(key): one for one in got}
        return [
            line
            for one in want
            for line in differences(one, known.get(one[key]), values, f"{place}[{one[key]}]")
        ]
    if isinstance(want, str):
        want = _filled(want, values)
        if want.startswith("~"):
            is_right = isinstance(got, str | int) and re.fullmatch(want[1:], str(got), re.DOTALL) is not None
            return [] if is_right else [f"{place}: {got!r} does not match {want!r}"]
    return [] if want == got else [f"{place}: {got!r} is not {want!r}"]


def filled(part: Any, values: dict[str, str]) -> Any:
    """Return a request with the Pod's own values put in."""
    if isinstance(part, dict):
        return {key: filled(value, values) for key, value in part.items()}
    if isinstance(part, list):
        return [filled(one, values) for one in part]
    return _filled(part, values) if isinstance(part, str) else part


def _filled(text: str, values: dict[str, str]) -> str:
    is_pattern = text.startswith("~")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", re.escape(value) if is_pattern else value)
    return text
