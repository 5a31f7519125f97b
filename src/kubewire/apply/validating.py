"""Whether a configuration fits the schema closely enough to be merged, in the words of Kubernetes' structured merge."""

from typing import Any

from kubewire.apply.elements import shown
from kubewire.apply.fieldsets import MAX_DEPTH
from kubewire.apply.shapes import ListShape, MapShape, NoElement, Scalar, Shape
from kubewire.fielderrors import printed_float
from kubewire.gotext import quote
from kubewire.strategicpatch.problems import go_text, go_type

# More are not told: a refusal is for people.
_MOST = 100


def problems(shape: Shape, config: dict[str, Any]) -> list[str]:
    """Return what keeps a configuration from being merged, each with its path; nothing if it fits."""
    found: list[str] = []
    _check(shape, config, "", found, 0)
    return found[:_MOST]


def summary(found: list[str]) -> str:
    """Return several problems as one text."""
    return found[0] if len(found) == 1 else "\n  ".join(("errors:", *found))


def _check(shape: Shape, value: object, path: str, found: list[str], depth: int) -> None:
    if len(found) >= _MOST or depth > MAX_DEPTH:
        return
    kind = shape.of(value)
    if kind is None:
        complaint = _scalar_complaint(shape.scalar or "untyped", value)
        if complaint:
            found.append(_told(path, complaint))
    elif value is None:
        return
    elif isinstance(kind, MapShape):
        _check_map(kind, value, path, found, depth + 1)
    else:
        _check_list(kind, value, path, found, depth + 1)


def _check_map(shape: MapShape, value: object, path: str, found: list[str], depth: int) -> None:
    if not isinstance(value, dict):
        found.append(_told(path, f"expected map, got {_as_value(value)}"))
        return
    for name in sorted(value):
        element, below = shape.steps[name]
        if name not in shape.declared and not shape.is_open:
            found.append(_told(path + shown(element), "field not declared in schema"))
            return
        _check(below, value[name], path + shown(element), found, depth)


def _check_list(shape: ListShape, value: object, path: str, found: list[str], depth: int) -> None:
    if not isinstance(value, list):
        found.append(_told(path, f"expected list, got {_as_value(value)}"))
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        if shape.is_atomic:
            step = f"[{index}]"
        else:
            try:
                element = shape.element(item)
            except NoElement as bad:
                found.append(_told(path, f"element {index}: {bad}"))
                return
            step = shown(element)
            if element in seen:
                found.append(_told(path, f"duplicate entries for key {step}"))
            seen.add(element)
        _check(shape.items, item, path + step, found, depth)


def _told(path: str, complaint: str) -> str:
    return f"{path}: {complaint}" if path else complaint


def _scalar_complaint(wanted: Scalar, value: object) -> str:
    """Return why a value is not of a plain type; nothing if it is, or null."""
    if value is None:
        return ""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted == "numeric":
        return "" if is_number else f"expected numeric (int or float), got {go_type(value)}"
    if wanted == "string":
        return "" if isinstance(value, str) else f"expected string, got {_as_value(value, in_go=True)}"
    if wanted == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got {_as_value(value)}"
    plain = is_number or isinstance(value, str | bool)
    return "" if plain else f"expected any scalar, got {_as_value(value)}"


def _as_value(value: object, *, in_go: bool = False) -> str:
    """Return a value as Go prints the wrapper around it, with or without its types."""
    if in_go:
        return f"&value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    return f"&{{{go_text(value)}}}"


def _go_syntax(value: object, depth: int = 0) -> str:
    if depth > MAX_DEPTH:
        return "..."
    if isinstance(value, dict):
        fields = (f"{quote(key)}:{_go_syntax(value[key], depth + 1)}" for key in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(fields)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(_go_syntax(item, depth + 1) for item in value)}}}"
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quote(value)
    return printed_float(value) if isinstance(value, float) else go_text(value)
