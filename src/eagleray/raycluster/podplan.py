"""Which Pods to delete and which to create: decided from a snapshot, touching nothing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.hashing import is_current
from eagleray.manifests.pods import Place
from eagleray.manifests.rayjob import KEEP_LOST_HEAD, MODE_LABEL, SIDECAR
from eagleray.manifests.sizes import desired_pods, hosts_of
from eagleray.raycluster.views import PodView

Object = dict[str, Any]

HASH_ANNOTATION = "ray.io/upgrade-strategy-recreate-hash"
VERSION_ANNOTATION = "ray.io/kuberay-version"


class Deletion(NamedTuple):
    """A Pod to delete, and why, in the words of its event."""

    pod: PodView
    cause: str


class NewWorker(NamedTuple):
    """A worker to create; replicas of several hosts share the number of their replica."""

    group: str
    place: Place | None = None
    replica: int = 0


class PodPlan(NamedTuple):
    """What to do about the Pods of a cluster, in this order."""

    delete_all: str = ""  # why; one request deletes every Pod of the cluster
    restamp: PodView | None = None  # a head whose hash an older version wrote
    surplus_heads: tuple[PodView, ...] = ()  # more heads than one: for the user to choose from
    delete: tuple[Deletion, ...] = ()
    create_head: bool = False
    create: tuple[NewWorker, ...] = ()


class Circumstances(NamedTuple):
    """What a plan depends on besides the cluster and its Pods."""

    version: str
    indexing: bool = True  # gate RayMultiHostIndexing
    conditions_gate: bool = True  # gate RayClusterStatusConditions
    random_deletion: bool = False  # ENABLE_RANDOM_POD_DELETE
    lost: frozenset[str] = frozenset()  # uids of terminating Pods whose node will never report their end
    held_back: frozenset[str] = frozenset()  # groups that fail again and again, and wait


def plan_pods(cluster: Cluster, pods: Sequence[PodView], around: Circumstances) -> PodPlan:
    """Compare the Pods that are there with those that should be."""
    if suspension := _suspension(cluster, around):
        return _delete_all(pods, "suspension") if suspension == "suspending" else PodPlan()
    heads = [pod for pod in pods if pod.is_head]
    restamp = None
    if (cluster.spec.get("upgradeStrategy") or {}).get("type") == "Recreate" and heads:
        stamp, version = (
            heads[0].metadata.annotations.get(key, "") for key in (HASH_ANNOTATION, VERSION_ANNOTATION)
        )
        if version and version != around.version:
            restamp = heads[0]
        elif stamp and not is_current(stamp, cluster.spec):
            return _delete_all(pods, "spec change")
    if len(heads) > 1:
        return PodPlan(restamp=restamp, surplus_heads=tuple(heads))
    head_deletion = [
        Deletion(head, unhealthy(head)) for head in heads if head.must_go and not head.is_terminating
    ]
    if head_deletion:
        return PodPlan(restamp=restamp, delete=tuple(head_deletion))
    create_head = not heads
    if create_head and _keeps_lost_head(cluster):
        return PodPlan(restamp=restamp)
    deletions, creations = _plan_workers(cluster, pods, around)
    return PodPlan("", restamp, (), tuple(deletions), create_head, tuple(creations))


def unhealthy(pod: PodView) -> str:
    """Return what is wrong with a Pod, for its event."""
    end = pod.ray_end
    ended = f"exit code {end.exit_code} ({end.reason or 'Error'})" if end is not None else "nil"
    return (
        f"Pod status: {pod.status.phase}; Pod restart policy: {pod.spec.restart_policy}; "
        f"Ray container terminated status: {ended}"
    )


def _suspension(cluster: Cluster, around: Circumstances) -> str:
    """Return whether Pods are to go (`suspending`), to stay away (`suspended`), or neither."""
    wanted = cluster.spec.get("suspend") is True
    if not around.conditions_gate:
        return "suspending" if wanted else ""
    if _condition(cluster, "RayClusterSuspending"):
        return "suspending"
    return "suspended" if _condition(cluster, "RayClusterSuspended") or wanted else ""


def _keeps_lost_head(cluster: Cluster) -> bool:
    """Tell whether a head that is lost stays lost: where it is asked for, once the cluster was provisioned.

    A head with a submitter beside it may have submitted before that, and its successor would submit again.
    """
    if cluster.annotations.get(KEEP_LOST_HEAD) != "true":
        return False
    had_head = ((cluster.obj.get("status") or {}).get("head") or {}).get("podName")
    return _is_provisioned(cluster) or bool(had_head and cluster.labels.get(MODE_LABEL) == SIDECAR)


def _is_provisioned(cluster: Cluster) -> bool:
    return _condition(cluster, "RayClusterProvisioned")


def _condition(cluster: Cluster, kind: str) -> bool:
    conditions = (cluster.obj.get("status") or {}).get("conditions") or []
    return any(found.get("type") == kind and found.get("status") == "True" for found in conditions)


def _delete_all(pods: Sequence[PodView], why: str) -> PodPlan:
    return PodPlan(delete_all=why) if any(not pod.is_terminating for pod in pods) else PodPlan()


def _plan_workers(
    cluster: Cluster, pods: Sequence[PodView], around: Circumstances
) -> tuple[list[Deletion], list[NewWorker]]:
    by_group: dict[str, list[PodView]] = {}
    for pod in pods:
        if pod.is_worker and pod.metadata.uid not in around.lost:
            by_group.setdefault(pod.group, []).append(pod)
    deletions: list[Deletion] = []
    creations: list[NewWorker] = []
    # Of groups that share a name, which older operators let pass, the first has the Pods: they cannot be told apart.
    groups = {group["groupName"]: group for group in reversed(cluster.workers)}
    for group in reversed(groups.values()):
        present = sorted(by_group.pop(group["groupName"], []), key=_turn)
        by_replica = around.indexing and hosts_of(group) > 1
        plan = _plan_replicas if by_replica else _plan_group
        gone, new = plan(cluster, group, present, around)
        deletions += gone
        creations += [] if group["groupName"] in around.held_back else new
    for strays in by_group.values():
        deletions += _deletions(strays, "group removed from the spec")
    return deletions, creations


def _turn(pod: PodView) -> tuple[str, int, str]:
    """Return what Pods of a group are ordered by, so that an operator that starts anew goes on with the same choice."""
    index = pod.metadata.labels.get(naming.REPLICA_INDEX_LABEL, "")
    number = int(index) if index.isascii() and index.isdecimal() and len(index) <= 9 else -1
    return pod.metadata.creation_timestamp, number, pod.name


def _least_missed(pods: Iterable[PodView]) -> list[PodView]:
    """Return Pods in the order in which a group gives them up: those that do not work yet, then the youngest."""
    return sorted(sorted(pods, key=_turn, reverse=True), key=_worth)


def _worth(pod: PodView) -> tuple[bool, bool]:
    return pod.is_running, pod.ready is not None and pod.ready.status == "True"


def _deletions(pods: Iterable[PodView], cause: str) -> list[Deletion]:
    return [Deletion(pod, cause) for pod in pods if not pod.is_terminating]


def _may_shrink(cluster: Cluster, around: Circumstances) -> bool:
    """Tell whether the operator chooses which Pods go; the autoscaler does so itself."""
    return not cluster.autoscaling or around.random_deletion


def _asked_to_delete(group: Object) -> frozenset[str]:
    return frozenset((group.get("scaleStrategy") or {}).get("workersToDelete") or ())


def _plan_group(
    cluster: Cluster, group: Object, pods: list[PodView], around: Circumstances
) -> tuple[list[Deletion], list[NewWorker]]:
    if group.get("suspend"):
        return _deletions(pods, "the group is suspended"), []
    bad = [pod for pod in pods if pod.must_go]
    deletions = [Deletion(pod, unhealthy(pod)) for pod in bad if not pod.is_terminating]
    asked = _asked_to_delete(group)
    chosen = [pod for pod in pods if pod.name in asked and not pod.must_go]
    deletions += _deletions(chosen, "workersToDelete")
    # A Pod counts until it is gone: what is on its way out is not replaced yet.
    left = [pod for pod in pods if not pod.must_go and pod not in chosen and not pod.is_terminating]
    missing = desired_pods(group) - len(pods)
    if missing > 0:
        return deletions, _new_workers(group, missing, pods, around)
    surplus = len(left) - desired_pods(group)
    if surplus > 0 and _may_shrink(cluster, around):
        deletions += _deletions(_least_missed(left)[:surplus], "scale-down")
    return deletions, []


def _new_workers(group: Object, count: int, present: list[PodView], around: Circumstances) -> list[NewWorker]:
    name = group["groupName"]
    if not around.indexing:
        return [NewWorker(name) for _ in range(count)]
    return [NewWorker(name, Place(index)) for index in _free_indices(present, count)]


def _free_indices(pods: Iterable[PodView], count: int) -> list[int]:
    taken = {pod.metadata.labels.get(naming.REPLICA_INDEX_LABEL) for pod in pods}
    free: list[int] = []
    index = 0
    while len(free) < count:
        if str(index) not in taken:
            free.append(index)
        index += 1
    return free


def _plan_replicas(
    cluster: Cluster, group: Object, pods: list[PodView], around: Circumstances
) -> tuple[list[Deletion], list[NewWorker]]:
    """Plan a group whose replicas have several hosts: they come and go as a whole."""
    if group.get("suspend"):
        return _deletions(pods, "the group is suspended"), []
    hosts = hosts_of(group)
    replicas = _by_replica(pods, hosts)
    asked = _asked_to_delete(group)
    deletions: list[Deletion] = []
    intact: list[list[PodView]] = []
    for members in replicas.values():
        cause = _why_replica_goes(members, hosts, asked)
        if cause:
            deletions += _deletions(members, cause)
        elif not any(pod.is_terminating for pod in members):
            intact.append(members)
    wanted = desired_pods(group) // hosts
    # A replica counts until its last Pod is gone, so that its index and its place stay taken.
    missing = wanted - len(replicas)
    if missing > 0:
        return deletions, _new_replicas(group, missing, pods, hosts)
    surplus = len(intact) - wanted
    if surplus > 0 and _may_shrink(cluster, around):
        youngest_first = intact[::-1]
        for members in sorted(youngest_first, key=lambda members: min(map(_worth, members)))[:surplus]:
            deletions += _deletions(members, "scaling down")
    return deletions, []


def _by_replica(pods: Sequence[PodView], hosts: int) -> Mapping[str, list[PodView]]:
    """Return the Pods by replica; those made before replicas had names are taken together in order of creation."""
    replicas: dict[str, list[PodView]] = {}
    unnamed: list[PodView] = []
    for pod in pods:
        name = pod.metadata.labels.get(naming.REPLICA_NAME_LABEL)
        if name:
            replicas.setdefault(name, []).append(pod)
        else:
            unnamed.append(pod)
    unnamed.sort(key=lambda pod: (pod.metadata.creation_timestamp, pod.name))
    for start in range(0, len(unnamed), hosts):
        replicas[f"unnamed {start}"] = unnamed[start : start + hosts]
    return replicas


def _why_replica_goes(members: list[PodView], hosts: int, asked: frozenset[str]) -> str:
    if len(members) < hosts:
        return "cleanup of incomplete multi-host group"
    for pod in members:
        if pod.must_go:
            return unhealthy(pod)
    return "autoscaler scale-down request" if any(pod.name in asked for pod in members) else ""


def _new_replicas(group: Object, count: int, present: list[PodView], hosts: int) -> list[NewWorker]:
    return [
        NewWorker(group["groupName"], Place(index, host=host), number)
        for number, index in enumerate(_free_indices(present, count))
        for host in range(hosts)
    ]
