"""What containers and whole Pods may do to the machine they run on."""

import re

from kubereef.kinds.behaviours.podspec_validation import windows
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, descending_path, user_id
from kubereef.kinds.behaviours.podspec_validation.internal import shown
from kubereef.kinds.resource import Object
from kubewire.fielderrors import duplicate, invalid, not_supported, required, too_long
from kubewire.paths import FieldPath

_PROC_MOUNTS = ("Default", "Unmasked")
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PATH = 4095

_SYSCTL_WORD = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SYSCTL_WORD}[\./])*{_SYSCTL_WORD}"
_LONGEST_SYSCTL = 253
_SYSCTL_PART = re.compile(_SYSCTL_WORD)
_IPC_SYSCTLS = frozenset(
    f"kernel.{name}"
    for name in (
        "sem",
        "shm",
        "shmall",
        "shmmax",
        "shmmni",
        "shm_rmid_forced",
        "msg",
        "msgmax",
        "msgmnb",
        "msgmni",
    )
)


def container_context(at: FieldPath, context: Object, *, uses_host_users: bool) -> Problems:
    """Yield what is wrong with the security context of a container."""
    yield from user_id((*at, "runAsUser"), context.get("runAsUser"))
    yield from user_id((*at, "runAsGroup"), context.get("runAsGroup"))
    mount = context.get("procMount")
    if mount is not None:
        if mount not in _PROC_MOUNTS:
            yield not_supported((*at, "procMount"), mount, _PROC_MOUNTS)
        if uses_host_users and mount == "Unmasked":
            yield invalid((*at, "procMount"), mount, "`hostUsers` must be false to use `Unmasked`")
    yield from seccomp_profile((*at, "seccompProfile"), context.get("seccompProfile"))
    if context.get("allowPrivilegeEscalation") is False:
        yield from _escalation(at, context)
    yield from windows.options((*at, "windowsOptions"), context.get("windowsOptions"))
    yield from apparmor_profile((*at, "appArmorProfile"), context.get("appArmorProfile"))


def pod_context(at: FieldPath, spec: Object) -> Problems:
    """Yield what is wrong with the security context of a Pod."""
    at = (*at, "securityContext")
    context: Object = spec.get("securityContext") or {}
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from user_id((*at, field), context.get(field))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from user_id((*at, "supplementalGroups", index), group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid((*at, "shareProcessNamespace"), True, detail)
    yield from _sysctls((*at, "sysctls"), context.get("sysctls") or [], spec)
    for field, choices in _POLICIES.items():
        if context.get(field) is not None and context[field] not in choices:
            yield not_supported((*at, field), context[field], choices)
    yield from seccomp_profile((*at, "seccompProfile"), context.get("seccompProfile"))
    yield from windows.options((*at, "windowsOptions"), context.get("windowsOptions"))
    yield from apparmor_profile((*at, "appArmorProfile"), context.get("appArmorProfile"))


_POLICIES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("Recursive",),
}


def seccomp_profile(at: FieldPath, profile: Object | None) -> Problems:
    """Yield what is wrong with the list of system calls that are allowed."""
    if profile is None:
        return
    kind, path = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        yield required((*at, "type"), "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported((*at, "type"), kind, _PROFILE_TYPES)
    if kind == "Localhost":
        if path is None:
            yield required((*at, "localhostProfile"), "must be set when seccomp type is Localhost")
        else:
            yield from descending_path((*at, "localhostProfile"), path)
    elif path is not None:
        value = shown("SeccompProfile", profile)
        yield invalid((*at, "localhostProfile"), value, "can only be set when seccomp type is Localhost")


def apparmor_profile(at: FieldPath, profile: Object | None) -> Problems:
    """Yield what is wrong with the rules of AppArmor that apply."""
    if profile is None:
        return
    kind, path = profile.get("type", ""), profile.get("localhostProfile")
    place = (*at, "localhostProfile")
    if not kind:
        yield required((*at, "type"), "type is required when appArmorProfile is set")
    elif kind not in _PROFILE_TYPES:
        yield not_supported((*at, "type"), kind, _PROFILE_TYPES)
    elif kind != "Localhost":
        if path is not None:
            yield invalid(place, path, "can only be set when AppArmor type is Localhost")
    elif not path:
        yield required(place, "must be set when AppArmor type is Localhost")
    else:
        if path != path.strip():
            yield invalid(place, path, "must not be padded with whitespace")
        if len(path.encode()) > _LONGEST_PATH:
            yield too_long(place, _LONGEST_PATH)


def _escalation(at: FieldPath, context: Object) -> Problems:
    """Yield what contradicts that privileges may not grow."""
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(at, shown("SecurityContext", context), detail)
    for capability in (context.get("capabilities") or {}).get("add") or ():
        if capability == "CAP_SYS_ADMIN":
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield invalid(at, shown("SecurityContext", context), detail)


def _sysctls(at: FieldPath, sysctls: list[Object], spec: Object) -> Problems:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name = sysctl.get("name", "")
        place = (*at, index, "name")
        if not name:
            yield required(place)
        elif not _is_sysctl(name):
            detail = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield invalid(place, name, detail)
        elif name in seen:
            yield duplicate(place, name)
        seen.add(name)
        dotted = _dotted(name).partition("*")[0]
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield invalid(place, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith("fs.mqueue.")):
            yield invalid(place, name, "may not be specified when 'hostIPC' is true")


def _is_sysctl(name: str) -> bool:
    parts = re.split(r"[./]", name)
    return len(name) <= _LONGEST_SYSCTL and all(map(_SYSCTL_PART.fullmatch, parts))


def _dotted(name: str) -> str:
    """Return a name with dots between its parts: whichever of dot and slash comes first is the separator."""
    first = min((name.find(mark) for mark in "./" if mark in name), default=-1)
    if first < 0 or name[first] == ".":
        return name
    return name.translate(str.maketrans("./", "/."))
