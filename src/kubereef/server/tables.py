"""Tables, the form in which `kubectl get` asks for objects."""

from collections.abc import Iterable
from typing import Any

from kubereef.kinds.columns import AGE, NAME
from kubereef.kinds.resource import Column, Object, ResourceType, TableMoment


def table(
    resource_type: ResourceType,
    objects: Iterable[Object],
    metadata: Object,
    include: str,
    moment: TableMoment,
    *,
    version: str = "v1",
    told: bool = False,
) -> Object:
    """Return objects as rows; `include` says how much of each object its row carries along: Metadata, Object or None.

    A table of a watch that has `told` its columns already does not repeat them.
    """
    columns = resource_type.behaviour.columns or (NAME, AGE)
    rows = []
    for obj in objects:
        row: dict[str, Any] = {"cells": [column.cell(obj, moment) for column in columns]}
        if include in ("", "Metadata"):
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"meta.k8s.io/{version}",
                "metadata": obj["metadata"],
            }
        elif include == "Object":
            row["object"] = {"apiVersion": resource_type.api_version, "kind": resource_type.kind, **obj}
        else:
            row["object"] = None
        if conditions := resource_type.behaviour.row_conditions(obj):
            row["conditions"] = conditions
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": None if told else [_definition(column) for column in columns],
        "rows": rows,
    }


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }
