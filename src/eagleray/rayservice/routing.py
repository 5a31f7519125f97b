"""The way in during incremental upgrades: a Gateway, and a route whose weights follow what is decided."""

from collections.abc import Iterator
from typing import Any, Final

from eagleray.kube.resources import GATEWAYS, HTTP_ROUTES, Resource
from eagleray.manifests.gateway import (
    Backend,
    gateway_name,
    is_open,
    is_routed,
    is_same_gateway,
    is_same_route,
    route_name,
    service_gateway,
    service_route,
)
from eagleray.manifests.rayservice import serve_port
from eagleray.rayservice.incremental import WHOLE, Ready, is_step_due, next_traffic, shares_of
from eagleray.rayservice.look import Look, place_of
from eagleray.runtime.actions import Action, Create, Refuse, Replace, Said, Say, Stage

Object = dict[str, Any]


_NOT_SERVED: Final = (
    f"{GATEWAYS} and {HTTP_ROUTES} ({GATEWAYS.version}) are not served here, so that no traffic can be moved step"
    " by step; install the Gateway API, or use upgradeStrategy.type NewCluster"
)


def complaint(look: Look) -> Stage | None:
    """Return the step that fails where no way in can be made; None where it can, or none is wanted."""
    if look.config.has_gateways or not look.is_incremental:
        return None
    place = f"{look.service.namespace}/{gateway_name(look.service)}"
    note = f"Failed to create Gateway for RayService {place}: {_NOT_SERVED}"
    return Stage("gateway", (Refuse(_NOT_SERVED, Say("FailedToCreateGateway", "Create", note, "Warning")),))


def plan_way_in(look: Look, ready: Ready, *, rolling_back: bool) -> Iterator[Stage]:
    """Yield what makes the Gateway and the route as they should be, where there can be such things."""
    if look.config.has_gateways:
        yield from plan_gateway(look)
        yield from plan_route(look, ready, rolling_back=rolling_back)


def plan_gateway(look: Look) -> Iterator[Stage]:
    """Yield what makes the Gateway as it should be."""
    wanted = service_gateway(look.service)
    found = look.own(look.gateway)
    if found is None or not is_same_gateway(found, wanted):
        yield Stage("gateway", (_towards(GATEWAYS, found, wanted),))


def plan_route(look: Look, ready: Ready, *, rolling_back: bool) -> Iterator[Stage]:
    """Yield what makes the route as it should be, the next step of traffic included if that is due."""
    backends = tuple(_backends(look, ready, rolling_back=rolling_back))
    if not backends:
        return
    wanted = service_route(look.service, backends)
    found = look.own(look.route)
    if found is None or not is_same_route(found, wanted):
        yield Stage("http-route", (_towards(HTTP_ROUTES, found, wanted),))


def _backends(look: Look, ready: Ready, *, rolling_back: bool) -> Iterator[Backend]:
    """Yield the clusters that get traffic, the active one first; without that there is no route yet."""
    active, pending = look.active.cluster, look.pending.cluster
    if active is None:
        return
    if pending is None:
        yield Backend(active.name, serve_port(active), WHOLE)
        return
    shares = shares_of(look.service)
    if is_step_due(look.service, look.now, rolling_back=rolling_back):
        shares = next_traffic(shares, look.service.upgrade_options.step, ready, rolling_back=rolling_back)
    yield Backend(active.name, serve_port(active), shares.active.traffic)
    yield Backend(pending.name, serve_port(pending), shares.pending.traffic)


def why_closed(look: Look) -> str:
    """Say why no traffic can be shared out; empty if it can."""
    if not look.config.has_gateways:
        return _NOT_SERVED
    if not is_open(look.own(look.gateway)):
        return (
            f"Gateway {gateway_name(look.service)} is not accepted and programmed;"
            f" see GatewayClass {look.service.upgrade_options.gateway_class}"
        )
    if not is_routed(look.own(look.route)):
        return f"HTTPRoute {route_name(look.service)} is not accepted with all its references resolved"
    return ""


def _towards(resource: Resource, found: Object | None, wanted: Object) -> Action:
    kind, place = resource.kind, place_of(wanted)
    if found is None:
        said = Said(
            Say(f"Created{kind}", "Create", f"Created {kind} for RayService {place}"),
            Say(
                f"FailedToCreate{kind}",
                "Create",
                f"Failed to create {kind} for RayService {place}:",
                "Warning",
            ),
        )
        return Create(resource, wanted, said)
    said = Said(
        Say(f"Updated{kind}", "Update", f"Updated the {kind} {place}"),
        Say(f"FailedToUpdate{kind}", "Update", f"Failed to update the {kind} {place}:", "Warning"),
    )
    return Replace(resource, {**found, "spec": {**(found.get("spec") or {}), **wanted["spec"]}}, said)
