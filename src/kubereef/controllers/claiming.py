"""Whose is it: objects that a controller owns, adopts because it selects them, or lets go because it no longer does."""

from collections.abc import Iterable

from kubereef.controllers.batches import for_each
from kubereef.controllers.caches import Cache, Key
from kubereef.controllers.pods import is_deleting
from kubereef.controllers.runtime import Hands
from kubereef.kinds.resource import Object
from kubewire import errors
from kubewire.owners import controller_of, is_controlled_by, owner_references
from kubewire.selectors import LabelSelector

UNCONTROLLED = "uncontrolled"


def uncontrolled(obj: Object) -> list[str]:
    """Index what nothing controls by its namespace, for whoever may adopt it."""
    return [obj["metadata"].get("namespace", "")] if controller_of(obj) is None else []


def selector_of(owner: Object) -> LabelSelector:
    """Return which objects an owner selects; an empty selector selects nothing here, so as not to take everything."""
    selector = LabelSelector.of((owner.get("spec") or {}).get("selector"))
    return selector if selector.requirements else LabelSelector(chooses_nothing=True)


class Claims:
    """The objects of one resource that belong to owners of another, by reference and by selector.

    What an owner has carries the `finalizer`, if there is one: it comes with adoption and goes with release.
    """

    def __init__(self, hands: Hands, owners: Cache, things: Cache, finalizer: str = "") -> None:
        self._finalizer = finalizer
        self._hands = hands
        self._owners = owners
        self._things = things
        things.index(UNCONTROLLED, uncontrolled)

    def owners_of(self, thing: Object) -> Iterable[Key]:
        """Return the owner of a thing, or those that may want to adopt it."""
        controller = controller_of(thing)
        namespace = thing["metadata"].get("namespace", "")
        if controller is not None:
            resource = self._owners.resource
            if (controller["kind"], controller["apiVersion"]) != (resource.kind, resource.api_version):
                return []
            return [Key(namespace, controller["name"])]
        labels = thing["metadata"].get("labels")
        if not labels:
            return []
        candidates = self._owners.in_namespace(namespace)
        return [Key.of(owner) for owner in candidates if selector_of(owner).matches(labels)]

    def of(self, owner: Object) -> list[Object]:
        """Return what an owner controls."""
        uid = owner["metadata"]["uid"]
        return [thing for thing in self._things.owned_by(uid) if is_controlled_by(thing, uid)]

    async def settle(self, owner: Object, eligible: Iterable[Object] | None = None) -> None:
        """Adopt what the owner selects and release what it does not, unless the owner is going.

        Only what is among the `eligible` is adopted or released, if these are given.
        """
        if is_deleting(owner):
            return
        selector = selector_of(owner)
        among = None if eligible is None else {thing["metadata"]["uid"] for thing in eligible}

        def may_change(thing: Object) -> bool:
            return not is_deleting(thing) and (among is None or thing["metadata"]["uid"] in among)

        strangers = [
            thing for thing in self.of(owner) if may_change(thing) and not selector.matches(_labels(thing))
        ]
        await for_each(strangers, lambda thing: self._release(owner, thing))
        orphans = [
            thing
            for thing in self._things.by(UNCONTROLLED, owner["metadata"]["namespace"])
            if may_change(thing) and selector.matches(_labels(thing))
        ]
        if orphans and await self._is_still_there(owner):
            await for_each(orphans, lambda thing: self._adopt(owner, thing))

    def orphans(self, namespace: str) -> list[Object]:
        """Return what nothing controls in a namespace."""
        return self._things.by(UNCONTROLLED, namespace)

    async def _is_still_there(self, owner: Object) -> bool:
        """Ask whether the owner lives: one that is going must not keep things from others."""
        try:
            live = await self._hands.get(self._owners.resource, Key.of(owner))
        except errors.NotFound:
            return False
        return live["metadata"]["uid"] == owner["metadata"]["uid"] and not is_deleting(live)

    async def _adopt(self, owner: Object, thing: Object) -> None:
        references = [*owner_references(thing), self._owners.resource.reference_to(owner)]
        finalizers = thing["metadata"].get("finalizers") or []
        if self._finalizer and self._finalizer not in finalizers:
            finalizers = [*finalizers, self._finalizer]
        await self._refer(thing, references, finalizers)

    async def _release(self, owner: Object, thing: Object) -> None:
        uid = owner["metadata"]["uid"]
        references = [one for one in owner_references(thing) if one["uid"] != uid]
        finalizers = [one for one in thing["metadata"].get("finalizers") or () if one != self._finalizer]
        await self._refer(thing, references, finalizers)

    async def _refer(self, thing: Object, references: list[Object], finalizers: list[str]) -> None:
        """Change who owns a thing, if it is still the one that is known; one that is gone needs no change."""
        version = thing["metadata"]["resourceVersion"]
        metadata = {"ownerReferences": references or None, "finalizers": finalizers or None}
        try:
            await self._hands.patch(
                self._things.resource, thing, {"metadata": {"resourceVersion": version, **metadata}}
            )
        except errors.NotFound:
            self._things.saw_deleted(thing)


def _labels(thing: Object) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels") or {}
    return labels
