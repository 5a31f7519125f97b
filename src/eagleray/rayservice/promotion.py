"""The switch: the Services that lead to the cluster that serves, and the moment at which a new one has taken over."""

from collections.abc import Iterator
from typing import Any

from eagleray.kube.resources import SERVICES
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayservice import (
    cluster_serve_name,
    cluster_serve_service,
    service_head_service,
    service_serve_service,
)
from eagleray.manifests.services import NoServePort
from eagleray.rayservice.incremental import WHOLE, Ready, shares_of
from eagleray.rayservice.look import Look, Seen, place_of, selected_cluster
from eagleray.runtime.actions import Action, Create, Refuse, Replace, Said, Say, Stage

Object = dict[str, Any]


def target_of(look: Look, ready: Ready) -> Seen | None:
    """Return the cluster that the Services are to lead to; None as long as none serves."""
    if not ready.active and not ready.pending:
        return None
    if ready.pending and not (look.is_incremental and look.is_upgrading):
        return look.pending
    return look.active if look.active.obj is not None else None


def plan_services(look: Look, ready: Ready) -> Iterator[Stage]:
    """Yield what makes the head and the serve Service, or leads them to another cluster: that moves the traffic."""
    target = target_of(look, ready)
    cluster = target.cluster if target is not None else None
    if cluster is None:
        return
    actions = [
        *_towards(look.head_service, service_head_service(look.service, cluster, look.config.settings))
    ]
    if not look.is_incremental:  # where each cluster has a serve Service of its own
        try:
            wanted = service_serve_service(look.service, cluster)
        except NoServePort as missing:
            actions.append(_refusal(look, look.service.serve_service_name, missing))
        else:
            actions += _towards(look.serve_service, wanted)
    if actions:
        yield Stage("services", tuple(actions))


def plan_cluster_services(look: Look) -> Iterator[Stage]:
    """Yield the creation of the serve Services that the clusters of an incremental upgrade have for themselves.

    They are never changed, and nothing is told of them.
    """
    for seen in (look.active, look.pending):
        cluster = seen.cluster
        if cluster is None or _has_serve_service(look, cluster):
            continue
        try:
            action: Action = Create(SERVICES, cluster_serve_service(cluster))
        except NoServePort as missing:
            action = _refusal(look, cluster_serve_name(cluster.name), missing)
        yield Stage("cluster-serve-service", (action,))


def _has_serve_service(look: Look, cluster: Cluster) -> bool:
    return cluster_serve_name(cluster.name) in look.services


def _towards(found: Object | None, wanted: Object) -> Iterator[Action]:
    place = place_of(wanted)
    if found is None:
        said = Said(
            Say("CreatedService", "Create", f"Created the service {place}"),
            Say("FailedToCreateService", "Create", f"Failed to create the service {place}", "Warning"),
        )
        yield Create(SERVICES, wanted, said)
    elif selected_cluster(found) != selected_cluster(wanted):
        kept = {
            field: found["spec"][field] for field in ("clusterIP", "clusterIPs") if field in found["spec"]
        }
        said = Said(
            Say("UpdatedService", "Update", f"Updated the service {place}"),
            Say("FailedToUpdateService", "Update", f"Failed to update the service {place}", "Warning"),
        )
        yield Replace(SERVICES, {**found, "spec": {**wanted["spec"], **kept}}, said)


def _refusal(look: Look, name: str, missing: NoServePort) -> Action:
    note = f"Failed to create the service {look.service.namespace}/{name}, {missing}"
    return Refuse(str(missing), Say("FailedToCreateService", "Create", note, "Warning"))


def is_promoted(look: Look, *, rolling_back: bool) -> bool:
    """Tell whether the pending cluster has taken over, so that it is the active one from now on.

    The Services say so: both are there, and lead to the same one of the two clusters.
    """
    active, pending = look.service.active.name, look.service.pending.name
    served = selected_cluster(look.head_service)
    if not pending or not served or served != selected_cluster(look.serve_service):
        return False
    if served not in (active, pending):
        return False
    if not look.is_incremental:
        return served == pending
    if not look.is_upgrading:
        return not active
    shares = shares_of(look.service)
    is_moved = shares.active.capacity == 0 and shares.pending.traffic == WHOLE
    return is_moved and not rolling_back and look.pending.obj is not None
