"""The scheduler: gives every Pod that has none a node that it fits, and says why if there is none."""

from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

from kubereef.controllers import pods
from kubereef.controllers.batches import for_each
from kubereef.controllers.caches import Key
from kubereef.controllers.conditions import condition
from kubereef.controllers.events import Recorder
from kubereef.controllers.resources import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from kubereef.controllers.runtime import Controller, World
from kubereef.controllers.scheduling.fitting import Candidate, best, explanation, obstacle
from kubereef.controllers.scheduling.leanings import NONE, Leanings, draws, leanings, leans
from kubereef.controllers.scheduling.loads import Demand, Loads, demand
from kubereef.controllers.scheduling.neighbours import (
    NOBODY,
    Neighbourhood,
    Placed,
    has_wishes,
    neighbourhood,
    shuns,
)
from kubereef.controllers.scheduling.podclaims import SELECTED_NODE, VolumeNeeds, claim_names, volume_needs
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.times import format_time

SCHEDULER_NAME = "default-scheduler"

_PASS = Key("", "all Pods")
# How many Pods one pass places; a Pod of higher priority that comes meanwhile is next.
_AT_ONCE = 100


class Placement(NamedTuple):
    """What was decided about a Pod: its node, or why there is none."""

    pod: Object
    node: str = ""
    why_not: str = ""
    # Claims whose volumes are to be made for this node before the Pod can go there.
    claims: tuple[Object, ...] = ()


