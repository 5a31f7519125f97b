"""What objects of a custom kind go through: pruning, defaults and validation by the schema of their version."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from kubereef.kinds.custom.columns import columns_of
from kubereef.kinds.custom.jsonpath import JsonPath
from kubereef.kinds.custom.scales import replicas_problems
from kubereef.kinds.resource import Behaviour, Conversion, Object, ScalePaths
from kubewire import errors, gotypes, names
from kubewire.fielderrors import FieldError
from kubewire.gotext import quote
from kubewire.schema import Schema, apply_defaults, prune, validate
from kubewire.schema.findings import dotted

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

# Finalizers of Kubernetes' own, which need no domain.
_KNOWN_FINALIZERS = frozenset(("foregroundDeletion", "kubernetes", "orphan"))


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Head(msgspec.Struct):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head).decode


class Judge:
    """The schema of one version of a custom kind, and what it makes of objects."""

    def __init__(self, api_version: str, kind: str, schema: Schema, scale: ScalePaths | None) -> None:
        self._identity = {"apiVersion": api_version, "kind": kind}
        self._schema = schema
        self._scale = scale

    def read(self, obj: Object) -> list[str]:
        """Drop what the schema does not know and return its paths; ValueError if the metadata is malformed."""
        _round(obj)
        # The metadata of embedded objects is read apart from the rest, and after it.
        unknown = [
            dotted(path)
            for path in sorted(
                prune(self._schema, obj), key=lambda path: ("metadata" in path[1:-1], dotted(path))
            )
        ]
        gotypes.read(_OBJECT_META, obj["metadata"])
        return unknown

    def defaults(self, obj: Object) -> None:
        apply_defaults(self._schema, obj)

    def problems(self, obj: Object) -> list[FieldError]:
        return [*validate(self._schema, self._whole(obj)), *self._scale_problems(obj)]

    def update_problems(self, new: Object, old: Object) -> list[FieldError]:
        found = validate(self._schema, self._whole(new), self._whole(old), tolerated=True)
        return [*found, *self._scale_problems(new)]

    def status_problems(self, new: Object, old: Object) -> list[FieldError]:
        found = validate(self._schema, self._whole(new), self._whole(old), part="status", tolerated=True)
        if self._scale is not None:
            found += replicas_problems(new, self._scale.status)
        return found

    def _scale_problems(self, obj: Object) -> list[FieldError]:
        if self._scale is None:
            return []
        return [*replicas_problems(obj, self._scale.spec), *replicas_problems(obj, self._scale.status)]

    def _whole(self, obj: Object) -> Object:
        """Return the object as rules see it."""
        return {**self._identity, **obj}


# Above this, Go writes a number with an exponent.
_WRITTEN_OUT = 1e21


def _round(value: Any) -> Any:
    """Return a value with whole numbers as they are kept, without a fraction: 1.0 and 1e3 are 1 and 1000."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, str):
                value[key] = _round(item)
    elif isinstance(value, list):
        value[:] = map(_round, value)
    elif isinstance(value, float) and value.is_integer() and abs(value) < _WRITTEN_OUT:
        return int(value)
    return value


def behaviour_of(
    judge: Judge,
    version: Mapping[str, Any],
    conversion: Conversion | None,
    resource: tuple[str, str],
    *,
    terminating: bool,
) -> Behaviour:
    """Return the ways of one version of a custom kind; `resource` is its plural and group."""

    def prepare_create(obj: Object) -> None:
        if terminating:
            plural, group = resource
            because = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(plural, obj["metadata"].get("name", ""), because, group=group)

    return Behaviour(
        read=judge.read,
        defaults=judge.defaults,
        prepare_create=prepare_create,
        validate_create=judge.problems,
        validate_update=judge.update_problems,
        validate_status=judge.status_problems,
        warnings=lambda obj: finalizer_warnings(obj, None),
        update_warnings=finalizer_warnings,
        selectable={
            declared["jsonPath"].removeprefix("."): _selected(declared["jsonPath"], conversion)
            for declared in version.get("selectableFields") or ()
        },
        columns=columns_of(version.get("additionalPrinterColumns") or ()),
        counts_generations=True,
        needs_kind=True,
        needs_version=True,
    )


def finalizer_warnings(new: Object, old: Object | None) -> list[str]:
    """Return what is unwise about the finalizers that are new."""
    before = (old or {"metadata": {}})["metadata"].get("finalizers") or ()
    added = sorted(set(new["metadata"].get("finalizers") or ()) - set(before))
    found = []
    for name in added:
        opening = f"metadata.finalizers: {quote(name)}:"
        found += [f"{opening} {problem}" for problem in names.qualified_name(name)]
        if "/" not in name and name not in _KNOWN_FINALIZERS:
            better = "a domain-qualified finalizer name"
            if "." in name:
                better += " including a path (/)"
            found.append(
                f"{opening} prefer {better} to avoid accidental conflicts with other finalizer writers"
            )
    return found


def conversion_between(shown: Schema, stored: Schema, *, same: bool, changed_at: int) -> Conversion | None:
    """Return how a version differs from the stored one; None if what is stored can be shown as it is.

    Objects older than the definition's last change get the defaults it may have brought and lose the fields it may
    have dropped whenever they are read, and for good with their next write.
    """
    if same and not changed_at:
        return None

    def is_old(version: str) -> bool:
        return int(version or 0) <= changed_at

    def to_stored(obj: Object) -> Object:
        if same:
            return obj
        converted: Object = deepcopy(obj)
        prune(stored, converted)
        apply_defaults(stored, converted)
        return converted

    def from_stored(obj: Object) -> Object:
        if is_old(obj["metadata"].get("resourceVersion", "")):
            prune(stored, obj)
            apply_defaults(stored, obj)
        if not same:
            prune(shown, obj)
        return obj

    def applies(data: bytes) -> bool:
        return not same or is_old(_head(data).metadata.resource_version)

    return Conversion(to_stored, from_stored, applies)


def _selected(path_text: str, conversion: Conversion | None) -> Callable[[Object], str]:
    path = JsonPath(path_text)

    def text(obj: Object) -> str:
        value = path.first(obj if conversion is None else conversion.from_stored(obj))
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return text
