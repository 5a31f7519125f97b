"""Pods: what their writers, schedulers and kubelets may say about them, and how they end."""

from kubereef.kinds.behaviours import podspec_validation as validation
from kubereef.kinds.behaviours.pod_columns import COLUMNS, row_conditions
from kubereef.kinds.behaviours.pod_resources import quality_of_service
from kubereef.kinds.behaviours.podspec_defaults import pod_defaults
from kubereef.kinds.behaviours.podspec_validation.annotations import apparmor_annotations, own_profile
from kubereef.kinds.behaviours.podspec_validation.warnings import pod_warnings, status_warnings
from kubereef.kinds.resource import Behaviour, Object, Part

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_OVER = ("Succeeded", "Failed")


def set_condition(pod: Object, condition: Object, now: str) -> None:
    """Give a Pod a condition in place of the one of the same type; the time stays that of the last change of status."""
    status = pod["status"] = dict(pod.get("status") or {})
    conditions = list(status.get("conditions") or ())
    changed = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            if present.get("status") == condition["status"]:
                changed["lastTransitionTime"] = present.get("lastTransitionTime")
            conditions[index] = changed
            break
    else:
        conditions.append(changed)
    status["conditions"] = conditions


def _prepare_create(pod: Object) -> None:
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}
    if spec.get("schedulingGates"):
        gated = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }
        set_condition(pod, gated, pod["metadata"]["creationTimestamp"])
    _select_likes(pod)
    if (spec.get("os") or {}).get("name") != "windows":
        _heed_apparmor(pod)


def _heed_apparmor(pod: Object) -> None:
    """Make annotations from before there was a field for AppArmor profiles that field."""
    of_pod = own_profile(pod["spec"])
    for _, container, profile in apparmor_annotations(pod):
        if own_profile(container) is None and profile is not None and profile != of_pod:
            container.setdefault("securityContext", {})["appArmorProfile"] = profile


def _select_likes(pod: Object) -> None:
    """Add the Pod's own labels to the selectors that ask for Pods with the same ones, or with others."""
    spec = pod["spec"]
    own: dict[str, str] = pod["metadata"].get("labels") or {}
    affinity: Object = spec.get("affinity") or {}
    terms: list[Object] = list(spec.get("topologySpreadConstraints") or ())
    for field in ("podAffinity", "podAntiAffinity"):
        pods: Object = affinity.get(field) or {}
        terms += pods.get(_REQUIRED) or ()
        terms += [weighted["podAffinityTerm"] for weighted in pods.get(_PREFERRED) or ()]
    for term in terms:
        if term.get("labelSelector") is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(field) or ():
                if key in own:
                    expression = {"key": key, "operator": operator, "values": [own[key]]}
                    term["labelSelector"].setdefault("matchExpressions", []).append(expression)


def _prepare_status(new: Object, old: Object) -> None:
    """Take the status over, and of the metadata what is not about who owns the Pod."""
    new["spec"] = old["spec"]
    _keep_metadata(new, old, "ownerReferences")
    status = new.setdefault("status", {})
    before: Object = old.get("status") or {}
    for field in ("qosClass", "observedGeneration"):
        if not status.get(field) and before.get(field):
            status[field] = before[field]
    known: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        known.setdefault(condition.get("type", ""), []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = known.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _prepare_ephemeral(new: Object, old: Object) -> None:
    added = new["spec"].get("ephemeralContainers")
    new["spec"] = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
    if added:
        new["spec"]["ephemeralContainers"] = added
    new["status"] = old.get("status", {})
    _keep_metadata(new, old, *_METADATA)


def _prepare_resize(new: Object, old: Object) -> None:
    validation.keep_only_sizes(new, old)
    _keep_metadata(new, old, *_METADATA)


_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


def _keep_metadata(new: Object, old: Object, *fields: str) -> None:
    for field in fields:
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]
        else:
            new["metadata"].pop(field, None)


def _update_warnings(new: Object, old: Object) -> list[str]:
    """Return the warnings about a new status; the rest of a Pod is looked at when it is made."""
    return status_warnings(new) if new.get("status") != old.get("status") else []


def _grace(pod: Object, wish: int | None) -> int:
    """Return how many seconds a Pod gets to end: none if no kubelet has it, or nothing of it runs any more."""
    if not pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in _OVER:
        return 0
    period = pod["spec"].get("terminationGracePeriodSeconds", 0) if wish is None else wish
    return int(period) if period >= 0 else 1


def _first_address(pod: Object) -> str:
    listed = (pod.get("status") or {}).get("podIPs") or [{}]
    return str(listed[0].get("ip", ""))


PODS = Behaviour(
    defaults=pod_defaults,
    prepare_create=_prepare_create,
    prepare_status=_prepare_status,
    validate_create=validation.new_pod_problems,
    validate_update=validation.update_problems,
    validate_status=validation.status_problems,
    warnings=pod_warnings,
    update_warnings=_update_warnings,
    parts={
        "ephemeralcontainers": Part(_prepare_ephemeral, validation.ephemeral_problems),
        "resize": Part(_prepare_resize, validation.resize_problems),
    },
    selectable={
        "spec.nodeName": lambda pod: pod["spec"].get("nodeName", ""),
        "spec.restartPolicy": lambda pod: pod["spec"].get("restartPolicy", ""),
        "spec.schedulerName": lambda pod: pod["spec"].get("schedulerName", ""),
        "spec.serviceAccountName": lambda pod: pod["spec"].get("serviceAccountName", ""),
        "spec.hostNetwork": lambda pod: "true" if pod["spec"].get("hostNetwork") else "false",
        "status.phase": lambda pod: (pod.get("status") or {}).get("phase", ""),
        "status.podIP": _first_address,
        "status.nominatedNodeName": lambda pod: (pod.get("status") or {}).get("nominatedNodeName", ""),
    },
    columns=COLUMNS,
    row_conditions=row_conditions,
    counts_generations=True,
    grace=_grace,
    returns_deleted=True,
)
