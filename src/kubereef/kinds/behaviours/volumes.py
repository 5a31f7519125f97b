"""Volumes, claims to them, and the classes of storage they come from."""

from kubereef.kinds.behaviours import checks
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, named, no_backsteps
from kubereef.kinds.behaviours.podspec_validation.claims import claim_spec
from kubereef.kinds.behaviours.podspec_validation.internal import struct_difference
from kubereef.kinds.columns import AGE, NAME, UNSET, at, text
from kubereef.kinds.resource import Behaviour, Column, Object
from kubewire import fielderrors, names
from kubewire.paths import Key
from kubewire.quantity import ZERO, Quantity

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
# The fields of a volume that say what it is made of; exactly one is given, and it never changes.
SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)
_KNOWN_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_MOST_PARAMETERS = 512
_LONGEST_PARAMETERS = 256 * 1024
_CLAIM_KEPT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName"
    " for bound claims"
)
# --- volumes


def _volume_defaults(volume: Object) -> None:
    spec = volume["spec"]
    status = volume["status"]
    status["phase"] = status.get("phase") or "Pending"
    spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
    spec["volumeMode"] = spec.get("volumeMode") or "Filesystem"
    if spec.get("hostPath") is not None and spec["hostPath"].get("type") is None:
        spec["hostPath"]["type"] = ""


def _prepare_volume(volume: Object) -> None:
    since = volume["metadata"]["creationTimestamp"]
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}


