"""The containers of a Pod: those that do its work, those that come before, and those that are added later."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kubereef.kinds.behaviours.pod_resources import is_sidecar
from kubereef.kinds.behaviours.podspec_validation import environment, mounts, probes, security
from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    named,
    needed_name,
    one_of,
    port_number,
)
from kubereef.kinds.behaviours.podspec_validation.mounts import Volumes
from kubereef.kinds.behaviours.podspec_validation.resources import container_resources
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import duplicate, forbidden, invalid, not_found, not_supported, required, too_many
from kubewire.paths import FieldPath

_PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_RULES_WITHOUT_POLICY = "must specify restartPolicy when restart rules are used"
_MOST_RULES = 20
_MOST_EXIT_CODES = 255

# What a container that is added for a look inside cannot have: it takes part in none of the Pod's work.
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


class Surrounding(NamedTuple):
    """What the containers of a Pod need to know about it."""

    volumes: Volumes
    claims: Iterable[str]
    restart_policy: str
    grace: int | None
    uses_host_users: bool


def all_containers(spec: Object) -> Iterator[tuple[FieldPath, Object]]:
    """Yield every container of a Pod and where it stands in the spec."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield (field, index), container


def containers(at: FieldPath, spec: Object, around: Surrounding) -> Problems:
    """Yield what is wrong with the containers that do the work of a Pod."""
    given: list[Object] = spec.get("containers") or []
    if not given:
        yield required(at)
        return
    seen: set[str] = set()
    for index, container in enumerate(given):
        place = (*at, index)
        yield from _common(place, container, around)
        name = container.get("name", "")
        if name in seen:
            yield duplicate((*place, "name"), name)
        seen.add(name)
        yield from probes.lifecycle(place, container, around.grace)
        yield from probes.probes(place, container)
        yield from _restart_policy(place, container)
    yield from _host_ports(at, given)


def init_containers(at: FieldPath, spec: Object, around: Surrounding) -> Problems:
    """Yield what is wrong with the containers that run before, and with the sidecars among them."""
    seen = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        place = (*at, index)
        yield from _common(place, container, around)
        if container.get("restartPolicy") is not None:
            yield from _restart_policy(place, container)
        elif container.get("restartPolicyRules"):
            yield required((*place, "restartPolicy"), _RULES_WITHOUT_POLICY)
        name = container.get("name", "")
        if name in seen:
            yield duplicate((*place, "name"), name)
        elif name:
            seen.add(name)
        # They run one after another, so that each may have the same ports; the paths lack the right index.
        yield from _host_ports(at, [container])
        if is_sidecar(container):
            yield from probes.lifecycle(place, container, around.grace)
            yield from probes.probes(place, container)
        else:
            yield from _only_for_sidecars(place, container)


def ephemeral_containers(at: FieldPath, spec: Object, around: Surrounding) -> Problems:
    """Yield what is wrong with the containers that were added for a look inside."""
    others = {
        container.get("name", "")
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    }
    seen = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        place = (*at, index)
        yield from _common(place, container, around)
        yield from image_spaces(place, container)
        name, target = container.get("name", ""), container.get("targetContainerName")
        if name in seen:
            yield duplicate((*place, "name"), name)
        seen.add(name)
        if target and target not in others:
            yield not_found((*place, "targetContainerName"), target)
        given = {**container, "resources": container.get("resources") or None}
        for field in _NOT_EPHEMERAL:
            if given.get(field) is not None:
                yield forbidden((*place, field), "cannot be set for an Ephemeral Container")
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    where = (*place, "volumeMounts", number, field)
                    yield forbidden(where, "cannot be set for an Ephemeral Container")


def image_spaces(at: FieldPath, container: Object) -> Problems:
    """Yield that there is space around the name of an image, which only templates may have."""
    image = container.get("image", "")
    if image != image.strip():
        yield invalid((*at, "image"), image, "must not have leading or trailing whitespace")


