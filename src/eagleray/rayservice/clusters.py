"""The clusters of a service: compared with what it describes, made, kept up to date, and taken away."""

import enum
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from eagleray.kube.resources import RAY_CLUSTERS, Ref
from eagleray.manifests.hashing import service_hash
from eagleray.manifests.rayservice import (
    GROUPS_ANNOTATION,
    HASH_ANNOTATION,
    VERSION_ANNOTATION,
    RayService,
    cluster_stamps,
    service_cluster,
)
from eagleray.rayservice.look import Look, Seen, place_of, ref_of, rounded_up, selected_cluster, soonest
from eagleray.rayservice.serving import why_not_ready
from eagleray.runtime.actions import Action, Create, Delete, Patch, Replace, Said, Say, Stage
from kubewire.times import TimeError, format_time, parse_time

Object = dict[str, Any]

# When a cluster that is not used any more is deleted; on the cluster, so that every operator finds the same.
DELETE_AT: Final = "eagleray.io/delete-at"
# The hash of a spec whose cluster was given up; on the cluster that serves on, as long as that serves.
ABANDONED: Final = "eagleray.io/abandoned-upgrade"
_SUFFIX: Final = 5


class Match(enum.Enum):
    """How a cluster compares with what its service describes."""

    FULL = "the same, but for what others may change"
    PARTIAL = "the same, and worker groups were added at the end"
    NONE = "another cluster"


def compare(service: RayService, cluster: Object) -> Match:
    """Compare what a service describes with what a cluster was made from."""
    goal = service.cluster_config
    annotations = cluster["metadata"].get("annotations") or {}
    stamp = annotations.get(HASH_ANNOTATION, "")
    if service.config_hash == stamp:
        return Match.FULL
    groups = goal.get("workerGroupSpecs") or []
    count = _integer(annotations.get(GROUPS_ANNOTATION, ""))
    if count is None:
        return Match.PARTIAL
    if not 0 <= count <= len(groups):
        return Match.NONE
    is_same = service_hash({**goal, "workerGroupSpecs": groups[:count]}) == stamp
    return Match.PARTIAL if is_same else Match.NONE


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    # No list is so long that more digits could count its entries.
    return int(text) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def may_upgrade(look: Look) -> bool:
    """Tell whether another spec means another cluster."""
    kind = look.service.upgrade_type
    if not kind:
        return look.config.zero_downtime
    return kind == "NewCluster" or look.is_incremental


def needs_new_cluster(look: Look, *, rolling_back: bool) -> bool:
    """Tell whether a new cluster has to be prepared: there is none, or what is wanted is another one."""
    service, active, pending = look.service, look.active.obj, look.pending.obj
    if rolling_back or service.pending.name in _served(look) - {""}:
        return False
    if service.pending.name and pending is None:
        return False  # it is about to be made, and will be what is wanted now
    newest = pending if pending is not None else active
    if newest is None:
        return True
    if not may_upgrade(look) or compare(service, newest) is not Match.NONE:
        return False
    return abandoned(look) != service.config_hash


def _served(look: Look) -> set[str]:
    return {selected_cluster(look.head_service), selected_cluster(look.serve_service)}


def new_name(look: Look) -> str:
    return f"{look.service.name}-{look.entropy.suffix(_SUFFIX)}"


# --- making and updating


def plan_clusters(look: Look, *, rolling_back: bool) -> Iterator[Stage]:
    """Yield what brings the two clusters to what is wanted of them, as far as that needs no other cluster."""
    service = look.service
    if abandoned(look) not in ("", service.config_hash):
        yield _forgetting(look)
        return  # whatever else concerns that cluster is done to what it is then
    if rolling_back:
        return  # nobody wants the pending one, and the active one waits until it is alone
    if service.pending.name:
        if look.pending.obj is None:
            yield Stage("create-cluster", (_creation(look),))
        elif compare(service, look.pending.obj) is Match.PARTIAL:
            yield Stage("update-cluster", (_update(look, look.pending.obj, "pending"),))
    elif look.active.obj is not None and compare(service, look.active.obj) is Match.PARTIAL:
        yield Stage("update-cluster", (_update(look, look.active.obj, "active"),))


def _is_foreign(look: Look, cluster: Object) -> bool:
    """Tell whether another operator, or another version of this one, has stamped a cluster."""
    return _annotation(cluster, VERSION_ANNOTATION) != look.config.settings.version


