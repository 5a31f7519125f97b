"""Pod disruption budgets: how many of their Pods are well, and how many could be spared."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from kubereef.controllers import pods
from kubereef.controllers.caches import Key, by_labels, label_words
from kubereef.controllers.events import Recorder
from kubereef.controllers.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from kubereef.controllers.rollouts import share
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object
from kubereef.server.budgets import is_guarded, tell_whether_allowed
from kubewire import errors
from kubewire.owners import controller_of
from kubewire.selectors import LabelSelector
from kubewire.times import parse_time

# How long an evicted Pod is waited for before it counts again.
DELETION_TIMEOUT = timedelta(minutes=2)
_LABELS = "labels"


class Uncountable(Exception):
    """Nobody can say how many Pods there should be."""


class Expected(NamedTuple):
    """How many Pods there should be, how many of them have to be well, and those that nobody looks after."""

    pods: int
    healthy: int
    has_unmanaged: bool = False


class DisruptionController(Controller):
    """Keeps the statuses of budgets, by which evictions are allowed."""

    name = "disruption-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.events = Recorder(self.hands.client, world.clock, "controllermanager")
        self.budgets = self.watch(POD_DISRUPTION_BUDGETS)
        self.replica_sets = world.caches.of(REPLICA_SETS)
        self.deployments = world.caches.of(DEPLOYMENTS)
        self.pods = self.watch(PODS, self._budgets_of)
        self.pods.index(_LABELS, by_labels)

    def _budgets_of(self, pod: Object) -> Iterable[Key]:
        budgets = self.budgets.in_namespace(pod["metadata"]["namespace"])
        return [Key.of(budget) for budget in budgets if is_guarded(budget, pod)]

    def _guarded(self, budget: Object) -> list[Object]:
        """Return the Pods of a budget, found by a label that few have."""
        namespace = budget["metadata"]["namespace"]
        labels = ((budget.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
        words = label_words(namespace, labels)
        likely = self.pods.by_rarest(_LABELS, words) if words else self.pods.in_namespace(namespace)
        return [pod for pod in likely if is_guarded(budget, pod)]

    async def sync(self, key: Key) -> float | None:
        budget = self.budgets.get(key)
        if budget is None:
            return None
        guarded = self._guarded(budget)
        resource = POD_DISRUPTION_BUDGETS
        if not guarded:
            await self.events.normal(resource, budget, "NoPods", "No matching pods found")
        now = self.clock.now()
        try:
            expected = await self._expected(budget, guarded)
        except Uncountable as unknown:
            told = f"Failed to calculate the number of expected pods: {unknown}"
            await self.events.warning(resource, budget, "CalculateExpectedPodCountFailed", told)
            await self._write(budget, failed_status(budget, str(unknown), now))
            return None
        if expected.has_unmanaged:
            await self.events.warning(resource, budget, "UnmanagedPods", _unmanaged(budget))
        disrupted, recheck = self._disrupted(budget, guarded, now)
        healthy = sum(_is_healthy(pod, disrupted) for pod in guarded)
        await self._write(budget, next_status(budget, expected, healthy, disrupted, now))
        return recheck

    async def _write(self, budget: Object, status: Object) -> None:
        if status == (budget.get("status") or {}):
            return
        try:
            await self.hands.replace_status(POD_DISRUPTION_BUDGETS, budget, status)
        except errors.NotFound:
            return  # it has just gone

    # --- how many there should be

    async def _expected(self, budget: Object, guarded: list[Object]) -> Expected:
        spec = budget.get("spec") or {}
        most_missing, least = spec.get("maxUnavailable"), spec.get("minAvailable")
        if most_missing is not None:
            count, has_unmanaged = await self._scale(guarded)
            missing = share(most_missing, count, round_up=True)
            return Expected(count, max(0, count - missing), has_unmanaged)
        if isinstance(least, str):
            count, has_unmanaged = await self._scale(guarded)
            return Expected(count, share(least, count, round_up=True), has_unmanaged)
        return Expected(len(guarded), least or 0) if least is not None else Expected(0, 0)

    async def _scale(self, guarded: list[Object]) -> tuple[int, bool]:
        """Return how many Pods the controllers of some are to have, and whether there are some without one."""
        sizes: dict[str, int] = {}
        has_unmanaged = False
        for pod in guarded:
            controller = controller_of(pod)
            if controller is None:
                has_unmanaged = True
            elif controller["uid"] not in sizes:
                uid, size = await self._size(pod, controller)
                sizes[uid] = size
                sizes.setdefault(controller["uid"], 0)
        return sum(sizes.values()), has_unmanaged

    async def _size(self, pod: Object, controller: Object) -> tuple[str, int]:
        """Return who decides how many Pods a controller has, and on how many."""
        namespace = pod["metadata"]["namespace"]
        if controller["kind"] == REPLICA_SETS.kind and controller["apiVersion"] == REPLICA_SETS.api_version:
            replica_set = self.replica_sets.get((namespace, controller["name"]))
            if replica_set is not None and replica_set["metadata"]["uid"] == controller["uid"]:
                chief = controller_of(replica_set)
                owner = self.deployments.get((namespace, chief["name"])) if chief is not None else None
                decider = owner if owner is not None and chief is not None else replica_set
                return decider["metadata"]["uid"], decider["spec"].get("replicas", 1)
        return controller["uid"], await self._size_by_scale(pod, controller)

    async def _size_by_scale(self, pod: Object, controller: Object) -> int:
        group, _, version = controller["apiVersion"].rpartition("/")
        found = self.world.registry.of_kind(group, version, controller["kind"])
        if found is None:
            raise Uncountable(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        if "scale" not in found.subresources:
            raise Uncountable(f"{found.resource} does not implement the scale subresource")
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        place = (
            f"{prefix}/namespaces/{pod['metadata']['namespace']}/{found.plural}/{controller['name']}/scale"
        )
        try:
            scale = await self.hands.client.get(place)
        except errors.NotFound:
            raise Uncountable(f'found no controllers for pod "{pod["metadata"]["name"]}"') from None
        size: int = (scale.get("spec") or {}).get("replicas", 0)
        return size

    def _disrupted(
        self, budget: Object, guarded: list[Object], now: datetime
    ) -> tuple[dict[str, str], float | None]:
        """Return the evicted Pods that have yet to go, and in how many seconds the first is given up."""
        noted = (budget.get("status") or {}).get("disruptedPods") or {}
        waiting: dict[str, str] = {}
        recheck: float | None = None
        for pod in guarded:
            since = noted.get(pod["metadata"]["name"])
            if since is None or pods.is_deleting(pod):
                continue
            left = (parse_time(since) + DELETION_TIMEOUT - now).total_seconds()
            if left > 0:
                waiting[pod["metadata"]["name"]] = since
                recheck = left if recheck is None else min(recheck, left)
        return waiting, recheck


def next_status(
    budget: Object, expected: Expected, healthy: int, disrupted: dict[str, str], now: datetime
) -> Object:
    """Return what the status of a budget is to be."""
    status = dict(budget.get("status") or {})
    spare = healthy - expected.healthy
    status |= {
        "currentHealthy": healthy,
        "desiredHealthy": expected.healthy,
        "expectedPods": expected.pods,
        # A budget that has no Pods yet allows nothing, so that it is safe when they appear.
        "disruptionsAllowed": max(0, spare) if expected.pods > 0 else 0,
        "observedGeneration": budget["metadata"].get("generation", 0),
    }
    status.pop("disruptedPods", None)
    if disrupted:
        status["disruptedPods"] = disrupted
    tell_whether_allowed(status, status["observedGeneration"], now)
    return status


def failed_status(budget: Object, why: str, now: datetime) -> Object:
    """Return the status of a budget for which nobody can count: nothing may go."""
    status = dict(budget.get("status") or {})
    status["disruptionsAllowed"] = 0
    tell_whether_allowed(status, status.get("observedGeneration", 0), now, why)
    return status


def _is_healthy(pod: Object, disrupted: dict[str, str]) -> bool:
    return not pods.is_deleting(pod) and pod["metadata"]["name"] not in disrupted and pods.is_ready(pod)


def _unmanaged(budget: Object) -> str:
    selector = LabelSelector.of((budget.get("spec") or {}).get("selector"))
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, "
        "the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account "
        'for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