class Scheduler(Controller):
    """Places Pods in the order of their priority. What fits nowhere is tried again when something changes."""

    name = "kube-scheduler"
    workers = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.events = Recorder(self.hands.client, world.clock, SCHEDULER_NAME)
        self._loads = Loads()
        self._untried: dict[Key, None] = {}
        self._unplaced: dict[Key, None] = {}
        # The placed Pods that keep others away, and those that others had better be near to or far from.
        self._shunning: dict[str, None] = {}
        self._drawing: dict[str, None] = {}
        caches = world.caches
        self.nodes = caches.of(NODES)
        self.namespaces = caches.of(NAMESPACES)
        self.claims = caches.of(PERSISTENT_VOLUME_CLAIMS)
        self.volumes = caches.of(PERSISTENT_VOLUMES)
        self.classes = caches.of(STORAGE_CLASSES)
        self.pods = caches.of(PODS)
        self.pods.listen(self._pod_changed)
        self.nodes.listen(self._node_changed)
        for cache in (self.claims, self.volumes, self.classes):
            cache.listen(lambda _old, _new: self._volumes_changed())

    # --- what changes bring Pods back

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        pod = new if new is not None else old
        assert pod is not None
        key, uid = Key.of(pod), pod["metadata"]["uid"]
        if new is None or pods.is_over(new):
            self._forget(key)
            if self._loads.place_of(uid):
                self._displace(uid)
                self._try_again()
            return
        node = new["spec"].get("nodeName")
        if node:
            self._forget(key)
            if self._loads.place_of(uid) != node or old is None or _wishes(old) != _wishes(new):
                self._place(new, node)
                self._bring_back(has_wishes)
        elif not is_waiting(new):
            self._forget(key)
        elif old is None or _wishes(old) != _wishes(new) or not is_waiting(old):
            self._unplaced.pop(key, None)
            self._untried[key] = None
            self.queue.add(_PASS)

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or _facts(old) != _facts(new)):
            self._try_again()

    def _volumes_changed(self) -> None:
        self._bring_back(lambda pod: bool(claim_names(pod)))

    def _bring_back(self, concerns: Callable[[Object], bool]) -> None:
        """Try again those Pods that a change may concern."""
        found = [key for key in self._unplaced if (pod := self.pods.get(key)) and concerns(pod)]
        for key in found:
            self._untried[key] = self._unplaced.pop(key)
        if found:
            self.queue.add(_PASS)

    def _try_again(self) -> None:
        if self._unplaced:
            self._untried.update(self._unplaced)
            self._unplaced.clear()
            self.queue.add(_PASS)

    def _forget(self, key: Key) -> None:
        self._untried.pop(key, None)
        self._unplaced.pop(key, None)

    # --- a pass

    async def sync(self, key: Key) -> None:  # noqa: ARG002 - there is only one
        placements = list(self._placements())
        try:
            await for_each(placements, self._carry_out)
        finally:
            if self._untried:
                self.queue.add(_PASS)

    def _placements(self) -> Iterator[Placement]:
        """Decide about the next Pods; each decision counts with those before it."""
        waiting = [pod for key in self._untried if (pod := self.pods.get(key)) is not None]
        waiting.sort(key=lambda pod: -(pod["spec"].get("priority") or 0))
        candidates = [Candidate.of(node, self._loads.on(node["metadata"]["name"])) for node in self.nodes]
        for pod in waiting[:_AT_ONCE]:
            key = Key.of(pod)
            del self._untried[key]
            self._unplaced[key] = None
            # A node's load is another object once its first Pod has come.
            current = [one._replace(load=self._loads.on(one.name)) for one in candidates]
            placement = self._placement(pod, current)
            if placement.node:
                self._place(pod, placement.node)
            yield placement

    def _placement(self, pod: Object, candidates: list[Candidate]) -> Placement:
        if not candidates:
            return Placement(pod, why_not=explanation(pod, ()))
        needs = volume_needs(pod, self.claims, self.volumes, self.classes)
        if needs.obstacle:
            why_not = explanation(pod, (), needs.obstacle, len(candidates))
            return Placement(pod, why_not=why_not)
        wanted = demand(pod)
        neighbours = self._neighbourhood(pod)
        found = [obstacle(pod, wanted, one, needs.affinities, neighbours) for one in candidates]
        fitting = [one for one, problem in zip(candidates, found, strict=True) if problem is None]
        if not fitting:
            problems = [problem for problem in found if problem is not None]
            return Placement(pod, why_not=explanation(pod, problems))
        return self._chosen(pod, wanted, fitting, needs)

    def _neighbourhood(self, pod: Object) -> Neighbourhood:
        """Return what the Pods that are placed mean for this one; mostly nothing, which is found out cheaply."""
        if not self._shunning and not has_wishes(pod):
            return NOBODY
        placed = self._placed(None if has_wishes(pod) else self._shunning)
        return neighbourhood(pod, placed, list(self.nodes), self._namespace_labels)

    def _leanings(self, pod: Object, fitting: list[Candidate]) -> Leanings:
        """Return what the Pods that are placed mean for the choice of one of several nodes; mostly nothing, too."""
        if len(fitting) == 1 or (not self._drawing and not leans(pod)):
            return NONE
        placed = self._placed(None if leans(pod) else self._drawing)
        return leanings(pod, placed, [one.node for one in fitting], self._namespace_labels)

    def _placed(self, uids: Container[str] | None) -> list[Placed]:
        """Return the Pods that are placed, or those of them that matter, with their nodes."""
        return [
            Placed(other, node)
            for name, other in self._loads.placed()
            if (uids is None or other["metadata"]["uid"] in uids)
            and (node := self.nodes.get(("", name))) is not None
        ]

    def _namespace_labels(self, name: str) -> Object:
        namespace = self.namespaces.get(("", name))
        return _labels(namespace) if namespace is not None else {}

    def _place(self, pod: Object, node: str) -> None:
        self._loads.place(pod, node)
        uid = pod["metadata"]["uid"]
        if shuns(pod):
            self._shunning[uid] = None
        if draws(pod):
            self._drawing[uid] = None

    def _displace(self, uid: str) -> None:
        self._loads.remove(uid)
        self._shunning.pop(uid, None)
        self._drawing.pop(uid, None)

    def _chosen(self, pod: Object, wanted: Demand, fitting: list[Candidate], needs: VolumeNeeds) -> Placement:
        """Return the best node; where volumes are already being made for one that fits, that one."""
        begun = {(one["metadata"].get("annotations") or {}).get(SELECTED_NODE) for one in needs.waiting}
        node = next((one for one in fitting if one.name in begun), None)
        if node is None:
            node = best(pod, wanted, fitting, self._leanings(pod, fitting))
        return Placement(pod, node.name, claims=needs.waiting)

    # --- acting

    async def _carry_out(self, placement: Placement) -> None:
        if not placement.node:
            await self._explain(placement.pod, placement.why_not)
        elif placement.claims:
            # The Pod goes there once its volumes are bound; until then it takes no room.
            self._displace(placement.pod["metadata"]["uid"])
            await for_each(placement.claims, lambda claim: self._select(claim, placement.node))
        else:
            await self._bind(placement.pod, placement.node)

    async def _bind(self, pod: Object, node: str) -> None:
        meta = pod["metadata"]
        binding = {
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self.hands.client.create(PODS.url_of(pod, "binding"), binding)
        except errors.ApiError as refusal:
            self._displace(meta["uid"])
            if isinstance(refusal, errors.NotFound):
                return  # deleted meanwhile
            current = self.pods.get(Key.of(pod))
            if current is not None and is_waiting(current):
                self._unplaced.pop(Key.of(pod), None)
                self._untried[Key.of(pod)] = None
            raise
        message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        await self.events.normal(PODS, pod, "Scheduled", message)

    async def _select(self, claim: Object, node: str) -> None:
        if (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE) != node:
            patch = {"metadata": {"annotations": {SELECTED_NODE: node}}}
            await self.hands.patch(PERSISTENT_VOLUME_CLAIMS, claim, patch)

    async def _explain(self, pod: Object, why_not: str) -> None:
        """Say in the Pod's status, and to users, that it fits nowhere; once for the same reason."""
        old = condition((pod.get("status") or {}).get("conditions") or [], "PodScheduled") or {}
        new: Object = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why_not,
        }
        if all(old.get(field) == value for field, value in new.items()):
            return
        new["lastProbeTime"] = None
        if old.get("status") != "False" or not old.get("lastTransitionTime"):
            new["lastTransitionTime"] = format_time(self.clock.now())
        if pod["metadata"].get("generation"):
            new["observedGeneration"] = pod["metadata"]["generation"]
        try:
            await self.hands.patch(PODS, pod, {"status": {"conditions": [new]}}, "status", "strategic")
        except errors.NotFound:
            return  # deleted meanwhile
        await self.events.warning(PODS, pod, "FailedScheduling", why_not)


def is_waiting(pod: Object) -> bool:
    """Tell whether a Pod waits for this scheduler to place it."""
    spec = pod.get("spec") or {}
    return (
        not spec.get("nodeName")
        and not spec.get("schedulingGates")
        and (spec.get("schedulerName") or SCHEDULER_NAME) == SCHEDULER_NAME
        and pods.is_active(pod)
    )


def _wishes(pod: Object) -> tuple[object, ...]:
    """Return what decides about the place of a Pod, and of those that it matters to."""
    return pod["spec"], _labels(pod), pods.is_deleting(pod)


def _labels(obj: Object) -> Object:
    labels: Object = obj["metadata"].get("labels") or {}
    return labels


def _facts(node: Object) -> tuple[object, ...]:
    """Return what decides about Pods on a node."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    offered = status.get("allocatable") or status.get("capacity")
    return node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable"), offered
