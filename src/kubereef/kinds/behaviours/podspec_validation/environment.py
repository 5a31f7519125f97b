"""The variables of a container's environment, and what they can be taken from."""

from kubereef.kinds.behaviours.podspec_validation.checks import (
    Problems,
    config_key,
    environment_name,
    named,
    needed_name,
    no_backsteps,
)
from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import invalid, not_found, not_supported, required
from kubewire.paths import FieldPath
from kubewire.quantity import ZERO, Quantity

# Fields of a Pod that its own containers can see as variables and as files, in the order of messages.
_VARIABLE_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
_FILE_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_SELECTABLE_FIELDS = frozenset(
    (
        *_VARIABLE_FIELDS,
        *_FILE_FIELDS,
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    )
)
_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTES = (
    *("1", "1k", "1M", "1G", "1T", "1P", "1E"),
    *("1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
)
_DIVISORS: dict[str, tuple[str, ...]] = {
    "cpu": ("1m", "1"),
    "memory": _BYTES,
    "ephemeral-storage": _BYTES,
}
_DIVIDED = {"ephemeral-storage": "local ephemeral storage"}

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def variables(at: FieldPath, given: list[Object]) -> Problems:
    """Yield what is wrong with a list of variables."""
    for index, variable in enumerate(given):
        yield from needed_name((*at, index, "name"), variable.get("name"), environment_name)
        source = variable.get("valueFrom")
        if source is not None:
            yield from _source((*at, index, "valueFrom"), source, variable.get("value", ""))


def imported(at: FieldPath, given: list[Object]) -> Problems:
    """Yield what is wrong with a list of objects of which every key is a variable."""
    for index, source in enumerate(given):
        prefix = source.get("prefix")
        if prefix:
            yield from named((*at, index, "prefix"), prefix, environment_name)
        kinds = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in kinds:
            yield from needed_name((*at, index, kind, "name"), source[kind].get("name"), _reference_name)
        if not kinds:
            yield invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(kinds) > 1:
            yield invalid(at, "", "may not have more than one field specified at a time")


def file_field(at: FieldPath, reference: Object) -> Problems:
    """Yield why a field of the Pod cannot be the content of a file."""
    yield from _field(at, reference, _FILE_FIELDS)


def container_resource(at: FieldPath, reference: Object, *, of_any_container: bool) -> Problems:
    """Yield why a resource of a container cannot be a value; a file must say of which container."""
    resource = reference.get("resource", "")
    if of_any_container and not reference.get("containerName"):
        yield required((*at, "containerName"))
    elif not resource:
        yield required((*at, "resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        yield not_supported((*at, "resource"), resource, _RESOURCES)
    yield from _divisor(at, resource, Quantity.parse(reference.get("divisor", "0")))


def file_references(at: FieldPath, spec: Object, containers: "list[tuple[FieldPath, Object]]") -> Problems:
    """Yield variables that are to be read from a file of a volume that is not there, or no scratch space."""
    volumes = {volume.get("name"): volume for volume in spec.get("volumes") or ()}
    for where, container in containers:
        for index, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            place = (*at, *where, "env", index, "valueFrom", "fileKeyRef", "volumeName")
            if name not in volumes:
                yield not_found(place, name)
            elif volumes[name].get("emptyDir") is None:
                yield invalid(place, name, "referenced volume must be of type emptyDir")


def _source(at: FieldPath, source: Object, value: str) -> Problems:
    given = [kind for kind in _SOURCES if source.get(kind) is not None]
    for kind in given:
        yield from _SOURCE_PROBLEMS[kind]((*at, kind), source[kind])
    if not given:
        listed = ", ".join(f"`{kind}`" for kind in _SOURCES[:-1])
        yield invalid(at, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`")
    elif value:
        yield invalid(at, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(at, "", "may not have more than one field specified at a time")


def _variable_field(at: FieldPath, reference: Object) -> Problems:
    yield from _field(at, reference, _VARIABLE_FIELDS)


def _variable_resource(at: FieldPath, reference: Object) -> Problems:
    yield from container_resource(at, reference, of_any_container=False)


def _field(at: FieldPath, reference: Object, allowed: tuple[str, ...]) -> Problems:
    version, field = reference.get("apiVersion"), reference.get("fieldPath")
    if not version:
        yield required((*at, "apiVersion"))
        return
    if not field:
        yield required((*at, "fieldPath"))
        return
    name, _, subscript = field.removesuffix("']").partition("['")
    is_subscripted = field.endswith("']") and "['" in field and bool(name)
    because = _unreadable(version, field, name if is_subscripted else "")
    if because:
        yield invalid((*at, "fieldPath"), field, f"error converting fieldPath: {because}")
    elif is_subscripted:
        key = subscript.lower() if name == "metadata.annotations" else subscript
        yield from named(at, key, names.qualified_name)
    elif _OLD_NAMES.get(field, field) not in allowed:
        yield not_supported((*at, "fieldPath"), _OLD_NAMES.get(field, field), allowed)


_OLD_NAMES = {"spec.host": "spec.nodeName"}


def _unreadable(version: str, field: str, subscripted: str) -> str:
    """Return why a field does not exist; nothing if it does."""
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscripted:
        if subscripted in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    known = _OLD_NAMES.get(field, field) in _SELECTABLE_FIELDS
    return "" if known else f"field label not supported: {field}"


def _divisor(at: FieldPath, resource: str, divisor: Quantity) -> Problems:
    if divisor == ZERO:
        return
    kind = resource.partition(".")[2]
    allowed: tuple[str, ...]
    if resource.startswith(_HUGE_PAGES):
        allowed, kind = _BYTES, "hugepages"
    elif resource in _RESOURCES:
        allowed = _DIVISORS[kind]
    else:
        return
    if str(divisor) not in allowed:
        listed = " and ".join(allowed) if kind == "cpu" else ", ".join(allowed)
        detail = f"only divisor's values {listed} are supported with the {_DIVIDED.get(kind, kind)} resource"
        yield invalid((*at, "divisor"), resource, detail)


def _key(at: FieldPath, reference: Object) -> Problems:
    yield from named((*at, "name"), reference.get("name", ""), names.dns1123_subdomain)
    yield from needed_name((*at, "key"), reference.get("key"), config_key)


def _file(at: FieldPath, reference: Object) -> Problems:
    yield from needed_name((*at, "key"), reference.get("key"), environment_name)
    yield from needed_name((*at, "volumeName"), reference.get("volumeName"), names.dns1123_label)
    path = reference.get("path")
    if path:
        yield from no_backsteps((*at, "path"), path)
    else:
        yield required((*at, "path"))


def _reference_name(value: str) -> list[str]:
    """Return why a text is not the beginning of a name; one that ends in a dash may yet become one."""
    return names.dns1123_subdomain(f"{value[:-2]}a" if len(value) > 1 and value.endswith("-") else value)


_SOURCE_PROBLEMS = {
    "fieldRef": _variable_field,
    "resourceFieldRef": _variable_resource,
    "configMapKeyRef": _key,
    "secretKeyRef": _key,
    "fileKeyRef": _file,
}
