"""Writes whose answers the caches know at once, so that no pass plans from a world older than its own deeds."""

from collections.abc import Mapping, Sequence
from typing import Any

from eagleray.kube.client import Client
from eagleray.kube.informers import Informers
from eagleray.kube.requests import PatchKind, Propagation, Selection
from eagleray.kube.resources import Object, Ref, Resource
from kubewire import errors
from kubewire.owners import controller_of


class NameTaken(errors.Conflict):
    """The name of a child belongs to an object that is not the child, or to one that is on its way out."""


class Writer:
    """Writes under one field manager's name, and tells the caches."""

    def __init__(self, client: Client, informers: Informers, manager: str = "eagleray") -> None:
        self._client = client
        self._informers = informers
        self._manager = manager

    async def create(self, resource: Resource, obj: Mapping[str, Any]) -> Object:
        """Create an object; AlreadyExists if there is one of its name, whoever made it."""
        return self._saw(resource, await self._client.create(resource, obj, manager=self._manager))

    async def create_child(self, resource: Resource, obj: Mapping[str, Any]) -> Object:
        """Create an object under the name that its owner's controller chose for it; once is enough.

        If it exists already, an earlier request whose answer was lost made it: that is as good, provided that
        the same owner controls it and that it is not on its way out. Otherwise NameTaken says who has the name.
        """
        try:
            return await self.create(resource, obj)
        except errors.AlreadyExists as taken:
            metadata = obj["metadata"]
            try:
                found = await self._client.get(resource, metadata.get("namespace", ""), metadata["name"])
            except errors.NotFound:
                raise taken from None  # it went in between: the next pass finds the name free
            _require_same_controller(resource, obj, found, taken)
            return self._saw(resource, found)

    async def replace(self, resource: Resource, obj: Mapping[str, Any], *, part: str = "") -> Object:
        """Have an object become this one, if it is still at the version that this one has."""
        answer = await self._client.replace(resource, obj, part=part, manager=self._manager)
        return self._left(resource, answer)

    async def patch(
        self,
        resource: Resource,
        ref: Ref,
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        kind: PatchKind = "merge",
        *,
        part: str = "",
        force: bool = False,
    ) -> Object:
        """Change an object, if it is still at the version of the reference."""
        answer = await self._client.patch(
            resource, ref, change, kind, part=part, manager=self._manager, force=force
        )
        return self._left(resource, answer)

    async def patch_status(self, resource: Resource, ref: Ref, status: Mapping[str, Any]) -> Object:
        """Merge this into the status of an object, if it is still at the version of the reference."""
        return await self.patch(resource, ref, {"status": status}, part="status")

    async def delete(
        self,
        resource: Resource,
        ref: Ref,
        *,
        propagation: Propagation | None = "Background",
        grace_seconds: int | None = None,
    ) -> None:
        """Delete this very object; that it is gone already is as good. The reference must have its uid."""
        if not ref.uid:
            raise ValueError(f"{resource} {ref.key}: only an object whose uid is known is deleted")
        try:
            answer = await self._client.delete(
                resource, ref, propagation=propagation, grace_seconds=grace_seconds
            )
        except errors.NotFound:
            self._informers.saw_deleted(resource, ref)
            return
        except errors.Conflict:
            # Either the name belongs to another object by now, or this one has changed since it was observed.
            if await self._is_there(resource, ref):
                raise
            self._informers.saw_deleted(resource, ref)
            return
        if _is_held(answer):
            self._saw(resource, answer)
        else:
            self._informers.saw_deleted(resource, ref)

    async def delete_collection(self, resource: Resource, selection: Selection) -> None:
        """Delete whatever is selected. The answer does not say what became of each, so they are listed afterwards."""
        deleted = await self._client.delete_collection(resource, selection)
        left = await self._client.list(resource, selection)
        for obj in left:
            self._saw(resource, obj)
        uids = {obj["metadata"]["uid"] for obj in left}
        for ref in map(Ref.of, deleted):
            if ref.uid not in uids:
                self._informers.saw_deleted(resource, ref)

    async def _is_there(self, resource: Resource, ref: Ref) -> bool:
        try:
            present = await self._client.get(resource, ref.namespace, ref.name)
        except errors.NotFound:
            return False
        self._saw(resource, present)
        return bool(present["metadata"]["uid"] == ref.uid)

    def _left(self, resource: Resource, obj: Object) -> Object:
        """Know an object as a change left it: one that only waited for this, such as its last finalizer, is gone."""
        if obj["metadata"].get("deletionTimestamp") and not _is_held(obj):
            self._informers.saw_deleted(resource, Ref.of(obj))
            return obj
        return self._saw(resource, obj)

    def _saw(self, resource: Resource, obj: Object) -> Object:
        self._informers.saw(resource, obj)
        return obj


def _is_held(answer: Object) -> bool:
    """Tell whether something keeps an object there whose deletion was asked for; a Status says that it is gone."""
    left = answer.get("metadata") or {}
    return bool(left.get("finalizers") or left.get("deletionGracePeriodSeconds"))


def _require_same_controller(
    resource: Resource, wanted: Mapping[str, Any], found: Object, taken: errors.AlreadyExists
) -> None:
    """Raise NameTaken, which names the other owner, unless the object that was found is the one that was wanted."""
    mine, theirs = controller_of(wanted), controller_of(found)
    name = found["metadata"]["name"]
    if mine is None:
        raise taken
    if theirs is None or theirs.get("uid") != mine.get("uid"):
        if theirs is None:
            whose = "which nobody controls"
        else:
            whose = f"which belongs to {theirs.get('kind')} {theirs.get('name')} (uid {theirs.get('uid')})"
        because = f"an object of this name exists, {whose}; delete or rename one of them"
        raise _taken(resource, name, because) from taken
    if found["metadata"].get("deletionTimestamp"):
        because = "the object of this name is being deleted; it is made anew once that one is gone"
        raise _taken(resource, name, because) from taken


def _taken(resource: Resource, name: str, because: str) -> NameTaken:
    told = errors.conflict(resource.plural, name, because, group=resource.group)
    return NameTaken(told.message, details=told.details)
