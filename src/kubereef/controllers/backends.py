"""The Pods behind a Service, as Endpoints and EndpointSlices both tell of them: which, where, and at which ports."""

from datetime import datetime

from kubereef.controllers import pods
from kubereef.controllers.caches import Cache, Key, by_labels, label_words
from kubereef.controllers.conditions import condition
from kubereef.kinds.resource import Object
from kubewire.selectors import LabelSelector
from kubewire.times import format_time, parse_time

TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS = "service.kubernetes.io/headless"


def is_managed(service: Object) -> bool:
    """Tell whether the Pods behind a Service are chosen by its selector; whoever gives none sees to it himself."""
    spec = service.get("spec") or {}
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName"


def is_headless(service: Object) -> bool:
    return bool((service.get("spec") or {}).get("clusterIP") == "None")


def publishes_unready(service: Object) -> bool:
    return bool((service.get("spec") or {}).get("publishNotReadyAddresses"))


_BY_LABELS = "labels"


class Selections:
    """Which Pods a Service selects, and which Services select a Pod, at the cost of those that might.

    A Service is kept under that item of its selector which the fewest other Services had when it came. So Services
    that share all but one item, as those of many alike applications do, are still told apart at once.
    """

    def __init__(self, services: Cache, pods: Cache) -> None:
        self._pods = pods
        self._word_of: dict[Key, str] = {}
        self._under: dict[str, dict[Key, Object]] = {}
        pods.index(_BY_LABELS, by_labels)
        services.listen(self._service_changed)

    def pods_of(self, service: Object) -> list[Object]:
        """Return the Pods that a Service selects."""
        chosen = service["spec"]["selector"]
        selector = LabelSelector.exactly(chosen)
        words = label_words(service["metadata"]["namespace"], chosen)
        candidates = self._pods.by_rarest(_BY_LABELS, words)
        return [pod for pod in candidates if selector.matches(pod["metadata"].get("labels"))]

    def services_of(self, pod: Object) -> list[Key]:
        """Return the Services that select a Pod."""
        labels = pod["metadata"].get("labels") or {}
        return [
            key
            for word in by_labels(pod)
            for key, service in self._under.get(word, {}).items()
            if LabelSelector.exactly(service["spec"]["selector"]).matches(labels)
        ]

    def _service_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (word := self._word_of.pop(Key.of(old), None)) is not None:
            under = self._under[word]
            del under[Key.of(old)]
            if not under:
                del self._under[word]
        if new is not None and is_managed(new):
            words = label_words(new["metadata"].get("namespace", ""), new["spec"]["selector"])
            word = min(words, key=lambda one: len(self._under.get(one, ())))
            self._under.setdefault(word, {})[Key.of(new)] = new
            self._word_of[Key.of(new)] = word


def is_backend(pod: Object, *, even_terminating: bool) -> bool:
    """Tell whether a Pod has an address and has not ended."""
    if pods.is_over(pod) or not (pod.get("status") or {}).get("podIP"):
        return False
    return even_terminating or not pods.is_deleting(pod)


def families(service: Object) -> list[str]:
    """Return the kinds of addresses that a Service has: IPv4, IPv6 or both."""
    spec = service["spec"]
    listed = spec.get("ipFamilies")
    if listed:
        return list(listed)
    return ["IPv6" if ":" in (spec.get("clusterIP") or "") else "IPv4"]


def addresses(pod: Object, family: str) -> list[str]:
    """Return the addresses of a Pod of one kind."""
    status = pod.get("status") or {}
    listed = [one.get("ip") or "" for one in status.get("podIPs") or ()] or [status.get("podIP") or ""]
    return [ip for ip in listed if ip and (":" in ip) == (family == "IPv6")]


def ports(service: Object, pod: Object) -> list[Object]:
    """Return at which ports of a Pod the ports of a Service are found, without those that the Pod does not have."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _target(port, pod)
        if number is None:
            continue
        entry: Object = {
            "name": port.get("name", ""),
            "port": number,
            "protocol": port.get("protocol", "TCP"),
        }
        if port.get("appProtocol") is not None:
            entry["appProtocol"] = port["appProtocol"]
        found.append(entry)
    return found


def _target(port: Object, pod: Object) -> int | None:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    spec = pod.get("spec") or {}
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in [*(spec.get("containers") or ()), *sidecars]:
        for offered in container.get("ports") or ():
            is_same = offered.get("name") == target
            if is_same and offered.get("protocol", "TCP") == port.get("protocol", "TCP"):
                number: int = offered["containerPort"]
                return number
    return None


def reference_to(pod: Object) -> Object:
    """Return how an endpoint says which Pod it is."""
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def hostname(service: Object, pod: Object) -> str:
    """Return the name under which a Service that is the Pod's subdomain knows the Pod."""
    spec = pod.get("spec") or {}
    return spec.get("hostname") or "" if spec.get("subdomain") == service["metadata"]["name"] else ""


class Triggers:
    """Since when what a Service's endpoints tell is so: the time of the change that they were written for.

    What is remembered serves only to measure delays; after a restart the measuring begins anew.
    """

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, datetime]] = {}

    def time(self, service: Object, backends: list[Object]) -> str:
        """Return the earliest time of what has changed since the last call; nothing if nothing has."""
        times = {f"pod {pod['metadata']['name']}": ready for pod in backends if (ready := _ready_since(pod))}
        times["service"] = parse_time(service["metadata"]["creationTimestamp"])
        before = self._known.get(Key.of(service), {})
        changed = [time for what, time in times.items() if what not in before or time > before[what]]
        self._known[Key.of(service)] = times
        return format_time(min(changed)) if changed else ""

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


def _ready_since(pod: Object) -> datetime | None:
    ready = condition((pod.get("status") or {}).get("conditions") or [], "Ready")
    since = (ready or {}).get("lastTransitionTime")
    return parse_time(since) if since else None
