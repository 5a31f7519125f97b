"""Objects as controllers see them: kept up to date by a watch, found by name and by index, and never behind
the controllers' own writes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from kubereef.controllers.following import Reader, follow
from kubereef.controllers.listeners import Listeners
from kubereef.controllers.resources import Resource
from kubereef.kinds.resource import Object
from kubewire.owners import owner_references


class Key(NamedTuple):
    """Which object of a resource; `namespace` is empty for what belongs to no namespace."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Object) -> "Key":
        meta = obj["metadata"]
        return cls(meta.get("namespace", ""), meta["name"])

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


# Under which words an object is found in an index.
Index = Callable[[Object], list[str]]
Listener = Callable[[Object | None, Object | None], None]


def by_namespace(obj: Object) -> list[str]:
    return [obj["metadata"].get("namespace", "")]


def by_owner(obj: Object) -> list[str]:
    """Index by the uids of the owners."""
    return [owner.get("uid", "") for owner in owner_references(obj)]


def by_labels(obj: Object) -> list[str]:
    """Index by every label, within the namespace."""
    return label_words(obj["metadata"].get("namespace", ""), obj["metadata"].get("labels") or {})


def label_words(namespace: str, labels: Mapping[str, str]) -> list[str]:
    """Return under which words `by_labels` has an object that carries these labels."""
    return [f"{namespace} {label}={value}" for label, value in labels.items()]


def by_label(label: str) -> Index:
    """Index by the value of a label."""

    def value_of(obj: Object) -> list[str]:
        labels = obj["metadata"].get("labels") or {}
        return [labels[label]] if label in labels else []

    return value_of


class Cache:
    """All objects of one resource. They are shared by everybody: read them, copy what is to be changed.

    What comes out of the cache has the order in which it went in, so that the same history leads to the same decisions.
    """

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self._objects: dict[Key, Object] = {}
        self._indexes: dict[str, tuple[Index, dict[str, dict[Key, None]]]] = {}
        self._listeners: Listeners[Object] = Listeners()
        self._revision = 0
        # Objects that this process saw deleted before the watch did: older news of them must not bring them back.
        self._gone: dict[str, None] = {}
        self.index("namespace", by_namespace)
        self.index("owner", by_owner)

    # --- reading

    def get(self, key: tuple[str, str]) -> Object | None:
        """Return an object by namespace and name."""
        return self._objects.get(key)  # type: ignore[call-overload,no-any-return]  # a Key is its tuple

    def __iter__(self) -> Iterator[Object]:
        return iter(list(self._objects.values()))

    def __len__(self) -> int:
        return len(self._objects)

    def by(self, index: str, value: str) -> list[Object]:
        """Return the objects that an index has under a value."""
        return [self._objects[key] for key in self._indexes[index][1].get(value, ())]

    def by_rarest(self, index: str, values: Iterable[str]) -> list[Object]:
        """Return the objects that an index has under that one of the values which has the fewest."""
        found = self._indexes[index][1]
        rarest: dict[Key, None] | None = None
        for value in values:
            keys = found.get(value, {})
            if rarest is None or len(keys) < len(rarest):
                rarest = keys
        return [self._objects[key] for key in rarest or ()]

    def in_namespace(self, namespace: str) -> list[Object]:
        return self.by("namespace", namespace)

    def owned_by(self, uid: str) -> list[Object]:
        """Return the objects that have an owner of this uid."""
        return self.by("owner", uid)

    def index(self, name: str, words: Index) -> None:
        """Keep an index from now on; one of the same name stays as it is."""
        if name in self._indexes:
            return
        found: dict[str, dict[Key, None]] = {}
        self._indexes[name] = (words, found)
        for key, obj in self._objects.items():
            for word in words(obj):
                found.setdefault(word, {})[key] = None

    def listen(self, listener: Listener) -> None:
        """Have a function told of every change; of all that is there already, at once."""
        self._listeners.add(listener)
        for obj in self:
            listener(None, obj)

    # --- our own writes

    def saw(self, obj: Object) -> None:
        """Know an object as the server answered it, before the watch tells of it."""
        if _version(obj) > self._revision:
            self._put(obj)

    def saw_deleted(self, obj: Object) -> None:
        """Know that the server has removed an object, before the watch tells of it."""
        held = self._objects.get(Key.of(obj))
        uid = obj["metadata"]["uid"]
        if held is not None and held["metadata"]["uid"] == uid:
            self._gone[uid] = None
            self._remove(Key.of(obj))

    # --- what the watch tells (see following.Sink)

    def replace(self, objects: list[Object], revision: int) -> None:
        self._revision = revision
        present = {Key.of(obj): obj for obj in objects}
        missing = [key for key in self._objects if key not in present]
        for key in missing:
            if _version(self._objects[key]) <= revision:
                self._remove(key)
        uids = {obj["metadata"]["uid"] for obj in objects}
        self._gone = {uid: None for uid in self._gone if uid in uids}
        for obj in objects:
            if obj["metadata"]["uid"] not in self._gone:
                self._put(obj)
        self.synced.set()

    def apply(self, kind: str, obj: Object, revision: int) -> None:
        self._revision = revision
        key = Key.of(obj)
        uid = obj["metadata"]["uid"]
        if kind == "DELETED":
            self._gone.pop(uid, None)
            held = self._objects.get(key)
            if held is not None and held["metadata"]["uid"] == uid:
                self._remove(key)
        elif uid not in self._gone:
            self._put(obj)

    # --- inside

    def _put(self, obj: Object) -> None:
        key = Key.of(obj)
        old = self._objects.get(key)
        if old is not None:
            if _version(old) >= _version(obj):
                return
            if old["metadata"]["uid"] != obj["metadata"]["uid"]:
                self._remove(key)
                old = None
        self._reindex(key, old, obj)
        self._objects[key] = obj
        self._listeners.tell(old, obj)

    def _remove(self, key: Key) -> None:
        old = self._objects.pop(key)
        self._reindex(key, old, None)
        self._listeners.tell(old, None)

    def _reindex(self, key: Key, old: Object | None, new: Object | None) -> None:
        for words, found in self._indexes.values():
            before = words(old) if old is not None else []
            after = words(new) if new is not None else []
            if before == after:
                continue
            for word in before:
                if word not in after:
                    keys = found[word]
                    keys.pop(key, None)
                    if not keys:
                        del found[word]
            for word in after:
                found.setdefault(word, {})[key] = None


class Caches:
    """The caches that controllers share, each filled by one list and one watch."""

    def __init__(self, client: Reader) -> None:
        self._client = client
        self._caches: dict[Resource, Cache] = {}
        self._tasks: dict[Resource, asyncio.Task[None]] = {}

    def of(self, resource: Resource) -> Cache:
        """Return the cache of a resource; ask before the caches are started."""
        return self._caches.setdefault(resource, Cache(resource))

    @property
    def all(self) -> Mapping[Resource, Cache]:
        return self._caches

    async def start(self) -> None:
        """Fill the caches; return when each has been filled once."""
        for resource, cache in self._caches.items():
            if resource not in self._tasks:
                name = f"cache of {resource.plural}"
                self._tasks[resource] = asyncio.create_task(self._fill(cache), name=name)
        for cache in list(self._caches.values()):
            await cache.synced.wait()

    async def _fill(self, cache: Cache) -> None:
        await follow(self._client, cache.resource.url(), cache)
        cache.synced.set()  # what is not served has no objects

    async def stop(self) -> None:
        """Let go of the watches."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def saw(self, resource: Resource, obj: Object) -> None:
        if resource in self._caches:
            self._caches[resource].saw(obj)

    def saw_deleted(self, resource: Resource, obj: Object) -> None:
        if resource in self._caches:
            self._caches[resource].saw_deleted(obj)


def _version(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])
