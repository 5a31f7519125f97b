"""Endpoints: the addresses behind a Service in one object, for clients that do not read EndpointSlices yet."""

from kubereef.controllers import backends, pods
from kubereef.controllers.backends import HEADLESS, TRIGGER_TIME
from kubereef.controllers.caches import Key
from kubereef.controllers.resources import ENDPOINTS, PODS, SERVICES
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object

# More addresses than this are left out, and an annotation says so.
MOST_ADDRESSES = 1000
_OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
_MANAGER = "endpoints.kubernetes.io/managed-by"


class EndpointsController(Controller):
    """Keeps one Endpoints object per Service that selects Pods."""

    name = "endpoint-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.services = self.watch(SERVICES)
        self._selections = backends.Selections(self.services, world.caches.of(PODS))
        self.watch(PODS, self._selections.services_of)
        self.endpoints = self.watch(ENDPOINTS)
        self._triggers = backends.Triggers()
        self._abandoned: set[Key] = set()
        self.services.listen(self._service_changed)

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        """Remember which Services went: what users wrote for them goes too, and what they write ahead of one stays."""
        if new is not None:
            self._abandoned.discard(Key.of(new))
        elif old is not None:
            self._abandoned.add(Key.of(old))

    async def sync(self, key: Key) -> None:
        service, present = self.services.get(key), self.endpoints.get(key)
        if service is None:
            self._triggers.forget(key)
            if present is not None and (key in self._abandoned or _is_ours(present)):
                await self.hands.delete(ENDPOINTS, present)
            self._abandoned.discard(key)
            return
        if not backends.is_managed(service):
            return
        chosen = self._selections.pods_of(service)
        trigger = self._triggers.time(service, chosen)
        wanted = endpoints_of(service, chosen, present, trigger)
        if present is None:
            await self.hands.create(ENDPOINTS, wanted)
        elif _content(wanted) != _content(present):
            await self.hands.replace(ENDPOINTS, wanted)


def endpoints_of(service: Object, chosen: list[Object], present: Object | None, trigger: str) -> Object:
    """Return the Endpoints of a Service, made of what is there."""
    shown, left_out = subsets(service, chosen)
    labels = {**(service["metadata"].get("labels") or {}), _MANAGER: "endpoint-controller"}
    labels.pop(HEADLESS, None)
    if backends.is_headless(service):
        labels[HEADLESS] = ""
    meta = dict(present["metadata"]) if present is not None else {}
    annotations = dict(meta.get("annotations") or {})
    annotations.pop(TRIGGER_TIME, None)
    annotations.pop(_OVER_CAPACITY, None)
    if trigger:
        annotations[TRIGGER_TIME] = trigger
    if left_out:
        annotations[_OVER_CAPACITY] = "truncated"
    meta.pop("annotations", None)
    meta.update(name=service["metadata"]["name"], namespace=service["metadata"]["namespace"], labels=labels)
    if annotations:
        meta["annotations"] = annotations
    return {**(present or {}), "metadata": meta, "subsets": shown}


def subsets(service: Object, chosen: list[Object]) -> tuple[list[Object], bool]:
    """Return the addresses of Pods grouped by their ports, and whether there were more than fit."""
    family = backends.families(service)[0]
    even_unready = backends.publishes_unready(service)
    groups: dict[tuple[tuple[object, ...], ...], tuple[list[Object], list[Object], list[Object]]] = {}
    count = 0
    for pod in sorted(chosen, key=lambda pod: (not pods.is_ready(pod), pod["metadata"]["name"])):
        found = backends.ports(service, pod)
        where = backends.addresses(pod, family)
        may_serve = found or (backends.is_headless(service) and not service["spec"].get("ports"))
        if not where or not may_serve or not backends.is_backend(pod, even_terminating=even_unready):
            continue
        count += 1
        if count > MOST_ADDRESSES:
            continue
        key = tuple(sorted(tuple(port.items()) for port in found))
        _ports, ready, unready = groups.setdefault(key, (found, [], []))
        (ready if even_unready or pods.is_ready(pod) else unready).append(_address(service, pod, where[0]))
    shown = [_subset(*groups[key]) for key in sorted(groups, key=str)]
    return shown, count > MOST_ADDRESSES


def _subset(ports: list[Object], ready: list[Object], unready: list[Object]) -> Object:
    named = [{field: value for field, value in port.items() if value != ""} for port in ports]
    lists = {"addresses": ready, "notReadyAddresses": unready}
    shown: Object = {field: sorted(ones, key=lambda one: one["ip"]) for field, ones in lists.items() if ones}
    if named:
        shown["ports"] = sorted(named, key=lambda port: (port.get("name", ""), port["port"]))
    return shown


def _address(service: Object, pod: Object, ip: str) -> Object:
    address: Object = {"ip": ip, "targetRef": backends.reference_to(pod)}
    if (pod.get("spec") or {}).get("nodeName"):
        address["nodeName"] = pod["spec"]["nodeName"]
    if name := backends.hostname(service, pod):
        address["hostname"] = name
    return address


def _is_ours(endpoints: Object) -> bool:
    labels = endpoints["metadata"].get("labels") or {}
    return bool(labels.get(_MANAGER) == "endpoint-controller")


def _content(endpoints: Object) -> tuple[object, ...]:
    """Return what makes Endpoints worth writing; the time of the change that they tell is not enough."""
    annotations = endpoints["metadata"].get("annotations") or {}
    return (
        endpoints.get("subsets") or [],
        endpoints["metadata"].get("labels") or {},
        annotations.get(_OVER_CAPACITY),
    )
