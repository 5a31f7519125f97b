"""What Kubernetes takes though it is probably not meant: warnings for whoever writes a Pod or a template."""

from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import chain, islice

from kubereef.kinds.behaviours.pod_resources import quantity
from kubereef.kinds.behaviours.podspec_validation import annotations
from kubereef.kinds.behaviours.podspec_validation.checks import read_address
from kubereef.kinds.behaviours.podspec_validation.containers import all_containers
from kubereef.kinds.behaviours.podspec_validation.overlaps import overlapping_paths
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.gotext import quote
from kubewire.paths import FieldPath, Key, show

Warnings = Iterator[str]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_ONE = 10**9
# Nobody reads more of them, and ports alone can give as many as there are pairs.
_MOST_WARNINGS = 200

_OLD_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
# By the name of the source, how it is written in the warning, and the warning.
_OLD_SOURCES = {
    "photonPersistentDisk": ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    "gitRepo": ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    "scaleIO": ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    "flocker": ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    "storageos": ("storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    "quobyte": ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    "glusterfs": ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    "cephfs": ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    "rbd": ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
}
_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_APPARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def pod_warnings(pod: Object) -> list[str]:
    """Return the warnings about a new Pod."""
    found = []
    if complaints := names.dns1123_label(pod["metadata"].get("name", "")):
        listed = " ".join(complaints)
        found.append(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior;"
            f" a DNS label is recommended: [{listed}]"
        )
    return [*found, *islice(chain(_apparmor(pod), _warnings((), pod)), _MOST_WARNINGS)]


def template_warnings(template: Object, path: FieldPath) -> list[str]:
    """Return the warnings about the template of a Pod that stands at a path."""
    found = list(islice(_warnings(path, template), _MOST_WARNINGS))
    spec = template.get("spec") or {}
    of_pod = annotations.own_profile(spec)
    place = (*path, "metadata", "annotations")
    named = {"metadata": template.get("metadata") or {}, "spec": spec}
    for key, container, profile in annotations.apparmor_annotations(named):
        if annotations.own_profile(container) is None and (of_pod is None or of_pod != profile):
            found.append(f"{show((*place, Key(key)))}: {_APPARMOR}")
    return found


def status_warnings(pod: Object) -> list[str]:
    """Return the warnings about a status: addresses that are written in an unusual way."""
    status = pod.get("status") or {}
    return [
        warning
        for field in ("podIPs", "hostIPs")
        for index, one in enumerate(status.get(field) or ())
        for warning in _address(("status", field, index, "ip"), one.get("ip", ""))
    ]


def _warnings(path: FieldPath, obj: Object) -> Warnings:
    spec: Object = obj.get("spec") or {}
    at = (*path, "spec")
    yield from _old_labels(at, spec)
    yield from _spread(at, spec)
    yield from _annotations((*path, "metadata", "annotations"), obj)
    yield from _volumes((*at, "volumes"), spec.get("volumes") or [])
    yield from _repeated(at, spec)
    for name in ("memory", "ephemeral-storage"):
        yield from _fraction((*at, "overhead"), spec.get("overhead") or {}, name)
    for where, container in all_containers(spec):
        yield from _container((*at, *where), container)
    yield from _ports(at, spec)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        place = show((*at, "terminationGracePeriodSeconds"))
        yield f"{place}: must be >= 0; negative values are invalid and will be treated as 1"
    yield from _pod_affinity((*at, "affinity"), spec.get("affinity") or {})
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        yield from _address((*at, "dnsConfig", "nameservers", index), server)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from _address((*at, "hostAliases", index, "ip"), alias.get("ip", ""))


def _old_labels(at: FieldPath, spec: Object) -> Warnings:
    for key in spec.get("nodeSelector") or ():
        if key in _OLD_LABELS:
            yield f"{show((*at, 'nodeSelector', Key(key)))}: {_OLD_LABELS[key]}"
    nodes: Object = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    place = (*at, "affinity", "nodeAffinity")
    for index, term in enumerate((nodes.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _node_term((*place, _REQUIRED, "nodeSelectorTerms", index), term, checks_values=False)
    for index, term in enumerate(nodes.get(_PREFERRED) or ()):
        preference = term.get("preference") or {}
        yield from _node_term((*place, _PREFERRED, index, "preference"), preference, checks_values=True)


def _node_term(at: FieldPath, term: Object, *, checks_values: bool) -> Warnings:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        place = (*at, "matchExpressions", index)
        key = expression.get("key", "")
        if key in _OLD_LABELS:
            yield f"{show((*place, 'key'))}: {key} is {_OLD_LABELS[key]}"
        for number, value in enumerate(expression.get("values") or () if checks_values else ()):
            for complaint in names.label_value(value):
                yield f"{show((*place, 'values', number))}: {value} is invalid, {complaint}"


def _spread(at: FieldPath, spec: Object) -> Warnings:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place = (*at, "topologySpreadConstraints", index)
        key = constraint.get("topologyKey", "")
        if key in _OLD_LABELS:
            yield f"{show((*place, 'topologyKey'))}: {key} is {_OLD_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{show((*place, 'labelSelector'))}: {_NULL_SELECTOR}"


def _annotations(at: FieldPath, obj: Object) -> Warnings:
    given = (obj.get("metadata") or {}).get("annotations") or {}
    spec: Object = obj.get("spec") or {}
    for key, text in _OLD_ANNOTATIONS.items():
        if key in given:
            yield f"{show((*at, Key(key)))}: {text}"
    holders = [(annotations.SECCOMP_POD, spec)]
    holders += [(annotations.SECCOMP_CONTAINER + one.get("name", ""), one) for _, one in all_containers(spec)]
    for key, holder in holders:
        if key in given and (holder.get("securityContext") or {}).get("seccompProfile") is None:
            yield f"{show((*at, Key(key)))}: {_SECCOMP}"


def _apparmor(pod: Object) -> Warnings:
    """Yield annotations that a new Pod should not have: they mean nothing, or have been made the field they mean."""
    of_pod = annotations.own_profile(pod["spec"])
    for key, container, profile in annotations.apparmor_annotations(pod):
        own = annotations.own_profile(container)
        means_nothing = profile is None and own is None
        was_heeded = profile is not None and own == profile != of_pod
        if means_nothing or was_heeded:
            yield f"{show(('metadata', 'annotations', Key(key)))}: {_APPARMOR}"


def _volumes(at: FieldPath, volumes: list[Object]) -> Warnings:
    for index, volume in enumerate(volumes):
        for source, (written, text) in _OLD_SOURCES.items():
            if volume.get(source) is not None:
                yield f"{show((*at, index, written))}: {text}"
        claim = ((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}).get("spec") or {}
        for side in ("requests", "limits"):
            place = (*at, index, "ephemeral", "volumeClaimTemplate", "spec", "resources", side)
            yield from _fraction(place, (claim.get("resources") or {}).get(side) or {}, "storage")
    yield from overlapping_paths(volumes)


def _repeated(at: FieldPath, spec: Object) -> Warnings:
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, one in enumerate(spec.get(field) or ()):
            value = one.get(key, "")
            if value in seen:
                yield f"{show((*at, field, index, key))}: duplicate {key} {quote(value)}"
            seen.add(value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{show((*at, "imagePullSecrets", index, "name"))}: invalid empty name ""'


def _fraction(at: FieldPath, amounts: dict[str, str], name: str) -> Warnings:
    text = amounts.get(name)
    if text is not None and quantity(text).nano % _ONE:
        place = show((*at, Key(name)))
        yield f"{place}: fractional byte value {quote(text)} is invalid, must be an integer"


def _container(at: FieldPath, container: Object) -> Warnings:
    resources: Object = container.get("resources") or {}
    for name in ("memory", "ephemeral-storage"):
        for side in ("limits", "requests"):
            yield from _fraction((*at, "resources", side), resources.get(side) or {}, name)
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name", ""), variable.get("value", "")
        # A variable may be defined again by means of its earlier value.
        reference = f"$({name})"
        extends = variable.get("valueFrom") is None and reference in value and value != reference
        if name in seen and not extends:
            place = show((*at, "env", index))
            yield f"{place}: hides previous definition of {quote(name)}, which may be dropped when using apply"
        seen.add(name)


def _ports(at: FieldPath, spec: Object) -> Warnings:
    """Yield ports that are there twice, or that could be taken for each other."""
    known: dict[tuple[int, str], list[tuple[FieldPath, Object]]] = {}
    named: dict[str, FieldPath] = {}
    late: list[str] = []
    for where, container in all_containers(spec):
        for index, port in enumerate(container.get("ports") or ()):
            place = (*at, *where, "ports", index)
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{show(place)}: hostIP set without hostPort: {_go_port(port)}"
            others = known.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
            for other_place, other in others[:_MOST_PORTS]:
                if kind := _confusion(port, other):
                    yield f"{show(place)}: {kind} port definition with {show(other_place)}"
            others.append((place, port))
            name = port.get("name", "")
            if name in named:
                first = show(named[name])
                late.append(
                    f"{show(place)}: duplicate port name {quote(name)} with {first}, services and probes that"
                    f" select ports by name will use {first}"
                )
            elif name:
                named[name] = place
    yield from late


# A port is compared with the others of its number. With what comes after so many, it is not.
_MOST_PORTS = 100


def _confusion(port: Object, other: Object) -> str:
    """Return in which way two ports of the same number and protocol are confusing, or nothing."""
    address, other_address = port.get("hostIP", ""), other.get("hostIP", "")
    number, other_number = port.get("hostPort", 0), other.get("hostPort", 0)
    if (address, number) == (other_address, other_number):
        return "duplicate"
    if not number or not other_number:
        return "overlapping"
    if number == other_number and bool(address) != bool(other_address):
        return "dangerously ambiguous"
    return ""


def _go_port(port: Object) -> str:
    """Return a port as Go prints a struct."""
    fields = {
        "Name": port.get("name", ""),
        "HostPort": port.get("hostPort", 0),
        "ContainerPort": port.get("containerPort", 0),
        "Protocol": port.get("protocol", ""),
        "HostIP": port.get("hostIP", ""),
    }
    return "{" + " ".join(f"{name}:{value}" for name, value in fields.items()) + "}"


def _pod_affinity(at: FieldPath, affinity: Object) -> Warnings:
    for field in ("podAffinity", "podAntiAffinity"):
        pods: Object = affinity.get(field) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{show((*at, field, _REQUIRED, index, 'labelSelector'))}: {_NULL_SELECTOR}"
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                place = (*at, field, _PREFERRED, index, "podAffinityTerm", "labelSelector")
                yield f"{show(place)}: {_NULL_SELECTOR}"


def _address(at: FieldPath, text: str) -> Warnings:
    found = read_address(text)
    if found is None:
        return
    plain = getattr(found, "ipv4_mapped", None) or found
    if plain is not found or (isinstance(found, IPv4Address) and str(found) != text):
        yield f"{show(at)}: non-standard IP address {quote(text)} is invalid: use {quote(str(plain))}"
    elif str(found) != text:
        canonical = quote(str(found))
        yield f"{show(at)}: IPv6 address {quote(text)} should be in RFC 5952 canonical format ({canonical})"
