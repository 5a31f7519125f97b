"""The scale of a custom resource: where its definition says the size is, and which sizes are none."""

from collections.abc import Iterator, Mapping
from typing import Any

from kubereef.kinds.resource import Object, ScalePaths
from kubewire import fielderrors
from kubewire.fielderrors import FieldError

_MAX_REPLICAS = 2**31 - 1


def scale_paths(declared: Mapping[str, Any]) -> ScalePaths:
    """Return the paths of a declared scale subresource."""
    selector = declared.get("labelSelectorPath") or ""
    return ScalePaths(
        steps(declared["specReplicasPath"]),
        steps(declared["statusReplicasPath"]),
        steps(selector) if selector else (),
        is_explicit=True,
    )


def steps(path: str) -> tuple[str, ...]:
    """Return the names along a path such as `.spec.replicas`."""
    return tuple(path.removeprefix(".").split("."))


def replicas_problems(obj: Object, path: tuple[str, ...]) -> Iterator[FieldError]:
    """Yield why the value at a path is no number of replicas; none at all is fine."""
    written = f".{'.'.join(path)}"
    value: Any = obj
    for step in path:
        if not isinstance(value, dict):
            yield _misread(written, value, "map[string]interface{}")
            return
        if step not in value:
            return
        value = value[step]
    if isinstance(value, bool) or not isinstance(value, int):
        yield _misread(written, value, "int64")
    elif value < 0:
        yield fielderrors.invalid((), value, "should be a non-negative integer", written)
    elif value > _MAX_REPLICAS:
        yield fielderrors.invalid((), value, f"should be less than or equal to {_MAX_REPLICAS}", written)


def _misread(written: str, value: object, expected: str) -> FieldError:
    detail = f"{written} accessor error: {_go(value)} is of the type {_go_type(value)}, expected {expected}"
    return fielderrors.invalid((), 0, detail, written)


def _go(value: object) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else fielderrors.as_json(value)


def _go_type(value: object) -> str:
    if value is None:
        return "<nil>"
    names = {bool: "bool", str: "string", float: "float64", int: "int64", list: "[]interface {}"}
    return names.get(type(value), "map[string]interface {}")
