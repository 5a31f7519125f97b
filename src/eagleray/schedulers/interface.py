"""What a batch scheduler does for a Ray object."""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from eagleray.kube.cache import Cache
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import RayJob
from eagleray.runtime.actions import Action, Stage
from eagleray.schedulers.made import Made

Object = dict[str, Any]
Owner = Cluster | RayJob

# With it a user asks for all Pods or none, where that is not what a scheduler does anyway.
GANG_LABEL: Final = "ray.io/gang-scheduling-enabled"
SUBMITTER_GROUP: Final = "submittergroup"


class Scheduler(Protocol):
    """A batch scheduler, seen from the controllers. What it returns is a plan; nothing here changes the cluster."""

    def watches(self) -> Sequence[Cache[Made]]:
        """Return the objects that it makes, so that a change of one of them wakes its owner."""
        ...

    def submit(self, owner: Owner) -> Sequence[Stage]:
        """Return what has to happen before the Pods of an object are made; nothing once it has happened."""
        ...

    def mark_cluster(self, job: RayJob, cluster: Object) -> None:
        """Mark the cluster of a job, which is not yet made, so that its Pods and the job's submitter are one gang."""
        ...

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:
        """Mark a Pod or a Pod template, which is not yet made, as one of a group of its owner."""
        ...

    def clean_up(self, job: RayJob, cluster: Cluster | None) -> Sequence[Action]:
        """Return what has to happen when an attempt is over; `cluster` is the job's own, if it is still there."""
        ...


class NoScheduler:
    """The scheduler of Kubernetes itself, which asks for nothing; the others say only where they differ."""

    def watches(self) -> Sequence[Cache[Made]]:
        return ()

    def submit(self, owner: Owner) -> Sequence[Stage]:  # noqa: ARG002 - others look at it
        return ()

    def mark_cluster(self, job: RayJob, cluster: Object) -> None:
        """Leave the cluster as it is."""

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:
        """Leave the Pod as it is."""

    def clean_up(self, job: RayJob, cluster: Cluster | None) -> Sequence[Action]:  # noqa: ARG002 - likewise
        return ()


def labels_of(obj: Object) -> dict[str, str]:
    """Return the labels of an object, to be changed in place."""
    labels: dict[str, str] = obj.setdefault("metadata", {}).setdefault("labels", {})
    return labels


def annotations_of(obj: Object) -> dict[str, str]:
    """Return the annotations of an object, to be changed in place."""
    annotations: dict[str, str] = obj.setdefault("metadata", {}).setdefault("annotations", {})
    return annotations


def schedule_by(name: str, pod: Object) -> None:
    """Have a Pod scheduled by the scheduler of this name."""
    pod.setdefault("spec", {})["schedulerName"] = name


def copy_label(owner: Owner, label: str, pod: Object, to: str = "") -> None:
    """Give a Pod a label of its owner, perhaps under another name, if the owner has it."""
    if label in owner.labels:
        labels_of(pod)[to or label] = owner.labels[label]
