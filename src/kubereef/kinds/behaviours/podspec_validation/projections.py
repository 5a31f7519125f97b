"""Volumes whose files are made of other things: of a Pod's own fields, of keys, and of several sources together."""

from kubereef.kinds.behaviours.podspec_validation import environment
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, file_mode, local_path, needed
from kubereef.kinds.resource import Object
from kubewire.fielderrors import forbidden, invalid, required
from kubewire.paths import FieldPath

_SHORTEST_TOKEN = 600
_LONGEST_TOKEN = 2**32


def downward(at: FieldPath, source: Object) -> Problems:
    """Yield what is wrong with a volume of the Pod's own fields."""
    yield from file_mode((*at, "defaultMode"), source.get("defaultMode"))
    for item in source.get("items") or ():
        yield from _downward_file(at, item)


def projected(at: FieldPath, source: Object) -> Problems:
    """Yield what is wrong with a volume of several sources."""
    yield from file_mode((*at, "defaultMode"), source.get("defaultMode"))
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        yield from _projection(at, index, projection, taken)


def keyed_file(at: FieldPath, item: Object) -> Problems:
    """Yield what is wrong with a file that holds the value of a key."""
    yield from needed(item, at, "key", "path")
    yield from local_path((*at, "path"), item.get("path", ""))
    yield from file_mode((*at, "mode"), item.get("mode"))


def _projection(at: FieldPath, index: int, projection: Object, taken: set[str]) -> Problems:
    place = (*at, "sources", index)
    for kind in ("secret", "configMap"):
        source = projection.get(kind)
        if source is None:
            continue
        yield from needed(source, (*place, kind), "name")
        for number, item in enumerate(source.get("items") or ()):
            yield from keyed_file((*place, kind, "items", number), item)
            yield from _once(at, item, source.get("name", ""), taken)
    for item in (projection.get("downwardAPI") or {}).get("items") or ():
        yield from _downward_file((*place, "downwardAPI"), item)
        yield from _once(at, item, item.get("path", ""), taken)
    token = projection.get("serviceAccountToken")
    if token is not None:
        yield from _token(at, (*place, "serviceAccountToken"), token)
    if len(projection) > 1:
        yield forbidden(place, "may not specify more than 1 volume type per source")


def _once(at: FieldPath, item: Object, shown: str, taken: set[str]) -> Problems:
    """Yield that a path is that of another file of the volume."""
    path = item.get("path", "")
    if path in taken:
        yield invalid(at, shown, "conflicting duplicate paths")
    if path:
        taken.add(path)


def _token(at: FieldPath, place: FieldPath, token: Object) -> Problems:
    seconds, path = token.get("expirationSeconds", 0), token.get("path", "")
    if seconds < _SHORTEST_TOKEN:
        detail = "may not specify a duration less than 10 minutes"
        yield invalid((*place, "expirationSeconds"), seconds, detail)
    if seconds > _LONGEST_TOKEN:
        detail = "may not specify a duration larger than 2^32 seconds"
        yield invalid((*place, "expirationSeconds"), seconds, detail)
    if path:
        yield from local_path((*at, "path"), path)
    else:
        yield required((*at, "path"))


def _downward_file(at: FieldPath, item: Object) -> Problems:
    # The paths name the list and not the file.
    yield from needed(item, at, "path")
    yield from local_path((*at, "path"), item.get("path", ""))
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from environment.file_field((*at, "fieldRef"), field)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield invalid(at, "resource", detail)
    elif resource is not None:
        place = (*at, "resourceFieldRef")
        yield from environment.container_resource(place, resource, of_any_container=True)
    else:
        yield required(at, "one of fieldRef and resourceFieldRef is required")
    yield from file_mode((*at, "mode"), item.get("mode"))