def _creation(look: Look) -> Action:
    name = look.service.pending.name
    wanted = service_cluster(
        look.service, name, look.config.settings.version, at_least_workers=_begins_small(look)
    )
    place = place_of(wanted)
    said = Said(
        Say("CreatedRayCluster", "Create", f"Created the RayCluster {place}"),
        Say("FailedToCreateRayCluster", "Create", f"Failed to create the RayCluster {place}:", "Warning"),
    )
    return Create(RAY_CLUSTERS, wanted, said)


def _begins_small(look: Look) -> bool:
    """Whether capacity comes step by step, beside a cluster that serves."""
    return look.is_incremental and bool(look.service.active.name)


def _update(look: Look, found: Object, side: str) -> Action:
    """Return the change of a cluster to what is wanted, where that only adds to it.

    Annotations and labels that others have given it stay, as do whether it is suspended, which is Kueue's, and how
    many workers its groups have while the autoscaler decides about that.
    """
    wanted = service_cluster(
        look.service,
        found["metadata"]["name"],
        look.config.settings.version,
        at_least_workers=_begins_small(look),
    )
    spec = _with_scale(wanted["spec"], found["spec"])
    spec.pop("suspend", None)
    if "suspend" in found["spec"]:
        spec["suspend"] = found["spec"]["suspend"]
    metadata = dict(found["metadata"])
    for field in ("labels", "annotations"):
        metadata[field] = {**(metadata.get(field) or {}), **wanted["metadata"][field]}
    place = place_of(found)
    said = Said(
        Say("UpdatedRayCluster", "Update", f"Updated the {side} RayCluster {place}"),
        Say(
            "FailedToUpdateRayCluster",
            "Update",
            f"Failed to update the {side} RayCluster {place}:",
            "Warning",
        ),
    )
    return Replace(RAY_CLUSTERS, {**found, "metadata": metadata, "spec": spec}, said)


def _with_scale(wanted: Object, found: Object) -> Object:
    if wanted.get("enableInTreeAutoscaling") is not True:
        return wanted
    known = {group.get("groupName"): group for group in found.get("workerGroupSpecs") or ()}
    groups = []
    for group in wanted.get("workerGroupSpecs") or ():
        old = known.get(group.get("groupName"), {})
        groups.append(group | {field: old[field] for field in ("replicas", "scaleStrategy") if field in old})
    return {**wanted, "workerGroupSpecs": groups}


def plan_stamps(look: Look) -> Stage | None:
    """Return the change of annotations after which this operator knows the clusters of another one as its own.

    It comes before all else: once this operator has written a status, nobody can tell any more what the other one had
    handled.
    """
    foreign = [
        (seen.obj, side)
        for seen, side in ((look.active, "active"), (look.pending, "pending"))
        if seen.obj is not None and _is_foreign(look, seen.obj)
    ]
    return Stage("restamp-cluster", tuple(_restamping(look, *each) for each in foreign)) if foreign else None


def _restamping(look: Look, found: Object, side: str) -> Action:
    stamps = {VERSION_ANNOTATION: look.config.settings.version}
    spec = _spec_behind(look, found)
    if spec is not None:
        stamps = cluster_stamps(spec, look.config.settings.version)
    place = place_of(found)
    said = Said(
        failed=Say(
            "FailedToUpdateRayCluster",
            "Update",
            f"Failed to update the {side} RayCluster {place}:",
            "Warning",
        )
    )
    return Patch(RAY_CLUSTERS, Ref.of(found), {"metadata": {"annotations": stamps}}, said)


def _spec_behind(look: Look, found: Object) -> Object | None:
    """Return the spec that a cluster of another operator stands for; None if that is what its hash says.

    That of the service, if the cluster's own says the same, or if the other operator has handled this generation and
    saw no need for another cluster. Otherwise the cluster's own, so that a change made meanwhile is not missed. While
    one cluster replaces another one, only the hashes tell what each of them was made from.
    """
    service = look.service
    goal = service.cluster_config
    if compare(service, found) is Match.FULL or service_hash(found["spec"]) == service.config_hash:
        return goal
    if service.pending.name:
        return None
    is_handled = service.status.get("observedGeneration") == service.generation
    was_given_up = abandoned(look) == service.config_hash
    return goal if is_handled and may_upgrade(look) and not was_given_up else found["spec"]


# --- those without use


