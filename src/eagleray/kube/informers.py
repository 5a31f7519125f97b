"""Caches that fill themselves: each lists its objects once, then watches, and goes on wherever the watch ends."""

import asyncio
import logging
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from eagleray.kube.cache import Cache
from eagleray.kube.client import Client, WatchEvent
from eagleray.kube.requests import Selection
from eagleray.kube.resources import Object, Ref, Resource
from eagleray.kube.retries import Backoff
from eagleray.kube.transport import TransportError
from eagleray.kube.views import Metadata, View
from kubewire import errors
from kubewire.sources import Clock, Entropy

T = TypeVar("T")

log = logging.getLogger(__name__)

_INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Timing(NamedTuple):
    """How an informer deals with time, in seconds."""

    # How long one watch is asked to last; each takes its own time in between, so that not all end at once.
    shortest_watch: float = 300.0
    longest_watch: float = 600.0
    # A server tells at least about once a minute how far it is. Whoever says nothing for longer than this is dead.
    silence: float = 150.0
    # How long all that there is may take to arrive by way of a watch.
    beginning: float = 120.0
    first_pause: float = 0.2
    longest_pause: float = 30.0
    # A watch that ends sooner, and without an event, was no success.
    worthwhile: float = 5.0


class _Bookmark(msgspec.Struct, rename="camel"):
    class Metadata(msgspec.Struct, rename="camel"):
        resource_version: str
        annotations: dict[str, str] | None = None

    metadata: Metadata

    @property
    def ends_beginning(self) -> bool:
        return (self.metadata.annotations or {}).get(_INITIAL_EVENTS_END) == "true"


_bookmarks = msgspec.json.Decoder(_Bookmark)


class _NoBeginning(Exception):
    """The server does not say where all that there is ends: it knows nothing of watches that begin with it."""


class Informer(Generic[T]):
    """Keeps one cache up to date: a watch for each namespace, or one for all of them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        resource: Resource,
        view: View[T],
        *,
        namespaces: Iterable[str] = (),
        label_selector: str = "",
        field_selector: str = "",
        labels: Iterable[str] = (),
        timing: Timing | None = None,
    ) -> None:
        self.resource = resource
        scopes = tuple(dict.fromkeys(namespaces)) if resource.namespaced else ()
        selections = [Selection(scope, label_selector, field_selector) for scope in scopes or ("",)]
        self.cache: Cache[T] = Cache(
            view,
            scopes=scopes or ("",),
            label_selector=label_selector,
            field_selector=field_selector,
            labels=labels,
        )
        timing = timing or Timing()
        self._followers = [
            _Follower(client, clock, entropy, resource, view, self.cache, selection, timing)
            for selection in selections
        ]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_synced(self) -> bool:
        """Whether the cache has been filled once."""
        return all(follower.synced.is_set() for follower in self._followers)

    @property
    def problem(self) -> str:
        """What keeps the cache from being up to date, in words; empty if nothing is known to."""
        return "; ".join(follower.problem for follower in self._followers if follower.problem)

    def start(self) -> None:
        """Begin to fill the cache; it is not there yet when this returns."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(follower.run(), name=f"informer of {follower}")
                for follower in self._followers
            ]

    async def wait_synced(self) -> None:
        """Return once the cache has been filled."""
        for follower in self._followers:
            await follower.synced.wait()

    async def stop(self) -> None:
        """Let go of the watches; the cache stays as it is."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Follower(Generic[T]):
    """Follows what happens to one selection."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        resource: Resource,
        view: View[T],
        cache: Cache[T],
        selection: Selection,
        timing: Timing,
    ) -> None:
        self.synced = asyncio.Event()
        self.problem = ""
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._resource = resource
        self._view = view
        self._cache = cache
        self._selection = selection
        self._timing = timing
        self._backoff = Backoff(entropy, timing.first_pause, timing.longest_pause)
        self._begins_by_watch = True
        # From where to go on; 0 if everything has to be asked for.
        self._version = 0

    def __str__(self) -> str:
        inside = f" in {self._selection.namespace}" if self._selection.namespace else ""
        return f"{self._resource}{inside}"

    async def run(self) -> None:
        """Follow until cancelled, whatever happens."""
        while True:
            try:
                await self._follow_once()
            except errors.Gone as gone:
                log.info("%s: %s; asking for everything", self, gone)
                self._version = 0
                await self._clock.sleep(self._backoff.pause())
            except (TransportError, TimeoutError) as lost:
                # What the server knows of us ends with the connection; what we know goes on from the same version.
                await self._rest(str(lost), 0)
            except errors.ApiError as refusal:
                await self._rest(str(refusal), refusal.retry_after_seconds)
            except Exception as unexpected:
                # Nobody knows what was missed, so everything is asked for once more.
                log.exception("%s: the informer failed", self)
                self._version = 0
                await self._rest(repr(unexpected), 0)

    async def _rest(self, problem: str, asked: float) -> None:
        self.problem = f"{self}: {problem}"
        pause = max(self._backoff.pause(), asked)
        log.warning("%s; trying again in %.2g s", self.problem, pause)
        await self._clock.sleep(pause)

    async def _follow_once(self) -> None:
        """Watch until the watch ends, from the beginning if need be."""
        started = self._clock.monotonic()
        if not self._version and not self._begins_by_watch:
            await self._list()
        try:
            news = await self._watch()
        except (errors.Invalid, errors.BadRequest, _NoBeginning) as refusal:
            if self._version:
                raise
            log.debug("%s: no beginning by watch (%s); listing", self, refusal)
            self._begins_by_watch = False
            return
        if not news and self._clock.monotonic() - started < self._timing.worthwhile:
            await self._clock.sleep(self._backoff.pause())

    async def _list(self) -> None:
        listing = await self._client.listing(self._resource, self._selection)
        version = int(listing.version)
        self._take([self._view.of_text(item) for item in listing.items], version)

    def _take(self, objects: list[tuple[Metadata, T]], version: int) -> None:
        """Take these for all objects that there are."""
        self._cache.replace(self._selection.namespace, objects, version)
        self._version = version
        self.synced.set()

    async def _watch(self) -> int:
        """Pass on what a watch tells until it ends; return how many events there were.

        A TimeoutError says that it has died without a word.
        """
        timing = self._timing
        beginning: list[tuple[Metadata, T]] | None = None if self._version else []
        begin_until = self._clock.monotonic() + timing.beginning
        watch = self._client.watch(
            self._resource,
            self._selection,
            version=str(self._version) if self._version else "",
            seconds=int(self._entropy.uniform(timing.shortest_watch, timing.longest_watch)),
            with_present=beginning is not None,
        )
        news = 0
        async with aclosing(watch) as batches:
            while True:
                try:
                    async with asyncio.timeout(timing.silence):
                        batch = await anext(batches, None)
                except TimeoutError:
                    if beginning is not None:
                        raise _NoBeginning("nothing came") from None
                    raise TimeoutError(f"no news for {timing.silence:g} s, the watch is dead") from None
                if batch is None:
                    break
                self.problem = ""
                news += len(batch)
                for event in batch:
                    beginning = self._event(event, beginning)
                if batch and beginning is None:
                    self._backoff.reset()
                if beginning is not None and self._clock.monotonic() > begin_until:
                    break
        if beginning is not None:
            raise _NoBeginning("its end was not marked")
        return news

    def _event(
        self, event: WatchEvent, beginning: list[tuple[Metadata, T]] | None
    ) -> list[tuple[Metadata, T]] | None:
        """Take over an event; returns what the beginning has come to, None once it is complete."""
        scope = self._selection.namespace
        if event.type == "BOOKMARK":
            bookmark = _bookmarks.decode(event.object)
            version = int(bookmark.metadata.resource_version)
            if beginning is None:
                self._cache.reached(scope, version)
                self._version = version
            elif bookmark.ends_beginning:
                self._take(beginning, version)
                return None
        elif beginning is not None:
            beginning.append(self._view.of_text(event.object))
        else:
            self._version = self._cache.apply(scope, event.type, self._view.of_text(event.object))
        return beginning


