"""What is taken away after the end of a job: by its deletion strategy, or by shutdownAfterJobFinishes."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from eagleray.kube.resources import RAY_CLUSTERS, RAY_JOBS, Ref
from eagleray.rayjob.clusters import delete_cluster
from eagleray.rayjob.look import Decision, Look
from eagleray.runtime.actions import Delete, Patch, Said, Say, Stage
from kubewire.times import parse_time

Object = dict[str, Any]

# The more a policy takes away, the higher it stands; of several that are due, the highest is followed.
IMPACT = {"DeleteNone": 1, "DeleteWorkers": 2, "DeleteCluster": 3, "DeleteSelf": 4}


def clean_up(look: Look) -> Decision:
    """Return what is due now, and in how many seconds something will be."""
    job = look.job
    if job.has_selector or not job.status.get("endTime"):
        return Decision()
    strategy = job.spec.get("deletionStrategy")
    if strategy and look.config.gate("RayJobDeletionPolicy"):
        if strategy.get("deletionRules") is not None:
            return _by_rules(look, strategy["deletionRules"])
        return _by_policy(look, _legacy_policy(look, strategy))
    if job.spec.get("shutdownAfterJobFinishes"):
        return _by_policy(look, "DeleteSelf" if look.config.delete_rayjob else "DeleteCluster")
    return Decision()


def _legacy_policy(look: Look, strategy: Object) -> str:
    side = {"SUCCEEDED": "onSuccess", "FAILED": "onFailure"}.get(look.job.job_status, "")
    policy: str = (strategy.get(side) or {}).get("policy") or "DeleteNone"
    return policy


def _by_policy(look: Look, policy: str) -> Decision:
    if policy == "DeleteNone" or _is_achieved(look, policy):
        return Decision()
    left = _left(look, look.job.spec.get("ttlSecondsAfterFinished") or 0)
    return Decision(again=left) if left > 0 else Decision(stages=tuple(_act(look, policy)))


def _by_rules(look: Look, rules: list[Object]) -> Decision:
    """Follow the one rule among those that are due which takes away most; later ones get their turn."""
    due: list[str] = []
    later: list[float] = []
    for rule in rules:
        condition = rule["condition"]
        if not _applies(look, condition):
            continue
        left = _left(look, condition.get("ttlSeconds") or 0)
        if left > 0:
            later.append(left)
        elif not _is_achieved(look, rule["policy"]):
            due.append(rule["policy"])
    stages = tuple(_act(look, max(due, key=IMPACT.__getitem__))) if due else ()
    return Decision(stages=stages, again=min(later, default=None))


def _applies(look: Look, condition: Object) -> bool:
    if (wanted := condition.get("jobStatus")) is not None:
        return bool(wanted == look.job.job_status)
    return bool(condition.get("jobDeploymentStatus") == look.job.state)


def _left(look: Look, seconds: int) -> float:
    due = parse_time(look.job.status["endTime"]) + timedelta(seconds=seconds)
    return (due - look.now).total_seconds()


def _is_achieved(look: Look, policy: str) -> bool:
    """Tell whether what a policy wants is so already, or on its way."""
    if policy in ("DeleteSelf", "DeleteNone"):
        return policy == "DeleteNone"
    cluster = look.cluster
    if cluster is None or not look.is_own_cluster or cluster["metadata"].get("deletionTimestamp"):
        return True
    groups = cluster["spec"].get("workerGroupSpecs") or []
    return policy == "DeleteWorkers" and all(group.get("suspend") for group in groups)


def _act(look: Look, policy: str) -> Iterator[Stage]:
    if policy == "DeleteCluster":
        yield from delete_cluster(look)
    elif policy == "DeleteWorkers":
        yield _suspend_workers(look)
    else:
        yield Stage("delete-self", (Delete(RAY_JOBS, Ref.of(look.job.obj)._replace(version="")),))


def _suspend_workers(look: Look) -> Stage:
    assert look.cluster is not None  # a policy about workers is achieved where there is no cluster
    place = f"{look.job.namespace}/{look.job.cluster_name}"
    groups = [{**group, "suspend": True} for group in look.cluster["spec"].get("workerGroupSpecs") or []]
    said = Said(
        Say(
            "UpdatedRayCluster",
            "Update",
            f"Set the `suspend` field to true for all worker groups in cluster {place}",
        ),
        Say(
            "FailedToUpdateRayCluster",
            "Update",
            f"Failed to suspend worker groups in cluster {place}:",
            "Warning",
        ),
    )
    change = {"spec": {"workerGroupSpecs": groups}}
    return Stage("suspend-workers", (Patch(RAY_CLUSTERS, Ref.of(look.cluster), change, said),))
