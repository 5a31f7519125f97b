"""Resizing: containers get more or less of cpu and memory while they run."""

from typing import Any

from kubereef.kinds.behaviours.pod_resources import is_sidecar, quality_of_service
from kubereef.kinds.behaviours.podspec_validation import annotations
from kubereef.kinds.behaviours.podspec_validation.checks import Problems
from kubereef.kinds.behaviours.podspec_validation.claims import NOWHERE
from kubereef.kinds.behaviours.podspec_validation.specs import SPEC, pod_problems
from kubereef.kinds.resource import Object
from kubewire.fielderrors import FieldError, forbidden, invalid

_RESIZABLE = ("cpu", "memory")
_SIDES = ("limits", "requests")


def keep_only_sizes(new: Object, old: Object) -> None:
    """Take everything but the sizes back to what it was; what cannot be matched is left for validation to refuse."""
    lists = ("containers", "initContainers")
    after, before = new["spec"], old["spec"]
    if any(len(after.get(field) or ()) != len(before.get(field) or ()) for field in lists):
        return
    spec = dict(before)
    _put(spec, "resources", after.get("resources"))
    for field in lists:
        if after.get(field):
            spec[field] = _resized(after[field], before[field])
    new["spec"] = spec
    if "status" in old:
        new["status"] = old["status"]


def resize_problems(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a resize."""
    if annotations.MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden((), "static pods cannot be resized", NOWHERE)]
    after, before = new["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden((), "windows pods cannot be resized", NOWHERE)]
    found = list(pod_problems(new))
    quality = (old.get("status") or {}).get("qosClass") or quality_of_service(before)
    if quality != quality_of_service(after):
        detail = "Pod QOS Class may not change as a result of resizing"
        found.append(invalid(SPEC, (new.get("status") or {}).get("qosClass", ""), detail))
    if not _node_can(old):
        found.append(forbidden(SPEC, "Pod running on node without support for resize"))
    masked = dict(after)
    if _has_sizes(before) or _has_sizes(after):
        found += _whole_pod(masked, before)
    if reordered := list(_order(after, before)):
        return [*found, *reordered]
    found += _containers(masked, before)
    if not found and masked != before:
        found.append(forbidden(SPEC, "only cpu and memory resources are mutable"))
    return found


def _resized(after: list[Object], before: list[Object]) -> list[Object]:
    """Return containers as they were, with the sizes that they are to have."""
    if any(new.get("name") != old.get("name") for new, old in zip(after, before, strict=True)):
        return after
    resized = []
    for new, old in zip(after, before, strict=True):
        container = dict(old)
        for field in ("resources", "resizePolicy"):
            _put(container, field, new.get(field))
        resized.append(container)
    return resized


def _node_can(pod: Object) -> bool:
    """Tell whether the node of a Pod can resize: it reports sizes of what runs. Nobody knows before anything runs."""
    for status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (status.get("state") or {}).get("running") is not None:
            return status.get("resources") is not None
    return True


def _has_sizes(spec: Object) -> bool:
    return any((spec.get("resources") or {}).get(side) for side in _SIDES)


def _whole_pod(masked: Object, before: Object) -> Problems:
    place = (*SPEC, "resources")
    old, new = before.get("resources"), masked.get("resources")
    if old is not None and new is None:
        yield forbidden(place, "pod-level resources cannot be removed")
        return
    for side in ("requests", "limits"):
        if old is not None and _lost(new or {}, old, side):
            yield forbidden((*place, side), f"pod-level resource {side} cannot be removed")
    restored = _with_old_sizes(new or {}, old or {})
    _put(masked, "resources", restored if restored or old is not None else None)
    if masked.get("resources") != old:
        yield forbidden(SPEC, "only cpu and memory resources are mutable at pod-level")


def _order(after: Object, before: Object) -> Problems:
    for field in ("containers", "initContainers"):
        new, old = after.get(field) or [], before.get(field) or []
        if len(new) != len(old):
            yield forbidden((*SPEC, field), f"{field} may not be added or removed on resize")
            continue
        for index, container in enumerate(old):
            if new[index].get("name") != container.get("name"):
                place = (*SPEC, field, index, "name")
                yield forbidden(place, f"{field} may not be renamed or reordered on resize")


def _containers(masked: Object, before: Object) -> Problems:
    """Yield what containers may not lose or change; sizes that may change are put back in `masked`."""
    for field in ("initContainers", "containers"):
        if not masked.get(field):
            continue
        restored = []
        for index, (new, old) in enumerate(zip(masked[field], before[field], strict=True)):
            place = (*SPEC, field, index)
            for side in ("requests", "limits"):
                if _lost(new.get("resources") or {}, old.get("resources") or {}, side):
                    yield forbidden((*place, "resources", side), f"resource {side} cannot be removed")
            resources = _with_old_sizes(new.get("resources") or {}, old.get("resources") or {})
            container = {**new, "resources": resources}
            restored.append(container)
            if container != {"resources": {}, **old}:
                if field == "containers":
                    yield forbidden(SPEC, "only cpu and memory resources are mutable")
                else:
                    detail = "only cpu and memory resources for init or sidecar containers are mutable"
                    yield forbidden(place, detail)
            if field == "initContainers" and new != old and not is_sidecar(new):
                yield from _restarting(place, container)
        masked[field] = restored


def _restarting(place: tuple[str | int, ...], container: Object) -> Problems:
    for policy in container.get("resizePolicy") or ():
        if policy.get("restartPolicy") == "RestartContainer":
            detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            yield forbidden(place, detail)


def _lost(new: Object, old: Object, side: str) -> bool:
    return not (old.get(side) or {}).keys() <= (new.get(side) or {}).keys()


def _with_old_sizes(new: Object, old: Object) -> Object:
    """Return resources whose cpu and memory are the old ones."""
    restored: Object = {}
    for side in _SIDES:
        kept = {name: value for name, value in (new.get(side) or {}).items() if name not in _RESIZABLE}
        kept |= {name: value for name, value in (old.get(side) or {}).items() if name in _RESIZABLE}
        if kept:
            restored[side] = kept
    return restored


def _put(obj: Object, field: str, value: Any) -> None:
    if value is None:
        obj.pop(field, None)
    else:
        obj[field] = value
