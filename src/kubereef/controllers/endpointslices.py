"""EndpointSlices: the addresses behind a Service, in slices of bounded size."""

from collections.abc import Iterable
from typing import NamedTuple

from kubereef.controllers import backends, pods
from kubereef.controllers.backends import HEADLESS, TRIGGER_TIME
from kubereef.controllers.batches import for_each
from kubereef.controllers.caches import Key, by_label
from kubereef.controllers.resources import ENDPOINT_SLICES, NODES, PODS, SERVICES
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object

MOST_ENDPOINTS = 100

_SERVICE = "kubernetes.io/service-name"
_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_MANAGER = "endpointslice-controller.k8s.io"
_ZONE = "topology.kubernetes.io/zone"
_BY_SERVICE = "service"


class EndpointSliceController(Controller):
    """Keeps the slices of each Service that selects Pods. They go with the Service, as its dependents."""

    name = "endpointslice-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.services = self.watch(SERVICES)
        self._selections = backends.Selections(self.services, world.caches.of(PODS))
        self.watch(PODS, self._selections.services_of)
        self.slices = self.watch(ENDPOINT_SLICES, _service_of)
        self.slices.index(_BY_SERVICE, by_label(_SERVICE))
        self.nodes = world.caches.of(NODES)
        self.nodes.listen(self._node_changed)
        self._triggers = backends.Triggers()

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        """Look at every Service when a zone changes."""
        if _zone(old) != _zone(new):
            for service in self.services:
                self.queue.add(Key.of(service))

    async def sync(self, key: Key) -> None:
        service = self.services.get(key)
        if service is None or not backends.is_managed(service):
            self._triggers.forget(key)
            return
        if pods.is_deleting(service):
            return
        chosen = self._selections.pods_of(service)
        trigger = self._triggers.time(service, chosen)
        zones = {node["metadata"]["name"]: _zone(node) for node in self.nodes}
        present = [one for one in self.slices.by(_BY_SERVICE, key.name) if self._is_ours(one, service)]
        wanted = {
            family: endpoints_by_ports(service, chosen, family, zones)
            for family in backends.families(service)
        }
        changes = plan(service, wanted, present, trigger)
        await for_each(changes.create, lambda one: self.hands.create(ENDPOINT_SLICES, one))
        await for_each(changes.update, lambda one: self.hands.replace(ENDPOINT_SLICES, one))
        await for_each(changes.delete, lambda one: self.hands.delete(ENDPOINT_SLICES, one))

    def _is_ours(self, endpoint_slice: Object, service: Object) -> bool:
        meta = endpoint_slice["metadata"]
        return (
            meta["namespace"] == service["metadata"]["namespace"]
            and (meta.get("labels") or {}).get(_MANAGED_BY) == _MANAGER
            and not pods.is_deleting(endpoint_slice)
        )


class Group(NamedTuple):
    """Endpoints that are reached at the same ports."""

    ports: list[Object]
    endpoints: list[Object]


class Changes(NamedTuple):
    """What brings the slices to what is wanted."""

    create: list[Object]
    update: list[Object]
    delete: list[Object]


def endpoints_by_ports(
    service: Object, chosen: Iterable[Object], family: str, zones: dict[str, str]
) -> list[Group]:
    """Return the endpoints of one family of addresses, grouped by their ports."""
    groups: dict[str, Group] = {}
    for pod in chosen:
        where = backends.addresses(pod, family)
        if not where or not backends.is_backend(pod, even_terminating=True):
            continue
        found = backends.ports(service, pod)
        group = groups.setdefault(_port_key(found), Group(found, []))
        group.endpoints.append(_endpoint(service, pod, where, zones))
    return list(groups.values())


def _endpoint(service: Object, pod: Object, where: list[str], zones: dict[str, str]) -> Object:
    is_serving, is_terminating = pods.is_ready(pod), pods.is_deleting(pod)
    endpoint: Object = {
        "addresses": where,
        "conditions": {
            "ready": backends.publishes_unready(service) or (is_serving and not is_terminating),
            "serving": is_serving,
            "terminating": is_terminating,
        },
        "targetRef": backends.reference_to(pod),
    }
    node: str = (pod.get("spec") or {}).get("nodeName") or ""
    if node:
        endpoint["nodeName"] = node
    if zones.get(node):
        endpoint["zone"] = zones[node]
    if name := backends.hostname(service, pod):
        endpoint["hostname"] = name
    return endpoint


