"""What a RayCluster waits for: a pure function of what was seen."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from eagleray.kube.resources import PODS
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.naming import GROUP_LABEL, NODE_TYPE_LABEL, ORIGIN_KIND_LABEL, ORIGIN_NAME_LABEL
from eagleray.manifests.sizes import desired_pods, replicas_of
from eagleray.raycluster.controller import MANAGER
from eagleray.raycluster.deletion import deletion_timeout, has_finalizer, plan_deletion
from eagleray.raycluster.planning import Around, Config, plan
from eagleray.raycluster.status import BLOCKED, REPLICA_FAILURE, SUSPENDING, condition_of
from eagleray.raycluster.troubles import group_troubles, trouble_of
from eagleray.raycluster.views import PodView
from eagleray.runtime.actions import Action, Create, Refuse, Stage, described
from eagleray.schedulers.made import FAILED as SCHEDULER_FAILED
from eagleray.why.eventing import open_failures, way_out
from eagleray.why.operators import absence_of, nobody_leads
from eagleray.why.reading import Seen
from eagleray.why.report import Report
from kubewire.sources import SeededEntropy
from kubewire.times import format_time, parse_time

Object = dict[str, Any]

_KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
_NOTHING: Mapping[str, str] = {}
# How the operator says in a condition that a group waits before it is tried again.
_HELD_BACK = re.compile(r"group (\S+) failed \d+ times in a row .*?; next try at (\S+?)(?=;|…|$)")


def diagnose(seen: Seen) -> Report:
    """Return what is to be said of a cluster; what holds it back the most comes first."""
    cluster = seen.cluster
    place = f"RayCluster {cluster.namespace}/{cluster.name}"
    report = _diagnose(seen, place)
    absent = nobody_leads(seen.leases, seen.now)
    return report._replace(notes=[*report.notes, *absent, *seen.unseen.values()])


def _diagnose(seen: Seen, place: str) -> Report:
    cluster = seen.cluster
    manager = cluster.spec.get("managedBy")
    if manager not in (None, MANAGER):
        cause = f"spec.managedBy is {manager}: its Pods and its status are up to that controller alone"
        return Report(f"{place} is managed by {manager}.", causes=[cause])
    if cluster.metadata.get("deletionTimestamp"):
        return _deletion(seen, place)
    if seen.rejected:
        return Report(f"{place} is invalid: nothing is done for it.", causes=[seen.rejected])
    if absence := absence_of(cluster.obj, seen.leases, seen.now):
        return Report(f"{place} waits for an operator.", causes=[absence])
    if cluster.spec.get("suspend") is True or _is_suspending(cluster):
        return _suspension(seen, place)
    if PODS in seen.unseen:
        return _by_its_status(cluster, place)
    return _provision(seen, place)


def _by_its_status(cluster: Cluster, place: str) -> Report:
    """Return what is known without a look at the Pods."""
    status = cluster.obj.get("status") or {}
    blocked = condition_of(status, BLOCKED)
    causes = [str(blocked["message"])] if blocked is not None else []
    if status.get("state") == "ready" and not causes:
        return Report(f"{place} is ready, as its status says.", True)
    return Report(f"{place} is not ready, as its status says.", False, causes)


# --- a cluster that should run


def _provision(seen: Seen, place: str) -> Report:
    held_back = _held_back(seen.cluster, seen)
    around = Around(frozenset(held_back), seen.account_exists)
    stages = _plan(seen, around)
    causes = [
        *_refusals(stages),
        *_refused_by_scheduler(seen, stages),
        *_conflicts(seen),
        *_failed_steps(seen, stages),
        *(str(trouble) for trouble in group_troubles(seen.snapshot.pods)),
        *_pods_on_their_way(seen),
        *_retries(seen.cluster, held_back),
    ]
    missing = _missing(seen)
    notes = list(_scaling_notes(seen.cluster))
    steps = _steps(stages, held_back, {foreign.place for foreign in seen.foreign})
    if missing:
        return Report(f"{place} waits for {_joined(missing)}.", False, causes, notes, steps)
    if causes:
        return Report(f"{place} has all its Pods, but something is wrong.", False, causes, notes, steps)
    return Report(f"{place} is ready.", True, (), notes, steps)


def _missing(seen: Seen) -> list[str]:
    """Return what is not there and ready yet."""
    ready = [pod for pod in seen.snapshot.pods if pod.is_running_and_not_unready and not pod.is_terminating]
    missing = [] if any(pod.is_head for pod in ready) else ["its head Pod"]
    running = Counter(pod.group for pod in ready if pod.is_worker)
    for group in seen.cluster.workers:
        name, wanted = group["groupName"], desired_pods(group)
        if running[name] < wanted:
            noun = "worker" if wanted == 1 else "workers"
            missing.append(f"{wanted - running[name]} of {wanted} {noun} of group {name}")
    return missing


def _refusals(stages: Sequence[Stage]) -> Iterator[str]:
    """Yield what the plan itself says it cannot get past."""
    for stage in stages:
        for action in stage.actions:
            if isinstance(action, Refuse):
                yield action.say.note if action.say is not None else action.message


def _conflicts(seen: Seen) -> Iterator[str]:
    for kind, place, owner in seen.foreign:
        whose = f"belongs to {owner}" if owner else "belongs to nobody"
        yield (
            f"{kind} {place} has the name that this cluster needs and {whose};"
            " delete or rename it, or give the cluster another name"
        )


def _failed_steps(seen: Seen, stages: Sequence[Stage]) -> Iterator[str]:
    """Yield why the API server refused what the plan still asks for: from the condition, else from events."""
    failure = condition_of(seen.cluster.obj.get("status") or {}, REPLICA_FAILURE)
    if failure is not None:
        what, _, why = str(failure.get("message", "")).partition("\n")
        if failure.get("reason") != "MultipleHeadPods":
            yield f"{what}: {why}{way_out(why)}"
    wanted = {
        action.said.failed.reason
        for stage in stages
        for action in stage.actions
        if isinstance(action, Create) and action.said.failed is not None
        if failure is None or action.resource != PODS
    }
    taken = {place for _, place, _ in seen.foreign}
    latest = {event["reason"]: str(event.get("note", "")) for event in seen.events}
    for reason in sorted(wanted & latest.keys()):
        if not any(place in latest[reason] for place in taken):
            yield f"{reason}: {latest[reason]}{way_out(latest[reason])}"


def _refused_by_scheduler(seen: Seen, stages: Sequence[Stage]) -> Iterator[str]:
    """Yield why a batch scheduler could not be told of Pods that are still to come."""
    creates = (action for stage in stages for action in stage.actions if isinstance(action, Create))
    if any(action.resource == PODS for action in creates):
        has_head = any(pod.is_head for pod in seen.snapshot.pods)
        remedy = "CreatedWorkerPod" if has_head else "CreatedHeadPod"
        yield from open_failures(seen.events, {SCHEDULER_FAILED: remedy})


def _pods_on_their_way(seen: Seen) -> Iterator[str]:
    """Yield what is to be said of Pods that are not ready though nothing is known to be wrong with them."""
    for pod in seen.snapshot.lost:
        node = pod.spec.node_name
        yield (
            f"Pod {pod.name} cannot end because its node {node} is lost: it is replaced all the same;"
            f" bring the node back, or delete it (kubectl delete node {node})"
        )
    for pod in seen.snapshot.pods:
        if pod.is_terminating:
            yield f"Pod {pod.name} is on its way out, and its place stays taken until it is gone"
        elif trouble_of(pod) is None and not pod.is_running_and_not_unready:
            yield _unready(pod, seen)


def _unready(pod: PodView, seen: Seen) -> str:
    node = pod.spec.node_name
    if node in seen.unready_nodes:
        return f"Pod {pod.name} is on node {node}, which is not ready; bring the node back, or delete it"
    if not pod.is_running:
        made = pod.metadata.creation_timestamp
        age = f" for {(seen.now - parse_time(made)).total_seconds():.0f} s" if made else ""
        return f"Pod {pod.name} has been {pod.status.phase or 'Pending'}{age}; nothing is known to be wrong"
    for status in pod.status.container_statuses:
        ended = status.last_state.terminated
        if ended is not None:
            return (
                f"Pod {pod.name} runs and is not ready; container {status.name} was restarted after it ended"
                f" with exit code {ended.exit_code} ({ended.reason or 'Error'}): see its earlier logs"
                f" (kubectl logs --previous)"
            )
    return f"Pod {pod.name} runs and is not ready: see its logs and its readiness probe"


def _held_back(cluster: Cluster, seen: Seen) -> dict[str, str]:
    """Return the groups that wait before they are tried again, and until when, by the operator's own word."""
    blocked = condition_of(cluster.obj.get("status") or {}, BLOCKED) or {}
    now = format_time(seen.now)
    found = dict(_HELD_BACK.findall(str(blocked.get("message", ""))))
    return {group: until for group, until in found.items() if until > now}


