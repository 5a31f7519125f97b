"""The status of a RayService, computed from what is there and from what a pass has found out."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from eagleray.dashboard.words import Application
from eagleray.manifests.gateway import weights
from eagleray.manifests.rayservice import RayService, cluster_serve_name
from eagleray.rayservice.incremental import WHOLE, Shares, Turn
from eagleray.rayservice.look import READY, ROLLING_BACK, UPGRADING, Look, Seen, rounded_up
from eagleray.rayservice.serving import count_endpoints, is_head_ready
from eagleray.rayservice.timeouts import INITIALIZING, TIMED_OUT, Timeout
from kubewire.times import format_time

Object = dict[str, Any]

# A copy of the status of a cluster that is not there.
_NO_CLUSTER: Final[Mapping[str, Any]] = {
    "desiredCPU": "0",
    "desiredGPU": "0",
    "desiredMemory": "0",
    "desiredTPU": "0",
    "head": {},
}

_CAN_WAIT: Final = ("message", "rayClusterStatus", "lastUpdateTime")

STARTING: Final = "RayService is initializing"
RESUMING: Final = "RayService is initializing after resuming from suspend."
_SERVES: Final = "Number of serve endpoints is greater than 0"
_STOPPED_SERVING: Final = "Number of serve endpoints dropped to 0"
_BOTH: Final = "Both active and pending Ray clusters exist"
_ONE: Final = "Active Ray cluster exists and no pending Ray cluster"
_NONE: Final = (
    "No active Ray cluster exists although the RayService is not initializing;"
    " see the RayClusters of the service and its events"
)


class Conditions:
    """The conditions of a service, in the order of their first appearance."""

    def __init__(self, given: Sequence[Object], now: datetime) -> None:
        self._entries = [dict(entry) for entry in given]
        self._now = format_time(now)

    def get(self, kind: str) -> Object:
        """Return a condition; an empty one if there is none."""
        return next((entry for entry in self._entries if entry["type"] == kind), {})

    def set(self, kind: str, status: str, reason: str, message: str, *, anew: bool = False) -> None:
        """Set a condition. It has turned if its status differs, or if it begins `anew`."""
        entry = self.get(kind)
        if not entry:
            entry = {"type": kind}
            self._entries.append(entry)
        if anew or entry.get("status") != status:
            entry["lastTransitionTime"] = self._now
        entry.update(status=status, reason=reason, message=message)

    def remove(self, kind: str) -> None:
        self._entries = [entry for entry in self._entries if entry["type"] != kind]

    def handled(self, generation: int) -> list[Object]:
        """Return all of them as what is true of a generation."""
        return [{**entry, "observedGeneration": generation} for entry in self._entries]


class News(NamedTuple):
    """What a pass has found out, for the status."""

    prepared: str = ""  # the name of a new pending cluster
    is_promoted: bool = False
    is_given_up: bool = False  # the pending cluster, for which nothing has to be rolled back
    is_active_lost: bool = False  # in the middle of an incremental upgrade, which has to make do without
    is_rolled_back: bool = False
    rollback: Turn = "stay"
    rollback_reason: Literal["DesiredClusterSpecChanged", "UpgradeDeadlineExceeded"] = (
        "DesiredClusterSpecChanged"
    )
    rollback_message: str = ""
    capacity: Shares | None = None  # the capacities that the clusters have taken
    held_back: str | None = ""  # what an upgrade waits for; None if it is as it was, for all that is known
    timeout: Timeout | None = None


def with_routed_traffic(look: Look) -> Look:
    """Return a look whose service has noted the weights of its route, and since when they are so.

    A decision about traffic begins with what the route says now, not with what was written down before.
    """
    if not look.is_incremental:
        return look
    service = look.service
    routed = weights(look.own(look.route), service.namespace)
    status = dict(service.status)
    for field in ("activeServiceStatus", "pendingServiceStatus"):
        side = status.get(field) or {}
        # What a cluster got that was taken away, and made again under its name, went to the other one.
        otherwise = 0 if routed and side.get("trafficRoutedPercent") else None
        weight = routed.get(cluster_serve_name(side.get("rayClusterName", "")), otherwise)
        if weight is not None and weight != side.get("trafficRoutedPercent"):
            moved_at = format_time(rounded_up(look.now))
            moved = {"trafficRoutedPercent": weight, "lastTrafficMigratedTime": moved_at}
            status[field] = {**side, **moved}
    return look._replace(service=RayService({**service.obj, "status": status}))


def next_status(look: Look, news: News) -> Object:
    """Return the status that a service should have."""
    active, pending = _sides(look, news)
    conditions = Conditions(look.service.status.get("conditions") or (), look.now)
    endpoints = count_endpoints(look)
    if news.timeout is not None:
        active, pending = _empty(), _empty()
    _set_ready(conditions, look, endpoints, news)
    _set_upgrading(conditions, active, pending, news.held_back)
    _set_rollback(conditions, news)
    return finished(
        look.service,
        {
            "activeServiceStatus": active,
            "pendingServiceStatus": pending,
            "numServeEndpoints": endpoints,
            "conditions": conditions,
        },
    )


def rejected_status(service: RayService, message: str, now: datetime) -> Object:
    """Return the status of a service that a rule refuses; what runs is left alone, and told on."""
    conditions = Conditions(service.status.get("conditions") or (), now)
    conditions.set(READY, "False", "ValidationFailed", message)
    return finished(service, {"conditions": conditions})


def finished(service: RayService, fields: Mapping[str, Any]) -> Object:
    """Return a service's status with some fields renewed: what is always there is, and what is empty is not."""
    status: Object = {**service.status, **fields, "observedGeneration": service.generation}
    for side in ("activeServiceStatus", "pendingServiceStatus"):
        status[side] = status.get(side) or _empty()
    conditions: Conditions = fields["conditions"]
    status["conditions"] = conditions.handled(service.generation)
    is_ready = conditions.get(READY).get("status") == "True"
    status["serviceStatus"] = "Running" if is_ready else ""
    return {field: value for field, value in status.items() if value not in (None, "", 0)}


