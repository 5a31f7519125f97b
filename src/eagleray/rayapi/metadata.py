"""What the API server asks of every object's metadata, whatever its kind."""

from collections.abc import Callable, Iterator

from eagleray.rayapi.problems import Problem, quoted
from eagleray.rayapi.schemaproblems import schema_problem
from kubewire import names
from kubewire.schema import validate
from kubewire.schema.objectmeta import OBJECT_META


def metadata_problems(metadata: object) -> list[Problem]:
    """Return what is wrong with an object's metadata apart from what its kind asks of the name."""
    if metadata is not None and not isinstance(metadata, dict):
        return []  # the schema says so
    found = metadata or {}
    return [*_types(found), *_name(found), *_labels(found), *_annotations(found)]


def _types(metadata: dict[str, object]) -> Iterator[Problem]:
    for error in validate(OBJECT_META, metadata):
        if error.path:
            yield schema_problem(error._replace(path=("metadata", *error.path)), {"metadata": metadata})


def _name(metadata: dict[str, object]) -> Iterator[Problem]:
    name, prefix = metadata.get("name"), metadata.get("generateName")
    if not name and not prefix:
        yield Problem(
            "metadata-name", ("metadata", "name"), "missing", "give the object a name, or a generateName"
        )
    elif isinstance(name, str) and name and (wrong := names.dns1123_subdomain(name)):
        yield Problem(
            "metadata-name", ("metadata", "name"), f"{quoted(name)} is no name: {wrong[0]}", "rename it"
        )


def _labels(metadata: dict[str, object]) -> Iterator[Problem]:
    labels = metadata.get("labels")
    for key, value in labels.items() if isinstance(labels, dict) else ():
        yield from _refused("metadata-label", ("metadata", "labels", key), key, names.qualified_name)
        if isinstance(value, str):
            yield from _refused("metadata-label", ("metadata", "labels", key), value, names.label_value)


def _annotations(metadata: dict[str, object]) -> Iterator[Problem]:
    annotations = metadata.get("annotations")
    for key in annotations if isinstance(annotations, dict) else ():
        # The API server folds case here: annotation keys of old tools have capitals in their prefix.
        yield from _refused(
            "metadata-annotation", ("metadata", "annotations", key), key.lower(), names.qualified_name
        )


def _refused(
    rule: str, path: tuple[str, ...], value: str, check: Callable[[str], list[str]]
) -> Iterator[Problem]:
    if wrong := check(value):
        yield Problem(rule, path, f"{quoted(value)} is not allowed: {wrong[0]}", "change it")
