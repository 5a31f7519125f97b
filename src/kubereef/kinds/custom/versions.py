"""Versions of an API by their rank, and what a deprecated one says of itself."""

import re
from collections.abc import Mapping
from typing import Any

_KUBE_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?\Z")
_STAGES = {"": 3, "beta": 2, "alpha": 1}


def rank(version: str) -> tuple[object, ...]:
    """Return a key by which versions sort, the preferred first: v2, v1, v1beta2, v1alpha1, then any others by name."""
    found = _KUBE_VERSION.match(version)
    if found is None:
        return (0, version)
    return (-_STAGES[found[2] or ""], -int(found[1]), -int(found[3] or 0))


def deprecation(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return the warning of a version, empty if it is not deprecated."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    better = [
        other["name"]
        for other in spec["versions"]
        if other.get("served") and not other.get("deprecated") and rank(other["name"]) < rank(version["name"])
    ]
    text = f"{group}/{version['name']} {kind} is deprecated"
    return f"{text}; use {group}/{min(better, key=rank)} {kind}" if better else text
