"""Pods for tests, and how to change them."""

import copy
from typing import Any

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    """Return a Pod with one container and whatever else its spec is to have."""
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x:1"}], **spec}}


def with_container(**fields: Any) -> dict[str, Any]:
    """Return a Pod whose container has some fields."""
    return pod(containers=[{"name": "c", "image": "x:1", **fields}])


def changed(obj: dict[str, Any], *path: str | int, to: Any) -> dict[str, Any]:
    """Return a copy of an object with another value at a path."""
    result = copy.deepcopy(obj)
    inner: Any = result
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = to
    return result
