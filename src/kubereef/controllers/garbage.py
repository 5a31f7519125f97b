"""Garbage collection: what has no owner left goes, and a deletion takes care of dependents as it was asked to.

An object whose owners are all gone is deleted; one that has some owner left only loses the references to the
others. An owner that is deleted in the foreground goes after the dependents that block it; one that is deleted with
orphans goes after they have been let go of.
"""

from collections.abc import Callable
from typing import NamedTuple

from kubereef.controllers.batches import for_each
from kubereef.controllers.caches import Key
from kubereef.controllers.inventory import Item, Owner
from kubereef.controllers.resources import Resource
from kubereef.controllers.runtime import Controller, World
from kubereef.kinds.resource import Object, ResourceType
from kubewire import errors

# News of different resources come on different ways. Before an owner's dependents are counted, those that were made
# shortly before its deletion get this long to become known.
_SETTLING = 0.02


class _Owners(NamedTuple):
    """The owners of an object, by what can be said of them."""

    present: list[Owner]
    absent: list[Owner]
    waiting: list[Owner]  # being deleted in the foreground, and waiting for this object among others
    unknown: list[Owner]  # of a kind that is not served, or that cannot own this object


class GarbageCollector(Controller):
    """Deletes and lets go of dependents. Its keys are uids."""

    name = "generic-garbage-collector"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.inventory = world.inventory
        self.inventory.listen(self._changed)
        self._kinds: dict[tuple[str, str], ResourceType] | None = None
        # Objects with an owner of a kind that is not served: looked at again when the kinds change.
        self._undecided: dict[str, None] = {}
        self._leave_registry: Callable[[], None] | None = None

    async def start(self) -> None:
        self._leave_registry = self.world.registry.on_change(self._kinds_changed)
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        if self._leave_registry is not None:
            self._leave_registry()

    async def sync(self, key: Key) -> float | None:
        item = self.inventory.get(key.name)
        self._undecided.pop(key.name, None)
        if item is None:
            return None
        if item.lets_go_of_dependents:
            await self._let_go(item)
        elif item.waits_for_dependents:
            await self._delete_after_dependents(item)
        elif item.owners and not item.is_deleting:
            await self._check_owners(item)
        return None

    # --- what a change means

    def _changed(self, old: Item | None, new: Item | None) -> None:
        if new is None:
            assert old is not None
            for dependent in self.inventory.dependents(old.uid):
                self._look_at(dependent.uid)
        else:
            self._began(old, new)
        if old is not None and (new is None or new.owners != old.owners):
            for owner in old.owners:
                self._look_at_waiting(owner.uid)

    def _began(self, old: Item | None, new: Item) -> None:
        waits = new.waits_for_dependents and not (old is not None and old.waits_for_dependents)
        lets_go = new.lets_go_of_dependents and not (old is not None and old.lets_go_of_dependents)
        if waits or lets_go:
            self.queue.add_after(_key(new.uid), _SETTLING)
        if waits:
            for dependent in self.inventory.dependents(new.uid):
                self._look_at(dependent.uid)
        if new.owners and (old is None or old.owners != new.owners):
            self._look_at(new.uid)

    def _look_at(self, uid: str) -> None:
        self.queue.add(_key(uid))

    def _look_at_waiting(self, uid: str) -> None:
        owner = self.inventory.get(uid)
        if owner is not None and owner.waits_for_dependents:
            self._look_at(uid)

    def _kinds_changed(self) -> None:
        self._kinds = None
        for uid in self._undecided:
            self._look_at(uid)

    # --- owners that are being deleted

    async def _let_go(self, owner: Item) -> None:
        """Take an owner out of the references of its dependents, then let it go itself."""

        async def let_go_of(dependent: Item) -> None:
            live = await self._live(dependent)
            if live is not None:
                await self._drop_owners(dependent.resource, live, [owner.uid])

        await for_each(self.inventory.dependents(owner.uid), let_go_of)
        await self._drop_finalizer(owner, "orphan")

    async def _delete_after_dependents(self, owner: Item) -> None:
        """Let an owner go once no dependent blocks it; until then see to the dependents."""
        blocking = [
            dependent for dependent in self.inventory.dependents(owner.uid) if _blocks(dependent, owner)
        ]
        if not blocking:
            await self._drop_finalizer(owner, "foregroundDeletion")
        for dependent in blocking:
            if not dependent.is_deleting:
                self._look_at(dependent.uid)

    # --- dependents

    async def _check_owners(self, item: Item) -> None:
        if all(self._stands(item, owner) for owner in item.owners):
            return
        live = await self._live(item)
        if live is None:
            return
        now = Item.of(item.resource, live)
        owners = await self._classified(now)
        if owners.unknown:
            self._undecided[item.uid] = None
        superfluous = [owner.uid for owner in (*owners.absent, *owners.waiting)]
        if owners.present or owners.unknown:
            # An owner that cannot be asked for may still be there.
            if owners.present and superfluous:
                await self._drop_owners(item.resource, live, superfluous)
        elif owners.waiting and (dependents := self.inventory.dependents(item.uid)):
            if any(dependent.waits_for_dependents for dependent in dependents):
                # They wait for each other, so one must not block the other any longer.
                live = await self._unblock_owners(item.resource, live)
            await self._delete(item.resource, live, "Foreground")
        elif superfluous:
            await self._delete(item.resource, live, _wished_propagation(now))

    def _stands(self, item: Item, owner: Owner) -> bool:
        """Tell whether an owner is known to be there for good, so that nobody needs to be asked."""
        known = self.inventory.get(owner.uid)
        return (
            known is not None
            and (known.name, known.resource.kind, known.resource.group)
            == (owner.name, owner.kind, owner.group)
            and known.namespace in ("", item.namespace)
            and not known.waits_for_dependents
        )

    async def _classified(self, item: Item) -> _Owners:
        owners = _Owners([], [], [], [])
        for owner in item.owners:
            (await self._kind_of_owner(item, owner, owners)).append(owner)
        return owners

    async def _kind_of_owner(self, item: Item, owner: Owner, owners: _Owners) -> list[Owner]:
        """Return the list that an owner belongs to; whether it is there only the server knows for sure."""
        resource = self._resource_of(owner)
        gone_from = self.inventory.gone_from(owner.uid)
        if not item.namespace and (gone_from or (resource is not None and resource.namespaced)):
            await self._complain(item, owner)
            return owners.unknown
        if gone_from is not None:
            return owners.absent
        if resource is None:
            return owners.unknown
        try:
            live = await self.hands.get(resource, (item.namespace, owner.name))
        except errors.NotFound:
            live = None
        if live is None or live["metadata"]["uid"] != owner.uid:
            elsewhere = self.inventory.get(owner.uid)
            if elsewhere is not None and elsewhere.namespace not in ("", item.namespace):
                await self._complain(item, owner)
            return owners.absent
        return owners.waiting if Item.of(resource, live).waits_for_dependents else owners.present

    def _resource_of(self, owner: Owner) -> Resource | None:
        """Return the resource in which an owner is to be looked for: by its reference, or as it is known."""
        if self._kinds is None:
            self._kinds = {(found.api_version, found.kind): found for found in self.world.registry}
        found = self._kinds.get((owner.api_version, owner.kind))
        if found is not None:
            return Resource.of(found)
        known = self.inventory.get(owner.uid)
        if known is not None and (known.resource.kind, known.resource.group) == (owner.kind, owner.group):
            return known.resource
        return None

    async def _complain(self, item: Item, owner: Owner) -> None:
        """Tell of a reference to an owner that is in another namespace, where it owns nothing."""
        namespace = item.namespace
        kind = f"{owner.api_version}/{owner.kind}"
        coordinates = f"[{kind}, namespace: {namespace}, name: {owner.name}, uid: {owner.uid}]"
        about = {"metadata": {"name": item.name, "namespace": namespace, "uid": item.uid}}
        message = f'ownerRef {coordinates} does not exist in namespace "{namespace}"'
        await self.events.warning(item.resource, about, "OwnerRefInvalidNamespace", message)

    # --- writes

    async def _live(self, item: Item) -> Object | None:
        """Return an object as it is now, or None if it is gone, whoever may have its name."""
        try:
            live = await self.hands.get(item.resource, (item.namespace, item.name))
        except errors.NotFound:
            return None
        return live if live["metadata"]["uid"] == item.uid else None

    async def _delete(self, resource: Resource, live: Object, propagation: str) -> None:
        # At this very version, because a later one may have found itself another owner.
        await self.hands.delete(resource, live, propagation=propagation, same_version=True)

    async def _drop_owners(self, resource: Resource, live: Object, uids: list[str]) -> None:
        references = live["metadata"].get("ownerReferences") or []
        left = [reference for reference in references if reference["uid"] not in uids]
        if len(left) != len(references):
            await self._patch_metadata(resource, live, {"ownerReferences": left or None})

    async def _unblock_owners(self, resource: Resource, live: Object) -> Object:
        references = live["metadata"].get("ownerReferences") or []
        unblocked = [{**reference, "blockOwnerDeletion": False} for reference in references]
        return await self._patch_metadata(resource, live, {"ownerReferences": unblocked})

    async def _drop_finalizer(self, item: Item, finalizer: str) -> None:
        live = await self._live(item)
        finalizers = (live or {"metadata": {}})["metadata"].get("finalizers") or []
        if live is not None and finalizer in finalizers:
            left = [one for one in finalizers if one != finalizer]
            await self._patch_metadata(item.resource, live, {"finalizers": left or None})

    async def _patch_metadata(self, resource: Resource, live: Object, fields: Object) -> Object:
        version = live["metadata"]["resourceVersion"]
        try:
            return await self.hands.patch(
                resource, live, {"metadata": {"resourceVersion": version, **fields}}
            )
        except errors.NotFound:
            return live  # it is gone, and with it the need


def _key(uid: str) -> Key:
    return Key("", uid)


def _blocks(dependent: Item, owner: Item) -> bool:
    reference = dependent.owner(owner.uid)
    return dependent.uid != owner.uid and reference is not None and reference.blocks


def _wished_propagation(item: Item) -> str:
    """Return what is to become of an object's own dependents, which its finalizers may have decided already."""
    if "orphan" in item.finalizers:
        return "Orphan"
    return "Foreground" if "foregroundDeletion" in item.finalizers else "Background"
