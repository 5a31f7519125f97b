"""What a server offers, as its OpenAPI documents tell: operations, schemas, and every place where a value stands."""

import copy
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from tests.kubereef.hostile.examples import EXAMPLES

Schema = dict[str, Any]
# A name is a field or a key of a map, a number an element of a list.
Path = tuple[str | int, ...]

_REFERENCE = "#/components/schemas/"


class Operation(NamedTuple):
    """One thing that can be asked of a path, and the schema of the body that it takes."""

    method: str
    path: str
    action: str
    kind: str
    definition: str = ""

    @property
    def is_collection(self) -> bool:
        return "{name}" not in self.path


class Position(NamedTuple):
    """A field of a definition, and a way to it from the body of an operation."""

    operation: Operation
    path: Path
    schema: Schema
    # The definition and the field, as in `io.k8s.api.core.v1.PodSpec.containers`; nothing for an element or an entry.
    field: str = ""


class Surface:
    """All that is offered. `positions` reaches every field of every schema that a body can have, once."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self.schemas: dict[str, Schema] = {}
        self.operations: list[Operation] = []
        self.parameters: list[str] = []
        for document in documents:
            self.schemas.update(document["components"]["schemas"])
            self._take(document["paths"])
        self.creations = [one for one in self.operations if one.action == "post" and one.definition]
        self.replacements = [one for one in self.operations if one.action == "put" and one.definition]
        self.patches = [one for one in self.operations if one.action == "patch"]
        self.lists = [one for one in self.operations if one.action == "list"]
        self.deletions = [one for one in self.operations if one.action == "delete"]
        self.positions = list(self._positions())

    def resolved(self, schema: Schema) -> Schema:
        """Return a schema without the reference that may stand for it."""
        while True:
            if "allOf" in schema and len(schema["allOf"]) == 1:
                schema = {**schema["allOf"][0], **{k: v for k, v in schema.items() if k != "allOf"}}
            if "$ref" not in schema:
                return schema
            schema = self.schemas[schema["$ref"].removeprefix(_REFERENCE)]

    def example(self, operation: Operation) -> dict[str, Any]:
        """Return a body that an operation takes or nearly takes."""
        found = EXAMPLES.get(operation.definition)
        if found is not None:
            return copy.deepcopy(found)
        made: dict[str, Any] = self.plain({"$ref": f"{_REFERENCE}{operation.definition}"})
        return made

    def plain(self, schema: Schema, depth: int = 0) -> Any:
        """Return a simple value that fits a schema: of objects, the fields that are required."""
        schema = self.resolved(schema)
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                fields = schema.get("properties", {})
                wanted = [name for name in schema.get("required", []) if name in fields] if depth < 12 else []
                return {name: self.plain(fields[name], depth + 1) for name in wanted}
            case "array":
                return [self.plain(schema["items"], depth + 1)] if depth < 12 else []
            case "integer" | "number":
                return 1
            case "boolean":
                return True
            case "string":
                is_time = schema.get("format") == "date-time"
                return (
                    "2026-01-02T03:04:05Z" if is_time else "YQ==" if schema.get("format") == "byte" else "a"
                )
        return "1"  # an amount, a port or whatever else has two types

    def with_value(self, position: Position, value: object) -> dict[str, Any]:
        """Return a body in which a value stands at a position, and what is plain around it."""
        body = self.example(position.operation)
        schema = self.schemas[position.operation.definition]
        here: Any = body
        for step, following in zip(position.path, (*position.path[1:], None), strict=True):
            schema = self._below(schema, step)
            if following is None:
                self._put(here, step, value)
                return body
            there = here[step] if isinstance(here, dict) and step in here else None
            if isinstance(here, list) and here:
                there = here[0]
            wanted = list if isinstance(following, int) else dict
            if not isinstance(there, wanted):
                plain = self.plain(schema)
                there = plain if isinstance(plain, wanted) else wanted()
                self._put(here, step, there)
            here = there
        return body

    def _put(self, container: Any, step: str | int, value: object) -> None:
        if isinstance(container, list):
            container[:1] = [value]
        else:
            container[step] = value

    def _below(self, schema: Schema, step: str | int) -> Schema:
        schema = self.resolved(schema)
        if isinstance(step, int):
            return self.resolved(schema["items"])
        fields = schema.get("properties", {})
        return self.resolved(fields[step] if step in fields else schema["additionalProperties"])

    def _take(self, paths: dict[str, Any]) -> None:
        for path, methods in paths.items():
            for method, told in methods.items():
                if method == "parameters":
                    continue
                content = told.get("requestBody", {}).get("content", {}).get("*/*", {})
                definition = content.get("schema", {}).get("$ref", "").removeprefix(_REFERENCE)
                kind = told["x-kubernetes-group-version-kind"]["kind"]
                action = told["x-kubernetes-action"]
                self.operations.append(Operation(method.upper(), path, action, kind, definition))
                for parameter in told.get("parameters", ()):
                    if parameter["name"] not in self.parameters:
                        self.parameters.append(parameter["name"])

    def _positions(self) -> Iterator[Position]:
        """Walk from all bodies at once, so that each field is reached by a short way."""
        operations = {one.definition: one for one in reversed([*self.replacements, *self.creations])}
        waiting: deque[tuple[Operation, Path, Schema]] = deque(
            (one, (), {"$ref": f"{_REFERENCE}{one.definition}"}) for one in operations.values()
        )
        seen: set[str] = set()
        while waiting:
            operation, path, schema = waiting.popleft()
            name = schema.get("$ref") or next(
                (one["$ref"] for one in schema.get("allOf", ()) if "$ref" in one), ""
            )
            if name and name in seen:
                continue
            seen.add(name)
            schema = self.resolved(schema)
            for field, below in schema.get("properties", {}).items():
                owner = name.removeprefix(_REFERENCE)
                yield Position(operation, (*path, field), self.resolved(below), f"{owner}.{field}")
                waiting.append((operation, (*path, field), below))
            if isinstance(schema.get("items"), dict):
                yield Position(operation, (*path, 0), self.resolved(schema["items"]))
                waiting.append((operation, (*path, 0), schema["items"]))
            if isinstance(schema.get("additionalProperties"), dict):
                below = schema["additionalProperties"]
                yield Position(operation, (*path, "key"), self.resolved(below))
                waiting.append((operation, (*path, "key"), below))


async def surface_of(get: Callable[[str], Awaitable[dict[str, Any]]]) -> Surface:
    """Return what the OpenAPI documents of a server describe."""
    index = await get("/openapi/v3")
    return Surface([await get(entry["serverRelativeURL"]) for entry in index["paths"].values()])
