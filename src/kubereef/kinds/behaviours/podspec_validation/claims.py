"""Claims that are made for a Pod and go with it, and the claims to devices that it names."""

from kubereef.kinds.behaviours.podspec_validation.checks import Problems, label_selector, labels, named
from kubereef.kinds.behaviours.podspec_validation.internal import shown
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import duplicate, forbidden, invalid, not_supported, required, too_long
from kubewire.paths import FieldPath, Key
from kubewire.quantity import ZERO, Quantity

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
# How messages write the path of what is wrong with the Pod as a whole.
NOWHERE = "[]"
_MAX_ANNOTATIONS = 256 * 1024


def claim_template(at: FieldPath, template: Object) -> Problems:
    """Yield what is wrong with the claim that is to be made for a volume."""
    metadata = template.get("metadata") or {}
    yield from annotations((*at, "metadata", "annotations"), metadata.get("annotations"))
    yield from labels((*at, "metadata", "labels"), metadata.get("labels"))
    for field, value in metadata.items():
        if value and field not in ("annotations", "labels"):
            # Go's name of the field, with a small letter in front.
            written = "uID" if field == "uid" else field
            yield forbidden((*at, "metadata", written), "cannot be set")
    yield from claim_spec((*at, "spec"), template.get("spec") or {})


def annotations(at: FieldPath, given: dict[str, str] | None) -> Problems:
    """Yield what is wrong with annotations."""
    size = 0
    for key, value in (given or {}).items():
        for complaint in names.qualified_name(key.lower()):
            yield invalid(at, key, complaint)
        size += len(key.encode()) + len(value.encode())
    if size > _MAX_ANNOTATIONS:
        yield too_long(at, _MAX_ANNOTATIONS)


def claim_spec(at: FieldPath, spec: Object) -> Problems:
    """Yield what is wrong with what a claim asks for."""
    yield from _access_modes((*at, "accessModes"), spec.get("accessModes") or [])
    yield from label_selector((*at, "selector"), spec.get("selector"))
    place = (*at, "resources", Key("storage"))
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required(place)
    elif Quantity.parse(storage) <= ZERO:
        yield invalid(place, storage, "must be greater than zero")
    for field in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(field):
            yield from named((*at, field), spec[field], names.dns1123_subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in _VOLUME_MODES:
        yield not_supported((*at, "volumeMode"), mode, _VOLUME_MODES)
    yield from _data_sources(at, spec)


def resource_claims(at: FieldPath, given: list[Object], *, is_mirror: bool) -> Problems:
    """Yield what is wrong with the claims to devices of a Pod."""
    seen: set[str] = set()
    for index, claim in enumerate(given):
        if is_mirror:
            yield forbidden((), "static pods do not support resource claims", NOWHERE)
            continue
        place = (*at, index)
        name = claim.get("name", "")
        if not name:
            yield required((*place, "name"))
        elif name in seen:
            yield duplicate((*place, "name"), name)
        else:
            yield from named((*place, "name"), name, names.dns1123_label)
            seen.add(name)
        sources = [
            field
            for field in ("resourceClaimName", "resourceClaimTemplateName")
            if claim.get(field) is not None
        ]
        if len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(place, shown("PodResourceClaim", claim), detail)
        elif not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            yield invalid(place, shown("PodResourceClaim", claim), detail)
        for field in sources:
            yield from named((*place, field), claim[field], names.dns1123_subdomain)


def _access_modes(at: FieldPath, modes: list[str]) -> Problems:
    if not modes:
        yield required(at, "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(at, mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and {*modes} & {*_ACCESS_MODES[:-1]}:
        yield forbidden(at, "may not use ReadWriteOncePod with other access modes")


def _data_sources(at: FieldPath, spec: Object) -> Problems:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        yield from _data_source((*at, "dataSource"), source)
    if reference is not None:
        yield from _data_source((*at, "dataSourceRef"), reference)
    if source is None or reference is None:
        return
    # The value that messages show is empty, whatever the sources are.
    if reference.get("namespace"):
        yield invalid(at, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(field) != reference.get(field) for field in ("apiGroup", "kind", "name")):
        yield invalid(at, {}, "must match dataSourceRef")


def _data_source(at: FieldPath, source: Object) -> Problems:
    for field in ("name", "kind"):
        if not source.get(field):
            yield required((*at, field))
    group, kind = source.get("apiGroup"), source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(at, kind, detail)
    if group:
        yield from named((*at, "apiGroup"), group, names.dns1123_subdomain)
    if source.get("namespace"):
        yield from named((*at, "namespace"), source["namespace"], names.dns1123_label)
