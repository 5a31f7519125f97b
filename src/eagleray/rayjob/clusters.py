"""The cluster of a RayJob: made, watched, and taken away again."""

from typing import Any

from eagleray.kube.resources import JOBS, RAY_CLUSTERS, SERVICES
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import K8S_JOB, SIDECAR, job_cluster, job_head_service
from eagleray.manifests.submitter import NotSubmittable, sidecar_submitter
from eagleray.raycluster.status import BLOCKED, PROVISIONED, condition_of
from eagleray.raycluster.views import PodView
from eagleray.rayjob.look import Cause, Decision, Look, ref_of
from eagleray.runtime.actions import Action, Create, Delete, Patch, Refuse, Replace, Said, Say, Stage, Tell
from kubewire.owners import controller_of

Object = dict[str, Any]

# So long after the end of its grace period a Pod is waited for; a node that is well tells of its end much sooner.
POD_PATIENCE = 60.0


def ensure_cluster(look: Look) -> Decision | None:
    """Return what is needed to have the attempt's cluster; None if it is there."""
    job = look.job
    place = f"{job.namespace}/{job.cluster_name}"
    if look.cluster is not None:
        if job.has_selector or look.is_own_cluster:
            return None
        owner = controller_of(look.cluster) or {}
        whose = f"{owner.get('kind')} {owner.get('name')}" if owner else "nobody"
        message = f"RayCluster {place} belongs to {whose}, not to this RayJob; delete or rename one of them"
        return Decision(
            stages=(Stage("cluster", (_refusal(message, place),)),), cause=Cause("ClusterConflict", message)
        )
    if job.has_selector:
        note = f"RayCluster {place} set in the clusterSelector is not found. It must be created manually"
        say = Say("RayClusterNotFound", "Validate", note, "Warning")
        return Decision(stages=(Stage("cluster", (Tell(say),)),), cause=Cause("RayClusterNotFound", note))
    creation = _creation(look, place)
    cause = Cause("NotSubmittable", creation.message) if isinstance(creation, Refuse) else None
    return Decision(stages=(Stage("cluster", (creation,)),), cause=cause)


def _failed_cluster(place: str, why: str = "") -> Say:
    note = f"Failed to create RayCluster {place}:{why and ' '}{why}"
    return Say("FailedToCreateRayCluster", "Create", note, "Warning")


def _refusal(message: str, place: str) -> Refuse:
    return Refuse(message, _failed_cluster(place, message))


def _creation(look: Look, place: str) -> Action:
    job = look.job
    submitter = None
    if job.mode == SIDECAR:
        spec = job.spec.get("rayClusterSpec") or {}
        described = Cluster(
            {"metadata": {"name": job.cluster_name, "namespace": job.namespace}, "spec": spec}
        )
        try:
            submitter = sidecar_submitter(job, described, look.config.settings)
        except NotSubmittable as why:
            return _refusal(str(why), place)
    wanted = job_cluster(job, submitter)
    if job.mode == K8S_JOB:
        look.config.scheduler.mark_cluster(job, wanted)
    done = Say("CreatedRayCluster", "Create", f"Created RayCluster {place}")
    return Create(RAY_CLUSTERS, wanted, Said(done, _failed_cluster(place)))


def is_ready(look: Look) -> bool:
    return ((look.cluster or {}).get("status") or {}).get("state") == "ready"


def why_not_ready(look: Look) -> Cause | None:
    """Return what a cluster waits for, in its own words; None as long as it has none."""
    status = (look.cluster or {}).get("status") or {}
    if not status:
        return None
    place = f"{look.job.namespace}/{look.job.cluster_name}"
    if blocked := condition_of(status, BLOCKED):
        return Cause("ClusterBlocked", f"RayCluster {place}: {blocked['message']}")
    counts = f"{status.get('readyWorkerReplicas') or 0} of {status.get('desiredWorkerReplicas') or 0} workers are ready"
    provisioned = condition_of(status, PROVISIONED)
    text = f", {provisioned['message']}" if provisioned and provisioned.get("message") else ""
    return Cause("ClusterNotReady", f"RayCluster {place} is not ready: {counts}{text}")