def plan(service: Object, wanted: dict[str, list[Group]], present: list[Object], trigger: str) -> Changes:
    """Return what to do to the slices, changing as few of them as possible."""
    create: list[Object] = []
    update: list[Object] = []
    unused: list[Object] = []
    for family, groups in wanted.items():
        of_family = [one for one in present if one.get("addressType") == family]
        kept: set[str] = set()
        missing: list[Object] = []
        for group in groups or [Group([], [])]:
            key = _port_key(group.ports)
            same = [one for one in of_family if _port_key(one.get("ports") or []) == key]
            kept.update(one["metadata"]["name"] for one in same)
            contents = _filled(group.endpoints, same)
            for number, (one, endpoints) in enumerate(contents.kept):
                # Where there are no endpoints at all, one empty slice tells so.
                if endpoints or (not group.endpoints and number == 0):
                    update.append({**one, "endpoints": endpoints or None, "ports": group.ports or None})
                else:
                    unused.append(one)
            missing += [_body(family, endpoints, group.ports) for endpoints in contents.new]
        spare = [one for one in of_family if one["metadata"]["name"] not in kept]
        # A slice that nobody needs becomes one that is missing: watchers then see a change instead of two.
        while missing and spare:
            update.append({**spare.pop(0), **missing.pop(0)})
        create += missing
        unused += spare
    unused += [one for one in present if one.get("addressType") not in wanted]
    changed = [
        marked
        for one in update
        if _content(marked := _marked(service, one, trigger)) != _content(_of_name(present, one))
    ]
    return Changes([_marked(service, one, trigger) for one in create], changed, unused)


class _Filled(NamedTuple):
    kept: list[tuple[Object, list[Object]]]
    new: list[list[Object]]


def _filled(endpoints: list[Object], slices: list[Object]) -> _Filled:
    """Distribute endpoints: each stays in the slice that has it, others go where there is room, or into new slices."""
    left = {_endpoint_key(one): one for one in endpoints}
    kept: list[tuple[Object, list[Object]]] = []
    for one in slices:
        keys = [_endpoint_key(endpoint) for endpoint in one.get("endpoints") or ()]
        kept.append((one, [left.pop(key) for key in keys if key in left]))
    rest = list(left.values())
    for _one, held in kept:
        room = MOST_ENDPOINTS - len(held)
        held.extend(rest[:room])
        rest = rest[room:]
    new = [rest[start : start + MOST_ENDPOINTS] for start in range(0, len(rest), MOST_ENDPOINTS)]
    return _Filled(kept, new or ([] if slices else [[]]))


def _body(family: str, endpoints: list[Object], ports: list[Object]) -> Object:
    return {"addressType": family, "endpoints": endpoints or None, "ports": ports or None}


def _marked(service: Object, endpoint_slice: Object, trigger: str) -> Object:
    """Return a slice with the metadata that makes it the Service's."""
    own = service["metadata"]
    meta = dict(endpoint_slice.get("metadata") or {"generateName": f"{own['name']}-"})
    labels = {
        key: value
        for key, value in (own.get("labels") or {}).items()
        if key not in (_SERVICE, _MANAGED_BY, HEADLESS)
    }
    labels |= {_SERVICE: own["name"], _MANAGED_BY: _MANAGER}
    if backends.is_headless(service):
        labels[HEADLESS] = ""
    annotations = dict(meta.pop("annotations", None) or {})
    annotations.pop(TRIGGER_TIME, None)
    if trigger:
        annotations[TRIGGER_TIME] = trigger
    meta.update(namespace=own["namespace"], labels=labels, ownerReferences=[SERVICES.reference_to(service)])
    if annotations:
        meta["annotations"] = annotations
    return {**endpoint_slice, "metadata": meta}


def _content(endpoint_slice: Object) -> tuple[object, ...]:
    """Return what makes a slice worth writing."""
    meta = endpoint_slice["metadata"]
    listed = sorted(endpoint_slice.get("endpoints") or (), key=_endpoint_key)
    return listed, endpoint_slice.get("ports") or [], meta.get("labels"), meta.get("ownerReferences")


def _of_name(slices: list[Object], wanted: Object) -> Object:
    name = wanted["metadata"]["name"]
    return next(one for one in slices if one["metadata"]["name"] == name)


def _endpoint_key(endpoint: Object) -> str:
    """Return what makes an endpoint the same: its Pod."""
    uid: str = (endpoint.get("targetRef") or {}).get("uid") or ",".join(endpoint.get("addresses") or ())
    return uid


def _port_key(ports: list[Object]) -> str:
    """Return a text that is the same for the same ports, whatever their order."""
    return str(sorted(sorted((field, str(value)) for field, value in port.items()) for port in ports))


def _service_of(endpoint_slice: Object) -> list[Key]:
    meta = endpoint_slice["metadata"]
    name = (meta.get("labels") or {}).get(_SERVICE)
    return [Key(meta["namespace"], name)] if name else []


def _zone(node: Object | None) -> str:
    if node is None:
        return ""
    zone: str = (node["metadata"].get("labels") or {}).get(_ZONE) or ""
    return zone
