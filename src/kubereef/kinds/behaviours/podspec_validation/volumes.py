"""The volumes of a Pod: where their content comes from."""

import re
from collections.abc import Callable

from kubereef.kinds.behaviours.podspec_validation import claims, projections
from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    descending_path,
    file_mode,
    named,
    needed,
    needed_name,
    no_backsteps,
    one_of,
    within,
)
from kubereef.kinds.behaviours.podspec_validation.containers import PULL_POLICIES
from kubereef.kinds.behaviours.podspec_validation.mounts import Volumes
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_long
from kubewire.gotext import quote
from kubewire.paths import FieldPath, Key
from kubewire.quantity import ZERO, Quantity

Source = Callable[[FieldPath, Object], Problems]

_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_AZURE_MODES = ("None", "ReadOnly", "ReadWrite")
_AZURE_KINDS = ("Dedicated", "Managed", "Shared")
_AZURE_MANAGED = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_AZURE_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_ISCSI_NAMES = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+\Z"),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}
_LONGEST_ISCSI = 64
# Far above what there can be; looking for a name inside of a longer text would take too long.
_LONGEST_ISCSI_NAME = 1024
_LONGEST_TENANT = 64
_LONGEST_DRIVER = 63


def volumes(at: FieldPath, given: list[Object], pod_name: str | None) -> tuple[Volumes, list[FieldError]]:
    """Return the volumes that are as they should be, by name, and what is wrong with the others.

    The name of the Pod decides how claims made for it are called; templates have none.
    """
    good: Volumes = {}
    problems: list[FieldError] = []
    made = {
        f"{pod_name}-{one.get('name', '')}" for one in given if pod_name and one.get("ephemeral") is not None
    }
    for index, volume in enumerate(given):
        place = (*at, index)
        name = volume.get("name", "")
        wrong = [*_source(place, volume, pod_name), *needed_name((*place, "name"), name, names.dns1123_label)]
        if name in good:
            wrong.append(duplicate((*place, "name"), name))
        if not wrong:
            good[name] = volume
        problems += wrong
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            detail = "must not reference a PVC that gets created for an ephemeral volume"
            problems.append(invalid((*place, "persistentVolumeClaim", "claimName"), claim, detail))
    return good, problems


def _source(at: FieldPath, volume: Object, pod_name: str | None) -> Problems:
    given = [kind for kind in _SOURCES if volume.get(kind) is not None]
    if not given:
        yield required(at, "must specify a volume type")
        return
    kind = given[0]
    yield from _SOURCES[kind]((*at, _WRITTEN_INSIDE.get(kind, kind)), volume[kind])
    for another in given[1:]:
        place = (*at, _WRITTEN.get(another, another))
        yield forbidden(place, "may not specify more than 1 volume type")
    name = volume.get("name", "")
    iscsi: Object = volume.get("iscsi") or {}
    portal = f"{name}:{iscsi.get('targetPortal', '')}"
    if iscsi.get("initiatorName") is not None and len(portal) > _LONGEST_ISCSI:
        detail = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters"
            " if iscsi.initiatorName is specified."
        )
        yield invalid((*at, "name"), name, detail)
    if kind == "image" and pod_name is not None and not volume["image"].get("reference"):
        yield required((*at, "image", "reference"))
    if kind == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        for complaint in names.dns1123_subdomain(claim):
            yield invalid((*at, "name"), name, f"PVC name {quote(claim)}: {complaint}")


# Kubernetes spells some of these paths in another way: of the second source, and of what is inside of the first.
_WRITTEN = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_WRITTEN_INSIDE = {"gcePersistentDisk": "persistentDisk"}


def _needs(*fields: str) -> Source:
    """Return the check of a source in which some fields must be set and anything else goes."""
    return lambda at, source: needed(source, at, *fields)


def _empty_dir(at: FieldPath, source: Object) -> Problems:
    limit = source.get("sizeLimit")
    if limit is not None and Quantity.parse(limit) < ZERO:
        yield forbidden((*at, "sizeLimit"), "SizeLimit field must be a valid resource quantity")


def _host_path(at: FieldPath, source: Object) -> Problems:
    path = source.get("path")
    if not path:
        yield required((*at, "path"))
        return
    yield from no_backsteps((*at, "path"), path)
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATHS:
        yield not_supported((*at, "type"), kind, _HOST_PATHS)


def _git_repo(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "repository")
    yield from descending_path((*at, "directory"), source.get("directory", ""))


def _gce_disk(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "pdName")
    yield from _partition(at, source)


def _aws_disk(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "volumeID")
    yield from _partition(at, source)


def _partition(at: FieldPath, source: Object) -> Problems:
    partition = source.get("partition", 0)
    if partition not in range(256):
        yield invalid((*at, "partition"), partition, "must be between 1 and 255, inclusive")


def _secret(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "secretName")
    yield from _keyed_files(at, source)


def _config_map(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "name")
    yield from _keyed_files(at, source)


