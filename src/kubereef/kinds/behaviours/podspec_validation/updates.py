"""What may change about a Pod once it is there, and in which direction."""

from typing import Any

from kubereef.kinds.behaviours.podspec_validation import annotations, placement
from kubereef.kinds.behaviours.podspec_validation.checks import MAX_INT32, Problems
from kubereef.kinds.behaviours.podspec_validation.claims import NOWHERE
from kubereef.kinds.behaviours.podspec_validation.containers import image_spaces
from kubereef.kinds.behaviours.podspec_validation.internal import (
    ephemeral_container_difference,
    shown,
    spec_difference,
)
from kubereef.kinds.behaviours.podspec_validation.specs import ANNOTATIONS, SPEC, pod_problems
from kubereef.kinds.resource import Object
from kubewire.fielderrors import FieldError, Verbatim, forbidden, invalid, required
from kubewire.paths import FieldPath

_CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def update_problems(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with an update of a Pod."""
    return [*_everywhere(new, old), *_spec_changes(new["spec"], old["spec"])]


def ephemeral_problems(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with an update of the ephemeral containers: they can only be added."""
    if annotations.MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden((), "static pods do not support ephemeral containers", NOWHERE)]
    found = list(_everywhere(new, old))
    place = (*SPEC, "ephemeralContainers")
    after = {one.get("name", ""): one for one in new["spec"].get("ephemeralContainers") or ()}
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before.get("name", "")
        if name not in after:
            detail = f'existing ephemeral containers "{name}" may not be removed\n'
            found.append(forbidden(place, detail))
        elif after[name] != before:
            difference = ephemeral_container_difference(before, after[name])
            detail = f'existing ephemeral containers "{name}" may not be changed\n{difference}'
            found.append(forbidden(place, detail))
    return found


def _everywhere(new: Object, old: Object) -> Problems:
    """Yield what is wrong with the Pod that an update leaves, and with changes of annotations."""
    yield from pod_problems(new)
    yield from annotations.changes(ANNOTATIONS, new, old)
    yield from annotations.pod_annotations(ANNOTATIONS, new)


def _spec_changes(new: Object, old: Object) -> Problems:
    for field in ("containers", "initContainers"):
        place = (*SPEC, field)
        after, before = new.get(field) or [], old.get(field) or []
        if len(after) != len(before):
            yield forbidden(place, "pod updates may not add or remove containers")
            return
        for index, container in enumerate(after):
            if not container.get("image"):
                yield required((*place, index, "image"))
            yield from image_spaces((*place, index), container)
    deadline = list(_deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")))
    yield from deadline
    if deadline and new.get("activeDeadlineSeconds") is not None:
        return
    yield from _tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    yield from _gates(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    if new == old:
        return
    masked = _masked(new, old)
    if old.get("schedulingGates"):
        yield from _narrowed(masked, old)
    if masked != old:
        detail = f"pod updates may not change fields other than {_CHANGEABLE}\n{spec_difference(old, masked)}"
        yield forbidden(SPEC, detail)


def _masked(new: Object, old: Object) -> Object:
    """Return a spec in which all that may change is as it was."""
    masked = dict(new)
    for field in ("containers", "initContainers"):
        if field in new:
            pairs = zip(new[field], old[field], strict=True)
            masked[field] = [_with(after, "image", before.get("image")) for after, before in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        masked = _with(masked, field, old.get(field))
    return masked


def _deadline(new: int | None, old: int | None) -> Problems:
    place = (*SPEC, "activeDeadlineSeconds")
    if new is None:
        if old is not None:
            detail = "must not update from a positive integer to nil value"
            yield invalid(place, Verbatim("null"), detail)
    elif not 0 <= new <= MAX_INT32:
        yield invalid(place, new, f"must be between 0 and {MAX_INT32}, inclusive")
    elif old is not None and old < new:
        yield invalid(place, new, "must be less than or equal to previous value")


def _tolerations(new: list[Object], old: list[Object]) -> Problems:
    place = (*SPEC, "tolerations")
    kept = set(map(_toleration, new))
    if any(_toleration(one) not in kept for one in old):
        yield forbidden(place, "existing toleration can not be modified except its tolerationSeconds")
        return
    yield from placement.tolerations(place, new)


def _toleration(toleration: Object) -> frozenset[tuple[str, Any]]:
    """Return what may not change about a toleration, in a form that can be looked up."""
    return frozenset(item for item in toleration.items() if item[0] != "tolerationSeconds")


def _gates(new: list[Object], old: list[Object]) -> Problems:
    before = {gate.get("name", "") for gate in old}
    places = {gate.get("name", ""): index for index, gate in enumerate(new)}
    for name, index in places.items():
        if name not in before:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            yield forbidden((*SPEC, "schedulingGates", index, "name"), detail)


def _narrowed(masked: Object, old: Object) -> Problems:
    """Yield how a Pod that waits at a gate may not change where it can run; what may change is put back in `masked`."""
    before, after = old.get("nodeSelector") or {}, masked.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid((*SPEC, "nodeSelector"), after or None, detail)
    _put(masked, "nodeSelector", old.get("nodeSelector"))
    old_affinity, new_affinity = old.get("affinity"), masked.get("affinity")
    was, now = (old_affinity or {}).get("nodeAffinity"), (new_affinity or {}).get("nodeAffinity")
    if was == now:
        return
    yield from _affinity_narrowed((*SPEC, "affinity", "nodeAffinity"), now or {}, was or {})
    others = {field: value for field, value in (new_affinity or {}).items() if field != "nodeAffinity"}
    restored = {**others, "nodeAffinity": was} if was is not None else others
    _put(masked, "affinity", None if not restored and old_affinity is None else restored)


def _affinity_narrowed(at: FieldPath, now: Object, was: Object) -> Problems:
    place = (*at, _REQUIRED, "nodeSelectorTerms")
    before = (was.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = (now.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if before and len(before) != len(after):
        listed = ",".join(shown("NodeSelectorTerm", term) for term in after)
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(place, Verbatim(f"[{listed}]" if after else "null"), detail)
        return
    for index, (new, old) in enumerate(zip(after, before, strict=False)):
        if not _only_adds(new, old):
            detail = "only additions are allowed (no mutations or deletions)"
            yield invalid((*place, index), shown("NodeSelectorTerm", new), detail)


def _only_adds(new: Object, old: Object) -> bool:
    """Tell whether a term has all that it had, in the same order, and was not the one that matches nothing."""
    fields = ("matchExpressions", "matchFields")
    if not any(old.get(field) for field in fields) and any(new.get(field) for field in fields):
        return False
    return all(
        (new.get(field) or [])[: len(old.get(field) or [])] == (old.get(field) or []) for field in fields
    )


def _with(obj: Object, field: str, value: Any) -> Object:
    """Return an object with another value of one field; None takes the field away."""
    rest = {key: kept for key, kept in obj.items() if key != field}
    return rest if value is None else {**rest, field: value}


def _put(obj: Object, field: str, value: Any) -> None:
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = value
