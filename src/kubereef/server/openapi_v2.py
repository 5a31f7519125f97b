"""Paths in the words of OpenAPI v2: generators of clients, and tools older than version 3, read these."""

from collections.abc import Iterable, Mapping
from typing import Any

from kubereef.server.media import JSON, YAML

_IN_V3, _IN_V2 = "#/components/schemas/", "#/definitions/"


def paths_v2(paths: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return paths that are in the words of version 3 in those of version 2."""
    return {path: _path_item(item) for path, item in paths.items()}


def _path_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [_parameter(one) for one in part] if name == "parameters" else _operation(part)
        for name, part in item.items()
    }


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation: what it takes and gives is told apart from its schemas, and a body is a parameter."""
    answers = operation["responses"]
    body = operation.get("requestBody") or {}
    parameters = [*_body(body), *map(_parameter, operation.get("parameters", ()))]
    kept = {key: value for key, value in operation.items() if key not in ("parameters", "requestBody")}
    return {
        **kept,
        "consumes": list(body.get("content") or ("*/*",)),
        "produces": [JSON, YAML],
        "schemes": ["https"],
        **({"parameters": parameters} if parameters else {}),
        "responses": {code: _answer(answer) for code, answer in answers.items()},
    }


def _body(body: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    schema = _first_schema(body)
    if schema:
        required = {"required": True} if body.get("required") else {}
        yield {"name": "body", "in": "body", **required, "schema": schema}


def _answer(answer: Mapping[str, Any]) -> dict[str, Any]:
    schema = _first_schema(answer)
    return {"description": answer["description"], **({"schema": schema} if schema else {})}


def _first_schema(part: Mapping[str, Any]) -> dict[str, str]:
    """Return the schema of a body, which is the same in all media types."""
    for content in (part.get("content") or {}).values():
        reference = (content.get("schema") or {}).get("$ref")
        if reference:
            return {"$ref": reference.replace(_IN_V3, _IN_V2)}
    return {}


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in parameter.items() if key != "schema"}
    return {**kept, **parameter["schema"]}
