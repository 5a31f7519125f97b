"""A kind of our own with every sort of list and object, for the tests of apply."""

from kubewire.apply import Converted, Kind, Managers, Writer, custom_shape
from kubewire.apply.fieldsets import of_paths

TEXT = {"type": "string"}
TAGS = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
PART = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": TEXT, "size": {"type": "integer"}, "tags": TAGS, "options": {"type": "object"}},
}
PORT = {
    "type": "object",
    "required": ["port"],
    "properties": {"port": {"type": "integer"}, "protocol": {**TEXT, "default": "TCP"}, "title": TEXT},
}
SPEC = {
    "type": "object",
    "properties": {
        "color": TEXT,
        "count": {"type": "integer"},
        "on": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": PART,
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": PORT,
        },
        "tags": TAGS,
        "order": {"type": "array", "items": TEXT},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": TEXT},
        "entries": {"type": "object", "additionalProperties": PART},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"spec": SPEC, "status": {"type": "object", "properties": {"phase": TEXT}}},
}
SHAPE = custom_shape(SCHEMA)


class OneVersion:
    """A kind of which `example.com/v1` is all there is, or of which `v2` calls the color paint."""

    def __init__(self, has_second=False):
        self._has_second = has_second

    def converted(self, obj, source, target):
        if not self._has_second:
            return None
        old, new = ("color", "paint") if target.endswith("v2") else ("paint", "color")
        spec = {new if name == old else name: value for name, value in (obj.get("spec") or {}).items()}
        shape = SECOND if target.endswith("v2") else SHAPE
        return Converted(shape, {**obj, "spec": spec} if "spec" in obj else obj)


def _renamed(properties):
    return {"paint" if name == "color" else name: node for name, node in properties.items()}


SECOND = custom_shape(
    {"type": "object", "properties": {"spec": {**SPEC, "properties": _renamed(SPEC["properties"])}}}
)
KIND = Kind(SHAPE, of_paths(("f:status",)), OneVersion())
STATUS = Kind(SHAPE, of_paths(("f:metadata",), ("f:spec",)), OneVersion())


class Thing:
    """An object and its managers, written by whoever the test names."""

    def __init__(self, kind=KIND):
        self.kind = kind
        self.obj = {}
        self.entries = []
        self.second = 0

    def apply(self, manager, spec, *, force=False, version="v1", part=""):
        writer = self._writer(manager, version, part)
        config = {"metadata": {"name": "t"}} | ({} if spec is None else {"spec": spec})
        self.obj, self.entries = self._managers().applied(self.kind, self.obj, config, writer, force=force)

    def update(self, manager, spec, version="v1", part=""):
        new = {"metadata": {"name": "t"}, "spec": spec}
        self.entries = self._managers().updated(
            self.kind, self.obj, new, self._writer(manager, version, part)
        )
        self.obj = new

    @property
    def spec(self):
        return self.obj.get("spec")

    @property
    def owned(self):
        """What each manager owns of the spec."""
        return {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in self.entries}

    def _managers(self):
        return Managers.stored(self.entries)

    def _writer(self, manager, version, part):
        self.second += 1
        return Writer(manager, f"example.com/{version}", part, f"2030-01-01T00:00:{self.second:02}Z")
