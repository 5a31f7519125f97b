"""What a Deployment's ReplicaSets are made of, and what its status says: pure functions."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from kubereef.controllers.conditions import condition
from kubereef.controllers.resources import DEPLOYMENTS
from kubereef.controllers.rollouts import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    Family,
    annotated,
    by_age,
    counted,
    max_surge,
    max_unavailable,
    new_size,
    size,
    wanted,
)
from kubereef.kinds.resource import Object
from kubereef.store.records import encode
from kubewire.names import SUFFIX_ALPHABET
from kubewire.times import format_time, parse_time

HASH_LABEL = "pod-template-hash"

# Annotations of a Deployment that its ReplicaSets do not inherit.
OWN_ANNOTATIONS = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    )
)
_LONGEST_HISTORY = 2000
_NO_DEADLINE = 2**31 - 1


# --- ReplicaSets


def family_of(deployment: Object, replica_sets: Iterable[Object]) -> Family:
    """Tell the ReplicaSet of the present template from the others."""
    ordered = by_age(replica_sets)
    template = without_hash(deployment["spec"]["template"])
    new = next((one for one in ordered if without_hash(one["spec"]["template"]) == template), None)
    return Family(new, [one for one in ordered if one is not new])


def has_template_of(deployment: Object, replica_set: Object) -> bool:
    return without_hash(replica_set["spec"]["template"]) == without_hash(deployment["spec"]["template"])


def without_hash(template: Object) -> Object:
    """Return a template without the label that tells templates apart."""
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    return {**template, "metadata": {**meta, "labels": labels}}


def template_hash(template: Object, collisions: int | None) -> str:
    """Return a short text that is the same for the same template; each collision counted makes it another one."""
    value = 0x811C9DC5
    for byte in encode(_sorted(template)) + str(collisions if collisions is not None else "").encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return "".join(SUFFIX_ALPHABET[ord(digit) % len(SUFFIX_ALPHABET)] for digit in str(value))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(one) for one in value] if isinstance(value, list) else value


def new_replica_set(deployment: Object, family: Family) -> Object:
    """Return the ReplicaSet of the present template."""
    spec = deployment["spec"]
    digest = template_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    meta = spec["template"].get("metadata") or {}
    labels = {**(meta.get("labels") or {}), HASH_LABEL: digest}
    selector = spec["selector"]
    made: Object = {
        "metadata": {
            "name": f"{deployment['metadata']['name']}-{digest}",
            "namespace": deployment["metadata"]["namespace"],
            "labels": labels,
            "ownerReferences": [DEPLOYMENTS.reference_to(deployment)],
        },
        "spec": {
            "replicas": new_size(deployment, family, 0),
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: digest},
            },
            "template": {**spec["template"], "metadata": {**meta, "labels": labels}},
        },
    }
    if spec.get("minReadySeconds"):
        made["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    made["metadata"]["annotations"] = {
        **inherited_annotations(deployment, made, next_revision(family)),
        **size_annotations(deployment),
    }
    return made


def next_revision(family: Family) -> int:
    """Return the number of the present revision: one more than all others have."""
    return max((annotated(one, REVISION) or 0 for one in family.old), default=0) + 1


def size_annotations(deployment: Object) -> dict[str, str]:
    """Return what a ReplicaSet remembers of the Deployment's size when it was given its own."""
    target = wanted(deployment)
    return {DESIRED_REPLICAS: str(target), MAX_REPLICAS: str(target + max_surge(deployment))}


def inherited_annotations(deployment: Object, replica_set: Object, revision: int) -> dict[str, str]:
    """Return the annotations of the new ReplicaSet: its own, the Deployment's, its revision and those it had before."""
    given = (deployment["metadata"].get("annotations") or {}).items()
    annotations: dict[str, str] = {
        **(replica_set["metadata"].get("annotations") or {}),
        **{key: value for key, value in given if key not in OWN_ANNOTATIONS},
    }
    before = annotated(replica_set, REVISION)
    if before is None or before < revision:
        annotations[REVISION] = str(revision)
        if before is not None:
            history = [*filter(None, annotations.get(REVISION_HISTORY, "").split(",")), str(before)]
            while len(history) > 1 and len(",".join(history)) > _LONGEST_HISTORY:
                history.pop(0)
            annotations[REVISION_HISTORY] = ",".join(history)
    return annotations