def needs_write(old: Object, new: Object) -> bool:
    """Tell whether a status differs in more than the time of its last update."""
    return {**old, "lastUpdateTime": ""} != {**new, "lastUpdateTime": ""}


def is_urgent(old: Object, new: Object) -> bool:
    """Tell whether somebody waits for this news: all but other words, and how far the clusters are."""
    return bool(_facts(old) != _facts(new))


def _facts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {field: _facts(inner) for field, inner in value.items() if field not in _CAN_WAIT}
    return [_facts(inner) for inner in value] if isinstance(value, list) else value


# --- the two clusters


def _empty() -> Object:
    return {"rayClusterStatus": dict(_NO_CLUSTER)}


def _sides(look: Look, news: News) -> tuple[Object, Object]:
    """Return the statuses of the two clusters: as they are seen, then as what has happened makes them."""
    active = _side(look, look.service.active.status, look.active)
    pending = _side(look, look.service.pending.status, look.pending)
    if news.capacity is not None:
        active["targetCapacity"] = news.capacity.active.capacity
        pending["targetCapacity"] = news.capacity.pending.capacity
    if news.is_promoted:
        active, pending = pending, _empty()
    if news.is_rolled_back or news.is_given_up:
        pending = _empty()
    if news.is_active_lost:
        active, pending = _empty(), {**pending, "targetCapacity": WHOLE}
    if news.prepared:
        pending = {**_empty(), "rayClusterName": news.prepared}
        if look.is_incremental:
            is_first = not active.get("rayClusterName") and active.get("targetCapacity") is None
            pending["targetCapacity"] = WHOLE if is_first else 0
    return active, pending


def _side(look: Look, recorded: Object, seen: Seen) -> Object:
    if not recorded.get("rayClusterName"):
        return _empty()
    side = dict(recorded)
    copied = (seen.obj or {}).get("status") or recorded.get("rayClusterStatus") or {}
    side["rayClusterStatus"] = {**_NO_CLUSTER, **copied}
    if not is_head_ready(look, seen):
        side.pop("applicationStatuses", None)
    elif seen.serve is not None and seen.serve.serve is not None and seen.serve.error is None:
        side["applicationStatuses"] = {app.name: _application(app) for app in seen.serve.serve.applications}
        if not side["applicationStatuses"]:
            del side["applicationStatuses"]
    return side


def _application(app: Application) -> Object:
    deployments = {one.name: _said(one.status, one.message) for one in app.deployments}
    told = _said(app.status, app.message)
    return {**told, "serveDeploymentStatuses": deployments} if deployments else told


def _said(status: str, message: str) -> Object:
    return {"status": status, "message": message} if message else {"status": status}


# --- conditions


def _set_ready(conditions: Conditions, look: Look, endpoints: int, news: News) -> None:
    ready = conditions.get(READY)
    if endpoints > 0:
        conditions.set(READY, "True", "NonZeroServeEndpoints", _SERVES)
    elif ready.get("status") == "True":
        conditions.set(READY, "False", "ZeroServeEndpoints", _STOPPED_SERVING)
    elif not ready:
        conditions.set(READY, "False", INITIALIZING, STARTING)
    elif ready["reason"] == "ValidationFailed":
        # It was refused and has been mended. Only what has never served may still time out, from now on.
        if look.service.active.name:
            conditions.set(READY, "False", "ZeroServeEndpoints", _STOPPED_SERVING)
        else:
            conditions.set(READY, "False", INITIALIZING, STARTING, anew=True)
    elif news.timeout is not None:
        conditions.set(READY, "False", TIMED_OUT, news.timeout.message)
    elif ready["reason"] == INITIALIZING:
        begun = RESUMING if ready["message"].startswith(RESUMING.rstrip(".")) else STARTING
        conditions.set(READY, "False", INITIALIZING, _because(begun, news.held_back, ready["message"]))


def _because(message: str, cause: str | None, told: str) -> str:
    """Return a message with a cause; where none is known yet, the one that was told stays."""
    if cause is None:
        return told if told.startswith(message.rstrip(".")) else message
    return f"{message.rstrip('.')}; {cause}" if cause else message


def _set_upgrading(conditions: Conditions, active: Object, pending: Object, held_back: str | None) -> None:
    if active.get("rayClusterName"):
        if pending.get("rayClusterName"):
            message = _because(_BOTH, held_back, conditions.get(UPGRADING).get("message", ""))
            conditions.set(UPGRADING, "True", "BothActivePendingClustersExist", message)
        else:
            conditions.set(UPGRADING, "False", "NoPendingCluster", _ONE)
        return
    upgrading = conditions.get(UPGRADING)
    if not upgrading and conditions.get(READY)["reason"] == INITIALIZING:
        conditions.set(UPGRADING, "False", INITIALIZING, STARTING)
    elif upgrading.get("reason") not in (INITIALIZING, TIMED_OUT):
        conditions.set(UPGRADING, "Unknown", "NoActiveCluster", _NONE)


def _set_rollback(conditions: Conditions, news: News) -> None:
    if news.is_rolled_back or news.is_active_lost or news.rollback == "go on":
        conditions.remove(ROLLING_BACK)
    elif news.rollback == "roll back":
        conditions.set(ROLLING_BACK, "True", news.rollback_reason, news.rollback_message)
