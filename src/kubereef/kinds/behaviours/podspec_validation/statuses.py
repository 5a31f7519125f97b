"""What whoever runs a Pod may report about it."""

from ipaddress import IPv4Address, IPv6Address

from kubereef.kinds.behaviours.podspec_validation import annotations
from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    address,
    named,
    read_address,
    user_id,
)
from kubereef.kinds.behaviours.podspec_validation.specs import ANNOTATIONS
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from kubewire.paths import FieldPath

STATUS: FieldPath = ("status",)

_CONTAINERS = {
    "containerStatuses": "containers",
    "initContainerStatuses": "initContainers",
    "ephemeralContainerStatuses": "ephemeralContainers",
}
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_LONGEST_MESSAGE = 1024


def status_problems(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with an update of the status."""
    return [
        *annotations.changes(ANNOTATIONS, new, old),
        *annotations.pod_annotations(ANNOTATIONS, new),
        *_status(new, old),
    ]


def _status(new: Object, old: Object) -> Problems:
    after: Object = new.get("status") or {}
    before: Object = old.get("status") or {}
    for index, condition in enumerate(after.get("conditions") or ()):
        place = (*STATUS, "conditions", index)
        yield from _generation(place, condition)
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            yield from named((*place, "Type"), kind, names.qualified_name)
    yield from _nomination(after, before, new["spec"])
    yield from _generation(STATUS, after)
    if after.get("qosClass", "") != before.get("qosClass", ""):
        yield invalid((*STATUS, "qosClass"), after.get("qosClass", ""), "field is immutable")
    for field in _CONTAINERS:
        yield from _transitions(field, after, before, new["spec"])
        yield from _reports((*STATUS, field), field, after.get(field) or [], new["spec"])
    yield from _claims(after, new["spec"])
    for field, single in (("podIPs", "podIP"), ("hostIPs", "hostIP")):
        yield from _addresses(field, single, after, before)


def _generation(at: FieldPath, holder: Object) -> Problems:
    generation = holder.get("observedGeneration", 0)
    if generation < 0:
        yield invalid((*at, "observedGeneration"), generation, "must be a non-negative integer")


def _nomination(after: Object, before: Object, spec: Object) -> Problems:
    place = (*STATUS, "nominatedNodeName")
    name = after.get("nominatedNodeName")
    if name and name != before.get("nominatedNodeName"):
        yield from named(place, name, names.dns1123_subdomain)
        if spec.get("nodeName"):
            yield forbidden(place, "may not be set on pods that are already bound to a node")


def _transitions(field: str, after: Object, before: Object, spec: Object) -> Problems:
    """Yield containers that are reported alive again though nothing restarts them."""
    containers = {one.get("name"): one for one in spec.get(_CONTAINERS[field]) or ()}
    if field != "ephemeralContainerStatuses" and _can_restart_all(spec):
        return
    now = {status.get("name"): status for status in reversed(after.get(field) or [])}
    for index, status in enumerate(before.get(field) or ()):
        ended = (status.get("state") or {}).get("terminated")
        name = status.get("name")
        if ended is None or name not in now or (now[name].get("state") or {}).get("terminated") is not None:
            continue
        is_ephemeral = field == "ephemeralContainerStatuses"
        code = ended.get("exitCode", 0)
        if is_ephemeral or name not in containers or not _restarts(containers[name], spec, code):
            place = (*STATUS, field, index, "state")
            yield forbidden(place, "may not be transitioned to non-terminated state")


def _can_restart_all(spec: Object) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("initContainers", "containers")
        for container in spec.get(field) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: Object, spec: Object, code: int) -> bool:
    """Tell whether a container that ended with a code is started again."""
    policy = container.get("restartPolicy")
    if policy is not None and any(_applies(rule, code) for rule in container.get("restartPolicyRules") or ()):
        return True
    policy = policy or spec.get("restartPolicy")
    return bool(policy != "Never" and (policy != "OnFailure" or code != 0))


def _applies(rule: Object, code: int) -> bool:
    codes: Object = rule.get("exitCodes") or {}
    is_listed = code in (codes.get("values") or ())
    return bool(
        is_listed if codes.get("operator") == "In" else codes.get("operator") == "NotIn" and not is_listed
    )


def _reports(at: FieldPath, field: str, statuses: list[Object], spec: Object) -> Problems:
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    containers = {one.get("name"): one for one in reversed(spec.get(_CONTAINERS[field]) or [])}
    for index, status in enumerate(statuses):
        place = (*at, index)
        user = (status.get("user") or {}).get("linux")
        if user is not None and is_windows:
            yield forbidden((*place, "user", "linux"), "cannot be set for a windows pod")
        elif user is not None:
            yield from user_id((*place, "user", "linux", "uid"), user.get("uid"))
            yield from user_id((*place, "user", "linux", "gid"), user.get("gid"))
            for number, group in enumerate(user.get("supplementalGroups") or ()):
                yield from user_id((*place, "user", "linux", "supplementalGroups", number), group)
        allocated = status.get("allocatedResourcesStatus") or []
        place = (*place, "allocatedResourcesStatus")
        if field == "ephemeralContainerStatuses":
            if allocated:
                yield forbidden(place, "must not be specified in container status")
            continue
        for number, resource in enumerate(allocated):
            yield from _allocated((*place, number), resource, containers.get(status.get("name")))


def _allocated(at: FieldPath, resource: Object, container: Object | None) -> Problems:
    name = resource.get("name", "")
    if container is not None:
        resources: Object = container.get("resources") or {}
        if name.startswith("claim:"):
            wanted = {_claim_name(claim) for claim in resources.get("claims") or ()}
            detail = (
                "must match one of the container's resource claims in a format 'claim:<claimName>/<request>'"
                " or 'claim:<claimName>' if request is empty"
            )
        else:
            wanted = set(resources.get("requests") or ())
            detail = "must match one of the container's resource requests"
        if name not in wanted:
            yield invalid((*at, "name"), name, detail)
    seen: set[str] = set()
    for index, one in enumerate(resource.get("resources") or ()):
        place = (*at, "resources", index)
        if one.get("health", "") not in _HEALTH:
            yield not_supported((*place, "health"), one.get("health", ""), _HEALTH)
        message = one.get("message")
        if message == "":
            yield required((*place, "message"), "must be non-empty if specified")
        elif message is not None and len(message.encode()) > _LONGEST_MESSAGE:
            yield too_long((*place, "message"), _LONGEST_MESSAGE)
        if one.get("resourceID", "") in seen:
            yield duplicate((*place, "resourceID"), one.get("resourceID", ""))
        seen.add(one.get("resourceID", ""))


def _claim_name(claim: Object) -> str:
    request = claim.get("request")
    return f"claim:{claim.get('name', '')}" + (f"/{request}" if request else "")


def _claims(status: Object, spec: Object) -> Problems:
    wanted = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        place = (*STATUS, "resourceClaimStatuses", index)
        name = claim.get("name", "")
        if name not in wanted:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            yield invalid((*place, "name"), name, detail)
        if name in seen:
            yield duplicate((*place, "name"), name)
        seen.add(name)
        if claim.get("resourceClaimName") is not None:
            yield from named(
                (*place, "resourceClaimName"), claim["resourceClaimName"], names.dns1123_subdomain
            )
    if status.get("extendedResourceClaimStatus") is not None:
        yield from _extended_claim(status["extendedResourceClaimStatus"], spec)


def _extended_claim(claim: Object, spec: Object) -> Problems:
    at = (*STATUS, "extendedResourceClaimStatus")
    containers = {
        one.get("name", ""): one
        for one in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    }
    mappings = claim.get("requestMappings") or []
    if not mappings:
        yield required((*at, "requestMappings"), "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(mappings):
        place = (*at, "requestMappings", index)
        key = tuple(mapping.get(field, "") for field in ("containerName", "resourceName", "requestName"))
        container = containers.get(key[0])
        if container is None:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            yield invalid((*place, "containerName"), key[0], detail)
        elif key[1] not in ((container.get("resources") or {}).get("requests") or {}):
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests"
                " or spec.containers.resources.requests"
            )
            yield invalid((*place, "resourceName"), key[1], detail)
        yield from named((*at, "requestName"), key[2], names.dns1123_label)
        if key in seen:
            for field, value in zip(("containerName", "resourceName", "requestName"), key, strict=True):
                yield duplicate((*place, field), value)
        seen.add(key)
    name = claim.get("resourceClaimName", "")
    if name:
        yield from named((*at, "resourceClaimName"), name, names.dns1123_subdomain)
    else:
        yield required((*at, "resourceClaimName"))


def _addresses(field: str, single: str, after: Object, before: Object) -> Problems:
    """Yield what is wrong with the addresses of a Pod or of its host: one per family, and new ones well written."""
    given = [one.get("ip", "") for one in after.get(field) or ()]
    known = {one.get("ip", "") for one in before.get(field) or ()}
    if field == "hostIPs" and given and after.get(single, "") != given[0]:
        yield invalid((*STATUS, field, 0, "ip"), given[0], "must be equal to `hostIP`")
    for index, text in enumerate(given):
        if text not in known:
            yield from address((*STATUS, field, index), text)
    if len(given) < 2:
        return
    found = [read_address(text) for text in given]
    if None in found:
        bad = found.index(None)
        detail = f"failed to check for dual stack with error:invalid IP[{bad}]: {given[bad]}"
        yield FieldError("InternalError", (*STATUS, field), f"Internal error: {detail}")
    if len(given) != 2 or None in found or _is_ipv4(found[0]) == _is_ipv4(found[1]):
        listed = [{"IP": text} for text in given]
        yield invalid((*STATUS, field), listed, "may specify no more than one IP for each IP family")


def _is_ipv4(one: IPv4Address | IPv6Address | None) -> bool:
    return isinstance(one, IPv4Address) or (one is not None and one.ipv4_mapped is not None)
