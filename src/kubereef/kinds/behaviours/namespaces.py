"""Namespaces: they are held by finalizers of their own, in the spec, until their content is gone."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named
from kubereef.kinds.columns import AGE, NAME, at, text
from kubereef.kinds.resource import Behaviour, Object, Part
from kubewire import fielderrors, names
from kubewire.fielderrors import FieldError

_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def _prepare_create(obj: Object) -> None:
    finalizers = at(obj, "spec", "finalizers") or []
    if "kubernetes" not in finalizers:
        obj["spec"] = {"finalizers": [*finalizers, "kubernetes"]}
    obj["status"] = {"phase": "Active"}
    _set_name_label(obj)


def _prepare_update(new: Object, old: Object) -> None:
    new["spec"] = old.get("spec", {})
    _set_name_label(new)


def _prepare_status(new: Object, old: Object) -> None:
    checks.beside_spec(new, old)
    _set_name_label(new)


def _prepare_finalize(new: Object, old: Object) -> None:
    """Let a write through `finalize` change the finalizers of the spec, which an ordinary write cannot."""
    new["status"] = old.get("status", {})
    new.setdefault("spec", {})
    _set_name_label(new)


def _set_name_label(obj: Object) -> None:
    metadata = obj["metadata"]
    # Without a name it is about to be refused, in words that tell of nothing else.
    if name := metadata.get("name"):
        metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": name}


def _begin_deletion(obj: Object) -> None:
    obj["metadata"].pop("deletionGracePeriodSeconds", None)
    obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}


def _finalizers(new: Object, _old: Object) -> Problems:
    for index, finalizer in enumerate(at(new, "spec", "finalizers") or ()):
        here = ("spec", "finalizers", index)
        yield from named(here, finalizer, names.qualified_name)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            yield fielderrors.invalid(here, finalizer, detail)


def _phase_fits(new: Object, _old: Object) -> list[FieldError]:
    phase = at(new, "status", "phase") or ""
    ends = bool(new["metadata"].get("deletionTimestamp"))
    expected = "Terminating" if ends else "Active"
    if phase == expected:
        return []
    detail = f"may only be '{expected}' if `deletionTimestamp` is {'not ' if ends else ''}empty"
    return [fielderrors.invalid(("status", "Phase"), phase, detail)]


NAMESPACES = Behaviour(
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    validate_status=_phase_fits,
    parts={"finalize": Part(_prepare_finalize, checks.listed(_finalizers))},
    check_name=names.dns1123_label,
    selectable={"status.phase": lambda obj: at(obj, "status", "phase") or ""},
    held=lambda obj: bool(at(obj, "spec", "finalizers")),
    begin_deletion=_begin_deletion,
    columns=(NAME, text("Status", "status", "phase"), AGE),
)
