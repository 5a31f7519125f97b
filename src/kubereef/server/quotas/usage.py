"""What an object counts for against quotas: how many of its kind, and for some kinds how much of what."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

from kubereef.kinds.behaviours.pod_resources import (
    HUGE_PAGES,
    Amounts,
    amounts,
    is_for_whole_pod,
    is_huge_page,
    is_native,
    needed,
    quantity,
)
from kubereef.kinds.resource import Object
from kubereef.server.quotas.scopes import NO_TRAITS, Traits, claim_traits, pod_traits
from kubewire.quantity import Quantity
from kubewire.times import parse_time

_COUNT = "count/"
_REQUESTS = "requests."
_OF_CLASS = ".storageclass.storage.k8s.io/"
_NODE_PORTS, _LOAD_BALANCERS = "services.nodeports", "services.loadbalancers"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
# What every container has to state once a quota is about it. Kubernetes asks for no other resource in this way.
_TO_BE_STATED = frozenset(
    (prefix + name) for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
_ONE = Quantity.parse("1")


class Counted(NamedTuple):
    """What an object counts for, and what decides whether a quota with scopes counts it."""

    usage: Amounts
    traits: Traits = NO_TRAITS


class Evaluator(NamedTuple):
    """How the objects of one resource are counted."""

    # What one object counts for. Where `is_plain` holds, every object counts the same, whatever is in it.
    evaluate: Callable[[Object], Counted]
    # Whether a name that a quota limits is about this resource.
    tracks: Callable[[str], bool]
    # The operations, and parts of an object, by which more can come to be used.
    grows_by: frozenset[tuple[str, str]] = frozenset((("CREATE", ""),))
    # What an object has to state about the names that a quota limits, and does not.
    unstated: Callable[[Object, Collection[str]], str] = lambda _obj, _names: ""
    is_plain: bool = False


# --- Pods


def _count_pod(pod: Object) -> Counted:
    usage: Amounts = {"count/pods": _ONE}
    if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        spec = pod.get("spec") or {}
        usage["pods"] = _ONE
        usage |= _named_for_quota(needed(spec, "requests"), needed(spec, "limits"))
    return Counted(usage, pod_traits(pod))


def _named_for_quota(requests: Amounts, limits: Amounts) -> Amounts:
    usage: Amounts = {}
    for name in _COMPUTE:
        if name in requests:
            usage[name] = usage[f"{_REQUESTS}{name}"] = requests[name]
        if name in limits:
            usage[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if is_huge_page(name):
            usage[name] = usage[f"{_REQUESTS}{name}"] = amount
        elif not is_native(name):
            usage[f"{_REQUESTS}{name}"] = amount
    return usage


def _is_of_pods(name: str) -> bool:
    if name.startswith((HUGE_PAGES, f"{_REQUESTS}{HUGE_PAGES}")):
        return True
    return name in _POD_NAMES or (name.startswith(_REQUESTS) and not is_native(name))


_POD_NAMES = frozenset(
    ("pods", "count/pods", *(f"{side}{name}" for side in ("", _REQUESTS, "limits.") for name in _COMPUTE))
)


def _unstated_by_containers(pod: Object, names: Collection[str]) -> str:
    spec = pod.get("spec") or {}
    if any(is_for_whole_pod(name) for field in ("requests", "limits") for name in amounts(spec, field)):
        return ""
    required = sorted(_TO_BE_STATED.intersection(names))
    lacking: dict[str, set[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        stated = _named_for_quota(amounts(container, "requests"), amounts(container, "limits"))
        for name in required:
            if name not in stated:
                lacking.setdefault(name, set()).add(container.get("name", ""))
    if not lacking:
        return ""
    parts = (f"{name} for: {','.join(sorted(lacking[name]))}" for name in required if name in lacking)
    return f"must specify {'; '.join(parts)}"


def released_at(pod: Object) -> datetime | None:
    """Return when a Pod that is being deleted stops counting, but as an object, even if it is still there.

    A Pod that nobody ends, since its node is lost, must not keep a namespace from replacing it.
    """
    meta = pod["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("deletionGracePeriodSeconds") is None:
        return None
    return parse_time(meta["deletionTimestamp"]) + timedelta(seconds=meta["deletionGracePeriodSeconds"])


def only_as_object(counted: Counted) -> Counted:
    """Return what is left to count of something that uses nothing any more."""
    return counted._replace(usage={n: a for n, a in counted.usage.items() if n.startswith(_COUNT)})


# --- Services


def _count_service(service: Object) -> Counted:
    spec = service.get("spec") or {}
    kind, ports = spec.get("type"), spec.get("ports") or ()
    exposed = 0
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        exposed = sum(bool(port.get("nodePort")) for port in ports)
    elif kind in ("NodePort", "LoadBalancer"):
        exposed = len(ports)
    return Counted(
        {
            "count/services": _ONE,
            "services": _ONE,
            _NODE_PORTS: _ONE * exposed,
            _LOAD_BALANCERS: _ONE * (kind == "LoadBalancer"),
        }
    )


_SERVICE_NAMES = frozenset(("count/services", "services", _NODE_PORTS, _LOAD_BALANCERS))


# --- volume claims


def _count_claim(claim: Object) -> Counted:
    usage: Amounts = {"count/persistentvolumeclaims": _ONE, "persistentvolumeclaims": _ONE}
    spec = claim.get("spec") or {}
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is not None:
        granted = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
        storage = quantity(asked)
        usage["requests.storage"] = max(storage, quantity(granted)) if granted else storage
    legacy = (claim["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    if storage_class := legacy or spec.get("storageClassName"):
        for name in ("persistentvolumeclaims", "requests.storage"):
            if name in usage:
                usage[f"{storage_class}{_OF_CLASS}{name}"] = usage[name]
    return Counted(usage, claim_traits(claim))


def _is_of_claims(name: str) -> bool:
    return name in _CLAIM_NAMES or name.endswith(
        (f"{_OF_CLASS}requests.storage", f"{_OF_CLASS}persistentvolumeclaims")
    )


_CLAIM_NAMES = frozenset(("count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage"))


# --- all resources

_ON_CHANGE = frozenset((("CREATE", ""), ("UPDATE", "")))
_SPECIAL = {
    "pods": Evaluator(
        _count_pod,
        _is_of_pods,
        frozenset((("CREATE", ""), ("UPDATE", "resize"))),
        _unstated_by_containers,
    ),
    "services": Evaluator(_count_service, _SERVICE_NAMES.__contains__, _ON_CHANGE),
    "persistentvolumeclaims": Evaluator(_count_claim, _is_of_claims, _ON_CHANGE),
}
# Resources that quotas may name by their plural alone, from before every resource could be counted.
_BY_PLURAL = frozenset(("configmaps", "replicationcontrollers", "resourcequotas", "secrets"))
# Events come and go by themselves and in numbers; nobody counts them.
_UNCOUNTED = frozenset(("events", "events.events.k8s.io"))


@cache
def _plain(resource: str) -> Evaluator:
    names = (f"{_COUNT}{resource}", *((resource,) if resource in _BY_PLURAL else ()))
    counted = Counted(dict.fromkeys(names, _ONE))
    return Evaluator(lambda _obj: counted, frozenset(names).__contains__, is_plain=True)


def evaluator_of(resource: str) -> Evaluator | None:
    """Return how a resource such as `pods` or `rayclusters.ray.io` is counted; None if it never is."""
    if resource in _UNCOUNTED:
        return None
    return _SPECIAL.get(resource) or _plain(resource)


def resource_behind(name: str) -> str:
    """Return the resource that a name in a quota is about; empty if it is about none."""
    for resource, evaluator in _SPECIAL.items():
        if evaluator.tracks(name):
            return resource
    if name.startswith(_COUNT):
        counted = name.removeprefix(_COUNT)
        return "" if counted in _UNCOUNTED else counted
    return name if name in _BY_PLURAL else ""


def read_amounts(listed: dict[str, str] | None) -> Amounts:
    """Return the amounts of a quota's status as quantities."""
    return {name: quantity(text) for name, text in (listed or {}).items()}
