"""Objects as controllers see them: kept by a watch, found by name and by index, never behind our own writes."""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Literal, NamedTuple, TypeVar

from eagleray.kube.resources import Key, Object, Ref
from eagleray.kube.views import Metadata, View
from kubewire.selectors import FieldSelector, LabelSelector

T = TypeVar("T")

log = logging.getLogger(__name__)

# How a change became known: with all that there is, from the watch, or from the answer to our own write.
Cause = Literal["list", "watch", "write"]


class Change(NamedTuple, Generic[T]):
    """What happened to one object: it came (`old` is None), went (`new` is None) or changed."""

    key: Key
    old: T | None
    new: T | None
    cause: Cause


Listener = Callable[[Change[T]], None]
# A word under which objects are found: of an index, and whatever tells them apart there.
_Word = tuple[str, str, str]


class _Entry(Generic[T]):
    """An object with what its cache needs to know."""

    __slots__ = ("uid", "value", "version", "words")

    def __init__(self, uid: str, version: int, words: tuple[_Word, ...], value: T) -> None:
        self.uid = uid
        self.version = version
        self.words = words
        self.value = value


class Cache(Generic[T]):
    """The selected objects of one resource. They are shared by everybody: read them, copy what is to be changed.

    Of two versions of an object the newer one stays, wherever it came from. So what the server answered to a write is
    there at once, and older news that the watch brings later changes nothing. An object whose deletion
    was accepted is gone at once, and news from its lifetime does not bring it back.

    What comes out has the order in which it went in, so that the same history leads to the same decisions.
    """

    def __init__(
        self,
        view: View[T],
        *,
        scopes: Iterable[str] = ("",),
        label_selector: str = "",
        field_selector: str = "",
        labels: Iterable[str] = (),
    ) -> None:
        self._view = view
        self._selects_labels = LabelSelector.parse(label_selector)
        self._selects_fields = FieldSelector.parse(field_selector)
        self._indexed_labels = tuple(dict.fromkeys(labels))
        self._entries: dict[Key, _Entry[T]] = {}
        self._found: dict[_Word, dict[Key, None]] = {}
        self._listeners: list[Listener[T]] = []
        # Up to where the watch of a scope (a namespace, or "" for all of them) has told everything.
        self._told: dict[str, int] = dict.fromkeys(scopes, 0)
        # Objects whose deletion was answered before the watch told of it, by uid, with the version last known.
        self._gone: dict[str, tuple[Key, int]] = {}

    # --- reading

    def get(self, key: tuple[str, str]) -> T | None:
        """Return an object by namespace and name."""
        entry = self._entries.get(Key(*key))
        return entry.value if entry is not None else None

    def ref(self, key: tuple[str, str]) -> Ref | None:
        """Return the identity and version of an object, as a change or deletion of it needs them."""
        entry = self._entries.get(Key(*key))
        return Ref(*key, entry.uid, str(entry.version)) if entry is not None else None

    def owned_by(self, uid: str) -> list[T]:
        """Return the objects that have an owner of this uid."""
        return self._under(("owner", uid, ""))

    def labelled(self, namespace: str, label: str, value: str) -> list[T]:
        """Return the objects of a namespace with this value of an indexed label."""
        if label not in self._indexed_labels:
            raise KeyError(f"label {label!r} has no index; the indexed ones are {self._indexed_labels}")
        return self._under((f"label {label}", namespace, value))

    def in_namespace(self, namespace: str) -> list[T]:
        return self._under(("namespace", namespace, ""))

    def __iter__(self) -> Iterator[T]:
        return iter([entry.value for entry in self._entries.values()])

    def refs(self) -> list[Ref]:
        """Return the identities and versions of all objects."""
        return [Ref(*key, entry.uid, str(entry.version)) for key, entry in self._entries.items()]

    def __len__(self) -> int:
        return len(self._entries)

    def listen(self, listener: Listener[T]) -> None:
        """Have a function told of every change; of all that is there already, at once."""
        self._listeners.append(listener)
        for key, entry in list(self._entries.items()):
            self._tell(listener, Change(key, None, entry.value, "list"))

    # --- our own writes

    def saw(self, obj: Object) -> None:
        """Know an object as the server answered it, before the watch tells of it."""
        meta, value = self._view.of_object(obj)
        version = int(meta.resource_version)
        if version <= self._told_of(meta.namespace) or meta.uid in self._gone:
            return  # the watch has told of it, and perhaps of its end
        if self._selects(meta, obj):
            self._put(meta, version, value, "write")
        else:
            self._drop(meta.key, meta.uid, version, "write")

    def saw_deleted(self, ref: Ref) -> None:
        """Know that the server has removed an object, before the watch tells of it."""
        entry = self._entries.get(ref.key)
        if entry is not None and entry.uid == ref.uid:
            self._gone[ref.uid] = (ref.key, entry.version)
            self._remove(ref.key, "write")

    # --- what the watch tells

    def replace(self, scope: str, objects: list[tuple[Metadata, T]], version: int) -> None:
        """Take these for all objects that a scope has at a version.

        An object that we wrote later stays, and one whose deletion was accepted later does not come back. But where
        a list is older than what the watch has told, the server was set back to an earlier time, and nothing that is
        known here counts any more.
        """
        if version < self._told[scope]:
            log.warning("the server was set back from version %d to %d", self._told[scope], version)
            self._forget(scope)
        self._told[scope] = version
        listed = {meta.key: meta.uid for meta, _ in objects}
        for key, entry in list(self._entries.items()):
            missing = listed.get(key) != entry.uid
            if missing and entry.version <= version and _is_in(key, scope):
                self._remove(key, "list")
        uids = {meta.uid for meta, _ in objects}
        for uid, (key, last) in list(self._gone.items()):
            if uid not in uids and last <= version and _is_in(key, scope):
                del self._gone[uid]
        for meta, value in objects:
            if meta.uid not in self._gone:
                self._put(meta, int(meta.resource_version), value, "list")

    def apply(self, scope: str, kind: str, raw: tuple[Metadata, T]) -> int:
        """Take over an event (ADDED, MODIFIED, DELETED); returns the version up to which everything is known now."""
        meta, value = raw
        version = int(meta.resource_version)
        self._told[scope] = max(version, self._told[scope])
        if kind == "DELETED":
            self._gone.pop(meta.uid, None)
            self._drop(meta.key, meta.uid, version, "watch")
        elif meta.uid not in self._gone:
            self._put(meta, version, value, "watch")
        return version

    def reached(self, scope: str, version: int) -> None:
        """Know from a bookmark that the watch has told everything up to a version."""
        self._told[scope] = max(version, self._told[scope])

    # --- inside

    def _forget(self, scope: str) -> None:
        for key in [key for key in self._entries if _is_in(key, scope)]:
            self._remove(key, "list")
        self._gone = {uid: gone for uid, gone in self._gone.items() if not _is_in(gone[0], scope)}

    def _under(self, word: _Word) -> list[T]:
        return [self._entries[key].value for key in self._found.get(word, ())]

    def _told_of(self, namespace: str) -> int:
        return self._told.get(namespace, self._told.get("", 0))

    def _selects(self, meta: Metadata, obj: Object) -> bool:
        """Whether the watch would tell of this object."""
        if "" not in self._told and meta.namespace not in self._told:
            return False
        return self._selects_labels.matches(meta.labels) and self._selects_fields.matches(
            lambda path: _field(obj, path)
        )

    def _words(self, meta: Metadata) -> tuple[_Word, ...]:
        labels = meta.labels or {}
        words: list[_Word] = [("namespace", meta.namespace, "")]
        words += [("owner", uid, "") for uid in dict.fromkeys(meta.owners)]
        words += [
            (f"label {label}", meta.namespace, labels[label])
            for label in self._indexed_labels
            if label in labels
        ]
        return tuple(words)

    def _put(self, meta: Metadata, version: int, value: T, cause: Cause) -> None:
        key = meta.key
        old = self._entries.get(key)
        if old is not None:
            if old.version >= version:
                return
            if old.uid != meta.uid:
                self._remove(key, cause)
                old = None
        entry = _Entry(meta.uid, version, self._words(meta), value)
        before = old.words if old is not None else ()
        if before != entry.words:
            self._unindex(key, (word for word in before if word not in entry.words))
            for word in entry.words:
                self._found.setdefault(word, {})[key] = None
        self._entries[key] = entry
        self._announce(Change(key, old.value if old is not None else None, value, cause))

    def _drop(self, key: Key, uid: str, version: int, cause: Cause) -> None:
        """Let go of an object that has ended or left the selection, unless something newer is known of it."""
        entry = self._entries.get(key)
        if entry is not None and entry.uid == uid and entry.version <= version:
            self._remove(key, cause)

    def _remove(self, key: Key, cause: Cause) -> None:
        entry = self._entries.pop(key)
        self._unindex(key, entry.words)
        self._announce(Change(key, entry.value, None, cause))

    def _unindex(self, key: Key, words: Iterable[_Word]) -> None:
        for word in words:
            keys = self._found[word]
            keys.pop(key, None)
            if not keys:
                del self._found[word]

    def _announce(self, change: Change[T]) -> None:
        for listener in self._listeners:
            self._tell(listener, change)

    def _tell(self, listener: Listener[T], change: Change[T]) -> None:
        try:
            listener(change)
        except Exception:
            # A listener's fault must not make the cache miss an event, nor keep the news from other listeners.
            log.exception("a listener failed over %s", change.key)


def _is_in(key: Key, scope: str) -> bool:
    return not scope or key.namespace == scope


def _field(obj: Object, path: str) -> str:
    """Return the text of a field that selectors name by a dotted path; "" if there is none."""
    value: object = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
