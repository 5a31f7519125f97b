"""Limit ranges: what a container of a namespace gets unless it says, and how little or much anything may ask for."""

from collections.abc import Iterator

from kubereef.kinds.behaviours.pod_resources import Amounts, amounts, quantity, stated
from kubereef.kinds.resource import Object
from kubereef.server.admission import Attempt
from kubereef.store.store import Store
from kubewire import errors
from kubewire.quantity import ZERO, Quantity

LIMIT_RANGES = "limitranges"
_ANNOTATION = "kubernetes.io/limit-ranger"
_CLAIMS = "persistentvolumeclaims"
# Where a change can concern limits at all; the resources of a Pod change by a resize alone.
_CONCERNED = {
    "pods": frozenset((("CREATE", ""), ("UPDATE", "resize"))),
    _CLAIMS: frozenset((("CREATE", ""), ("UPDATE", ""))),
}


def default_limits(store: Store, attempt: Attempt) -> list[str]:
    """Give the containers of a Pod the requests and limits that they leave out, and write down which."""
    if attempt.resource_type.resource != "pods":
        return []
    for limit_range in _ranges(store, attempt):
        told: list[str] = []
        spec = attempt.obj.get("spec") or {}
        for field, title in (("containers", "container"), ("initContainers", "init container")):
            for container in spec.get(field) or ():
                told += _filled_in(container, limit_range, title)
        if told:
            annotations = attempt.obj["metadata"].get("annotations") or {}
            text = f"LimitRanger plugin set: {'; '.join(told)}"
            attempt.obj["metadata"]["annotations"] = {**annotations, _ANNOTATION: text}
    return []


def within_limits(store: Store, attempt: Attempt) -> list[str]:
    """Refuse a Pod or volume claim that asks for less or more than a limit range allows."""
    is_claim = attempt.resource_type.resource == _CLAIMS
    for limit_range in _ranges(store, attempt):
        check = _claim_problems if is_claim else _pod_problems
        found = list(dict.fromkeys(check(limit_range, attempt.obj.get("spec") or {})))
        if found:
            because = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise errors.forbidden(attempt.resource_type.plural, attempt.name, because)
    return []


def _ranges(store: Store, attempt: Attempt) -> Iterator[Object]:
    """Yield the limit ranges that a write has to do with; none for what is being deleted."""
    if not store.count(LIMIT_RANGES):
        return
    concerned = _CONCERNED.get(attempt.resource_type.resource, frozenset())
    if (attempt.operation, attempt.subresource) not in concerned:
        return
    if attempt.old is not None and attempt.old["metadata"].get("deletionTimestamp"):
        return
    for record in store.records(LIMIT_RANGES, attempt.namespace):
        yield record.object()


def _limits(limit_range: Object, kind: str) -> Iterator[Object]:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == kind:
            yield limit


def _filled_in(container: Object, limit_range: Object, title: str) -> Iterator[str]:
    """Fill a container in and yield what was done to it."""
    for field, source, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
        resources = container.setdefault("resources", {})
        present = resources.get(field) or {}
        defaults = {
            name: amount
            for limit in _limits(limit_range, "Container")
            for name, amount in (limit.get(source) or {}).items()
            if name not in present
        }
        if defaults:
            resources[field] = {**present, **defaults}
            yield f"{', '.join(sorted(defaults))} {word} for {title} {container.get('name', '')}"


def _pod_problems(limit_range: Object, spec: Object) -> Iterator[str]:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        kind = limit.get("type")
        if kind == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                requests, limits = amounts(container, "requests"), amounts(container, "limits")
                yield from _problems(limit, kind, requests, limits)
        elif kind == "Pod":
            yield from _problems(limit, kind, stated(spec, "requests"), stated(spec, "limits"))


def _problems(limit: Object, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in _bounds(limit, "min"):
        yield from _too_little(f"minimum {name} usage per {kind} is {least}", name, least, requests, limits)
    for name, most in _bounds(limit, "max"):
        yield from _too_much(f"maximum {name} usage per {kind} is {most}", name, most, requests, limits)
    for name, ratio in _bounds(limit, "maxLimitRequestRatio"):
        title = f"{name} max limit to request ratio per {kind} is {ratio}"
        yield from _too_wide(title, ratio, requests.get(name, ZERO), limits.get(name, ZERO))


def _bounds(limit: Object, field: str) -> list[tuple[str, Quantity]]:
    return [(name, quantity(text)) for name, text in sorted((limit.get(field) or {}).items())]


def _too_little(title: str, name: str, least: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    if name not in requests:
        yield f"{title}.  No request is specified"
    elif requests[name] < least:
        yield f"{title}, but request is {requests[name]}"
    elif name in limits and limits[name] < least:
        yield f"{title}, but limit is {limits[name]}"


def _too_much(title: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    if name not in limits:
        yield f"{title}.  No limit is specified"
    elif limits[name] > most:
        yield f"{title}, but limit is {limits[name]}"
    elif name in requests and requests[name] > most:
        yield f"{title}, but request is {requests[name]}"


def _too_wide(title: str, ratio: Quantity, request: Quantity, limit: Quantity) -> Iterator[str]:
    if not request:
        yield f"{title}, but no request is specified or request is 0"
    elif not limit:
        yield f"{title}, but no limit is specified or limit is 0"
    elif limit.nano * 10**9 > ratio.nano * request.nano:
        yield f"{title}, but provided ratio is {limit.nano / request.nano:f}"


def _claim_problems(limit_range: Object, spec: Object) -> Iterator[str]:
    requests = amounts(spec, "requests")
    kind = "PersistentVolumeClaim"
    for limit in _limits(limit_range, kind):
        for name, least in _bounds(limit, "min"):
            yield from _too_little(f"minimum {name} usage per {kind} is {least}", name, least, requests, {})
        for name, most in _bounds(limit, "max"):
            title = f"maximum {name} usage per {kind} is {most}"
            if name not in requests:
                yield f"{title}.  No request is specified"
            elif requests[name] > most:
                yield f"{title}, but request is {requests[name]}"