class Farewell(NamedTuple):
    """What is done about clusters without use, and when the next is due."""

    stages: tuple[Stage, ...] = ()
    again: float | None = None


def plan_dangling(look: Look) -> Farewell:
    """Return what becomes of clusters that are neither active nor pending: each is kept for a while, then deleted."""
    actions: list[Action] = []
    waits: list[float] = []
    for cluster in look.dangling:
        if cluster["metadata"].get("deletionTimestamp"):
            continue
        due = _recorded(cluster)
        if due is None:
            due = look.now + timedelta(seconds=look.service.deletion_delay)
            if due > look.now:
                change = {"metadata": {"annotations": {DELETE_AT: format_time(rounded_up(due))}}}
                actions.append(Patch(RAY_CLUSTERS, Ref.of(cluster), change))
        if due > look.now:
            waits.append((due - look.now).total_seconds())
        else:
            actions.append(delete_cluster(cluster))
    stages = (Stage("dangling-clusters", tuple(actions)),) if actions else ()
    return Farewell(stages, soonest(*waits))


def delete_cluster(cluster: Object, why: str = "") -> Action:
    """Return the deletion of a cluster of the service."""
    place = place_of(cluster)
    said = Said(
        Say("DeletedRayCluster", "Delete", f"Deleted the RayCluster {place}{why and ' '}{why}"),
        Say("FailedToDeleteRayCluster", "Delete", f"Failed to delete the RayCluster {place}:", "Warning"),
    )
    return Delete(RAY_CLUSTERS, ref_of(cluster), said)


def _recorded(cluster: Object) -> datetime | None:
    """Return when a cluster is to be deleted; None, also if somebody has spoilt the record, if that is open."""
    try:
        return parse_time(_annotation(cluster, DELETE_AT))
    except TimeError:
        return None


# --- giving an upgrade up


def abandoned(look: Look) -> str:
    """Return the hash of the spec whose cluster was given up; empty if none was."""
    return _annotation(look.active.obj, ABANDONED) if look.active.obj is not None else ""


def upgrade_due(look: Look) -> datetime | None:
    """Return when an upgrade is given up; None if it is not, or has been.

    A first cluster replaces nothing: it has the initializing timeout.
    """
    seconds = look.service.upgrade_deadline
    active, pending = look.active.obj, look.pending.obj
    if seconds is None or active is None or pending is None or look.service.pending.traffic:
        return None  # one that gets requests has been healthy
    if abandoned(look) == look.service.config_hash:
        return None
    return parse_time(pending["metadata"]["creationTimestamp"]) + timedelta(seconds=seconds)


def give_up(look: Look, *, is_pending_ready: bool) -> Iterator[Stage]:
    """Yield the record that the cluster of an upgrade did not become healthy in time, if that is so."""
    due = upgrade_due(look)
    if due is None or look.now < due or is_pending_ready or look.active.obj is None:
        return
    note = (
        f"Gave up the upgrade of {look.service.place}: RayCluster {look.service.pending.name} was not healthy within"
        f" {look.service.upgrade_deadline}s: {why_not_ready(look, look.pending)}"
    )
    said = Said(Say("UpgradeDeadlineExceeded", "Reconcile", note, "Warning"))
    change = {"metadata": {"annotations": {ABANDONED: look.service.config_hash}}}
    yield Stage("give-up-upgrade", (Patch(RAY_CLUSTERS, Ref.of(look.active.obj), change, said),))


def _forgetting(look: Look) -> Stage:
    """Return the end of a record of an upgrade that is no longer wanted: should it be again, it is tried again."""
    assert look.active.obj is not None  # where the record stands
    change = {"metadata": {"annotations": {ABANDONED: None}}}
    return Stage("forget-given-up", (Patch(RAY_CLUSTERS, Ref.of(look.active.obj), change),))


def is_given_up(look: Look) -> bool:
    """Tell whether the pending cluster is on record as one that was given up."""
    goal = look.service.config_hash
    return look.pending.obj is not None and abandoned(look) == goal == stamp_of(look.pending)


def stamp_of(seen: Seen) -> str:
    """Return the hash of the spec that a cluster was made from."""
    return _annotation(seen.obj, HASH_ANNOTATION) if seen.obj is not None else ""


def _annotation(obj: Object, name: str) -> str:
    return (obj["metadata"].get("annotations") or {}).get(name) or ""
