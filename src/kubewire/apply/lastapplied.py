"""How objects that kubectl applied by itself pass to server-side apply without conflicts.

kubectl keeps the configuration that it applied last in an annotation; what the object still has of it is kubectl's.
"""

import json
from typing import Any

from kubewire.apply.comparing import compare, owned
from kubewire.apply.fieldsets import FieldSet, difference
from kubewire.apply.shapes import Shape
from kubewire.apply.validating import problems

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

# Only what this manager applies is taken for kubectl's own.
KUBECTL = "kubectl"


def still_kubectls(shape: Shape, live: dict[str, Any], api_version: str) -> FieldSet:
    """Return the fields that kubectl set and nobody has changed since; none where nothing tells."""
    text = _annotations(live).get(ANNOTATION)
    if not text:
        return {}
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(config, dict) or config.get("apiVersion") != api_version or problems(shape, config):
        return {}
    for field in ("apiVersion", "kind"):
        config.pop(field, None)
    comparison = compare(shape, config, live)
    return difference(difference(owned(shape, config), comparison.changed), comparison.removed)


def keep_annotation(obj: dict[str, Any], config: dict[str, Any]) -> None:
    """Write a configuration into the annotation of an object that has it, for kubectls that apply by themselves."""
    annotations = _annotations(obj)
    if not annotations.get(ANNOTATION):
        return
    metadata = config.get("metadata") or {}
    given = metadata.get("annotations") or {}
    if ANNOTATION in given:
        left = {name: value for name, value in given.items() if name != ANNOTATION}
        config = {**config, "metadata": {**metadata, "annotations": left}}
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    obj["metadata"] = {**obj["metadata"], "annotations": {**annotations, ANNOTATION: f"{text}\n"}}


def _annotations(obj: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (obj.get("metadata") or {}).get("annotations") or {}
    return found
