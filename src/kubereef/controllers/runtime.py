"""What every controller needs: the world to work in, passes over keys, and somebody who starts and stops it all."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, NamedTuple, Protocol, Self

from kubereef.controllers.caches import Cache, Caches, Key
from kubereef.controllers.events import Recorder
from kubereef.controllers.inventory import Inventory
from kubereef.controllers.queue import WorkQueue
from kubereef.controllers.resources import Resource
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object
from kubereef.server.core import Server
from kubereef.server.inprocess import LocalClient
from kubereef.server.requests import AUTHENTICATED, MASTERS, User
from kubewire import errors
from kubewire.sources import Clock, Entropy

log = logging.getLogger(__name__)

_WORKERS = 4


class Hands:
    """Writes for one controller, under its name; the shared caches know of each write as soon as it is answered."""

    def __init__(self, client: LocalClient, caches: Caches) -> None:
        self.client = client
        self._caches = caches

    async def get(self, resource: Resource, key: tuple[str, str]) -> Object:
        """Return an object as the server has it now."""
        return await self.client.get(resource.url(*key))

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create an object in the namespace that it names and return it as stored."""
        url = resource.url(obj["metadata"].get("namespace", ""))
        return self._saw(resource, await self.client.create(url, obj))

    async def replace(self, resource: Resource, obj: Object, part: str = "") -> Object:
        """Put an object in the place of the one of its version; Conflict if that has changed."""
        return self._saw(resource, await self.client.replace(resource.url_of(obj, part), obj))

    async def replace_status(self, resource: Resource, obj: Object, status: Object) -> Object:
        """Give an object a new status; Conflict if it has changed meanwhile."""
        return await self.replace(resource, {**obj, "status": status}, "status")

    async def patch(
        self, resource: Resource, obj: Object, patch: object, part: str = "", kind: str = "merge"
    ) -> Object:
        """Change an object by a patch."""
        return self._saw(resource, await self.client.patch(resource.url_of(obj, part), patch, kind))

    async def delete(
        self, resource: Resource, obj: Object, *, propagation: str = "", same_version: bool = False
    ) -> None:
        """Delete exactly this object, not a later one of its name; one that is gone already is fine."""
        meta = obj["metadata"]
        preconditions = {"uid": meta["uid"]}
        if same_version:
            preconditions["resourceVersion"] = meta["resourceVersion"]
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        if propagation:
            options["propagationPolicy"] = propagation
        try:
            answer = await self.client.delete(resource.url_of(obj), options)
        except errors.NotFound:
            self._caches.saw_deleted(resource, obj)
            return
        left = answer.get("metadata") or {}
        if left.get("finalizers") or left.get("deletionGracePeriodSeconds"):
            self._saw(resource, answer)
        else:
            self._caches.saw_deleted(resource, obj)

    def _saw(self, resource: Resource, obj: Object) -> Object:
        self._caches.saw(resource, obj)
        return obj


class World(NamedTuple):
    """What controllers are given: the API, shared caches of it, the clock, chance, and what the server offers."""

    server: Server
    caches: Caches
    inventory: Inventory
    clock: Clock
    entropy: Entropy
    registry: Registry
    root_ca: str = ""

    def hands(self, name: str) -> Hands:
        """Return the means of writing under a controller's own name."""
        return Hands(LocalClient(self.server, controller_user(name)), self.caches)


def controller_user(name: str) -> User:
    """Return who a controller is to the API server."""
    groups = ("system:serviceaccounts", "system:serviceaccounts:kube-system", MASTERS, AUTHENTICATED)
    return User(f"system:serviceaccount:kube-system:{name}", groups)


class Running(Protocol):
    """What the runner starts and stops."""

    async def start(self) -> None:
        """Begin to work; the caches are filled."""
        ...

    async def stop(self) -> None:
        """Finish the pass under way and end."""
        ...


class Controller(ABC):
    """A controller that looks at one key after the other. Subclasses name themselves, watch and `sync`.

    Each pass looks at the world as it is, so that it does not matter which change caused it, or whether an earlier
    pass was cut short.
    """

    name: ClassVar[str]
    workers: ClassVar[int] = _WORKERS

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = world.clock
        self.hands = world.hands(self.name)
        self.events = Recorder(self.hands.client, world.clock, self.name)
        self.queue: WorkQueue[Key] = WorkQueue()
        self._tasks: list[asyncio.Task[None]] = []

    def watch(self, resource: Resource, keys: Callable[[Object], Iterable[Key]] | None = None) -> Cache:
        """Return the cache of a resource whose changes bring keys into the queue: the object's, or what `keys` says."""
        cache = self.world.caches.of(resource)
        keys = keys or (lambda obj: (Key.of(obj),))

        def changed(old: Object | None, new: Object | None) -> None:
            for obj in (old, new):
                for key in keys(obj) if obj is not None else ():
                    self.queue.add(key)

        cache.listen(changed)
        return cache

    @abstractmethod
    async def sync(self, key: Key) -> float | None:
        """Make one pass over a key; return in how many seconds to look again, if a look is due by time alone."""

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._work(), name=f"{self.name} {number}") for number in range(self.workers)
        ]

    async def stop(self) -> None:
        self.queue.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            await self._pass(key)
            self.queue.done(key)
            await asyncio.sleep(
                0
            )  # a server in this process answers without waiting: others want their turn too

    async def _pass(self, key: Key) -> None:
        try:
            again = await self.sync(key)
        except errors.Conflict as stale:
            pause = self.queue.add_failed(key)
            log.debug("%s: %s: %s; again in %g s", self.name, key, stale, pause)
        except errors.ApiError as refusal:
            if refusal.is_of_a_going_namespace:
                self.queue.succeeded(key)  # nothing is wanted there any more
                return
            pause = self.queue.add_failed(key)
            log.warning("%s: %s: %s; again in %g s", self.name, key, refusal, pause)
        except Exception:
            pause = self.queue.add_failed(key)
            log.exception("%s: the pass over %s failed; again in %g s", self.name, key, pause)
        else:
            self.queue.succeeded(key)
            if again is not None:
                self.queue.add_after(key, again)


# Makes a controller for a world.
Factory = Callable[[World], Running]


class Runner:
    """Starts controllers together with the caches they share, and stops them. It can be started again."""

    def __init__(
        self,
        server: Server,
        factories: Iterable[Factory],
        *,
        root_ca: str = "",
        entropy: Entropy | None = None,
    ) -> None:
        self._server = server
        self.factories = tuple(factories)
        self._root_ca = root_ca
        self._entropy = entropy or server.around.entropy
        self._world: World | None = None
        self.controllers: list[Running] = []

    async def start(self) -> None:
        """Start; return when all controllers are at work."""
        around = self._server.around
        reader = LocalClient(self._server, controller_user("kube-controller-manager"))
        inventory = Inventory(reader, around.registry)
        world = World(
            self._server,
            Caches(reader),
            inventory,
            around.clock,
            self._entropy,
            around.registry,
            self._root_ca,
        )
        self._world = world
        self.controllers = [factory(world) for factory in self.factories]
        await world.caches.start()
        await world.inventory.start()
        for controller in self.controllers:
            await controller.start()

    async def stop(self) -> None:
        """Let every pass under way finish, then end. What was left undone is found by the next start."""
        await asyncio.gather(*(controller.stop() for controller in self.controllers))
        self.controllers = []
        if self._world is not None:
            await self._world.inventory.stop()
            await self._world.caches.stop()
            self._world = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_why: object) -> None:
        await self.stop()
