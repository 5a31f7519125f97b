"""A Pod plan as actions: the Pods built and named, the deletions with the words of their events."""

from collections.abc import Iterator
from typing import Any

from eagleray.kube.requests import Selection
from eagleray.kube.resources import PODS, Ref
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.hashing import recreate_hash
from eagleray.manifests.pods import head_pod, worker_pod
from eagleray.manifests.settings import Settings
from eagleray.manifests.sizes import hosts_of
from eagleray.raycluster.podplan import HASH_ANNOTATION, VERSION_ANNOTATION, Deletion, NewWorker, PodPlan
from eagleray.raycluster.views import PodView
from eagleray.runtime.actions import Action, Create, Delete, DeleteAll, Patch, Refuse, Said, Say, Stage
from eagleray.schedulers.interface import Scheduler
from kubewire.sources import Entropy

Object = dict[str, Any]

# A name's random end, as long as the one that an API server would choose.
_SUFFIX_LENGTH = 5

_DELETED_ALL = {
    "suspension": "Deleted Pods for RayCluster {} due to suspension",
    "spec change": "Deleted all Pods for RayCluster {} due to spec change with Recreate upgradeStrategy",
}


class PodActions:
    """Turns the Pod plans of one cluster into actions."""

    def __init__(
        self, cluster: Cluster, settings: Settings, scheduler: Scheduler, entropy: Entropy, *, indexing: bool
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._scheduler = scheduler
        self._entropy = entropy
        self._indexing = indexing
        self._place = f"{cluster.namespace}/{cluster.name}"

    def stages(self, plan: PodPlan) -> Iterator[Stage]:
        """Yield the plan in the order in which it has to happen: what goes, the head, its workers."""
        if plan.delete_all:
            yield Stage("delete-pods", (self._delete_all(plan.delete_all),))
            return
        if plan.restamp is not None:
            yield Stage("restamp", (self._restamp(plan.restamp),))
        if plan.surplus_heads:
            names = ", ".join(head.name for head in plan.surplus_heads)
            note = f"RayCluster {self._place} has more than one head Pod: {names}; delete all but one"
            yield Stage("head-pod", (_refusal("MultipleHeadPods", note),))
            return
        heads = tuple(self._deletion(one) for one in plan.delete if one.pod.is_head)
        workers = tuple(self._deletions(plan))
        if not self._cluster.spec.get("suspend"):  # room is asked for only when Pods are to come
            yield from self._scheduler.submit(self._cluster)
        yield Stage("head-pod", (*heads, *self._new_head(plan)))
        yield Stage("delete-workers", workers)
        yield Stage("worker-pods", tuple(self._new_workers(plan)))

    # --- going

    def _delete_all(self, why: str) -> Action:
        labels = f"{naming.CLUSTER_LABEL}={self._cluster.name},{naming.NODE_TYPE_LABEL} in (head,worker)"
        said = Said(
            Say("DeletedPod", "Delete", _DELETED_ALL[why].format(self._place)),
            Say(
                "FailedToDeletePodCollection",
                "Delete",
                f"Failed deleting Pods of RayCluster {self._place}",
                "Warning",
            ),
            "FailedDeleteAllPods",
        )
        return DeleteAll(PODS, Selection(self._cluster.namespace, labels), said)

    def _deletions(self, plan: PodPlan) -> Iterator[Action]:
        """Yield the deletions of workers; those of a suspended group are told of once."""
        told: set[str] = set()
        for deletion in plan.delete:
            if deletion.pod.is_head:
                continue
            if deletion.cause != "the group is suspended":
                yield self._deletion(deletion)
                continue
            group = deletion.pod.group
            note = f"Deleted all pods for suspended worker group {group} in RayCluster {self._place}"
            failed = Say(
                "FailedToDeleteWorkerPodCollection",
                "Delete",
                f"Failed deleting pods of suspended worker group {group} in RayCluster {self._place}",
                "Warning",
            )
            done = None if group in told else Say("DeletedWorkerPod", "Delete", note)
            told.add(group)
            yield Delete(PODS, self._ref(deletion.pod), Said(done, failed, "FailedDeleteWorkerPod"))

    def _deletion(self, deletion: Deletion) -> Action:
        part = "Head" if deletion.pod.is_head else "Worker"
        done, failed = self._deletion_notes(deletion)
        said = Said(
            Say(f"Deleted{part}Pod", "Delete", done),
            Say(f"FailedToDelete{part}Pod", "Delete", failed, "Warning"),
            f"FailedDelete{part}Pod",
        )
        return Delete(PODS, self._ref(deletion.pod), said)

    def _deletion_notes(self, deletion: Deletion) -> tuple[str, str]:
        pod, cause = deletion
        place = f"{self._cluster.namespace}/{pod.name}"
        if cause == "workersToDelete":
            return f"Deleted pod {place}", f"Failed deleting pod {place}"
        if cause == "scale-down":
            return f"Deleted Pod {place}", f"Failed deleting Pod {place}"
        part = "head" if pod.is_head else "worker"
        if cause.startswith("Pod status: ") and not self._by_replica(pod.group):
            return f"Deleted {part} Pod {place}; {cause}", f"Failed deleting {part} Pod {place}; {cause}"
        text = f"{part} Pod {place} for group {pod.group}: {cause}"
        return f"Deleted {text}", f"Failed deleting {text}"

    def _by_replica(self, group: str) -> bool:
        return self._indexing and any(
            hosts_of(one) > 1 for one in self._cluster.workers if one["groupName"] == group
        )

    def _ref(self, pod: PodView) -> Ref:
        return Ref(self._cluster.namespace, pod.name, pod.metadata.uid)

    def _restamp(self, head: PodView) -> Action:
        annotations = {
            HASH_ANNOTATION: recreate_hash(self._cluster.spec),
            VERSION_ANNOTATION: self._settings.version,
        }
        # With its uid, so that a successor of the same name is not taken for it.
        change = {"metadata": {"uid": head.metadata.uid, "annotations": annotations}}
        return Patch(PODS, self._ref(head), change)

    # --- coming

    def _new_head(self, plan: PodPlan) -> Iterator[Action]:
        if not plan.create_head:
            return
        pod = head_pod(self._cluster, self._suffix(), self._settings)
        self._scheduler.mark_pod(self._cluster, naming.HEAD_GROUP, pod)
        place = f"{self._cluster.namespace}/{pod['metadata']['name']}"
        said = Said(
            Say("CreatedHeadPod", "Create", f"Created head Pod {place}"),
            Say("FailedToCreateHeadPod", "Create", f"Failed to create head Pod {place}", "Warning"),
            "FailedCreateHeadPod",
        )
        yield Create(PODS, pod, said)

    def _new_workers(self, plan: PodPlan) -> Iterator[Action]:
        groups = {group["groupName"]: group for group in self._cluster.workers}
        replicas: dict[tuple[str, int], str] = {}
        for new in plan.create:
            yield self._new_worker(groups[new.group], new, replicas)

    def _new_worker(self, group: Object, new: NewWorker, replicas: dict[tuple[str, int], str]) -> Action:
        place = new.place
        if place is not None and hosts_of(group) > 1:
            number = (new.group, new.replica)
            name = replicas.setdefault(number, "") or f"{new.group}-{self._suffix()}"
            replicas[number] = name
            place = place._replace(replica_name=name)
        pod = worker_pod(self._cluster, group, self._suffix(), place, self._settings)
        self._scheduler.mark_pod(self._cluster, new.group, pod)
        name = f"{self._cluster.namespace}/{pod['metadata']['name']}"
        said = Said(
            Say("CreatedWorkerPod", "Create", f"Created worker Pod {name}"),
            Say(
                "FailedToCreateWorkerPod",
                "Create",
                f"Failed to create worker Pod for the cluster {self._place}",
                "Warning",
            ),
            "FailedCreateWorkerPod",
        )
        return Create(PODS, pod, said)

    def _suffix(self) -> str:
        return self._entropy.suffix(_SUFFIX_LENGTH)


def _refusal(reason: str, note: str) -> Refuse:
    return Refuse(note, Say(reason, "Reconcile", note, "Warning"))
