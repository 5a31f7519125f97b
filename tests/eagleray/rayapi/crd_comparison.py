"""Compares two CustomResourceDefinitions node by node and tells every difference in words."""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Difference(NamedTuple):
    """One thing that differs: where it stands and what is different there."""

    version: str
    path: str
    difference: str


def differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    """Return all differences but those of descriptions, labels and annotations.

    A node that only one side has is told once, without the nodes below it.
    """
    found = list(
        _facts("", "metadata.name", {"is": ours["metadata"]["name"]}, {"is": theirs["metadata"]["name"]})
    )
    our_spec, their_spec = dict(ours["spec"]), dict(theirs["spec"])
    our_versions = {version["name"]: version for version in our_spec.pop("versions")}
    their_versions = {version["name"]: version for version in their_spec.pop("versions")}
    found += _facts("", "spec", our_spec, their_spec)
    for name in our_versions | their_versions:
        if name not in our_versions or name not in their_versions:
            found.append(Difference(name, "", "added" if name in our_versions else "missing"))
            continue
        our_rest, their_rest = dict(our_versions[name]), dict(their_versions[name])
        our_root, their_root = our_rest.pop("schema"), their_rest.pop("schema")
        found += _facts(name, "", our_rest, their_rest)
        found += _nodes(name, "", our_root["openAPIV3Schema"], their_root["openAPIV3Schema"])
    return found


def _nodes(version: str, path: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[Difference]:
    below = {"properties", "items", "additionalProperties", "description"}
    yield from _facts(
        version,
        path,
        {key: value for key, value in ours.items() if key not in below},
        {key: value for key, value in theirs.items() if key not in below},
    )
    our_children, their_children = dict(_children(path, ours)), dict(_children(path, theirs))
    for child in our_children | their_children:
        if child not in their_children:
            yield Difference(version, child, "added")
        elif child not in our_children:
            yield Difference(version, child, "missing")
        else:
            yield from _nodes(version, child, our_children[child], their_children[child])


def _children(path: str, node: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}" if path else name, child
    if "items" in node:
        yield f"{path}[]", node["items"]
    if isinstance(node.get("additionalProperties"), dict):
        yield f"{path}{{}}", node["additionalProperties"]


def _facts(version: str, path: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[Difference]:
    for key in ours | theirs:
        if key not in theirs:
            yield Difference(version, path, f"{key}: {ours[key]!r} added")
        elif key not in ours:
            yield Difference(version, path, f"{key}: {theirs[key]!r} missing")
        elif ours[key] != theirs[key]:
            yield Difference(version, path, f"{key}: {ours[key]!r} instead of {theirs[key]!r}")
