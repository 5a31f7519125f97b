"""Compares an answer with the recorded one, whose placeholders stand for what changes from run to run."""

import json
import re
from datetime import datetime
from typing import Any

from tests.kubereef.conformance import paths
from tests.kubereef.conformance.scenarios import Step, fill
from tests.kubereef.conformance.transports import Answer

ABSENT = "<absent>"

_AGE = r"(?:\d+[smhdy]){1,2}"

# What each kind of placeholder may stand for. One with a number is the same value wherever the number is the same.
_SHAPES = {
    "uid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "rv": r"\d+",
    "name": r"[a-z0-9]{5}",
    "hash": r"[a-z0-9]{1,10}",
    "ip": r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]*:[0-9a-f:]+)",
    "port": r"\d+",
    "token": r"[\w-]+(?:\.[\w-]+){2}",
    "continue": r"[\w+/=-]+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "microtime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z",
    "age": rf"<age>|{_AGE}",
    "pem": r"-----BEGIN [A-Z ]+-----[\s\S]*-----END [A-Z ]+-----\n?",
    "int": r"\d+",
}
_PLACEHOLDER = re.compile(
    rf"<(?P<kind>{'|'.join(_SHAPES)})(?::(?P<number>\d+)(?P<floor>\+)?)?(?:\+(?P<seconds>\d+)s)?>"
)
# How old a time may be that stands for "now"; how far ahead; how exact one in the future has to be.
_OLDEST = 2 * 86400.0
_AHEAD = 5.0
_EXACT = 15.0


# --- which part of an answer counts


