"""Annotations that mean something to a Pod, most of them from before there were fields for it."""

from collections.abc import Iterator

from kubereef.kinds.behaviours.podspec_validation.checks import Problems, descending_path
from kubereef.kinds.behaviours.podspec_validation.containers import all_containers
from kubereef.kinds.resource import Object
from kubewire.fielderrors import FieldError, forbidden, invalid
from kubewire.gotext import parse_int64, quote
from kubewire.paths import FieldPath, Key, show

MIRROR = "kubernetes.io/config.mirror"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_DEFAULT_PROFILES = ("runtime/default", "docker/default")
_LOCALHOST = "localhost/"
_INT32 = range(-(2**31), 2**31)


def pod_annotations(at: FieldPath, obj: Object) -> Problems:
    """Yield what is wrong with the annotations of a Pod or template; the path leads to them."""
    given: dict[str, str] = obj["metadata"].get("annotations") or {}
    spec = obj.get("spec") or {}
    if MIRROR in given and not spec.get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield invalid((*at, Key(MIRROR)), given[MIRROR], detail)
    cost = given.get(_DELETION_COST)
    if cost is not None and not _is_number(cost):
        yield invalid((*at, Key(_DELETION_COST)), cost, "must be a 32bit integer")
    names = {container.get("name", "") for _, container in all_containers(spec)} if given else set()
    for key, value in given.items():
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            yield from _seccomp(at, key, value)
        elif key.startswith(APPARMOR):
            yield from _apparmor((*at, Key(key)), key, value, names)


def changes(at: FieldPath, new: Object, old: Object) -> Problems:
    """Yield the annotations that an update may not change."""
    after: dict[str, str] = new["metadata"].get("annotations") or {}
    before: dict[str, str] = old["metadata"].get("annotations") or {}
    for key in [key for key in before if after.get(key) != before[key]]:
        if key.startswith(APPARMOR):
            yield forbidden((*at, Key(key)), "may not remove or update AppArmor annotations")
        if key == MIRROR:
            yield forbidden((*at, Key(key)), "may not remove or update mirror pod annotation")
    for key in [key for key in after if key not in before]:
        if key.startswith(APPARMOR):
            yield forbidden((*at, Key(key)), "may not add AppArmor annotations")
        if key == MIRROR:
            yield forbidden((*at, Key(key)), "may not add mirror pod annotation")


def contradictions(at: FieldPath, obj: Object) -> Problems:
    """Yield profiles that a new Pod or template, whose spec is at a path, has as a field and as another annotation."""
    given: dict[str, str] = obj["metadata"].get("annotations") or {}
    spec = obj.get("spec") or {}
    if not given:
        return
    context: Object = spec.get("securityContext") or {}
    if SECCOMP_POD in given:
        place = (*at, "securityContext", "seccompProfile")
        yield from _mismatch(place, "seccomp", given[SECCOMP_POD], context.get("seccompProfile"))
    is_windows = (spec.get("os") or {}).get("name") == "windows"
    for where, container in all_containers(spec):
        name = container.get("name", "")
        own: Object = container.get("securityContext") or {}
        place = (*at, *where, "securityContext")
        seccomp, apparmor = given.get(SECCOMP_CONTAINER + name), given.get(APPARMOR + name)
        if seccomp is not None:
            yield from _mismatch((*place, "seccompProfile"), "seccomp", seccomp, own.get("seccompProfile"))
        if apparmor is not None and not is_windows:
            profile = own.get("appArmorProfile") or context.get("appArmorProfile")
            yield from _mismatch((*place, "appArmorProfile"), "apparmor", apparmor, profile)


def apparmor_annotations(obj: Object) -> Iterator[tuple[str, Object, Object | None]]:
    """Yield the AppArmor annotations of a Pod or template: the key, the container, and the profile it means."""
    given: dict[str, str] = obj["metadata"].get("annotations") or {}
    if not any(key.startswith(APPARMOR) for key in given):
        return
    for _, container in all_containers(obj["spec"]):
        key = APPARMOR + container.get("name", "")
        if key in given:
            yield key, container, apparmor_profile(given[key])


def own_profile(holder: Object) -> Object | None:
    """Return the AppArmor profile that a Pod's spec or a container asks for."""
    profile: Object | None = (holder.get("securityContext") or {}).get("appArmorProfile")
    return profile


def apparmor_profile(annotation: str) -> Object | None:
    """Return the profile that an annotation means, if it means any."""
    if annotation == "unconfined":
        return {"type": "Unconfined"}
    if annotation == "runtime/default":
        return {"type": "RuntimeDefault"}
    name = annotation.removeprefix(_LOCALHOST)
    is_good = annotation.startswith(_LOCALHOST) and name and name == name.strip()
    return {"type": "Localhost", "localhostProfile": name} if is_good else None


def _is_number(text: str) -> bool:
    # A number may be padded with zeros only if it is negative.
    is_padded = text.startswith("0") and text != "0"
    number = None if is_padded or text.startswith("+") else parse_int64(text)
    return number is not None and number in _INT32


def _seccomp(at: FieldPath, key: str, value: str) -> Problems:
    if value in (*_DEFAULT_PROFILES, "unconfined"):
        return
    written = f"{show(at)}.{key}"
    if value.startswith(_LOCALHOST):
        for problem in descending_path(at, value.removeprefix(_LOCALHOST)):
            yield problem._replace(written=written)
    else:
        yield invalid(at, value, "must be a valid seccomp profile", written)


def _apparmor(at: FieldPath, key: str, value: str, names: set[str]) -> Problems:
    name = key.removeprefix(APPARMOR)
    if name not in names:
        yield invalid(at, name, "container not found")
    if value not in ("", "runtime/default", "unconfined") and not value.startswith(_LOCALHOST):
        yield invalid(at, value, f"invalid AppArmor profile name: {quote(value)}")


def _mismatch(at: FieldPath, what: str, annotation: str, profile: Object | None) -> Iterator[FieldError]:
    kind = (profile or {}).get("type")
    wrong_type = forbidden((*at, "type"), f"{what} type in annotation and field must match")
    if kind == "Unconfined" and annotation != "unconfined":
        yield wrong_type
    elif kind == "RuntimeDefault":
        names = _DEFAULT_PROFILES if what == "seccomp" else _DEFAULT_PROFILES[:1]
        if annotation not in names:
            yield wrong_type
    elif kind == "Localhost":
        if not annotation.startswith(_LOCALHOST):
            yield wrong_type
        elif annotation.removeprefix(_LOCALHOST) != (profile or {}).get("localhostProfile"):
            detail = f"{what} profile in annotation and field must match"
            yield forbidden((*at, "localhostProfile"), detail)
