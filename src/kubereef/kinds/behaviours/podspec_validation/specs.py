"""Whole specs of Pods, in Pods themselves and in templates of them."""

from kubereef.kinds.behaviours.podspec_validation import (
    annotations,
    claims,
    containers,
    environment,
    network,
    placement,
    security,
    windows,
)
from kubereef.kinds.behaviours.podspec_validation.checks import (
    MAX_INT32,
    Problems,
    labels,
    named,
    one_of,
    within,
)
from kubereef.kinds.behaviours.podspec_validation.containers import Surrounding, all_containers, image_spaces
from kubereef.kinds.behaviours.podspec_validation.resources import overhead, pod_resources
from kubereef.kinds.behaviours.podspec_validation.volumes import volumes
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import FieldError, duplicate, forbidden, required
from kubewire.paths import FieldPath

SPEC: FieldPath = ("spec",)
ANNOTATIONS: FieldPath = ("metadata", "annotations")

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
# Names of other objects, all of the same form.
_REFERENCES = ("serviceAccountName", "nodeName", "priorityClassName")


def template_problems(template: Object, path: FieldPath) -> list[FieldError]:
    """Return what is wrong with the template of a Pod that stands at a path."""
    metadata = template.get("metadata") or {}
    spec_path = (*path, "spec")
    found = [
        *labels((*path, "labels"), metadata.get("labels")),
        *claims.annotations((*path, "annotations"), metadata.get("annotations")),
        *annotations.pod_annotations((*path, "annotations"), template),
        *spec_problems(spec_path, template.get("spec") or {}, None),
        *annotations.contradictions(spec_path, template),
    ]
    if (template.get("spec") or {}).get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden((*spec_path, "ephemeralContainers"), detail))
    return found


def new_pod_problems(pod: Object) -> list[FieldError]:
    """Return what is wrong with a Pod that is to be created."""
    spec = pod.get("spec") or {}
    found = list(pod_problems(pod))
    if spec.get("ephemeralContainers"):
        found.append(forbidden((*SPEC, "ephemeralContainers"), "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        found.append(forbidden((*SPEC, "nodeName"), detail))
    return [*found, *annotations.contradictions(SPEC, pod)]


def pod_problems(pod: Object) -> Problems:
    """Yield what is wrong with a Pod, new or not."""
    spec = pod.get("spec") or {}
    yield from annotations.pod_annotations(ANNOTATIONS, pod)
    yield from spec_problems(SPEC, spec, pod["metadata"])
    if not spec.get("serviceAccountName"):
        yield from _tokens_of_nobody(spec)
    for where, container in all_containers(spec):
        if where[0] != "ephemeralContainers":
            yield from image_spaces((*SPEC, *where), container)


def spec_problems(at: FieldPath, spec: Object, metadata: Object | None) -> Problems:
    """Yield what is wrong with a spec; the metadata is that of the Pod it belongs to, if it is not a template's."""
    if spec.get("terminationGracePeriodSeconds") is None:
        yield required((*at, "terminationGracePeriodSeconds"))
    pod_name = None if metadata is None else metadata.get("name", "")
    good_volumes, found = volumes((*at, "volumes"), spec.get("volumes") or [], pod_name)
    yield from found
    wanted: list[Object] = spec.get("resourceClaims") or []
    is_mirror = annotations.MIRROR in ((metadata or {}).get("annotations") or {})
    yield from claims.resource_claims((*at, "resourceClaims"), wanted, is_mirror=is_mirror)
    around = Surrounding(
        good_volumes,
        [claim["name"] for claim in wanted if claim.get("name")],
        spec.get("restartPolicy", ""),
        spec.get("terminationGracePeriodSeconds"),
        spec.get("hostUsers") is not False,
    )
    yield from containers.containers((*at, "containers"), spec, around)
    yield from containers.init_containers((*at, "initContainers"), spec, around)
    yield from containers.ephemeral_containers((*at, "ephemeralContainers"), spec, around)
    yield from pod_resources(at, spec)
    yield from network.host_network_ports(at, spec, is_pod=metadata is not None)
    yield from one_of((*at, "restartPolicy"), spec.get("restartPolicy"), _RESTART_POLICIES)
    yield from one_of((*at, "dnsPolicy"), spec.get("dnsPolicy"), network.DNS_POLICIES)
    yield from security.pod_context(at, spec)
    yield from network.dns_config(at, spec)
    yield from network.host_names(at, spec)
    yield from _placement(at, spec)
    yield from _scalars(at, spec)
    everyone = list(all_containers(spec))
    yield from network.host_users(at, spec, everyone)
    yield from windows.host_processes(at, spec, everyone)
    yield from windows.operating_system(at, spec, everyone)
    yield from environment.file_references(at, spec, everyone)


def _placement(at: FieldPath, spec: Object) -> Problems:
    yield from labels((*at, "nodeSelector"), spec.get("nodeSelector"))
    if spec.get("affinity") is not None:
        yield from placement.affinity((*at, "affinity"), spec["affinity"])
    yield from placement.tolerations((*at, "tolerations"), spec.get("tolerations") or [])
    constraints = spec.get("topologySpreadConstraints") or []
    yield from placement.spread((*at, "topologySpreadConstraints"), constraints)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        place = (*at, "readinessGates", index, "conditionType")
        yield from named(place, gate.get("conditionType", ""), names.qualified_name)
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name", "")
        yield from named((*at, "schedulingGates", index), name, names.qualified_name)
        if name in seen:
            yield duplicate((*at, "schedulingGates", index), name)
        seen.add(name)


def _scalars(at: FieldPath, spec: Object) -> Problems:
    for field in _REFERENCES:
        if spec.get(field):
            yield from named((*at, field), spec[field], names.dns1123_subdomain)
    if spec.get("runtimeClassName") is not None:
        yield from named((*at, "runtimeClassName"), spec["runtimeClassName"], names.dns1123_subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        yield from within((*at, "activeDeadlineSeconds"), deadline, 1, MAX_INT32)
    policy = spec.get("preemptionPolicy")
    if policy is not None:
        yield from one_of((*at, "preemptionPolicy"), policy, _PREEMPTION_POLICIES)
    if spec.get("overhead"):
        yield from overhead((*at, "overhead"), spec["overhead"])


def _tokens_of_nobody(spec: Object) -> Problems:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if source.get("serviceAccountToken") is not None:
                place = (*SPEC, "volumes", index, "projected", "sources", number, "serviceAccountToken")
                yield forbidden(place, "must not be specified when serviceAccountName is not set")