def _retries(cluster: Cluster, held_back: dict[str, str]) -> Iterator[str]:
    blocked = condition_of(cluster.obj.get("status") or {}, BLOCKED) or {}
    for found in _HELD_BACK.finditer(str(blocked.get("message", ""))):
        if found[1] in held_back:
            yield found[0]


def _scaling_notes(cluster: Cluster) -> Iterator[str]:
    """Yield what explains a number of workers that may surprise."""
    for group in cluster.workers:
        name, asked, given = group["groupName"], group.get("replicas"), replicas_of(group)
        if group.get("suspend"):
            yield f"group {name} is suspended: it has no workers until its suspend is false"
        elif asked is not None and asked != given:
            yield f"group {name} asks for {asked} replicas and gets {given}, as minReplicas and maxReplicas say"
        elif given == 0 and cluster.autoscaling:
            yield f"group {name} has no workers: autoscaling is on, and they come when Ray asks for them"
        elif given == 0:
            yield (
                f"group {name} has no workers and autoscaling is off: raise its replicas,"
                " or set enableInTreeAutoscaling"
            )


# --- a cluster that should not run


def _is_suspending(cluster: Cluster) -> bool:
    condition = condition_of(cluster.obj.get("status") or {}, SUSPENDING)
    return condition is not None and condition["status"] == "True"


