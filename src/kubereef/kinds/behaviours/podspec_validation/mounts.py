"""Where a container sees volumes: as folders, or as raw devices."""

from kubereef.kinds.behaviours.podspec_validation.checks import Problems, descending_path
from kubereef.kinds.resource import Object
from kubewire.fielderrors import forbidden, invalid, not_found, not_supported, required
from kubewire.paths import FieldPath

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIONS = ("Disabled", "Enabled", "IfPossible")

# The volumes of a Pod that are as they should be, by name.
Volumes = dict[str, Object]


def mounts(at: FieldPath, container: Object, volumes: Volumes) -> Problems:
    """Yield what is wrong with the mounts of a container."""
    at = (*at, "volumeMounts")
    devices = {one.get("name", ""): one.get("devicePath", "") for one in container.get("volumeDevices") or ()}
    device_paths = set(devices.values())
    taken: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        name, path = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required((*at, index, "name"))
        if name not in volumes:
            yield not_found((*at, index, "name"), name)
        if not path:
            yield required((*at, index, "mountPath"))
        if path in taken:
            yield invalid((*at, index, "mountPath"), path, "must be unique")
        taken.add(path)
        if name in devices:
            yield invalid((*at, index, "name"), name, "must not already exist in volumeDevices")
        if path in device_paths:
            detail = "must not already exist as a path in volumeDevices"
            yield invalid((*at, index, "mountPath"), path, detail)
        yield from _subpaths(at, index, mount)
        yield from _propagation(at, mount, container)


def devices(at: FieldPath, container: Object, volumes: Volumes) -> Problems:
    """Yield what is wrong with the devices of a container."""
    at = (*at, "volumeDevices")
    mounted = {one.get("name", ""): one.get("mountPath", "") for one in container.get("volumeMounts") or ()}
    mount_paths = set(mounted.values())
    paths: set[str] = set()
    named: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices") or ()):
        name, path = device.get("name", ""), device.get("devicePath", "")
        if not name:
            yield required((*at, index, "name"))
        if name in named:
            yield invalid((*at, index, "name"), name, "must be unique")
        if name not in volumes:
            yield not_found((*at, index, "name"), name)
        elif not ({"persistentVolumeClaim", "ephemeral"} & volumes[name].keys()):
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid((*at, index, "name"), name, detail)
        if not path:
            yield required((*at, index, "devicePath"))
        if path in paths:
            yield invalid((*at, index, "devicePath"), path, "must be unique")
        if ".." in path.split("/"):
            yield invalid((*at, index, "devicePath"), path, "can not contain backsteps ('..')")
        else:
            paths.add(path)
        if name in mounted:
            yield invalid((*at, index, "name"), name, "must not already exist in volumeMounts")
        if path in mount_paths:
            detail = "must not already exist as a path in volumeMounts"
            yield invalid((*at, index, "devicePath"), path, detail)
        if name:
            named.add(name)


def _subpaths(at: FieldPath, index: int, mount: Object) -> Problems:
    # Kubernetes leaves the index out of most of these paths.
    plain, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if plain:
        yield from descending_path((*at, "subPath"), plain)
    if expression:
        if plain:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield invalid((*at, index, "subPathExpr"), expression, detail)
        yield from descending_path((*at, "subPathExpr"), expression)


def _propagation(at: FieldPath, mount: Object, container: Object) -> Problems:
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            yield not_supported((*at, "mountPropagation"), propagation, _PROPAGATIONS)
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden((*at, "mountPropagation"), detail)
    recursion = mount.get("recursiveReadOnly")
    if recursion is None or recursion == "Disabled":
        return
    if recursion not in _RECURSIONS:
        yield not_supported((*at, "recursiveReadOnly"), recursion, _RECURSIONS)
        return
    if not mount.get("readOnly"):
        yield forbidden((*at, "recursiveReadOnly"), "may only be specified when readOnly is true")
    if propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        yield forbidden((*at, "recursiveReadOnly"), detail)