def ensure_head_service(look: Look) -> tuple[Stage, ...]:
    """Return the creation or the change of the Service that leads to the present head, whatever cluster it is in."""
    cluster = look.ray_cluster
    if look.job.has_selector or cluster is None or not look.is_own_cluster:
        return ()
    wanted = job_head_service(look.job, cluster, look.config.settings)
    place = f"{look.job.namespace}/{wanted['metadata']['name']}"
    found = look.service
    if found is None or (controller_of(found) or {}).get("uid") != look.job.uid:
        done = Say("CreatedService", "Create", f"Created the service {place}")
        failed = Say("FailedToCreateService", "Create", f"Failed to create the service {place}", "Warning")
        return (Stage("head-service", (Create(SERVICES, wanted, Said(done, failed)),)),)
    selector = found["spec"].get("selector") or {}
    if selector.get("ray.io/cluster") == wanted["spec"]["selector"]["ray.io/cluster"]:
        return ()
    kept = {field: found["spec"][field] for field in ("clusterIP", "clusterIPs") if field in found["spec"]}
    updated = {**found, "spec": {**wanted["spec"], **kept}}
    done = Say("UpdatedService", "Update", f"Updated the service {place}")
    failed = Say("FailedToUpdateService", "Update", f"Failed to update the service {place}", "Warning")
    return (Stage("head-service", (Replace(SERVICES, updated, Said(done, failed)),)),)


def delete_cluster(look: Look) -> tuple[Stage, ...]:
    """Return the deletion of the job's own cluster; nothing if it is gone or going."""
    cluster = look.cluster
    if cluster is None or not look.is_own_cluster or cluster["metadata"].get("deletionTimestamp"):
        return ()
    place = f"{look.job.namespace}/{look.job.cluster_name}"
    said = Said(
        Say("DeletedRayCluster", "Delete", f"Deleted cluster {place}"),
        Say("FailedToDeleteRayCluster", "Delete", f"Failed to delete cluster {place}:", "Warning"),
    )
    return (Stage("delete-cluster", (Delete(RAY_CLUSTERS, ref_of(cluster), said),)),)


def delete_submitter(look: Look) -> tuple[Stage, ...]:
    """Return the deletion of the submitter Job; nothing if it is gone or going."""
    submitter = look.submitter
    if submitter is None or submitter.metadata.deletion_timestamp:
        return ()
    place = f"{look.job.namespace}/{submitter.metadata.name}"
    said = Said(
        Say("DeletedRayJobSubmitter", "Delete", f"Deleted submitter K8s Job {place}"),
        Say(
            "FailedToDeleteRayJobSubmitter",
            "Delete",
            f"Failed to delete submitter K8s Job {place}:",
            "Warning",
        ),
    )
    return (Stage("delete-submitter", (Delete(JOBS, submitter.metadata.ref, said),)),)


def hold_submitter(look: Look) -> tuple[Stage, ...]:
    """Return the suspension of a submitter Job that goes on: its next Pod would submit again what Ray has forgotten."""
    submitter = look.submitter
    if submitter is None or submitter.ending is not None or submitter.metadata.deletion_timestamp:
        return ()
    return (Stage("hold-submitter", (Patch(JOBS, submitter.metadata.ref, {"spec": {"suspend": True}}),)),)


def pods_left(look: Look) -> list[PodView]:
    """Return the Pods of the job's own cluster that still take room; one whose node tells nothing is given up."""
    if look.job.has_selector:
        return []
    since = (look.seconds_since(pod.metadata.deletion_timestamp) for pod in look.pods)
    return [pod for pod, late in zip(look.pods, since, strict=True) if late is None or late < POD_PATIENCE]


def is_torn_down(look: Look) -> bool:
    """Tell whether nothing of an attempt is left."""
    has_own_cluster = look.cluster is not None and look.is_own_cluster
    return not has_own_cluster and look.submitter is None