def _volume(volume: Object) -> Problems:
    spec = volume["spec"]
    yield from _access_modes(spec)
    yield from _capacity(spec)
    sources = [field for field in SOURCES if spec.get(field) is not None]
    if not sources:
        yield fielderrors.required(("spec",), "must specify a volume type")
    for field in sources[1:]:
        yield fielderrors.forbidden(("spec", field), "may not specify more than 1 volume type")
    # Only the first of them is looked into.
    first = {field: value for field, value in spec.items() if field not in sources[1:]}
    yield from _sources(first)
    policy = spec["persistentVolumeReclaimPolicy"]
    if policy not in _RECLAIM_POLICIES:
        yield fielderrors.not_supported(("spec", "persistentVolumeReclaimPolicy"), policy, _RECLAIM_POLICIES)
    if at(spec, "hostPath", "path") == "/" and policy == "Recycle":
        yield fielderrors.forbidden(
            ("spec", "persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'"
        )
    if spec.get("storageClassName"):
        yield from named(("spec", "storageClassName"), spec["storageClassName"], names.dns1123_subdomain)
    if spec["volumeMode"] not in _VOLUME_MODES:
        yield fielderrors.not_supported(("spec", "volumeMode"), spec["volumeMode"], _VOLUME_MODES)


def _access_modes(spec: Object) -> Problems:
    here, modes = ("spec", "accessModes"), spec.get("accessModes") or []
    if not modes:
        yield fielderrors.required(here)
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield fielderrors.not_supported(here, mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield fielderrors.forbidden(here, "may not use ReadWriteOncePod with other access modes")


def _capacity(spec: Object) -> Problems:
    here, capacity = ("spec", "capacity"), spec.get("capacity") or {}
    if not capacity:
        yield fielderrors.required(here)
    if "storage" not in capacity or len(capacity) > 1:
        yield fielderrors.not_supported(here, spec.get("capacity"), ("storage",))
    for name, amount in capacity.items():
        if Quantity.parse(amount) <= ZERO:
            yield fielderrors.invalid((*here, Key(name)), amount, "must be greater than zero")


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
# What a source must say; those that are not here may say what they like.
_NEEDED = {
    "hostPath": ("path",),
    "local": ("path",),
    "nfs": ("server", "path"),
    "csi": ("driver", "volumeHandle"),
}


def _sources(spec: Object) -> Problems:
    for field, needed in _NEEDED.items():
        source = spec.get(field)
        if source is not None:
            for part in needed:
                if not source.get(part):
                    yield fielderrors.required(("spec", field, part))
    for field in ("hostPath", "local"):
        yield from no_backsteps(("spec", field, "path"), at(spec, field, "path") or "")
    kind = at(spec, "hostPath", "type")
    if kind and kind not in _HOST_PATHS:
        yield fielderrors.not_supported(("spec", "hostPath", "type"), kind, _HOST_PATHS)
    path = at(spec, "nfs", "path")
    if path and not path.startswith("/"):
        yield fielderrors.invalid(("spec", "nfs", "path"), path, "must be an absolute path")
    yield from _place(spec)


def _place(spec: Object) -> Problems:
    """Yield what is wrong with where a volume can be reached."""
    here, affinity = ("spec", "nodeAffinity"), spec.get("nodeAffinity")
    if affinity is None:
        if spec.get("local") is not None:
            yield fielderrors.required(here, "Local volume requires node affinity")
    elif affinity.get("required") is None:
        yield fielderrors.required((*here, "required"), "must specify required node constraints")
    elif not affinity["required"].get("nodeSelectorTerms"):
        detail = "must have at least one node selector term"
        yield fielderrors.required((*here, "required", "nodeSelectorTerms"), detail)


def _volume_update(new: Object, old: Object) -> Problems:
    spec, before = new["spec"], old["spec"]
    if any(spec.get(field) != before.get(field) for field in SOURCES):
        detail = "spec.persistentvolumesource is immutable after creation"
        yield fielderrors.forbidden(("spec", "persistentvolumesource"), detail)
    yield from checks.unchanged(("volumeMode",), spec.get("volumeMode"), before.get("volumeMode"))
    # A volume may learn where it is, but not move.
    if before.get("nodeAffinity") is not None:
        here = ("spec", "nodeAffinity")
        yield from checks.unchanged(here, spec.get("nodeAffinity"), before["nodeAffinity"])


# --- claims


def _claim_defaults(claim: Object) -> None:
    spec = claim["spec"]
    status = claim["status"]
    status["phase"] = status.get("phase") or "Pending"
    if spec.get("volumeMode") is None:
        spec["volumeMode"] = "Filesystem"


def _prepare_claim(claim: Object) -> None:
    claim["status"] = {"phase": "Pending"}
    _drop_unknown_source(claim["spec"])
    _agree_on_sources(claim["spec"])


def _prepare_claim_update(new: Object, old: Object) -> None:
    if old["spec"].get("dataSource") is None:
        _drop_unknown_source(new["spec"])
    _agree_on_sources(new["spec"])


def _drop_unknown_source(spec: Object) -> None:
    """Drop what a claim is to begin with if it is neither another claim nor a snapshot, as has always been done."""
    source = spec.get("dataSource") or {}
    if (source.get("apiGroup") or "", source.get("kind")) not in _KNOWN_SOURCES:
        spec.pop("dataSource", None)


def _agree_on_sources(spec: Object) -> None:
    """Fill in one of the two ways to say what a claim begins with from the other."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = dict(reference)


def _claim(claim: Object) -> Problems:
    yield from claim_spec(("spec",), claim["spec"])


def _claim_update(new: Object, old: Object) -> Problems:
    """Yield what changed although claims only ever grow, get bound, or get their class once."""
    spec, before = new["spec"], old["spec"]
    allowed = dict(before)
    if not before.get("volumeName") and spec.get("volumeName"):
        allowed["volumeName"] = spec["volumeName"]
    if before.get("storageClassName") is None and spec.get("storageClassName") is not None:
        # Claims from before there was a default class get it afterwards.
        allowed["storageClassName"] = spec["storageClassName"]
    is_bound = at(old, "status", "phase") == "Bound"
    if is_bound:
        for field in ("resources", "volumeAttributesClassName"):
            if field in spec:
                allowed[field] = spec[field]
            else:
                allowed.pop(field, None)
    if spec != allowed:
        difference = struct_difference("PersistentVolumeClaimSpec", allowed, spec)
        yield fielderrors.forbidden(("spec",), f"{_CLAIM_KEPT}\n{difference}")
    wanted, had = (at(one, "resources", "requests", "storage") for one in (spec, before))
    if is_bound and wanted and had and Quantity.parse(wanted) < Quantity.parse(had):
        capacity = at(old, "status", "capacity", "storage")
        if capacity is None or Quantity.parse(wanted) <= Quantity.parse(capacity):
            here = ("spec", "resources", "requests", "storage")
            yield fielderrors.forbidden(here, "field can not be less than status.capacity")


def _claim_status(new: Object, _old: Object) -> Problems:
    for name, amount in (at(new, "status", "capacity") or {}).items():
        if Quantity.parse(amount).nano < 0:
            here = ("status", "capacity", Key(name))
            yield fielderrors.invalid(
                here, Quantity.parse(amount).value(), "must be a valid resource quantity"
            )


# --- classes


def _class_defaults(storage_class: Object) -> None:
    if storage_class.get("reclaimPolicy") is None:
        storage_class["reclaimPolicy"] = "Delete"
    if storage_class.get("volumeBindingMode") is None:
        storage_class["volumeBindingMode"] = "Immediate"


def _class(storage_class: Object) -> Problems:
    provisioner = storage_class.get("provisioner") or ""
    if not provisioner:
        yield fielderrors.required(("provisioner",))
    else:
        yield from named(("provisioner",), provisioner.lower(), names.qualified_name)
    parameters = storage_class.get("parameters") or {}
    if len(parameters) > _MOST_PARAMETERS:
        yield fielderrors.too_many(("parameters",), len(parameters), _MOST_PARAMETERS)
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
        > _LONGEST_PARAMETERS
    ):
        yield fielderrors.too_long(("parameters",), _LONGEST_PARAMETERS)
    if "" in parameters:
        yield fielderrors.invalid(("parameters",), "", "field can not be empty.")
    policy, mode = storage_class["reclaimPolicy"], storage_class["volumeBindingMode"]
    if policy not in ("Delete", "Retain"):
        yield fielderrors.not_supported(("reclaimPolicy",), policy, ("Delete", "Retain"))
    if mode not in _BINDING_MODES:
        yield fielderrors.not_supported(("volumeBindingMode",), mode, _BINDING_MODES)
    for index, term in enumerate(storage_class.get("allowedTopologies") or ()):
        for position, expression in enumerate(term.get("matchLabelExpressions") or ()):
            here = ("allowedTopologies", index, "matchLabelExpressions", position)
            yield from named((*here, "key"), expression.get("key") or "", names.label_key)
            if not expression.get("values"):
                yield fielderrors.required((*here, "values"))


def _class_update(new: Object, old: Object) -> Problems:
    for field in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        yield from checks.unchanged((field,), new.get(field), old.get(field))


# --- columns


def _bound_size(claim: Object) -> str:
    return (at(claim, "status", "capacity", "storage") or "0") if at(claim, "spec", "volumeName") else ""


def _modes(modes: list[str] | None) -> str:
    short = [_SHORT_MODES.get(mode, mode) for mode in dict.fromkeys(modes or ())]
    return ",".join(sorted(short, key=lambda one: [*_SHORT_MODES.values(), one].index(one)))


def _class_name(obj: Object) -> str:
    annotated = (obj["metadata"].get("annotations") or {}).get(_BETA_CLASS)
    return annotated if annotated is not None else at(obj, "spec", "storageClassName") or ""


def _phase(obj: Object) -> str:
    ends = bool(obj["metadata"].get("deletionTimestamp"))
    return "Terminating" if ends else at(obj, "status", "phase") or ""


def _claim_of(volume: Object) -> str:
    reference = at(volume, "spec", "claimRef")
    return "" if not reference else f"{reference.get('namespace', '')}/{reference.get('name', '')}"


PERSISTENT_VOLUMES = Behaviour(
    defaults=_volume_defaults,
    prepare_create=_prepare_volume,
    prepare_status=checks.beside_spec,
    validate=checks.listed(_volume),
    validate_update=checks.listed(_volume_update),
    returns_deleted=True,
    columns=(
        NAME,
        text("Capacity", "spec", "capacity", "storage"),
        Column("Access Modes", lambda obj, _: _modes(at(obj, "spec", "accessModes"))),
        text("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
        Column("Status", lambda obj, _: _phase(obj)),
        Column("Claim", lambda obj, _: _claim_of(obj)),
        Column("StorageClass", lambda obj, _: _class_name(obj)),
        text("VolumeAttributesClass", "spec", "volumeAttributesClassName", absent=UNSET),
        text("Reason", "status", "reason"),
        AGE,
        text("VolumeMode", "spec", "volumeMode", absent=UNSET, priority=1),
    ),
)
PERSISTENT_VOLUME_CLAIMS = Behaviour(
    defaults=_claim_defaults,
    prepare_create=_prepare_claim,
    prepare_update=_prepare_claim_update,
    prepare_status=checks.beside_spec,
    validate=checks.listed(_claim),
    validate_update=checks.listed(_claim_update),
    validate_status=checks.listed(_claim_status),
    returns_deleted=True,
    columns=(
        NAME,
        Column("Status", lambda obj, _: _phase(obj)),
        text("Volume", "spec", "volumeName"),
        Column(
            "Capacity",
            lambda obj, _: _bound_size(obj),
        ),
        Column(
            "Access Modes",
            lambda obj, _: _modes(at(obj, "status", "accessModes")) if at(obj, "spec", "volumeName") else "",
        ),
        Column("StorageClass", lambda obj, _: _class_name(obj)),
        text("VolumeAttributesClass", "spec", "volumeAttributesClassName", absent=UNSET),
        AGE,
        text("VolumeMode", "spec", "volumeMode", absent=UNSET, priority=1),
    ),
)
STORAGE_CLASSES = Behaviour(
    defaults=_class_defaults,
    validate=checks.listed(_class),
    validate_update=checks.listed(_class_update),
    returns_deleted=True,
    columns=(
        Column("Name", lambda obj, _: _marked_name(obj), format="name"),
        text("Provisioner", "provisioner"),
        text("ReclaimPolicy", "reclaimPolicy"),
        text("VolumeBindingMode", "volumeBindingMode"),
        Column("AllowVolumeExpansion", lambda obj, _: bool(obj.get("allowVolumeExpansion"))),
        AGE,
    ),
)


def _marked_name(storage_class: Object) -> str:
    """Return the name of a class, marked if it is the default one."""
    name: str = storage_class["metadata"]["name"]
    annotations = storage_class["metadata"].get("annotations") or {}
    marks = (
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    )
    return f"{name} (default)" if any(annotations.get(mark) == "true" for mark in marks) else name
