"""What the containers of a Pod need together, and the quality of service that follows from it."""

from collections.abc import Iterator
from functools import lru_cache

from kubereef.kinds.resource import Object
from kubewire.quantity import ZERO, Quantity

Amounts = dict[str, Quantity]

HUGE_PAGES = "hugepages-"
# Most Pods of a cluster ask for the same few amounts.
quantity = lru_cache(maxsize=2048)(Quantity.parse)

_DECIDES_SERVICE = ("cpu", "memory")


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Tell whether a resource is Kubernetes' own: without a domain, or with one of kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


def may_overcommit(name: str) -> bool:
    """Tell whether containers may be limited to more of a resource than they request."""
    return is_native(name) and not is_huge_page(name)


def is_for_whole_pod(name: str) -> bool:
    """Tell whether a Pod can ask for a resource on behalf of all its containers."""
    return name in ("cpu", "memory") or is_huge_page(name)


def is_sidecar(container: Object) -> bool:
    """Tell whether an init container keeps running beside the others."""
    return bool(container.get("restartPolicy") == "Always")


def amounts(holder: Object, field: str) -> Amounts:
    """Return the `requests` or `limits` of what has resources, as quantities."""
    listed: dict[str, str] = (holder.get("resources") or {}).get(field) or {}
    return {name: quantity(text) for name, text in listed.items()}


def aggregated(spec: Object, field: str) -> Amounts:
    """Return what the containers need at the moment when they need most.

    Containers and sidecars run together. An init container runs before them, along with the sidecars listed before it.
    """
    together: Amounts = {}
    for container in spec.get("containers") or ():
        _add(together, amounts(container, field))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or ():
        needed = amounts(container, field)
        if is_sidecar(container):
            _add(together, needed)
            _add(sidecars, needed)
            _raise_to(starting, sidecars)
        else:
            _add(needed, sidecars)
            _raise_to(starting, needed)
    _raise_to(together, starting)
    return together


def stated(spec: Object, field: str) -> Amounts:
    """Return what a Pod states: for all its containers at once where it does, else what they need together."""
    whole = {name: amount for name, amount in amounts(spec, field).items() if is_for_whole_pod(name)}
    return aggregated(spec, field) | whole


def needed(spec: Object, field: str) -> Amounts:
    """Return what a Pod states, and what running it takes besides; a limit that is not there stays away."""
    found = stated(spec, field)
    overhead: dict[str, str] = spec.get("overhead") or {}
    more = {n: quantity(text) for n, text in overhead.items() if field == "requests" or n in found}
    _add(found, more)
    return found


def quality_of_service(spec: Object) -> str:
    """Return `Guaranteed`, `Burstable` or `BestEffort`."""
    requests: Amounts = {}
    limits: Amounts = {}
    is_guaranteed = True
    for holder in _deciding(spec):
        _add(requests, _of_service(holder, "requests"))
        limited = _of_service(holder, "limits")
        _add(limits, limited)
        if len(limited) < len(_DECIDES_SERVICE):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _deciding(spec: Object) -> Iterator[Object]:
    """Yield what has the resources that decide: the Pod as a whole if it says anything, else its containers."""
    if spec.get("resources") is not None:
        yield spec
        return
    yield from spec.get("containers") or ()
    yield from spec.get("initContainers") or ()


def _of_service(holder: Object, field: str) -> Amounts:
    found = amounts(holder, field)
    return {name: found[name] for name in _DECIDES_SERVICE if found.get(name, ZERO) > ZERO}


def _add(to: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        to[name] = to[name] + amount if name in to else amount


def _raise_to(what: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if name not in what or what[name] < amount:
            what[name] = amount
