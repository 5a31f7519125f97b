"""Structural schemas, the form in which a kind declares its fields: defaults, pruning, validation.

`compile_schema` makes a Schema of an OpenAPI v3 schema; `apply_defaults`, `prune` and `validate` do to an object
what an API server does, in that order and with its words. `structural_problems` judges a schema itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubewire.schema.defaulting import apply_defaults
from kubewire.schema.nodes import MAX_DEPTH, Schema, TooDeep, UnknownDefinition, compile_schema
from kubewire.schema.pruning import prune, unknown_fields
from kubewire.schema.validation import validate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubewire.cel import CelType
    from kubewire.fielderrors import FieldError

__all__ = [
    "MAX_DEPTH",
    "Schema",
    "TooDeep",
    "UnknownDefinition",
    "apply_defaults",
    "cel_type",
    "compile_schema",
    "prune",
    "structural_problems",
    "unknown_fields",
    "validate",
]


def cel_type(schema: Schema) -> CelType:
    """Return the type that rules see for a value of this schema."""
    from kubewire.schema.celtypes import cel_type as of_schema  # few schemas have rules

    return of_schema(schema)


def structural_problems(openapi: Mapping[str, object], at: str = "") -> list[FieldError]:
    """Return why an API server would refuse a definition with this schema; `at` is where the schema stands."""
    from kubewire.schema.structural import structural_problems as of_openapi  # only for new definitions

    return of_openapi(openapi, at)
