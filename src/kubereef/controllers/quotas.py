"""Resource quotas: how much of what they limit is in use, counted anew whenever something may have been given back."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from kubereef.controllers import pods
from kubereef.controllers.caches import Key
from kubereef.controllers.inventory import Item
from kubereef.controllers.resources import PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_QUOTAS, SERVICES, Resource
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.behaviours.pod_resources import Amounts
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object
from kubereef.server.quotas.scopes import Scope, is_within, scopes_of
from kubereef.server.quotas.usage import (
    Counted,
    Evaluator,
    evaluator_of,
    only_as_object,
    read_amounts,
    released_at,
    resource_behind,
)
from kubereef.store import records
from kubereef.store.store import Store
from kubewire import errors
from kubewire.quantity import ZERO, Quantity


class _Known(NamedTuple):
    """What one record counts for, and from when on it counts as an object alone."""

    record: records.Record
    counted: Counted
    released: datetime | None


class Census:
    """Counts what namespaces use. What a record counts for is worked out once.

    It reads the store and not a cache: there an object and the charge for it appear together, so that a count and the
    version of the quota it is written for belong to the same moment, and a charge made meanwhile is a Conflict.
    """

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._known: dict[tuple[str, str], dict[records.Key, _Known]] = {}

    def used(self, quota: Object, now: datetime) -> tuple[Amounts, float | None]:
        """Return what is used of what a quota limits, and in how many seconds that changes by time alone."""
        namespace, scopes = quota["metadata"]["namespace"], scopes_of(quota)
        by_resource: dict[str, list[str]] = {}
        for name in (quota.get("spec") or {}).get("hard") or {}:
            by_resource.setdefault(resource_behind(name), []).append(name)
        totals: Amounts = {}
        waits = []
        for resource, names in by_resource.items():
            if not self._registry.versions_of(resource):
                continue
            evaluator = evaluator_of(resource)
            assert evaluator is not None, f"a quota can name {resource}"
            if evaluator.is_plain:
                count = 0 if scopes else sum(1 for _ in self._store.records(resource, namespace))
                totals |= dict.fromkeys(names, Quantity(count * 10**9))
                continue
            found, wait = self._sum(evaluator, resource, namespace, scopes, now)
            totals |= {name: found.get(name, ZERO) for name in names}
            waits += [wait] if wait is not None else []
        return totals, min(waits, default=None)

    def forget(self, namespace: str) -> None:
        """Keep nothing about a namespace that has no quota."""
        for place in [place for place in self._known if place[1] == namespace]:
            del self._known[place]

    def _sum(
        self, evaluator: Evaluator, resource: str, namespace: str, scopes: list[Scope], now: datetime
    ) -> tuple[Amounts, float | None]:
        totals: Amounts = {}
        soonest: datetime | None = None
        for known in self._count(evaluator, resource, namespace):
            counted = known.counted
            if known.released is not None and known.released < now:
                counted = only_as_object(counted)
            elif known.released is not None and (soonest is None or known.released < soonest):
                soonest = known.released
            if is_within(counted.traits, scopes):
                for name, amount in counted.usage.items():
                    totals[name] = totals.get(name, ZERO) + amount
        # The moment itself still counts.
        return totals, None if soonest is None else (soonest - now).total_seconds() + 1

    def _count(self, evaluator: Evaluator, resource: str, namespace: str) -> list[_Known]:
        before = self._known.get((resource, namespace), {})
        known: dict[records.Key, _Known] = {}
        for record in self._store.records(resource, namespace):
            one = before.get(record.key)
            if one is None or one.record is not record:
                obj = record.object()
                released = released_at(obj) if resource == "pods" else None
                one = _Known(record, evaluator.evaluate(obj), released)
            known[record.key] = one
        self._known[(resource, namespace)] = known
        return list(known.values())


class QuotaController(Controller):
    """Keeps the statuses of quotas: the limits that hold, and what is used of them."""

    name = "resourcequota-controller"
    workers = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._store = world.server.around.store
        self._census = Census(self._store, world.registry)
        self._leave_registry = world.registry.on_change(self._kinds_changed)
        self.quotas = self.watch(RESOURCE_QUOTAS)
        world.inventory.listen(self._item_changed)
        for resource, facts in _FACTS.items():
            world.caches.of(resource).listen(self._follower(facts))

    async def stop(self) -> None:
        self._leave_registry()
        await super().stop()

    async def sync(self, key: Key) -> float | None:
        record = self._store.get(records.Key(RESOURCE_QUOTAS.plural, *key))
        if record is None:
            if not self.quotas.in_namespace(key.namespace):
                self._census.forget(key.namespace)
            return None
        quota = record.object()
        used, wait = self._census.used(quota, self.clock.now())
        hard = (quota.get("spec") or {}).get("hard") or {}
        status = quota.get("status") or {}
        if not _are_equal(status.get("hard"), hard) or read_amounts(status.get("used")) != used:
            new = {"hard": hard, "used": {name: str(amount) for name, amount in used.items()}}
            try:
                await self.hands.replace_status(RESOURCE_QUOTAS, quota, new)
            except errors.NotFound:
                return None  # it has just gone
        return wait

    # --- what changes what is used

    def _item_changed(self, old: Item | None, new: Item | None) -> None:
        if old is None or new is None:
            item = new or old
            assert item is not None
            self._add(self.quotas.in_namespace(item.namespace))

    def _follower(self, facts: Callable[[Object], object]) -> Callable[[Object | None, Object | None], None]:
        def changed(old: Object | None, new: Object | None) -> None:
            if old is None or new is None:
                return  # the inventory tells
            concerned = self.quotas.in_namespace(new["metadata"]["namespace"])
            if concerned and facts(old) != facts(new):
                self._add(concerned)

        return changed

    def _kinds_changed(self) -> None:
        """Count again where a kind has come that a quota may be about."""
        self._add(self.quotas)

    def _add(self, quotas: Iterable[Object]) -> None:
        for quota in quotas:
            self.queue.add(Key.of(quota))


# What decides about the count of an object that is there; that it comes and goes is seen for all kinds alike.
_FACTS: dict[Resource, Callable[[Object], object]] = {
    PODS: lambda pod: (
        pods.is_over(pod),
        pod["metadata"].get("deletionTimestamp"),
        [one.get("resources") for one in pod["spec"].get("containers") or ()],
        pod["spec"].get("resources"),
    ),
    SERVICES: lambda service: service["spec"],
    PERSISTENT_VOLUME_CLAIMS: lambda claim: (claim["spec"], claim.get("status")),
}


def _are_equal(one: dict[str, str] | None, other: dict[str, str]) -> bool:
    return one is not None and read_amounts(one) == read_amounts(other)
