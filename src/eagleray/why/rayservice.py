"""What a RayService waits for, and how far an upgrade of it is: a pure function of what was seen."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from eagleray.dashboard.words import RUNNING
from eagleray.manifests.rayservice import INCREMENTAL, RayService
from eagleray.raycluster.controller import MANAGER
from eagleray.raycluster.status import BLOCKED, condition_of
from eagleray.rayservice.clusters import ABANDONED, DELETE_AT, Match, abandoned, compare, upgrade_due
from eagleray.rayservice.deletion import FINALIZER
from eagleray.rayservice.incremental import Ready, next_traffic, shares_of, step_due
from eagleray.rayservice.look import READY, ROLLING_BACK, SUSPENDED, SUSPENDING, Look
from eagleray.rayservice.look import Seen as Side
from eagleray.rayservice.timeouts import TIMED_OUT, timeout_due
from eagleray.why.operators import absence_of, nobody_leads
from eagleray.why.reading import Seen, SeenService
from eagleray.why.report import Report
from eagleray.why.servecauses import idle_workers, of_clusters, of_endpoints, of_refusals
from kubewire.sources import SeededEntropy
from kubewire.times import format_time

Object = dict[str, Any]

_KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_DID_NOT_SERVE: Final = "ZeroServeEndpoints"
_GAVE_UP: Final = "UpgradeDeadlineExceeded"


def diagnose(seen: SeenService) -> Report:
    """Return what is to be said of a service; what holds it back the most comes first."""
    report = _diagnose(seen, f"RayService {seen.service.place}")
    absent = nobody_leads(seen.leases, seen.now)
    return report._replace(notes=[*report.notes, *_leaving(seen), *absent, *seen.unseen.values()])


def _diagnose(seen: SeenService, place: str) -> Report:
    service = seen.service
    manager = service.spec.get("managedBy")
    if manager not in (None, MANAGER):
        cause = f"spec.managedBy is {manager}: its clusters and its status are up to that controller alone"
        return Report(f"{place} is managed by {manager}.", causes=[cause])
    if service.metadata.get("deletionTimestamp"):
        return _deletion(seen, place)
    if seen.rejected:
        goes_on = "; what runs is left as it is" if service.active.name else ""
        return Report(f"{place} is invalid: nothing is done for it{goes_on}.", causes=[seen.rejected])
    if absence := absence_of(service.obj, seen.leases, seen.now):
        return Report(f"{place} waits for an operator.", causes=[absence])
    if service.is_suspended or _is_true(seen, SUSPENDING):
        return _suspension(seen, place)
    if _condition(seen, READY).get("reason") == TIMED_OUT:
        return _given_up(seen, place)
    return _running(seen, place)


# --- a service that is to serve


def _running(seen: SeenService, place: str) -> Report:
    service = seen.service
    causes = of_clusters(seen)
    look = _look(seen)
    endpoints = service.status.get("numServeEndpoints") or 0
    notes = [
        f"Pods that take requests: {endpoints}",
        *_shares(seen),
        *_limits(seen, look),
        *_idle(seen),
        *_where_to_look(seen),
    ]
    steps = list(_steps(seen))
    if not _is_true(seen, READY):
        causes = causes or list(_of_silence(seen))
        return Report(f"{place} {_silence(seen)}.", False, causes, notes, steps)
    if service.pending.name:
        return Report(f"{place} serves, and {_change(seen)}.", False, causes, notes, steps)
    if abandoned(look) and abandoned(look) == service.config_hash:
        causes = [*_abandonment(seen), *causes]
        return Report(
            f"{place} serves on {service.active.name}; its upgrade has been given up.", False, causes, notes
        )
    if causes:
        return Report(f"{place} serves, but something is wrong.", False, causes, notes)
    return Report(f"{place} serves.", True, (), [*notes, *_differences(seen, look)])


def _look(seen: SeenService) -> Look:
    """Return what the rules of the operator need to tell when something is due. They choose no name here."""
    return Look(
        seen.service,
        seen.now,
        SeededEntropy("why"),
        active=_side(seen.active),
        pending=_side(seen.pending),
        clusters=seen.clusters,
    )


def _side(cluster: Seen | None) -> Side:
    return Side(cluster.cluster.obj if cluster is not None else None)


def _silence(seen: SeenService) -> str:
    """Return in which way a service does not serve."""
    service = seen.service
    if not service.active.name and not service.pending.name:
        return "waits for its first cluster to be made"
    if _condition(seen, READY).get("reason") == _DID_NOT_SERVE:
        return "does not serve any more"
    return "does not serve yet"


def _of_silence(seen: SeenService) -> Iterator[str]:
    """Yield why a service does not serve whose clusters have nothing wrong with them."""
    cluster = seen.active or seen.pending
    sides = (seen.service.active, seen.service.pending)
    if cluster is not None and any(side.status.get("applicationStatuses") for side in sides):
        yield from of_endpoints(cluster, seen)


def _change(seen: SeenService) -> str:
    old, new = seen.service.active.name, seen.service.pending.name
    return f"goes back from {new} to {old}" if _is_true(seen, ROLLING_BACK) else f"goes from {old} to {new}"


def _abandonment(seen: SeenService) -> Iterator[str]:
    service = seen.service
    told = [str(event.get("note", "")) for event in seen.events if event["reason"] == _GAVE_UP]
    yield told[-1] if told else "its upgrade to what spec.rayClusterConfig describes has been given up"
    yield (
        f"the same is not tried again: change spec.rayClusterConfig, or have it tried again by taking the annotation"
        f" off (kubectl annotate raycluster {service.active.name} -n {service.namespace} {ABANDONED}-)"
    )


def _differences(seen: SeenService, look: Look) -> Iterator[str]:
    """Yield that a service goes on with a cluster that it does not describe."""
    service, cluster = seen.service, look.active.obj
    if cluster is None or compare(service, cluster) is not Match.NONE:
        return
    strategy = service.upgrade_type
    why = (
        f"spec.upgradeStrategy.type {strategy} keeps it"
        if strategy
        else "it stays if the operator has ENABLE_ZERO_DOWNTIME=false"
    )
    yield f"spec.rayClusterConfig describes another cluster than {service.active.name}; {why}"


def _shares(seen: SeenService) -> Iterator[str]:
    service = seen.service
    if service.pending.name and service.active.name and service.upgrade_type == INCREMENTAL:
        shares = shares_of(service)
        for side, share in ((service.active, shares.active), (service.pending, shares.pending)):
            yield f"{side.name} has {share.capacity}% of the capacity and gets {share.traffic}% of the requests"


def _limits(seen: SeenService, look: Look) -> Iterator[str]:
    """Yield when the present state ends by itself."""
    timeout, deadline = timeout_due(look), upgrade_due(look)
    if timeout is not None and timeout > seen.now:
        yield f"it is given up by the initializing timeout {_at(timeout, seen)}"
    if deadline is not None and deadline > seen.now:
        yield f"{seen.service.pending.name} is given up {_at(deadline, seen)}, unless it is healthy by then"


def _at(due: datetime, seen: SeenService) -> str:
    return f"at {format_time(due)}, in {(due - seen.now).total_seconds():.0f} s"


def _idle(seen: SeenService) -> Iterator[str]:
    """Yield which workers are not ready, though that is no fault."""
    if names := [pod.name for cluster in (seen.active, seen.pending) for pod in idle_workers(cluster)]:
        yield f"workers on which Serve takes no requests, as where no replica runs: {', '.join(names)}"


def _where_to_look(seen: SeenService) -> Iterator[str]:
    """Yield where more is to be found on applications that do not run."""
    for side in (seen.service.active, seen.service.pending):
        applications = (side.status.get("applicationStatuses") or {}).values()
        if any(application.get("status") != RUNNING for application in applications):
            yield "what replicas print is in the Ray Pods under /tmp/ray/session_latest/logs/serve"
            return


def _steps(seen: SeenService) -> Iterator[str]:
    """Yield the next step of an incremental upgrade, where that waits for time alone."""
    service, rolling_back = seen.service, _is_true(seen, ROLLING_BACK)
    if not service.pending.name or not service.active.name or service.upgrade_type != INCREMENTAL:
        return
    shares, due = shares_of(service), step_due(service, rolling_back=rolling_back)
    if due is None or due <= seen.now:
        return
    after = next_traffic(shares, service.upgrade_options.step, Ready(True, True), rolling_back=rolling_back)
    gaining, share = (service.active, after.active) if rolling_back else (service.pending, after.pending)
    if after != shares:
        yield f"give {gaining.name} {share.traffic}% of the requests {_at(due, seen)}"


def _leaving(seen: SeenService) -> Iterator[str]:
    """Yield which clusters are kept for the requests that still come to them."""
    service = seen.service
    is_told = service.metadata.get("deletionTimestamp") or _is_true(seen, SUSPENDING)
    if service.is_suspended or is_told:
        return
    for cluster in _look(seen).dangling:
        name = cluster["metadata"]["name"]
        due = (cluster["metadata"].get("annotations") or {}).get(DELETE_AT, "")
        if cluster["metadata"].get("deletionTimestamp"):
            held = _finalizers(cluster)
            yield f"RayCluster {name} is not used any more and is being deleted{held}"
        else:
            yield f"RayCluster {name} is not used any more and is kept{f' until {due}' if due else ''}"


# --- a service that is not to serve


def _given_up(seen: SeenService, place: str) -> Report:
    message = str(_condition(seen, READY).get("message") or "")
    causes = [f"{message}; mend what kept it, then suspend and resume it (spec.suspend), or create it anew"]
    for cluster in seen.clusters:
        blocked = condition_of(cluster.get("status") or {}, BLOCKED)
        if blocked is not None:
            causes.append(f"RayCluster {cluster['metadata']['name']}: {blocked.get('message', '')}")
    return Report(f"{place} has been given up.", causes=[*causes, *of_clusters(seen)])


def _suspension(seen: SeenService, place: str) -> Report:
    service = seen.service
    if _is_true(seen, SUSPENDED):
        return Report(f"{place} is suspended.", causes=[_why_suspended(service)])
    after = "" if service.is_suspended else ", and resumed after that"
    return Report(f"{place} is being suspended{after}.", causes=list(_remaining(seen)))


def _why_suspended(service: RayService) -> str:
    if queue := service.labels.get(_KUEUE_QUEUE):
        return (
            f"Kueue holds it in queue {queue} until there is room: see its Workload"
            f" (kubectl get workloads -n {service.namespace}); do not set spec.suspend by hand"
        )
    return "spec.suspend is true; set it to false to have it serve"


def _deletion(seen: SeenService, place: str) -> Report:
    causes = list(_remaining(seen))
    finalizers = seen.service.metadata.get("finalizers") or ()
    if others := [name for name in finalizers if name != FINALIZER]:
        causes.append(f"finalizers that others have to remove: {', '.join(others)}")
    return Report(f"{place} is being deleted.", causes=causes)


def _remaining(seen: SeenService) -> Iterator[str]:
    for kind, obj in (*(("RayCluster", one) for one in seen.clusters), *seen.children):
        yield f"{kind} {obj['metadata']['name']} is not gone yet{_finalizers(obj)}"
    yield from of_refusals(seen)


def _finalizers(obj: Object) -> str:
    held = ", ".join(obj["metadata"].get("finalizers") or ())
    return f", held by {held}" if held else ""


def _condition(seen: SeenService, kind: str) -> Object:
    return condition_of(seen.service.status, kind) or {}


def _is_true(seen: SeenService, kind: str) -> bool:
    return _condition(seen, kind).get("status") == "True"