def _keyed_files(at: FieldPath, source: Object) -> Problems:
    yield from file_mode((*at, "defaultMode"), source.get("defaultMode"))
    for index, item in enumerate(source.get("items") or ()):
        yield from projections.keyed_file((*at, "items", index), item)


def _nfs(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "server", "path")
    path = source.get("path", "")
    if not path.startswith("/"):
        yield invalid((*at, "path"), path, "must be an absolute path")


def _iscsi(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "targetPortal", "iqn")
    for field, shown in (("iqn", "iqn"), ("initiatorName", "initiatorname")):
        name = source.get(field)
        if name:
            pattern = _ISCSI_NAMES.get(name[:3])
            if pattern is None:
                yield invalid((*at, shown), name, "must be valid format starting with iqn, eui, or naa")
            elif len(name) > _LONGEST_ISCSI_NAME or not pattern.search(name):
                yield invalid((*at, shown), name, "must be valid format")
    yield from within((*at, "lun"), source.get("lun", 0), 0, 255)
    needs_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if needs_secret and source.get("secretRef") is None:
        yield required((*at, "secretRef"))


def _fibre_channel(at: FieldPath, source: Object) -> Problems:
    targets, ids, lun = source.get("targetWWNs") or [], source.get("wwids") or [], source.get("lun")
    if not targets and not ids:
        yield required((*at, "targetWWNs"), "must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid((*at, "targetWWNs"), targets, detail)
    if targets and lun is None:
        yield required((*at, "lun"), "lun is required if targetWWNs is specified")
    elif targets and lun is not None:
        yield from within((*at, "lun"), lun, 0, 255)


def _flocker(at: FieldPath, source: Object) -> Problems:
    name, uid = source.get("datasetName", ""), source.get("datasetUUID")
    if not name and not uid:
        yield required(at, "one of datasetName and datasetUUID is required")
    if name and uid:
        yield invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid((*at, "datasetName"), name, "must not contain '/'")


def _cinder(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "volumeID")
    yield from _secret_reference(at, source)


def _storage_os(at: FieldPath, source: Object) -> Problems:
    yield from needed_name((*at, "volumeName"), source.get("volumeName"), names.dns1123_label)
    if source.get("volumeNamespace"):
        yield from named((*at, "volumeNamespace"), source["volumeNamespace"], names.dns1123_label)
    yield from _secret_reference(at, source)


def _secret_reference(at: FieldPath, source: Object) -> Problems:
    if source.get("secretRef") is not None:
        yield from needed(source["secretRef"], (*at, "secretRef"), "name")


def _quobyte(at: FieldPath, source: Object) -> Problems:
    registry = source.get("registry", "")
    pairs = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        yield required((*at, "registry"), pairs)
    elif len(source.get("tenant", "")) > _LONGEST_TENANT:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        yield required((*at, "tenant"), detail)
    else:
        for pair in registry.split(","):
            host, colon, _ = pair.rpartition(":")
            if not colon or (":" in host and not (host.startswith("[") and host.endswith("]"))):
                yield invalid((*at, "registry"), registry, pairs)
    yield from needed(source, at, "volume")


def _flex(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "driver")
    for key in source.get("options") or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid((*at, "options", Key(key)), key, detail)


def _azure_disk(at: FieldPath, source: Object) -> Problems:
    yield from needed(source, at, "diskName", "diskURI")
    mode, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if mode is not None and mode not in _AZURE_MODES:
        yield not_supported((*at, "cachingMode"), mode, _AZURE_MODES)
    if kind is not None and kind not in _AZURE_KINDS:
        yield not_supported((*at, "kind"), kind, _AZURE_KINDS)
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield not_supported((*at, "diskURI"), uri, (_AZURE_MANAGED,))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        yield not_supported((*at, "diskURI"), uri, (_AZURE_BLOB,))


def _csi(at: FieldPath, source: Object) -> Problems:
    driver = source.get("driver", "")
    if not driver:
        yield required((*at, "driver"))
    else:
        if len(driver) > _LONGEST_DRIVER:
            yield too_long((*at, "driver"), _LONGEST_DRIVER)
        for complaint in names.dns1123_subdomain(driver.lower()):
            yield invalid((*at, "driver"), driver, complaint)
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield required((*at, "nodePublishSecretRef", "name"))
    elif secret is not None:
        yield from named((*at, "name"), secret["name"], names.dns1123_subdomain)


def _ephemeral(at: FieldPath, source: Object) -> Problems:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield required((*at, "volumeClaimTemplate"))
    else:
        yield from claims.claim_template((*at, "volumeClaimTemplate"), template)


def _image(at: FieldPath, source: Object) -> Problems:
    yield from one_of((*at, "pullPolicy"), source.get("pullPolicy"), PULL_POLICIES)


# In the order in which Kubernetes looks for them: of two, the later one is the one too many.
_SOURCES: dict[str, Source] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _gce_disk,
    "awsElasticBlockStore": _aws_disk,
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _needs("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": projections.downward,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": projections.projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
