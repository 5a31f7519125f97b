"""Which routes are reached through which listeners of which Gateways, and why others are not."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kubereef.gateway.objects import GROUP
from kubereef.gateway.reading import Gateway, Listener, ParentRef, Route
from kubewire.selectors import LabelSelector, SelectorError

HTTP_ROUTE = (GROUP, "HTTPRoute")

Labels = Mapping[str, str]
"""The labels of a namespace."""


class Verdict(NamedTuple):
    """Whether something holds, with the reason and the message that a condition gives for it."""

    holds: bool
    reason: str
    message: str = ""


ACCEPTED = Verdict(True, "Accepted")
NO_CONFLICT = Verdict(True, "NoConflicts")
REFS_RESOLVED = Verdict(True, "ResolvedRefs")


class ListenerVerdict(NamedTuple):
    """What is to be said of a listener. Only one for which all holds is served."""

    accepted: Verdict = ACCEPTED
    distinct: Verdict = NO_CONFLICT
    references: Verdict = REFS_RESOLVED

    @property
    def is_served(self) -> bool:
        return self.accepted.holds and self.distinct.holds and self.references.holds


def judge_listeners(gateway: Gateway) -> dict[str, ListenerVerdict]:
    """Return the verdict on each listener of a Gateway, by name."""
    taken: dict[tuple[int, str], str] = {}
    verdicts: dict[str, ListenerVerdict] = {}
    for listener in gateway.listeners:
        first = taken.setdefault((listener.port, listener.hostname), listener.name)
        accepted, distinct, references = ACCEPTED, NO_CONFLICT, REFS_RESOLVED
        if listener.protocol != "HTTP":
            message = f"the protocol is {listener.protocol}, and only HTTP is served"
            accepted = Verdict(False, "UnsupportedProtocol", message)
        elif first != listener.name:
            message = f"listener {first} has the same port and hostname"
            distinct = Verdict(False, "HostnameConflict", message)
        others = [f"{group}/{kind}" for group, kind in listener.kinds if (group, kind) != HTTP_ROUTE]
        if others:
            message = f"only HTTPRoutes are served, not {', '.join(others)}"
            references = Verdict(False, "InvalidRouteKinds", message)
        verdicts[listener.name] = ListenerVerdict(accepted, distinct, references)
    return verdicts


def supports_http_routes(listener: Listener) -> bool:
    """Tell whether HTTPRoutes may come through a listener."""
    return listener.protocol == "HTTP" and (not listener.kinds or HTTP_ROUTE in listener.kinds)


class Attachment(NamedTuple):
    """How a route stands to one of its parents; `places` are the listeners, each with the hostnames for it."""

    verdict: Verdict
    places: tuple[tuple[Listener, tuple[str, ...]], ...] = ()


def attach(route: Route, parent: ParentRef, gateway: Gateway, namespaces: Mapping[str, Labels]) -> Attachment:
    """Return how a route stands to a Gateway that it names; `namespaces` are the labels of namespaces, by name."""
    if route.problem:
        return Attachment(Verdict(False, "UnsupportedValue", route.problem))
    verdicts = judge_listeners(gateway)
    named = [
        one
        for one in gateway.listeners
        if parent.section in ("", one.name) and parent.port in (0, one.port) and verdicts[one.name].is_served
    ]
    if not named:
        message = f"Gateway {gateway.name} has no such listener that can be served"
        return Attachment(Verdict(False, "NoMatchingParent", message))
    allowed = [one for one in named if _allows(one, gateway, route, namespaces)]
    if not allowed:
        message = f"no listener of Gateway {gateway.name} allows HTTPRoutes of namespace {route.namespace}"
        return Attachment(Verdict(False, "NotAllowedByListeners", message))
    places = [(one, common_hostnames(one.hostname, route.hostnames)) for one in allowed]
    fitting = tuple((one, hostnames) for one, hostnames in places if hostnames)
    if not fitting:
        message = f"no listener of Gateway {gateway.name} is for any of the route's hostnames"
        return Attachment(Verdict(False, "NoMatchingListenerHostname", message))
    return Attachment(ACCEPTED, fitting)


def _allows(listener: Listener, gateway: Gateway, route: Route, namespaces: Mapping[str, Labels]) -> bool:
    if not supports_http_routes(listener):
        return False
    match listener.namespaces:
        case "All":
            return True
        case "Same":
            return route.namespace == gateway.namespace
        case "Selector" if listener.selector is not None:
            try:
                return LabelSelector.of(listener.selector).matches(namespaces.get(route.namespace) or {})
            except SelectorError:
                return False
        case _:
            return False


def common_hostnames(listener: str, hostnames: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that both a listener and a route are for; an empty text stands for every host."""
    wanted = tuple(hostnames)
    if not wanted:
        return (listener,)
    common = (_common(listener, one) for one in wanted)
    return tuple(dict.fromkeys(one for one in common if one is not None))


def _common(left: str, right: str) -> str | None:
    if not left or left == right:
        return right
    if covers(left, right):
        return right
    return left if covers(right, left) else None


def covers(hostname: str, host: str) -> bool:
    """Tell whether a hostname, which may begin with `*.` or be empty, is for a host, or for all that another is for."""
    if not hostname or hostname == host:
        return True
    return hostname.startswith("*.") and host.endswith(hostname[1:]) and host != hostname[1:]