def _common(at: FieldPath, container: Object, around: Surrounding) -> Problems:
    yield from needed_name((*at, "name"), container.get("name"), names.dns1123_label)
    if not container.get("image"):
        yield required((*at, "image"))
    policy = container.get("terminationMessagePolicy")
    yield from one_of((*at, "terminationMessagePolicy"), policy, ("File", "FallbackToLogsOnError"))
    if ports := container.get("ports"):
        yield from _ports((*at, "ports"), ports)
    if variables := container.get("env"):
        yield from environment.variables((*at, "env"), variables)
    if sources := container.get("envFrom"):
        yield from environment.imported((*at, "envFrom"), sources)
    yield from mounts.mounts(at, container, around.volumes)
    yield from mounts.devices(at, container, around.volumes)
    yield from one_of((*at, "imagePullPolicy"), container.get("imagePullPolicy"), PULL_POLICIES)
    if container.get("resources"):
        yield from container_resources((*at, "resources"), container, around.claims)
    yield from _resize_policy((*at, "resizePolicy"), container, around.restart_policy)
    context = container.get("securityContext")
    if context is not None:
        place = (*at, "securityContext")
        yield from security.container_context(place, context, uses_host_users=around.uses_host_users)


def _ports(at: FieldPath, ports: list[Object]) -> Problems:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if name:
            wrong = list(named((*at, index, "name"), name, names.port_name))
            yield from wrong
            if not wrong and name in seen:
                yield duplicate((*at, index, "name"), name)
            seen.add(name)
        if port.get("containerPort"):
            yield from port_number((*at, index, "containerPort"), port["containerPort"])
        else:
            yield required((*at, index, "containerPort"))
        if port.get("hostPort"):
            yield from port_number((*at, index, "hostPort"), port["hostPort"])
        yield from one_of((*at, index, "protocol"), port.get("protocol"), _PROTOCOLS)


def _host_ports(at: FieldPath, given: list[Object]) -> Problems:
    """Yield ports of the host that are wanted twice."""
    taken: set[str] = set()
    for index, container in enumerate(given):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            wanted = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if wanted in taken:
                yield duplicate((*at, index, "ports", number, "hostPort"), wanted)
            taken.add(wanted)


def _resize_policy(at: FieldPath, container: Object, pod_policy: str) -> Problems:
    seen: set[str] = set()
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            yield duplicate((*at, index), resource)
        seen.add(resource)
        yield from one_of(at, resource, ("cpu", "memory"))
        yield from one_of(at, restart, ("NotRequired", "RestartContainer"))
        if pod_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield invalid(at, restart, detail)


def _only_for_sidecars(at: FieldPath, container: Object) -> Problems:
    detail = "may not be set for init containers without restartPolicy=Always"
    for field in ("lifecycle", *probes.PROBES):
        if container.get(field) is not None:
            yield forbidden((*at, field), detail)
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        if policy.get("restartPolicy") == "RestartContainer":
            place = (*at, "resizePolicy", index, "restartPolicy")
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield invalid(place, "RestartContainer", detail)


def _restart_policy(at: FieldPath, container: Object) -> Problems:
    """Yield what is wrong with the restart policy that a container has of its own."""
    policy = container.get("restartPolicy")
    rules = container.get("restartPolicyRules") or []
    if policy is None and rules:
        yield required((*at, "restartPolicy"), _RULES_WITHOUT_POLICY)
    elif policy is not None and policy not in _RESTART_POLICIES:
        yield not_supported((*at, "restartPolicy"), policy, _RESTART_POLICIES)
    if len(rules) > _MOST_RULES:
        yield too_many((*at, "restartPolicyRules"), len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _restart_rule((*at, "restartPolicyRules", index), rule)


def _restart_rule(at: FieldPath, rule: Object) -> Problems:
    action = rule.get("action", "")
    if action not in _RULE_ACTIONS:
        yield not_supported((*at, "action"), action, _RULE_ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield required((*at, "exitCodes"), "must be specified")
        return
    operator, values = codes.get("operator", ""), codes.get("values") or []
    if operator not in ("In", "NotIn"):
        yield not_supported((*at, "exitCodes", "operator"), operator, ("In", "NotIn"))
    if len(values) > _MOST_EXIT_CODES:
        yield too_many((*at, "exitCodes", "values"), len(values), _MOST_EXIT_CODES)
