"""What is particular about Pods for Windows, and what Pods of a declared operating system cannot have."""

import re

from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import forbidden, invalid, not_supported, required
from kubewire.paths import FieldPath

_LONGEST_SPEC_KIB = 64
_LONGEST_DOMAIN = 256
_LONGEST_USER = 104
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_WORD = re.compile("[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?")
_NOT_IN_USERS = frozenset('"/\\:;|=,+*?<>@[]')

_NOT_ON_WINDOWS_POD = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_NOT_ON_WINDOWS_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)
_SYSTEMS = ("linux", "windows")

Containers = list[tuple[FieldPath, Object]]


def options(at: FieldPath, given: Object | None) -> Problems:
    """Yield what is wrong with the options for Windows of a security context."""
    if given is None:
        return
    name = given.get("gmsaCredentialSpecName")
    if name is not None:
        yield from named((*at, "gmsaCredentialSpecName"), name, names.dns1123_subdomain)
    spec = given.get("gmsaCredentialSpec")
    if spec is not None:
        place = (*at, "gmsaCredentialSpec")
        if not spec:
            yield invalid(place, spec, "gmsaCredentialSpec cannot be an empty string")
        elif len(spec.encode()) > _LONGEST_SPEC_KIB * 1024:
            yield invalid(place, spec, f"gmsaCredentialSpec size must be under {_LONGEST_SPEC_KIB} KiB")
    user = given.get("runAsUserName")
    if user is not None:
        for complaint in _user_name(user):
            yield invalid((*at, "runAsUserName"), user, complaint)


def operating_system(at: FieldPath, spec: Object, containers: Containers) -> Problems:
    """Yield what a Pod cannot have on the operating system that it names."""
    system = spec.get("os")
    if system is None:
        return
    name = system.get("name", "")
    if not name:
        yield required((*at, "os", "name"))
    elif name not in _SYSTEMS:
        yield not_supported((*at, "os"), name, _SYSTEMS)
    elif name == "linux":
        yield from _linux(at, spec, containers)
    else:
        yield from _windows(at, spec, containers)


def host_processes(at: FieldPath, spec: Object, containers: Containers) -> Problems:
    """Yield what is wrong with processes that run on the Windows host itself: all containers do, or none."""
    of_pod = _host_process(spec)
    count = 0
    for where, container in containers:
        own = _host_process(container)
        if of_pod is not None and own is not None and own != of_pod:
            place = (*at, *where, "securityContext", "windowsOptions", "hostProcess")
            shown = str(of_pod).lower()
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield invalid(place, own, detail)
        count += bool(of_pod if own is None else own)
    if not count:
        return
    if count != len(containers):
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        )
        yield invalid(at, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid((*at, "hostNetwork"), False, detail)


def _host_process(holder: Object) -> bool | None:
    options_of: Object = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    return options_of.get("hostProcess")


def _linux(at: FieldPath, spec: Object, containers: Containers) -> Problems:
    holders: Containers = [((), spec), *containers]
    for where, holder in holders:
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
            place = (*at, *where, "securityContext", "windowsOptions")
            yield forbidden(place, "windows options cannot be set for a linux pod")


def _windows(at: FieldPath, spec: Object, containers: Containers) -> Problems:
    detail = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    for field in _NOT_ON_WINDOWS_POD:
        if context.get(field) is not None:
            yield forbidden((*at, "securityContext", field), detail)
    for field in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        if spec.get(field) is not None:
            yield forbidden((*at, field), detail)
    for where, container in containers:
        context = container.get("securityContext") or {}
        for field in _NOT_ON_WINDOWS_CONTAINER:
            if context.get(field) is not None:
                yield forbidden((*at, *where, "securityContext", field), detail)


def _user_name(name: str) -> list[str]:
    """Return why a text is no name of a user, with or without a domain before it."""
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _CONTROL.search(name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, has_domain, user = name.rpartition("\\")
    problems = []
    if len(domain.encode()) >= _LONGEST_DOMAIN:
        problems.append(f"runAsUserName's Domain length must be under {_LONGEST_DOMAIN} characters")
    if has_domain and not (_NETBIOS.fullmatch(domain) or all(map(_DNS_WORD.fullmatch, domain.split(".")))):
        problems.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("runAsUserName's User cannot be empty")
    elif len(user.encode()) > _LONGEST_USER:
        problems.append(f"runAsUserName's User length must not be longer than {_LONGEST_USER} characters")
    if user and not user.strip(". "):
        problems.append("runAsUserName's User cannot contain only periods or spaces")
    if not _NOT_IN_USERS.isdisjoint(user):
        problems.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems
