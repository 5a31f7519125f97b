"""Custom resources come and go with their definitions: names are given, resources served, objects cleaned up.

All of it follows from what is stored. It is done right after each write that may lead to it, before that write is
answered, so that whoever has created a definition can use it at once; and once at the start, for what an earlier
process did not get to.
"""

import asyncio
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import NamedTuple

from kubereef.kinds.behaviours.definitions import CLEANUP
from kubereef.kinds.custom import DEFINITIONS, custom_types, stored_type
from kubereef.kinds.custom.conditions import accept_names, is_true, set_approval, set_condition
from kubereef.kinds.resource import Object, ResourceType, TableMoment
from kubereef.server.answers import Wish
from kubereef.server.calls import Call
from kubereef.server.core import Server
from kubereef.server.deleting import delete_record
from kubereef.server.media import Form
from kubereef.server.options import DeleteOptions
from kubereef.server.requests import AUTHENTICATED, MASTERS, Request, User
from kubereef.server.routing import Target
from kubereef.store.errors import Conflict, WriteFailed
from kubereef.store.records import Key, Record, encode
from kubereef.store.watchers import CutOff, Watcher
from kubewire import errors
from kubewire.times import format_time

_USER = User("system:apiserver", (MASTERS, AUTHENTICATED))
# So many objects are deleted together, so that a store on disk takes them in one commit.
_BATCH = 200

# The conditions that decide whether and how a definition is served.
_DECISIVE = ("NamesAccepted", "Established", "Terminating")


class _Served(NamedTuple):
    """What is served because of a definition, and what of the definition it was made from."""

    types: tuple[ResourceType, ...]
    spec: Object
    names: Object
    # Those of the decisive conditions that are true.
    conditions: frozenset[str]
    changed_at: int


class Definitions:
    """Keeps the registry in line with the stored definitions, and the definitions' status with the facts."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._around = server.around
        self._store = server.around.store
        self._registry = server.around.registry
        self._builtin = frozenset(found.resource for found in self._registry if not found.custom)
        self._served: dict[str, _Served] = {}
        self._unsettled: dict[str, None] = {}
        self._one_at_a_time = asyncio.Lock()
        self._under_way: set[asyncio.Task[None]] = set()
        self._watcher = self._begin()
        server.consequences[DEFINITIONS] = self.follow

    async def follow(self) -> None:
        """Bring everything in line with the definitions as they are now, even if whoever waits for it goes away."""
        task = asyncio.create_task(self._catch_up())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        await asyncio.shield(task)

    async def stop(self) -> None:
        """Finish what is under way and follow no more."""
        while self._under_way:
            await asyncio.wait(self._under_way)
        self._watcher.close()

    # --- what is served

    def _begin(self) -> Watcher:
        """Take over all definitions that are stored."""
        stored = {record.key.name: record for record in self._store.records(DEFINITIONS)}
        for name in [name for name in self._served if name not in stored]:
            self._withdraw(name)
        for record in stored.values():
            self._take(record)
        return self._store.watch(DEFINITIONS, self._store.revision)

    def _drain(self) -> None:
        """Take over the changes of definitions since last time."""
        try:
            changes = self._watcher.drain()
        except CutOff:
            self._watcher = self._begin()
            return
        for change in changes:
            if change.type == "DELETED":
                self._withdraw(change.key.name)
                self._reconsider(change.record.object()["spec"]["group"])
            else:
                self._take(change.record)

    def _take(self, record: Record) -> None:
        """Serve what a definition says, unless that is served already."""
        definition = record.object()
        name = record.key.name
        self._unsettled[name] = None
        before = self._served.get(name)
        names = definition["status"].get("acceptedNames") or {}
        conditions = frozenset(one for one in _DECISIVE if is_true(definition, one))
        is_changed = before is None or before.spec != definition["spec"]
        if before is not None and not is_changed and (before.names, before.conditions) == (names, conditions):
            return
        changed_at = before.changed_at if before is not None else 0
        if is_changed and definition["metadata"].get("generation", 1) > 1:
            changed_at = record.revision
        # What Kubernetes has itself is not replaced by a definition of the same name.
        types = () if name in self._builtin else tuple(custom_types(definition, changed_at))
        self._serve(name, _Served(types, definition["spec"], names, conditions, changed_at))
        if is_changed and before is not None:
            # Watches show objects in the form of the old definition; clients begin anew where they were.
            self._end_watches(name)

    def _serve(self, name: str, wanted: _Served) -> None:
        versions = {one.version for one in wanted.types}
        for old in self._served[name].types if name in self._served else ():
            if old.version not in versions:
                self._registry.remove(old.group, old.version, old.plural)
        self._served[name] = wanted
        for new in wanted.types:
            self._registry.add(new)

    def _withdraw(self, name: str) -> None:
        """Serve a definition's objects no longer."""
        before = self._served.pop(name, None)
        for old in before.types if before is not None else ():
            self._registry.remove(old.group, old.version, old.plural)
        self._unsettled.pop(name, None)
        self._server.consequences.pop(name, None)
        self._end_watches(name)

    def _end_watches(self, name: str) -> None:
        if name not in self._builtin:
            self._store.end_watches(name)

    def _reconsider(self, group: str) -> None:
        """Look again at definitions that did not get their names: these may be free now."""
        for name, one in self._served.items():
            if one.spec["group"] == group and "NamesAccepted" not in one.conditions:
                self._unsettled[name] = None

    # --- what follows

    async def _catch_up(self) -> None:
        async with self._one_at_a_time:
            self._drain()
            while self._unsettled:
                name = next(iter(self._unsettled))
                del self._unsettled[name]
                try:
                    # Whoever writes to it meanwhile brings it here again.
                    with suppress(Conflict):
                        await self._settle(name)
                except WriteFailed:
                    self._unsettled[name] = None
                    raise
                self._drain()

    async def _settle(self, name: str) -> None:
        record = self._store.latest(Key(DEFINITIONS, "", name))
        if record is None:
            return
        definition = record.object()
        if definition["metadata"].get("deletionTimestamp"):
            if CLEANUP in (definition["metadata"].get("finalizers") or ()):
                await self._clean_up(record, definition)
            return
        group = definition["spec"]["group"]
        taken = [
            one.names for other, one in self._served.items() if other != name and one.spec["group"] == group
        ]
        now = self._now()
        accept_names(definition, taken, now)
        set_approval(definition, now)
        await self._keep(record, definition)

    async def _clean_up(self, record: Record, definition: Object) -> None:
        """Delete the objects of a definition that is to go, and let it go when none is left."""
        name = record.key.name
        now = self._now()
        if name in self._builtin:
            because = ("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
        elif not is_true(definition, "Established"):
            because = ("NeverEstablished", "resource was never established")
        else:
            failure = await self._delete_objects(name, definition)
            if failure or self._store.count(name):
                # Whoever removes the last of them brings this here again.
                self._server.consequences[name] = partial(self._look_again, name)
                reason = "InstanceDeletionFailed" if failure else "InstanceDeletionInProgress"
                message = failure or "CustomResource deletion is in progress"
                set_condition(definition, "Terminating", "True", reason, message, now)
                await self._keep(record, definition)
                return
            because = ("InstanceDeletionCompleted", "removed all instances")
        set_condition(definition, "Terminating", "False", *because, now)
        meta = definition["metadata"]
        meta["finalizers"] = [one for one in meta["finalizers"] if one != CLEANUP]
        if meta["finalizers"]:
            await self._keep(record, definition)
            return
        del meta["finalizers"]
        await self._store.remove(record.key, definition, record).done()

    async def _look_again(self, name: str) -> None:
        """Go on with the clean-up of a definition if none of its objects is left."""
        if not self._store.count(name):
            self._unsettled[name] = None
            await self.follow()

    async def _delete_objects(self, name: str, definition: Object) -> str:
        """Delete all objects of a definition; what is returned says why that did not work, if it did not."""
        call = self._deletion(stored_type(definition, self._served[name].changed_at))
        records = iter(list(self._store.records(name)))
        while batch := list(islice(records, _BATCH)):
            deletions = (self._delete(call, record) for record in batch)
            results = await asyncio.gather(*deletions, return_exceptions=True)
            for failure in results:
                if isinstance(failure, errors.ApiError):
                    return f"could not issue all deletes: {failure.message}"
                if isinstance(failure, BaseException):
                    raise failure
        return ""

    async def _delete(self, call: Call, record: Record) -> None:
        latest = self._store.latest(record.key)
        if latest is not None:
            await delete_record(call, latest, DeleteOptions())

    def _deletion(self, resource_type: ResourceType) -> Call:
        target = Target("delete", "", resource_type.group, resource_type.version, is_resource=True)
        wish = Wish(Form(), "", TableMoment(self._around.clock.now().timestamp()))
        return Call(self._around, Request("DELETE", ""), target, resource_type, _USER, wish, [])

    async def _keep(self, record: Record, definition: Object) -> None:
        # Reading one takes far longer than writing one, and what was only looked at is written as it was.
        if encode(definition) != record.data:
            await self._store.put(record.key, definition, record).done()

    def _now(self) -> str:
        return format_time(self._around.clock.now())