def _suspension(seen: Seen, place: str) -> Report:
    cluster = seen.cluster
    left = seen.snapshot.pods
    queue = cluster.labels.get(_KUEUE_QUEUE)
    origin = cluster.labels.get(ORIGIN_KIND_LABEL)
    if cluster.spec.get("suspend") is not True:
        cause = (
            "it was resumed before the suspension was through; Pods are made again once the old ones are gone"
        )
    elif queue:
        cause = (
            f"Kueue holds it in queue {queue} until there is room: see its Workload"
            f" (kubectl get workloads -n {cluster.namespace}); do not set spec.suspend by hand"
        )
    elif origin:
        cause = f"spec.suspend is true, as its {origin} {cluster.labels.get(ORIGIN_NAME_LABEL, '')} wants it"
    else:
        cause = "spec.suspend is true; set it to false to have its Pods made"
    state = f"is being suspended: {len(left)} Pods are left" if left else "is suspended"
    stages = _plan(seen, Around())
    return Report(f"{place} {state}.", False, [cause], steps=_steps(stages))


def _deletion(seen: Seen, place: str) -> Report:
    cluster, job = seen.cluster, seen.snapshot.cleanup
    ending = plan_deletion(seen.snapshot, Config().settings, seen.now, cleanup_enabled=True)
    causes = []
    if seen.snapshot.pods:
        causes.append(f"Pods that are not gone yet: {', '.join(pod.name for pod in seen.snapshot.pods)}")
    if has_finalizer(cluster) and job is not None and job.ending is None:
        causes.append(
            f"Job {cluster.namespace}/{job.metadata.name} is removing its state from Redis; see the Job's Pods"
        )
    if has_finalizer(cluster) and ending.look_again is not None:
        causes.append(
            f"it is let go in {ending.look_again:.0f} s at the latest, {deletion_timeout(cluster)} s after its"
            " deletion (annotation ray.io/gcs-ft-deletion-timeout)"
        )
    others = [name for name in cluster.metadata.get("finalizers") or () if not name.startswith("ray.io/")]
    if others:
        causes.append(f"finalizers that others have to remove: {', '.join(others)}")
    return Report(f"{place} is being deleted.", False, causes, steps=_steps(ending.stages))


# --- what comes next


def _plan(seen: Seen, around: Around) -> Sequence[Stage]:
    """Return what an operator with default settings would do. Its names are not shown, so any chance will do."""
    return list(plan(seen.snapshot, Config(), around, SeededEntropy("why")))


def _steps(
    stages: Sequence[Stage], held_back: Mapping[str, str] = _NOTHING, taken: Collection[str] = ()
) -> list[str]:
    """Return what the operator does next: Pods by their number, everything else as the plan describes it.

    A plan goes no further than a refusal, nor than a name that is taken.
    """
    steps: list[str] = []
    for stage in stages:
        if any(_cannot_be_done(action, taken) for action in stage.actions):
            return [*steps, "nothing more until that is mended"]
        pods: Counter[str] = Counter()
        rest = []
        for action in stage.actions:
            if isinstance(action, Create) and action.resource == PODS:
                pods[_group(action.obj)] += 1
            else:
                rest.append(action)
        steps += [f"create {_counted(group, count)}" for group, count in pods.items()]
        steps += [line.partition(": ")[2] for line in described([Stage(stage.name, rest)])]
    steps += [f"try group {group} again at {until}" for group, until in held_back.items()]
    return steps or ["nothing until something changes"]


def _cannot_be_done(action: Action, taken: Collection[str]) -> bool:
    if isinstance(action, Create) and not action.optional:
        metadata = action.obj["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}" in taken
    return isinstance(action, Refuse)


def _group(pod: Object) -> str:
    """Return the group of a worker; nothing for a head."""
    labels = pod["metadata"]["labels"]
    return "" if labels[NODE_TYPE_LABEL] == "head" else str(labels[GROUP_LABEL])


def _counted(group: str, count: int) -> str:
    return f"{count} {'worker' if count == 1 else 'workers'} of group {group}" if group else "the head Pod"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