def compared(step: Step, answer: Answer, variables: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an answer that a step compares, in the form in which the answers were recorded."""
    if step.get("compare") == "status":
        return {"status": answer.status}
    parts = {
        "status": answer.status,
        "contentType": answer.content_type,
        "warnings": sorted(answer.warnings),
    }
    body = _without_ages(_in_fixed_order(answer.body))
    if "fields" in step:
        parts["fields"] = {path: _field(body, path, step, variables) for path in step["fields"]}
        return parts
    if step.get("managedFields") != "compare":
        body = _without_managed_fields(body)
    if "ignore" in step:
        body = json.loads(json.dumps(body))
        for path in step["ignore"]:
            if paths.find(body, path):
                paths.remove(body, path)
    return {**parts, "body": body}


def _field(body: Any, path: str, step: Step, variables: dict[str, Any]) -> Any:
    values = paths.find(body, fill(path, variables))
    if not paths.is_plural(path):
        return values[0] if values else ABSENT
    return (
        sorted(values, key=lambda value: json.dumps(value, sort_keys=True))
        if step.get("unordered")
        else values
    )


def _in_fixed_order(body: Any) -> Any:
    """Return a refusal with its causes sorted: the real server lists some in a new order each time."""
    causes = next(iter(paths.find(body, "details.causes")), None)
    if not isinstance(causes, list) or len(causes) < 2 or body.get("kind") != "Status":
        return body
    causes = sorted(causes, key=lambda cause: (cause.get("field", ""), cause.get("message", "")))
    message = body.get("message", "")
    head, bracket, tail = message.partition(" is invalid: [")
    listed = ", ".join(f"{cause.get('field')}: {cause.get('message')}" for cause in causes)
    if len(tail) == len(listed) + 1:
        message = f"{head}{bracket}{listed}]"
    return {**body, "message": message, "details": {**body["details"], "causes": causes}}


def _without_ages(body: Any) -> Any:
    """Return a table, or a watch of tables, without ages and without what its columns say about themselves."""
    if not isinstance(body, dict):
        return body
    if "events" in body:
        return {
            "events": [{**event, "object": _without_ages(event.get("object"))} for event in body["events"]]
        }
    if body.get("kind") != "Table":
        return body
    rows = [{**row, "cells": list(map(_without_age, row.get("cells", [])))} for row in body.get("rows") or []]
    columns = body.get("columnDefinitions")
    if columns:
        columns = [
            {key: value for key, value in column.items() if key != "description"} for column in columns
        ]
    return {**body, "columnDefinitions": columns, "rows": rows}


def _without_age(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    return re.sub(rf"\({_AGE} ago\)", "(<age> ago)", re.sub(rf"^{_AGE}$", "<age>", cell))


def _without_managed_fields(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_managed_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_managed_fields(item)
        for key, item in value.items()
        if key != "managedFields" or not isinstance(item, list)
    }


# --- whether it is as recorded


class Matcher:
    """Compares the answers of one scenario, one after the other; each binds placeholders for those after it."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._values: dict[str, str] = {}
        self._placeholders: dict[tuple[str, str], str] = {}
        self._versions: dict[int, int] = {}
        self._births: dict[str, str] = {}
        self._received = 0.0
        self._found: list[str] = []

    def differences(self, want: Any, got: Any, received: datetime) -> list[str]:
        """Return where an answer differs from the recorded one, with the path of each place."""
        self._received = received.timestamp()
        self._found = []
        body = got.get("body") if isinstance(got, dict) else None
        self._is_token = isinstance(body, dict) and body.get("kind") == "TokenRequest"
        self._compare(want, got, "")
        return self._found

    def _compare(self, want: Any, got: Any, path: str) -> None:
        if isinstance(want, dict) and isinstance(got, dict):
            self._members(want, got, path)
            self._birth(got, path)
        elif isinstance(want, list) and isinstance(got, list):
            for index, (wanted, gotten) in enumerate(zip(want, got, strict=False)):
                self._compare(wanted, gotten, f"{path}[{index}]")
            for index, missing in enumerate(want[len(got) :], len(got)):
                self._found.append(f"{path}[{index}]: missing, expected {_short(missing)}")
            for index, surplus in enumerate(got[len(want) :], len(want)):
                self._found.append(f"{path}[{index}]: unexpected {_short(surplus)}")
        elif isinstance(want, str) and isinstance(got, str | int) and not isinstance(got, bool):
            if problem := self._mismatch(want, got):
                self._found.append(f"{path}: {problem}")
        elif type(want) is not type(got) or want != got:
            self._found.append(f"{path}: expected {_short(want)}, got {_short(got)}")

    def _members(self, want: dict[str, Any], got: dict[str, Any], path: str) -> None:
        left = dict(got)
        for key, value in want.items():
            here = f"{path}.{key}".removeprefix(".")
            actual = key if key in left else next((k for k in left if not self._mismatch(key, k)), None)
            if actual is None:
                self._found.append(f"{here}: missing, expected {_short(value)}")
            else:
                self._compare(value, left.pop(actual), here)
        for key, value in left.items():
            self._found.append(f"{path}.{key}: unexpected {_short(value)}".removeprefix("."))

    def _birth(self, got: dict[str, Any], path: str) -> None:
        """See that an object keeps its creation time for as long as it keeps its uid."""
        if self._is_token:  # it is no object: it is made at each request, with its account's uid
            return
        uid, born = got.get("uid"), got.get("creationTimestamp")
        if isinstance(uid, str) and isinstance(born, str) and self._births.setdefault(uid, born) != born:
            self._found.append(f"{path}.creationTimestamp: was {self._births[uid]} for this uid, got {born}")

    def _mismatch(self, want: str, got: str | int) -> str:
        """Return why a text is not what the recorded one says; nothing if it is, and then its values are bound."""
        placeholders = list(_PLACEHOLDER.finditer(want))
        unlike = f"expected {_short(want)}, got {_short(got)}"
        if not placeholders:
            return "" if self._literal(want) == got else unlike
        if isinstance(got, int) and placeholders[0]["kind"] != "port":
            return unlike
        pattern, end = "", 0
        for placeholder in placeholders:
            literal = self._literal(want[end : placeholder.start()])
            pattern += f"{re.escape(literal)}({_SHAPES[placeholder['kind']]})"
            end = placeholder.end()
        match = re.fullmatch(pattern + re.escape(self._literal(want[end:])), str(got))
        if match is None:
            return unlike
        problems = map(self._bind, placeholders, match.groups())
        return "; ".join(filter(None, problems))

    def _literal(self, text: str) -> str:
        return str(fill(text, self._variables)) if "${" in text else text

    def _bind(self, placeholder: re.Match[str], text: str) -> str:
        kind, number = placeholder["kind"], placeholder["number"]
        if kind in ("time", "microtime"):
            return self._check_time(text, int(placeholder["seconds"] or 0))
        if number is None:
            return ""
        if kind == "rv":
            return self._bind_version(int(number), int(text), is_floor=bool(placeholder["floor"]))
        wanted = placeholder[0]
        if (before := self._values.setdefault(wanted, text)) != text:
            return f"expected {wanted} again, which was {before}; got {text}"
        other = self._placeholders.setdefault((kind, text), wanted)
        return "" if other == wanted else f"expected a new value for {wanted}; got {text}, which is {other}"

    def _check_time(self, text: str, wanted: int) -> str:
        ahead = datetime.fromisoformat(text).timestamp() - self._received
        fits = abs(ahead - wanted) < _EXACT if wanted else -_OLDEST < ahead <= _AHEAD
        return "" if fits else f"expected now + {wanted} s, got now + {ahead:.0f} s"

    def _bind_version(self, rank: int, version: int, *, is_floor: bool) -> str:
        """Compare a resource version by its order, which is all that a client may rely on."""
        if is_floor:
            lowest = max((known for place, known in self._versions.items() if place <= rank), default=0)
            return "" if version >= lowest else f"expected a version not below {lowest}, got {version}"
        if rank in self._versions:
            before = self._versions[rank]
            return (
                ""
                if before == version
                else f"expected the version {before} again (<rv:{rank}>), got {version}"
            )
        below = max((known for place, known in self._versions.items() if place < rank), default=-1)
        above = min((known for place, known in self._versions.items() if place > rank), default=float("inf"))
        if not below < version < above:
            return f"expected a version above {below} and below {above}, got {version}"
        self._versions[rank] = version
        return ""


def _short(value: Any, limit: int = 300) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]} …"
