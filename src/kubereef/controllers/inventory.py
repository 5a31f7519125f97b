"""The metadata of everything there is: who owns whom, what is being deleted, in which namespace.

One list and one watch per resource, whatever the registry serves, including custom resources that come and go. Of each
object only the few facts are kept that garbage collection and the deletion of namespaces decide by.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from kubereef.controllers.following import Reader, follow
from kubereef.controllers.listeners import Listeners
from kubereef.controllers.resources import Resource
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object, ResourceType
from kubewire.owners import owner_references

# What garbage collection does not look at, because it never owns anything and there is much of it.
_IGNORED = frozenset(("events",))
# How many deleted objects are remembered as such, so that nobody needs to ask for an owner that is known to be gone.
_REMEMBERED = 4096


class Owner(NamedTuple):
    """An owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool  # whether a foreground deletion of the owner waits for the dependent

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class Item(NamedTuple):
    """What is known of an object."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    owners: tuple[Owner, ...]
    finalizers: tuple[str, ...]
    is_deleting: bool

    @classmethod
    def of(cls, resource: Resource, obj: Object) -> "Item":
        meta = obj["metadata"]
        return cls(
            resource,
            meta.get("namespace", ""),
            meta["name"],
            meta["uid"],
            tuple(map(_owner, owner_references(obj))),
            tuple(meta.get("finalizers") or ()),
            bool(meta.get("deletionTimestamp")),
        )

    @property
    def waits_for_dependents(self) -> bool:
        """Whether it is deleted in the foreground: after what depends on it."""
        return self.is_deleting and "foregroundDeletion" in self.finalizers

    @property
    def lets_go_of_dependents(self) -> bool:
        """Whether it is deleted while its dependents are to stay."""
        return self.is_deleting and "orphan" in self.finalizers

    def owner(self, uid: str) -> Owner | None:
        return next((owner for owner in self.owners if owner.uid == uid), None)

    @property
    def url(self) -> str:
        return self.resource.url(self.namespace, self.name)


def _owner(reference: Object) -> Owner:
    return Owner(
        reference["apiVersion"],
        reference["kind"],
        reference["name"],
        reference["uid"],
        reference.get("blockOwnerDeletion") is True,
    )


Listener = Callable[[Item | None, Item | None], None]


class Inventory:
    """All objects by uid, and their dependents."""

    def __init__(self, client: Reader, registry: Registry) -> None:
        self._client = client
        self._registry = registry
        self._items: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._followed: dict[str, _Followed] = {}
        self._uids: dict[str, dict[str, None]] = {}  # by the resource, as it is stored
        self._gone: dict[str, str] = {}  # the namespaces of what has been deleted
        self._listeners: Listeners[Item] = Listeners()
        self._running = False
        self._leave_registry = registry.on_change(self._follow_all)

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def dependents(self, uid: str) -> list[Item]:
        """Return what names this uid as an owner, in the order of the last changes."""
        return [self._items[dependent] for dependent in self._dependents.get(uid, ())]

    def gone_from(self, uid: str) -> str | None:
        """Return the namespace that a deleted object had, empty for none; None for one not known to be deleted."""
        return self._gone.get(uid)

    def listen(self, listener: Listener) -> None:
        """Have a function told of every change; ask before the inventory is started."""
        self._listeners.add(listener)

    async def start(self) -> None:
        """Begin to follow what is served, if anybody listens; return when everything is known once."""
        if not self._listeners:
            return
        self._running = True
        self._follow_all()
        for followed in list(self._followed.values()):
            await followed.synced.wait()

    async def stop(self) -> None:
        self._running = False
        self._leave_registry()
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        self._followed.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self, uid: str, *, deleted: bool) -> None:
        """Know that an object is not there any more, because it was deleted or because its kind is served no longer."""
        old = self._items.get(uid)
        if old is None:
            return
        if deleted:
            self._gone[uid] = old.namespace
            if len(self._gone) > _REMEMBERED:
                del self._gone[next(iter(self._gone))]
        self.learn(old, None)

    def learn(self, old: Item | None, new: Item | None) -> None:
        """Take over a change of one object."""
        if old is not None:
            self._unrelate(old)
        if new is not None:
            self._relate(new)
        self._listeners.tell(old, new)

    def _relate(self, item: Item) -> None:
        self._items[item.uid] = item
        for owner in item.owners:
            self._dependents.setdefault(owner.uid, {})[item.uid] = None

    def _unrelate(self, item: Item) -> None:
        del self._items[item.uid]
        for owner in item.owners:
            related = self._dependents.get(owner.uid, {})
            related.pop(item.uid, None)
            if not related:
                self._dependents.pop(owner.uid, None)

    def _follow_all(self) -> None:
        """Follow what is served and not followed yet; what is served no longer ends by itself."""
        if not self._running:
            return
        for resource_type in self._registry:
            if is_followed(resource_type) and resource_type.storage not in self._followed:
                known = self._uids.setdefault(resource_type.storage, {})
                followed = _Followed(self, Resource.of(resource_type), known)
                self._followed[resource_type.storage] = followed
                followed.task = asyncio.create_task(
                    self._follow(resource_type.storage, followed), name=f"inventory of {resource_type.plural}"
                )

    async def _follow(self, storage: str, followed: "_Followed") -> None:
        await follow(self._client, followed.resource.url(), followed)
        # The version is served no longer, or the whole resource. Another version may show the same objects.
        followed.synced.set()
        self._followed.pop(storage, None)
        self._follow_all()
        if storage not in self._followed:
            for uid in self._uids.pop(storage):
                self.forget(uid, deleted=False)


def is_followed(resource_type: ResourceType) -> bool:
    """Tell whether the objects of a resource take part in ownership."""
    return {"list", "watch", "delete"} <= resource_type.verbs and resource_type.storage not in _IGNORED


class _Followed:
    """The objects of one resource, as a sink of its list and watch."""

    def __init__(self, inventory: Inventory, resource: Resource, uids: dict[str, None]) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._inventory = inventory
        self._uids = uids

    def replace(self, objects: list[Object], revision: int) -> None:  # noqa: ARG002 - every sink is told the revision
        present = {obj["metadata"]["uid"] for obj in objects}
        for uid in [uid for uid in self._uids if uid not in present]:
            self._forget(uid)
        for obj in objects:
            self._learn(obj)
        self.synced.set()

    def apply(self, kind: str, obj: Object, revision: int) -> None:  # noqa: ARG002 - as above
        if kind == "DELETED":
            self._forget(obj["metadata"]["uid"])
        else:
            self._learn(obj)

    def _learn(self, obj: Object) -> None:
        new = Item.of(self.resource, obj)
        old = self._inventory.get(new.uid)
        if new != old:
            self._uids[new.uid] = None
            self._inventory.learn(old, new)

    def _forget(self, uid: str) -> None:
        self._uids.pop(uid, None)
        self._inventory.forget(uid, deleted=True)
