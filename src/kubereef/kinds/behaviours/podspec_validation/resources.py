"""Requests and limits: which resources there are, and how much of them may be asked for."""

from collections import Counter
from collections.abc import Callable, Iterable

from kubereef.kinds.behaviours.pod_resources import (
    HUGE_PAGES,
    aggregated,
    amounts,
    is_for_whole_pod,
    is_huge_page,
    is_native,
    may_overcommit,
)
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import duplicate, forbidden, invalid, not_found, not_supported, required
from kubewire.paths import FieldPath, Key
from kubewire.quantity import ZERO, Quantity, QuantityError

_CONTAINER = frozenset(("cpu", "memory", "ephemeral-storage"))
_COUNTED = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)
_STANDARD = (
    _CONTAINER
    | _COUNTED
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _CONTAINER}
    | {"storage", "requests.storage"}
)
_ONE = 10**9

NameProblems = Callable[[FieldPath, str], Problems]


def container_resources(at: FieldPath, holder: Object, claims: Iterable[str]) -> Problems:
    """Yield what is wrong with the resources of a container; `claims` are those of its Pod."""
    yield from _requirements(at, holder, container_resource_name, claims)


def overhead(at: FieldPath, given: dict[str, str]) -> Problems:
    """Yield what is wrong with what running a Pod costs besides its containers."""
    yield from _requirements(at, {"resources": {"limits": given}}, container_resource_name, ())


def pod_resources(at: FieldPath, spec: Object) -> Problems:
    """Yield what is wrong with what a Pod asks for as a whole."""
    resources = spec.get("resources")
    if resources is None:
        return
    at = (*at, "resources")
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden(at, "may not be set for a windows pod")
        return
    if resources.get("claims"):
        yield forbidden((*at, "claims"), "claims may not be set for Resources at pod-level")
    claims = [claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")]
    yield from _requirements(at, spec, _pod_resource_name, claims)
    yield from _consistency(at, spec)


def container_resource_name(at: FieldPath, name: str) -> Problems:
    """Yield why a container cannot have a resource of a name."""
    yield from _resource_name(at, name)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            yield invalid(at, name, "must be a standard resource for containers")
    elif not is_native(name) and not _is_extended(name):
        yield invalid(at, name, "doesn't follow extended resource name standard")


def amount(at: FieldPath, name: str, quantity: Quantity) -> Problems:
    """Yield why there cannot be that much of a resource."""
    if quantity < ZERO:
        yield invalid(at, str(quantity), "must be greater than or equal to 0")
    if (name in _COUNTED or _is_extended(name)) and quantity.nano % _ONE:
        yield invalid(at, str(quantity), "must be an integer")


def _requirements(
    at: FieldPath, holder: Object, name_problems: NameProblems, claims: Iterable[str]
) -> Problems:
    limits, requests = amounts(holder, "limits"), amounts(holder, "requests")
    for name, limit in limits.items():
        yield from _entry((*at, "limits", Key(name)), name, limit, name_problems)
    for name, request in requests.items():
        yield from _entry((*at, "requests", Key(name)), name, request, name_problems)
        yield from _within_limit(at, name, request, limits.get(name))
    both = {*limits, *requests}
    if both.isdisjoint(("cpu", "memory")) and any(map(is_huge_page, both)):
        yield forbidden(at, "HugePages require cpu or memory")
    wanted = (holder.get("resources") or {}).get("claims")
    if wanted:
        yield from _claims((*at, "claims"), wanted, set(claims))


def _entry(at: FieldPath, name: str, quantity: Quantity, name_problems: NameProblems) -> Problems:
    yield from name_problems(at, name)
    yield from amount(at, name, quantity)
    if is_huge_page(name) and not _is_whole_pages(name, quantity):
        yield invalid(at, str(quantity), f"{quantity} is not positive integer multiple of {name}")


def _within_limit(at: FieldPath, name: str, request: Quantity, limit: Quantity | None) -> Problems:
    if limit is None:
        if not may_overcommit(name):
            yield required((*at, "limits"), "Limit must be set for non overcommitable resources")
    elif request != limit and not may_overcommit(name):
        yield invalid((*at, "requests"), str(request), f"must be equal to {name} limit of {limit}")
    elif request > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid((*at, "requests"), str(request), detail)


def _resource_name(at: FieldPath, name: str) -> Problems:
    problems = list(named(at, name, names.qualified_name))
    yield from problems
    if not problems and "/" not in name and not _is_standard(name):
        yield invalid(at, name, "must be a standard resource type or fully qualified")


def _pod_resource_name(at: FieldPath, name: str) -> Problems:
    problems = list(_resource_name(at, name))
    yield from problems
    if not problems and not is_for_whole_pod(name):
        yield not_supported(at, name, ("cpu", HUGE_PAGES, "memory"))


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def _is_extended(name: str) -> bool:
    """Tell whether a resource is somebody else's, such as `nvidia.com/gpu`."""
    return (
        not is_native(name)
        and not name.startswith("requests.")
        and not names.qualified_name(f"requests.{name}")
    )


def _is_whole_pages(name: str, quantity: Quantity) -> bool:
    try:
        page = Quantity.parse(name.removeprefix(HUGE_PAGES))
    except QuantityError:
        return False
    return page > ZERO and page.nano % _ONE == 0 and quantity.value() % page.value() == 0


def _claims(at: FieldPath, wanted: list[Object], available: set[str]) -> Problems:
    """Yield claims that the Pod does not have, or that a container names twice."""
    seen: set[str] = set()
    requested: Counter[str] = Counter()
    for index, claim in enumerate(wanted):
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            yield required((*at, index))
            continue
        if name in seen:
            yield duplicate((*at, index), name)
        else:
            key = f"{name}/{request}" if request else name
            if request:
                yield from named((*at, index, "request"), request, names.dns1123_label)
            if key in seen:
                yield duplicate((*at, index), key)
            elif not request:
                # Said once for every request of the claim that has been named before.
                yield from [duplicate((*at, index), name)] * requested[name]
            if request and key not in seen:
                requested[name] += 1
            seen.add(key)
        if name not in available:
            choices = f": {', '.join(sorted(available))}" if available else " which is empty"
            yield not_found(
                (*at, index), name, f"must be one of the names in pod.spec.resourceClaims{choices}"
            )


def _consistency(at: FieldPath, spec: Object) -> Problems:
    """Yield where a Pod asks for less than its containers do."""
    requests, limits = amounts(spec, "requests"), amounts(spec, "limits")
    for name, needed in aggregated(spec, "requests").items():
        if name in requests and needed > requests[name]:
            detail = f"must be greater than or equal to aggregate container requests of {needed}"
            yield invalid((*at, "requests", Key(name)), str(requests[name]), detail)
    for name, needed in aggregated(spec, "limits").items():
        if is_huge_page(name) and name in limits and needed > limits[name]:
            detail = f"must be greater than or equal to aggregate container limits of {needed}"
            yield invalid((*at, "limits", Key(name)), str(limits[name]), detail)
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in amounts(container, "limits").items():
            if name in limits and limit > limits[name]:
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                yield invalid((*at, "containers", index, Key(name), "limits"), str(limit), detail)
