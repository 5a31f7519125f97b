"""Owners of an object's size, as its scale shows them and back: a scale has one field of the object, elsewhere."""

from kubewire.apply.fieldsets import FieldSet, difference, has, of_paths, ordered
from kubewire.apply.managers import Entry

SCALE_VERSION = "autoscaling/v1"
_REPLICAS = ("f:spec", "f:replicas")


def scale_entries(entries: list[Entry], path: tuple[str, ...]) -> list[Entry]:
    """Return the entries of a scale: one for each manager that owns the size of the object, which is at a path."""
    replicas = of_paths(_REPLICAS)
    return [
        {**entry, "apiVersion": SCALE_VERSION, "fieldsV1": replicas}
        for entry in entries
        if has(entry.get("fieldsV1") or {}, path)
    ]


def object_entries(
    entries: list[Entry], of_scale: list[Entry], path: tuple[str, ...], api_version: str
) -> list[Entry]:
    """Return the entries of an object after its scale was written, which left these entries of the scale.

    Whoever is new among them gets no time, as on the server.
    """
    owners = {_who(entry) for entry in of_scale if has(entry["fieldsV1"], _REPLICAS)}
    size: FieldSet = of_paths(path)
    found = []
    for entry in entries:
        fields = entry.get("fieldsV1") or {}
        if not has(fields, path):
            found.append(entry)
        elif _who(entry) in owners:
            owners.remove(_who(entry))
            found.append(entry)
        elif left := difference(fields, size):
            found.append({**entry, "fieldsV1": ordered(left)})
    found += [_owner_of_size(who, api_version, size) for who in sorted(owners)]
    return sorted(found, key=lambda entry: (entry["operation"], entry.get("time") or "", entry["manager"]))


def _who(entry: Entry) -> tuple[str, str, str]:
    return (entry.get("manager") or "", entry["operation"], entry.get("subresource") or "")


def _owner_of_size(who: tuple[str, str, str], api_version: str, size: FieldSet) -> Entry:
    manager, operation, subresource = who
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": size,
    }
    return {**entry, "subresource": subresource} if subresource else entry