def outlived(deployment: Object, family: Family) -> list[Object]:
    """Return the old ReplicaSets that are beyond what the history keeps, and empty."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    kept = [one for one in family.old if not one["metadata"].get("deletionTimestamp")]
    surplus = len(kept) - limit
    if surplus <= 0:
        return []
    oldest = sorted(kept, key=lambda one: annotated(one, REVISION) or 0)[:surplus]
    return [one for one in oldest if not size(one) and not counted(one, "replicas") and _is_observed(one)]


def _is_observed(replica_set: Object) -> bool:
    return bool(counted(replica_set, "observedGeneration") >= replica_set["metadata"].get("generation", 0))


# --- conditions


def deadline(deployment: Object) -> int | None:
    """Return in how many seconds a rollout has to make progress, if that is limited."""
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds == _NO_DEADLINE else seconds


def with_reported(
    conditions: list[Object], now: datetime, kind: str, status: str, reason: str, message: str
) -> list[Object]:
    """Return the conditions with this one, at the end; the very same list if it says this already."""
    old = condition(conditions, kind)
    if old is not None and (old.get("status"), old.get("reason")) == (status, reason):
        return conditions
    changed = format_time(now)
    if old is not None and old.get("status") == status:
        changed = old.get("lastTransitionTime") or changed
    new = {
        "type": kind,
        "status": status,
        "lastUpdateTime": format_time(now),
        "lastTransitionTime": changed,
        "reason": reason,
        "message": message,
    }
    return [*without(conditions, kind), new]


def without(conditions: list[Object], kind: str) -> list[Object]:
    return [one for one in conditions if one.get("type") != kind]


def pause_told(deployment: Object, now: datetime) -> list[Object]:
    """Return the conditions after a pause has been told of, or its end."""
    conditions = conditions_of(deployment)
    progressing = condition(conditions, "Progressing")
    reason = (progressing or {}).get("reason")
    if deadline(deployment) is None or reason == "ProgressDeadlineExceeded":
        return conditions
    is_paused = bool(deployment["spec"].get("paused"))
    if is_paused and reason != "DeploymentPaused":
        return with_reported(
            conditions, now, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"
        )
    if not is_paused and reason == "DeploymentPaused":
        return with_reported(
            conditions, now, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed"
        )
    return conditions


def conditions_of(deployment: Object) -> list[Object]:
    found: list[Object] = (deployment.get("status") or {}).get("conditions") or []
    return found


# --- status


def counts(deployment: Object, family: Family, now: datetime) -> Object:
    """Return the status as the ReplicaSets tell it: the counts and whether enough is available."""
    everything = family.all
    available = sum(counted(one, "availableReplicas") for one in everything)
    status: Object = {"observedGeneration": deployment["metadata"].get("generation", 0)}
    numbers = {
        "replicas": sum(counted(one, "replicas") for one in everything),
        "updatedReplicas": counted(family.new, "replicas") if family.new is not None else 0,
        "readyReplicas": sum(counted(one, "readyReplicas") for one in everything),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(size, everything)) - available),
    }
    status.update({field: number for field, number in numbers.items() if number})
    if all("terminatingReplicas" in (one.get("status") or {}) for one in everything):
        status["terminatingReplicas"] = sum(counted(one, "terminatingReplicas") for one in everything)
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions is not None:
        status["collisionCount"] = collisions
    if available >= wanted(deployment) - max_unavailable(deployment):
        told = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        told = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = with_reported(conditions_of(deployment), now, "Available", *told)
    return status


def rollout_status(deployment: Object, family: Family, now: datetime) -> Object:
    """Return the status while a rollout goes on or is done: the counts, and how it gets on."""
    status = counts(deployment, family, now)
    conditions = status["conditions"]
    if deadline(deployment) is None:
        conditions = without(conditions, "Progressing")
    else:
        conditions = _progress(deployment, family, status, now)
    failures = _replica_failures(family)
    conditions = without(conditions, "ReplicaFailure")
    if failures:
        failure = failures[0]
        old = condition(status["conditions"], "ReplicaFailure")
        kept = [old] if old is not None else []
        told = (failure.get("status", "True"), failure.get("reason", ""), failure.get("message", ""))
        conditions = [*conditions, *with_reported(kept, now, "ReplicaFailure", *told)]
    status["conditions"] = conditions
    return status


def _progress(deployment: Object, family: Family, status: Object, now: datetime) -> list[Object]:
    """Return the conditions with what is to be said about the progress of the rollout."""
    conditions: list[Object] = status["conditions"]
    current = condition(conditions_of(deployment), "Progressing")
    reason = (current or {}).get("reason")
    if reason == "NewReplicaSetAvailable" and status.get("replicas", 0) == status.get("updatedReplicas", 0):
        return conditions  # done, and said; scaling is no rollout
    what = f'Deployment "{deployment["metadata"]["name"]}"'
    if family.new is not None:
        what = f'ReplicaSet "{family.new["metadata"]["name"]}"'
    if is_complete(deployment, status):
        message = f"{what} has successfully progressed."
        return with_reported(conditions, now, "Progressing", "True", "NewReplicaSetAvailable", message)
    if _has_progressed(deployment.get("status") or {}, status):
        told = with_reported(
            without(conditions, "Progressing"),
            now,
            "Progressing",
            "True",
            "ReplicaSetUpdated",
            f"{what} is progressing.",
        )
        if current is not None and current.get("status") == "True":
            told[-1]["lastTransitionTime"] = current.get("lastTransitionTime")
        return told
    left = seconds_to_deadline(deployment, now)
    if left is not None and left < 0:
        message = f"{what} has timed out progressing."
        return with_reported(conditions, now, "Progressing", "False", "ProgressDeadlineExceeded", message)
    return conditions


def is_complete(deployment: Object, status: Object) -> bool:
    """Tell whether a status says that all Pods are new, available, and no others are left."""
    target = wanted(deployment)
    fields = ("updatedReplicas", "replicas", "availableReplicas")
    return all(status.get(field, 0) == target for field in fields) and status.get(
        "observedGeneration", 0
    ) >= deployment["metadata"].get("generation", 0)


def _has_progressed(before: Object, after: Object) -> bool:
    def old_replicas(status: Object) -> int:
        left: int = status.get("replicas", 0) - status.get("updatedReplicas", 0)
        return left

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_replicas(after) < old_replicas(before) or any(
        after.get(field, 0) > before.get(field, 0) for field in grown
    )


def seconds_to_deadline(deployment: Object, now: datetime) -> float | None:
    """Return how long the rollout may still stand still, if it has to progress at all; below 0 if it has failed to."""
    limit = deadline(deployment)
    current = condition(conditions_of(deployment), "Progressing")
    if limit is None or current is None or deployment["spec"].get("paused"):
        return None
    if current.get("reason") == "NewReplicaSetAvailable":
        return None
    if current.get("reason") == "ProgressDeadlineExceeded":
        return -1.0
    since = current.get("lastUpdateTime") or current.get("lastTransitionTime")
    if not since:
        return None
    return (parse_time(since) + timedelta(seconds=limit) - now).total_seconds()


def _replica_failures(family: Family) -> list[Object]:
    """Return what keeps ReplicaSets from making Pods: of the new one, or else of any."""
    candidates = [family.new] if family.new is not None else []
    for one in [*candidates, *family.old]:
        found = condition((one.get("status") or {}).get("conditions") or [], "ReplicaFailure")
        if found is not None:
            return [found]
    return []