class Informers:
    """The informers that controllers share, and that learn of their writes."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        entropy: Entropy,
        *,
        namespaces: Iterable[str] = (),
        timing: Timing | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._namespaces = tuple(namespaces)
        self._timing = timing
        self._informers: list[Informer[Any]] = []

    def add(
        self,
        resource: Resource,
        view: View[T],
        *,
        label_selector: str = "",
        field_selector: str = "",
        labels: Iterable[str] = (),
    ) -> Informer[T]:
        """Return a new informer; `labels` are those by whose values objects are to be found. Add before the start."""
        informer = Informer(
            self._client,
            self._clock,
            self._entropy,
            resource,
            view,
            namespaces=self._namespaces,
            label_selector=label_selector,
            field_selector=field_selector,
            labels=labels,
            timing=self._timing,
        )
        self._informers.append(informer)
        return informer

    @property
    def is_synced(self) -> bool:
        return all(informer.is_synced for informer in self._informers)

    @property
    def problems(self) -> list[str]:
        """What keeps caches from being up to date, for health checks and logs."""
        return [informer.problem for informer in self._informers if informer.problem]

    async def start(self) -> None:
        """Fill the caches; return when each has been filled once."""
        for informer in self._informers:
            informer.start()
        for informer in self._informers:
            await informer.wait_synced()

    async def stop(self) -> None:
        for informer in self._informers:
            await informer.stop()

    def saw(self, resource: Resource, obj: Object) -> None:
        """Have the caches know an object as the server answered it."""
        for informer in self._informers:
            if informer.resource == resource:
                informer.cache.saw(obj)

    def saw_deleted(self, resource: Resource, ref: Ref) -> None:
        """Have the caches know that the server has removed an object."""
        for informer in self._informers:
            if informer.resource == resource:
                informer.cache.saw_deleted(ref)
