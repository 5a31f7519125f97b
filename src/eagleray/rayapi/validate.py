"""The whole verdict on an object: its schema, then the controllers' rules."""

from typing import TYPE_CHECKING, NamedTuple, cast

from eagleray.rayapi.declare import GROUP, OpenAPI, Version
from eagleray.rayapi.kinds import KINDS, kind_for
from eagleray.rayapi.metadata import metadata_problems
from eagleray.rayapi.problems import Problem, quoted
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.rayapi.schemaproblems import BLOCKING_RULES, schema_problem
from eagleray.rayapi.schemas import definition, openapi_of, schema_for
from kubewire.objects import copied
from kubewire.schema import apply_defaults, prune, validate

if TYPE_CHECKING:
    from kubewire.paths import FieldPath


class NotRay(ValueError):
    """The object is of a kind that is not Ray's."""


class Verdict(NamedTuple):
    """All problems of an object, in the order in which it would be refused.

    Where its types are wrong the controllers' rules cannot be judged, so `rules_checked` is false.
    """

    problems: list[Problem]
    rules_checked: bool = True


def validate_object(obj: object, config: ValidationConfig) -> Verdict:
    """Return everything that is wrong with a Ray object, which is not changed.

    Raises NotRay for an object of another API group.
    """
    if not isinstance(obj, dict):
        way_out = "write a mapping with apiVersion, kind, metadata and spec"
        return Verdict([Problem("manifest", (), "not an object", way_out)], rules_checked=False)
    version = _version(obj)
    if isinstance(version, Problem):
        return Verdict([version], rules_checked=False)
    problems = [*_deprecation(version), *metadata_problems(obj.get("metadata"))]
    schema = schema_for(version.api_version, version.kind)
    filled = cast("dict[str, object]", copied(obj))
    problems += [_unknown_field(version, path) for path in prune(schema, filled)]
    apply_defaults(schema, filled)
    errors = [error for error in validate(schema, filled) if error.path]
    problems += [schema_problem(error, filled) for error in errors]
    if any(problem.rule in BLOCKING_RULES for problem in problems):
        return Verdict(problems, rules_checked=False)
    told = {error.path for error in errors}
    problems += [problem for problem in problems_of(filled, config) if problem.path not in told]
    return Verdict(problems)


def _version(obj: dict[str, object]) -> Version | Problem:
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not api_version:
        return Problem(
            "manifest", ("apiVersion",), "missing", f"every object says its version, as {GROUP}/v1"
        )
    if not isinstance(kind, str) or not kind:
        return Problem("manifest", ("kind",), "missing", "every object says its kind, as RayCluster")
    if version := kind_for(api_version, kind):
        return version
    newest = {known.name: known.versions[0].api_version for known in KINDS}
    if kind in newest:
        message = f"there is no {kind} in {quoted(api_version)}"
        return Problem("manifest", ("apiVersion",), message, f"write {newest[kind]}")
    if api_version.partition("/")[0] == GROUP:
        way_out = _suggestion(kind, list(newest)) or f"write one of {', '.join(newest)}"
        return Problem("manifest", ("kind",), f"{quoted(kind)} is none of Ray's kinds", way_out)
    raise NotRay(f"{api_version} {kind}")


def _deprecation(version: Version) -> list[Problem]:
    if version.deprecation is None:
        return []
    message = version.deprecation.rstrip(".")
    return [Problem("deprecated-version", ("apiVersion",), message, f"write {GROUP}/v1", "warning")]


def _unknown_field(version: Version, path: "FieldPath") -> Problem:
    known = _known_names(openapi_of(version), path[:-1])
    way_out = _suggestion(str(path[-1]), known) or "remove it; the API server drops it"
    return Problem("unknown-field", path, "unknown field", way_out)


def _known_names(node: OpenAPI, path: "FieldPath") -> list[str]:
    """Return the field names that the declaration knows at a path."""
    for step in path:
        node = _resolved(node)
        properties = cast("dict[str, OpenAPI]", node.get("properties", {}))
        if isinstance(step, str) and step in properties:
            node = properties[step]
        else:
            node = cast("OpenAPI", node.get("items") or node.get("additionalProperties") or {})
    return list(cast("dict[str, OpenAPI]", _resolved(node).get("properties", {})))


def _resolved(node: OpenAPI) -> OpenAPI:
    while isinstance(target := node.get("$ref"), str):
        node = definition(target.removeprefix("#/definitions/"))
    return node


def _suggestion(name: str, known: list[str]) -> str:
    import difflib  # only a mistake pays for it

    by_lower = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), list(by_lower), 1)
    return f"did you mean {by_lower[found[0]]}?" if found else ""
