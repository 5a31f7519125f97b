"""What a RayJob has made for it: its cluster, and a Service to the head that stays the same over retries."""

import copy
from typing import Any

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.services import head_service
from eagleray.manifests.settings import Settings
from eagleray.manifests.stored import Stored

Object = dict[str, Any]

SELECTOR_KEY = naming.CLUSTER_LABEL
MODE_LABEL = "ray.io/job-submission-mode"
KEEP_LOST_HEAD = "ray.io/disable-provisioned-head-restart"

K8S_JOB, HTTP, INTERACTIVE, SIDECAR = "K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"


class RayJob(Stored):
    """A RayJob as stored, with names for the questions that are asked about it. Nothing here changes it."""

    __slots__ = ()

    @property
    def mode(self) -> str:
        return self.spec.get("submissionMode") or K8S_JOB

    @property
    def selected_cluster(self) -> str:
        """The name of the cluster that a user chose; empty if the job makes its own."""
        return (self.spec.get("clusterSelector") or {}).get(SELECTOR_KEY) or ""

    @property
    def has_selector(self) -> bool:
        return bool(self.spec.get("clusterSelector"))

    @property
    def cluster_name(self) -> str:
        return self.status.get("rayClusterName") or ""

    @property
    def job_id(self) -> str:
        """The submission id of the attempt."""
        return self.status.get("jobId") or ""

    @property
    def state(self) -> str:
        return self.status.get("jobDeploymentStatus") or ""

    @property
    def job_status(self) -> str:
        """What Ray said last of the job."""
        return self.status.get("jobStatus") or ""

    @property
    def dashboard_url(self) -> str:
        return self.status.get("dashboardURL") or ""

    @property
    def is_suspended(self) -> bool:
        return self.spec.get("suspend") is True

    @property
    def submission(self) -> Object:
        """The recorded submission, if it is one of the present attempt."""
        recorded = self.status.get("submission") or {}
        return recorded if recorded.get("submissionId") == self.job_id else {}


def owner_of(job: RayJob) -> Object:
    """Return the owner reference that a child of the job carries."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def origin_labels(job: RayJob) -> dict[str, str]:
    """Return the labels that say for whom a child was made."""
    return {naming.ORIGIN_NAME_LABEL: job.name, naming.ORIGIN_KIND_LABEL: "RayJob"}


def job_cluster(job: RayJob, submitter: Object | None) -> Object:
    """Return the cluster of an attempt; a `submitter` beside Ray makes its head one that is never restarted."""
    spec = copy.deepcopy(job.spec.get("rayClusterSpec") or {})
    annotations = dict(job.annotations)
    if submitter is not None:
        annotations[KEEP_LOST_HEAD] = "true"
        pod = spec["headGroupSpec"]["template"]["spec"]
        pod["containers"] = [*pod["containers"], submitter]
        pod["restartPolicy"] = "Never"
    metadata: Object = {
        "name": job.cluster_name,
        "namespace": job.namespace,
        "labels": {**job.labels, **origin_labels(job), MODE_LABEL: job.mode},
        "ownerReferences": [owner_of(job)],
    }
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}


def job_head_service(job: RayJob, cluster: Cluster, settings: Settings) -> Object:
    """Return the Service under the job's own name that leads to the head of its present cluster."""
    of_cluster = head_service(cluster, settings)
    given = (cluster.head.get("headService") or {}).get("metadata") or {}
    metadata: Object = {
        "name": naming.checked_name(f"{job.name}-head-svc"),
        "namespace": job.namespace,
        "labels": {
            **origin_labels(job),
            naming.NODE_TYPE_LABEL: "head",
            naming.IDENTIFIER_LABEL: naming.checked_label(f"{job.name}-head"),
        },
        "ownerReferences": [owner_of(job)],
    }
    if given.get("annotations"):
        metadata["annotations"] = given["annotations"]
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": of_cluster["spec"]}
