"""Probes, and the hooks that are called when a container starts and before it ends."""

from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    header_name,
    named,
    needed,
    not_negative,
    port,
)
from kubereef.kinds.resource import Object
from kubewire.fielderrors import forbidden, invalid, not_supported, required
from kubewire.paths import FieldPath

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def probes(at: FieldPath, container: Object) -> Problems:
    """Yield what is wrong with the probes of a container."""
    for field in PROBES:
        probe = container.get(field)
        if probe is not None:
            yield from _probe((*at, field), probe, is_readiness=field == "readinessProbe")


def lifecycle(at: FieldPath, container: Object, grace: int | None) -> Problems:
    """Yield what is wrong with the hooks of a container, in a Pod with a grace period."""
    hooks = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        hook = hooks.get(name)
        if hook is not None:
            yield from _handler((*at, "lifecycle", name), hook, _HOOK_HANDLERS, grace)


def _probe(at: FieldPath, probe: Object, *, is_readiness: bool) -> Problems:
    yield from _handler(at, probe, _PROBE_HANDLERS, None)
    for number in _NUMBERS:
        yield from not_negative((*at, number), probe.get(number, 0))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None:
        place = (*at, "terminationGracePeriodSeconds")
        if grace <= 0:
            yield invalid(place, grace, "must be greater than 0")
        if is_readiness:
            yield invalid(place, grace, "must not be set for readinessProbes")
    if not is_readiness and probe.get("successThreshold", 0) != 1:
        yield invalid((*at, "successThreshold"), probe.get("successThreshold", 0), "must be 1")


def _handler(at: FieldPath, holder: Object, kinds: tuple[str, ...], grace: int | None) -> Problems:
    given = [kind for kind in kinds if holder.get(kind) is not None]
    if not given:
        yield required(at, "must specify a handler type")
        return
    kind = given[0]
    if kind == "sleep":
        yield from _sleep((*at, kind), holder[kind], grace)
    else:
        yield from _ACTIONS[kind]((*at, kind), holder[kind])
    for another in given[1:]:
        yield forbidden((*at, another), "may not specify more than 1 handler type")


def _exec(at: FieldPath, action: Object) -> Problems:
    yield from needed(action, at, "command")


def _http_get(at: FieldPath, action: Object) -> Problems:
    yield from needed(action, at, "path")
    yield from port((*at, "port"), action.get("port", 0))
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        yield not_supported((*at, "scheme"), scheme, ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        yield from named((*at, "httpHeaders"), header.get("name", ""), header_name)


def _port_action(at: FieldPath, action: Object) -> Problems:
    yield from port((*at, "port"), action.get("port", 0))


def _sleep(at: FieldPath, action: Object, grace: int | None) -> Problems:
    seconds = action.get("seconds", 0)
    if grace is not None and not 0 <= seconds <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid(at, seconds, detail)


_ACTIONS = {"exec": _exec, "httpGet": _http_get, "tcpSocket": _port_action, "grpc": _port_action}
