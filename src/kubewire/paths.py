"""Where a value stands inside an object: `("spec", "groups", 1, "name")` is shown as `spec.groups[1].name`."""

import re

FieldPath = tuple[str | int, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Key(str):
    """A step to the entry of a map, which is shown in brackets: `("limits", Key("cpu"))` is `limits[cpu]`."""

    __slots__ = ()


def show(path: FieldPath) -> str:
    """Return the path as Kubernetes writes it; keys that are not plain names stand in brackets."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step.__class__ is not Key and _PLAIN.match(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{step}]")
    return "".join(parts)
