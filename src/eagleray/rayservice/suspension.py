"""Suspending a service and resuming it, as a table.

Suspending is on record before anything is deleted, and once begun it is finished, whatever becomes of `suspend`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from eagleray.kube.resources import GATEWAYS, HTTP_ROUTES, SERVICES, Resource
from eagleray.rayservice.clusters import delete_cluster
from eagleray.rayservice.look import (
    READY,
    ROLLING_BACK,
    SUSPENDED,
    SUSPENDING,
    UPGRADING,
    Decision,
    Look,
    place_of,
    ref_of,
)
from eagleray.rayservice.status import RESUMING, Conditions, finished
from eagleray.rayservice.timeouts import INITIALIZING
from eagleray.runtime.actions import Action, Delete, Said, Say, Stage

Object = dict[str, Any]

_GONE: Final = "All owned resources have been deleted."
_REQUESTED: Final = "Spec.Suspend is true; RayClusters and Services are about to be deleted."
_WAITING: Final = "Waiting until all owned resources have been deleted."
_RESUMED: Final = "Spec.Suspend is false; RayService has resumed."
# What a suspended service has none of.
_RESET: Final = {
    "activeServiceStatus": None,
    "pendingServiceStatus": None,
    "numServeEndpoints": None,
}


class Row(NamedTuple):
    """A row of the table: in which case (in words and as a check), and what is done then."""

    when: str
    applies: Callable[[Look], bool]
    decide: Callable[[Look], Decision]


def suspend(look: Look) -> Decision | None:
    """Return what is done about a service that is, or is to be, suspended or resumed; None if nothing is."""
    return next((row.decide(look) for row in TABLE if row.applies(look)), None)


def _left(look: Look) -> list[tuple[Resource | None, Object]]:
    """Return what a suspended service must not have: clusters (without a resource), Services, the way in."""
    found: list[tuple[Resource | None, Object]] = [(None, cluster) for cluster in look.clusters]
    found += [(SERVICES, service) for service in look.services.values() if look.own(service)]
    if look.is_incremental:
        ways = ((GATEWAYS, look.own(look.gateway)), (HTTP_ROUTES, look.own(look.route)))
        found += [(resource, obj) for resource, obj in ways if obj is not None]
    return found


def _begin(look: Look) -> Decision:
    conditions = _conditions(look)
    conditions.set(SUSPENDING, "True", "SuspendRequested", _REQUESTED)
    _set_others(conditions, "SuspendInProgress", "RayService is suspending.")
    return Decision(finished(look.service, {**_RESET, "conditions": conditions}))


def _delete(look: Look) -> Decision:
    conditions = _conditions(look)
    conditions.set(SUSPENDING, "True", "SuspendInProgress", _WAITING)
    actions = [
        _deletion(resource, obj)
        for resource, obj in _left(look)
        if not obj["metadata"].get("deletionTimestamp")
    ]
    stages: Sequence[Stage] = (Stage("suspend", tuple(actions)),) if actions else ()
    return Decision(finished(look.service, {"conditions": conditions}), stages)


def _complete(look: Look) -> Decision:
    conditions = _conditions(look)
    conditions.set(SUSPENDING, "False", "SuspendComplete", _GONE)
    conditions.set(SUSPENDED, "True", "SuspendComplete", _GONE)
    _set_others(conditions, "SuspendComplete", "RayService is suspended.")
    return Decision(finished(look.service, {**_RESET, "conditions": conditions}))


def _stay(look: Look) -> Decision:
    return Decision(finished(look.service, {"conditions": _conditions(look)}))


def _resume(look: Look) -> Decision:
    conditions = _conditions(look)
    conditions.set(SUSPENDED, "False", "RayServiceResumed", _RESUMED)
    for kind in (READY, UPGRADING):
        conditions.remove(kind)  # a new beginning, from which the initializing timeout counts
        conditions.set(kind, "False", INITIALIZING, RESUMING)
    return Decision(finished(look.service, {"conditions": conditions}))


def _conditions(look: Look) -> Conditions:
    return Conditions(look.service.status.get("conditions") or (), look.now)


def _set_others(conditions: Conditions, reason: str, ready: str) -> None:
    conditions.set(READY, "False", reason, ready)
    conditions.set(UPGRADING, "False", reason, "No upgrade in progress.")
    conditions.set(ROLLING_BACK, "False", reason, "No rollback in progress.")


def _deletion(resource: Resource | None, obj: Object) -> Action:
    if resource is None:
        return delete_cluster(obj, "during suspend")
    kind, place = resource.kind, place_of(obj)
    said = Said(
        Say(f"Deleted{kind}", "Delete", f"Deleted the {kind} {place} during suspend"),
        Say(f"FailedToDelete{kind}", "Delete", f"Failed to delete the {kind} {place}:", "Warning"),
    )
    return Delete(resource, ref_of(obj), said)


def _is_suspending(look: Look) -> bool:
    return look.is_true(SUSPENDING)


def _is_suspended(look: Look) -> bool:
    return look.is_true(SUSPENDED)


TABLE: Final[tuple[Row, ...]] = (
    Row(
        "suspending, and something is left", lambda look: _is_suspending(look) and bool(_left(look)), _delete
    ),
    Row("suspending, and nothing is left", _is_suspending, _complete),
    Row(
        "suspended, and suspend is set", lambda look: _is_suspended(look) and look.service.is_suspended, _stay
    ),
    Row("suspended, and suspend is not set", _is_suspended, _resume),
    Row("not suspended, and suspend is set", lambda look: look.service.is_suspended, _begin),
)
