"""What the statuses of classes, Gateways and routes say: functions of what is known, and of the time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kubereef.gateway.attachment import (
    ACCEPTED,
    HTTP_ROUTE,
    REFS_RESOLVED,
    Attachment,
    ListenerVerdict,
    Verdict,
    judge_listeners,
    supports_http_routes,
)
from kubereef.gateway.objects import CONTROLLER
from kubereef.gateway.reading import Gateway, Listener, ParentRef, Route, ServicePortRef
from kubereef.kinds.resource import Object

_MOST_MESSAGE = 32768


class Address(NamedTuple):
    """The address that a Gateway has, or why it has none."""

    value: str = ""
    problem: str = ""


def class_status(gateway_class: Object, now: str) -> Object:
    """Return the status of a class whose Gateways are served."""
    message = Verdict(True, "Accepted", "Gateways of this class are served")
    return _with_conditions(gateway_class.get("status") or {}, gateway_class, now, {"Accepted": message})


def gateway_status(
    found: Object, gateway: Gateway, attached: Mapping[str, int], address: Address, now: str
) -> Object:
    """Return the status of a Gateway; `attached` are the numbers of routes of its listeners, by name."""
    old = found.get("status") or {}
    verdicts = judge_listeners(gateway)
    accepted = accepted_gateway(gateway, verdicts)
    programmed = _programmed(accepted, address)
    status = _with_conditions(old, found, now, {"Accepted": accepted, "Programmed": programmed})
    status["addresses"] = [{"type": "IPAddress", "value": address.value}] if address.value else []
    before = {one.get("name"): one for one in old.get("listeners") or ()}
    status["listeners"] = [
        {
            **_with_conditions(
                {"conditions": (before.get(one.name) or {}).get("conditions") or []},
                found,
                now,
                _listener_verdicts(verdicts[one.name], programmed),
            ),
            "name": one.name,
            "attachedRoutes": attached.get(one.name, 0),
            "supportedKinds": _supported_kinds(one),
        }
        for one in gateway.listeners
    ]
    return status


def accepted_gateway(gateway: Gateway, verdicts: Mapping[str, ListenerVerdict]) -> Verdict:
    """Return whether a Gateway is taken on."""
    if gateway.asks_for_addresses:
        message = "spec.addresses: Gateways of this class get an address of the cluster, and cannot choose it"
        return Verdict(False, "UnsupportedAddress", message)
    bad = [name for name, verdict in verdicts.items() if not verdict.is_served]
    if not bad:
        return ACCEPTED
    message = f"not served: {', '.join(bad)}; the listeners' conditions say why"
    return Verdict(len(bad) < len(verdicts), "ListenersNotValid", message)


def _programmed(accepted: Verdict, address: Address) -> Verdict:
    if not accepted.holds:
        return Verdict(False, "Invalid", "the Gateway is not accepted")
    if not address.value:
        return Verdict(False, "AddressNotAssigned", address.problem)
    return Verdict(True, "Programmed", f"requests come in at {address.value}")


def _listener_verdicts(verdict: ListenerVerdict, programmed: Verdict) -> dict[str, Verdict]:
    served = programmed if verdict.is_served else Verdict(False, "Invalid", "the listener is not served")
    return {
        "Accepted": verdict.accepted,
        "Programmed": served,
        "ResolvedRefs": verdict.references,
        "Conflicted": verdict.distinct._replace(holds=not verdict.distinct.holds),
    }


def _supported_kinds(listener: Listener) -> list[Object]:
    if not supports_http_routes(listener):
        return []
    group, kind = HTTP_ROUTE
    return [{"group": group, "kind": kind}]


def route_status(
    found: Object, attachments: Sequence[tuple[ParentRef, Attachment]], references: Verdict, now: str
) -> Object:
    """Return the status of a route with what is to be said of its parents here; what others say stays."""
    old = (found.get("status") or {}).get("parents") or []
    ours = [one for one in old if one.get("controllerName") == CONTROLLER]
    parents = [one for one in old if one.get("controllerName") != CONTROLLER]
    for parent, attachment in attachments:
        source = dict(parent.source)
        before: Object = next((one for one in ours if one.get("parentRef") == source), {})
        verdicts = {"Accepted": attachment.verdict, "ResolvedRefs": references}
        said = _with_conditions({"conditions": before.get("conditions") or []}, found, now, verdicts)
        parents.append({"parentRef": source, "controllerName": CONTROLLER, **said})
    return {**(found.get("status") or {}), "parents": parents}


def judge_references(route: Route, problem_with: Callable[[ServicePortRef], str]) -> Verdict:
    """Return whether all backends of a route can be had; `problem_with` says why a Service's port cannot."""
    for backend in (one for rule in route.rules for one in rule.backends):
        if backend.service is None:
            return Verdict(False, backend.reason, backend.problem)
        if problem := problem_with(backend.service):
            return Verdict(False, "BackendNotFound", problem)
    return REFS_RESOLVED


def count_attached(attachments: Iterable[Attachment]) -> dict[str, int]:
    """Return how many routes come through each listener, by name."""
    counts: dict[str, int] = {}
    for attachment in attachments:
        for listener, _ in attachment.places:
            counts[listener.name] = counts.get(listener.name, 0) + 1
    return counts


def _with_conditions(old: Object, found: Object, now: str, verdicts: Mapping[str, Verdict]) -> Object:
    """Return a status with these conditions in it; the time of one is that of the last change of its status."""
    held = {one["type"]: one for one in old.get("conditions") or ()}
    generation = found["metadata"].get("generation", 1)
    for kind, verdict in verdicts.items():
        status = "True" if verdict.holds else "False"
        before = held.get(kind) or {}
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        held[kind] = {
            "type": kind,
            "status": status,
            "reason": verdict.reason,
            "message": verdict.message[:_MOST_MESSAGE],
            "observedGeneration": generation,
            "lastTransitionTime": since or now,
        }
    return {**old, "conditions": list(held.values())}
