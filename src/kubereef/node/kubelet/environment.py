"""A container's environment: pure functions of its manifest and of the objects that it names."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.problems import ConfigProblem
from kubewire.quantity import Quantity

ObjectName = tuple[str, str]  # kind and name of a ConfigMap or Secret in the Pod's namespace
Objects = Mapping[ObjectName, Object | None]  # None: there is none of that name

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_KEY_OF = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)


class PodFacts(NamedTuple):
    """What a Pod can be told about itself that its manifest does not say."""

    node: str
    host_ips: tuple[str, ...]
    pod_ips: tuple[str, ...]
    allocatable: Mapping[str, str]


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return the text with `$(NAME)` replaced; names that nobody knows stay, and `$$` is a plain `$`."""

    def replaced(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        return values.get(name, match.group(0))

    return _REFERENCE.sub(replaced, text)


def unknown_names(text: str, values: Mapping[str, str]) -> list[str]:
    """Return the names in `$(NAME)` that nobody knows."""
    return [name for name in _REFERENCE.findall(text) if name and name not in values]


def named_objects(container: Object) -> set[ObjectName]:
    """Return the ConfigMaps and Secrets that a container's environment comes from."""
    found = set()
    for source in container.get("envFrom") or ():
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if reference := source.get(field):
                found.add((kind, reference["name"]))
    for variable in container.get("env") or ():
        given: Object = variable.get("valueFrom") or {}
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if reference := given.get(field):
                found.add((kind, reference["name"]))
    return found


def container_environment(
    pod: Object, container: Object, objects: Objects, facts: PodFacts, services: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables that the Pod gives a container; `ConfigProblem` names what is missing."""
    result = dict(_whole_objects(container, objects))
    given: dict[str, str] = {}
    for variable in container.get("env") or ():
        name = variable["name"]
        if variable.get("valueFrom"):
            value = _looked_up(pod, container, variable["valueFrom"], objects, facts)
            if value is None:
                continue  # optional, and not there
        else:
            value = expand(variable.get("value") or "", {**services, **given})
        given[name] = result[name] = value
    return {**services, **result}


def service_variables(services: Iterable[Object]) -> dict[str, str]:
    """Return the variables by which programs find Services, as they were before there was DNS."""
    found: dict[str, str] = {}
    for service in services:
        spec = service["spec"]
        address = spec.get("clusterIP")
        ports: list[Object] = spec.get("ports") or []
        if not address or address == "None" or not ports:
            continue
        prefix = service["metadata"]["name"].upper().replace("-", "_")
        found[f"{prefix}_SERVICE_HOST"] = address
        found[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
        for port in ports:
            if port.get("name"):
                found[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
        found |= _link_variables(prefix, address, ports)
    return found


def _link_variables(prefix: str, address: str, ports: list[Object]) -> dict[str, str]:
    host = f"[{address}]" if ":" in address else address
    found: dict[str, str] = {}
    for index, port in enumerate(ports):
        protocol = (port.get("protocol") or "TCP").lower()
        url = f"{protocol}://{host}:{port['port']}"
        if index == 0:
            found[f"{prefix}_PORT"] = url
        name = f"{prefix}_PORT_{port['port']}_{protocol.upper()}"
        found |= {
            name: url,
            f"{name}_PROTO": protocol,
            f"{name}_PORT": str(port["port"]),
            f"{name}_ADDR": address,
        }
    return found


def field_value(pod: Object, path: str, facts: PodFacts) -> str:
    """Return what a fieldRef names."""
    meta = pod["metadata"]
    if match := _KEY_OF.fullmatch(path):
        return str((meta.get(match.group(1)) or {}).get(match.group(2), ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries: Object = meta.get(path.partition(".")[2]) or {}
        return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(entries.items()))
    spec = pod["spec"]
    values = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": facts.node,
        "spec.serviceAccountName": spec.get("serviceAccountName") or "",
        "status.hostIP": facts.host_ips[0],
        "status.hostIPs": ",".join(facts.host_ips),
        "status.podIP": facts.pod_ips[0] if facts.pod_ips else "",
        "status.podIPs": ",".join(facts.pod_ips),
    }
    if path not in values:
        raise ConfigProblem(f"unsupported fieldPath: {path}")
    return str(values[path])


def resource_value(pod: Object, reference: Object, container: Object | None, facts: PodFacts) -> str:
    """Return what a resourceFieldRef names, in units of its divisor, rounded up."""
    if wanted := reference.get("containerName"):
        everyone = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
        container = next((one for one in everyone if one["name"] == wanted), None)
    if container is None:
        raise ConfigProblem(f"container {reference.get('containerName', '')} not found")
    field, _, resource = str(reference["resource"]).partition(".")
    amounts: Object = (container.get("resources") or {}).get(field) or {}
    amount = amounts.get(resource)
    if amount is None:
        amount = facts.allocatable.get(resource, "0") if field == "limits" else "0"
    divisor = Quantity.of(reference.get("divisor") or "1")
    unit = divisor.nano or Quantity.parse("1").nano
    return str(-(-Quantity.of(amount).nano // unit))


def secret_bytes(data: object) -> bytes:
    """Return the bytes of a Secret's or a ConfigMap's binary entry."""
    try:
        return base64.b64decode(str(data), validate=True)
    except binascii.Error as bad:
        raise ConfigProblem(f"binary data cannot be decoded: {bad}") from bad


def _entries(kind: str, obj: Object) -> Iterator[tuple[str, str]]:
    for key, value in (obj.get("data") or {}).items():
        yield key, secret_bytes(value).decode(errors="replace") if kind == "Secret" else str(value)


def _whole_objects(container: Object, objects: Objects) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom") or ():
        prefix = source.get("prefix") or ""
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            reference = source.get(field)
            if not reference:
                continue
            obj = objects.get((kind, reference["name"]))
            if obj is None:
                if reference.get("optional"):
                    continue
                raise ConfigProblem(f'{kind.lower()} "{reference["name"]}" not found')
            for key, value in _entries(kind, obj):
                if "=" not in key:
                    yield f"{prefix}{key}", value


def _looked_up(
    pod: Object, container: Object, source: Object, objects: Objects, facts: PodFacts
) -> str | None:
    if reference := source.get("fieldRef"):
        return field_value(pod, reference["fieldPath"], facts)
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, reference, container, facts)
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference := source.get(field):
            return _key_value(pod, kind, reference, objects)
    raise ConfigProblem(f"environment from {', '.join(source)} is not supported by this node")


def _key_value(pod: Object, kind: str, reference: Object, objects: Objects) -> str | None:
    name, key = reference["name"], reference["key"]
    obj = objects.get((kind, name))
    if obj is None:
        if reference.get("optional"):
            return None
        raise ConfigProblem(f'{kind.lower()} "{name}" not found')
    entries = (
        dict(_entries(kind, {"data": {key: obj["data"][key]}})) if key in (obj.get("data") or {}) else {}
    )
    if key not in entries:
        if reference.get("optional"):
            return None
        namespace = pod["metadata"]["namespace"]
        raise ConfigProblem(f"couldn't find key {key} in {kind} {namespace}/{name}")
    return entries[key]


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
