"""Pulling: from an image field and a pull policy to an image on disk, with one build for all who want it."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from kubereef.node.images.control import Control, OnProgress, Progress
from kubereef.node.images.errors import (
    BadRecipe,
    BuildFailed,
    InvalidImageName,
    NeverPull,
    NoRecipe,
)
from kubereef.node.images.image import Image
from kubereef.node.images.planning import Plan, plan_image
from kubereef.node.images.recipes import read_catalogue
from kubereef.node.images.references import InvalidReference, Reference, parse_reference
from kubereef.node.images.store import Lease, Present, Record, Store, Stored
from kubewire.sources import Clock

T = TypeVar("T")

PullPolicy = Literal["Always", "IfNotPresent", "Never"]

BUILDS_AT_ONCE = 2
BUILD_TIMEOUT = 1800.0
_ATTEMPTS = 20  # to hold an image that others look at or remove at the same time
_MOMENT = 0.05


class Settings(NamedTuple):
    """How images are made."""

    recipes: Path | None = None  # a folder with recipe files of the user's own
    strict: bool = False  # refuse an image rather than run it with another Python than its tag asks for
    builds_at_once: int = BUILDS_AT_ONCE
    build_timeout: float = BUILD_TIMEOUT


class _Held(NamedTuple):
    record: Record
    lease: Lease


class _Build:
    """A build under way, and who wants to hear of it."""

    task: "asyncio.Task[_Held]"

    def __init__(self) -> None:
        self.listeners: list[OnProgress] = []
        self.cancelled = threading.Event()
        self.last: Progress | None = None

    def tell(self, progress: Progress) -> None:
        self.last = progress
        for listener in tuple(self.listeners):
            listener(progress)


def cache_directory() -> Path:
    """Return where images are kept: EAGLERAY_CACHE, or eagleray in the user's cache directory."""
    named = os.environ.get("EAGLERAY_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eagleray"


def recipe_directory() -> Path:
    """Return where a user's own recipes are: EAGLERAY_RECIPES, or eagleray/recipes in the configuration directory."""
    named = os.environ.get("EAGLERAY_RECIPES")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "eagleray" / "recipes"


class Images:
    """The images of this machine. Each pull holds its image until it is released as often as it was pulled.

    Methods are called from one event loop; everything that takes time happens in threads and programs.
    """

    def __init__(self, directory: Path, clock: Clock, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._clock = clock
        self._store = Store(directory / "images", clock)
        self._builds: dict[str, _Build] = {}
        self._tasks: set[asyncio.Task[_Held]] = set()  # of all builds, those that nobody waits for included
        self._held: dict[str, list[Lease]] = {}
        count = self._settings.builds_at_once
        self._builders = ThreadPoolExecutor(count, thread_name_prefix="image-build")
        # Quick work has threads of its own, so that images that are there never wait for ones being made.
        self._lookups = ThreadPoolExecutor(2, thread_name_prefix="image-lookup")

    async def pull(
        self, name: str, policy: PullPolicy = "IfNotPresent", on_progress: OnProgress | None = None
    ) -> Image:
        """Return the image that a container's image field names and hold it; raise ImageError with a reason.

        `Always` looks at the recipe again and makes what changed since; `IfNotPresent` takes what was pulled under
        this name before; `Never` takes that or fails. Progress is reported on the event loop.
        """
        try:
            reference = parse_reference(name)
        except InvalidReference as bad:
            raise InvalidImageName(
                f'Failed to apply default image tag "{name[:300]}": couldn\'t parse image name: '
                f"invalid reference format: {bad}"
            ) from None
        held = None
        if policy != "Always":
            held = await self._look_up(partial(self._hold_present, reference))
        if held is None and policy == "Never":
            raise NeverPull(
                f'Container image "{name}" is not present with pull policy of Never; '
                "pull it first, or use IfNotPresent"
            )
        if held is None:
            held = await self._join_build(reference, on_progress or _ignore)
        image = self._store.image(held.record)
        self._held.setdefault(image.digest, []).append(held.lease)
        return image

    def release(self, image: Image) -> None:
        """Undo one pull: when the last is undone, the image may be removed."""
        leases = self._held.get(image.digest)
        if not leases:
            raise ValueError(f"{image.reference} is not held")
        leases.pop().release()
        if not leases:
            del self._held[image.digest]

    async def present(self) -> list[Present]:
        """Return what images there are, the largest first; cheap enough to be asked for all the time."""
        return await self._look_up(self._store.present)

    async def list(self) -> list[Stored]:
        """Return the images on disk, the one that was used last first."""
        return await self._look_up(self._store.list)

    async def usage(self) -> int:
        """Return the bytes that all images take on disk."""
        return await self._look_up(self._store.usage)

    async def remove(self, name: str) -> int:
        """Remove an image that no container uses, or raise ImageInUse; return the bytes that this freed."""
        try:
            reference = parse_reference(name)
        except InvalidReference as bad:
            raise InvalidImageName(f"{name[:300]}: {bad}") from None
        return await self._look_up(partial(self._store.remove, str(reference)))

    async def prune(self, max_age: timedelta | None = None, max_bytes: int | None = None) -> int:
        """Remove images by age and total size, never one in use; return the bytes that this freed."""
        return await self._look_up(partial(self._store.prune, max_age, max_bytes))

    async def close(self) -> None:
        """End all builds and let go of all images."""
        for build in self._builds.values():
            build.cancelled.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for leases in self._held.values():
            for lease in leases:
                lease.release()
        self._held.clear()
        self._builders.shutdown(wait=False)
        self._lookups.shutdown(wait=False)

    async def _join_build(self, reference: Reference, on_progress: OnProgress) -> _Held:
        """Wait for the one build of this image; the last to give up waiting ends it."""
        build = self._builds.get(str(reference)) or self._start_build(reference)
        if build.last is not None:
            on_progress(build.last)
        build.listeners.append(on_progress)
        try:
            made = await asyncio.shield(build.task)
            # The build holds the image until all who waited for it hold it themselves.
            held = await self._look_up(partial(self._hold, made.record))
            if held is None:
                raise BuildFailed(f"{reference} was made, but its files are gone; pull it again")
            return held
        finally:
            build.listeners.remove(on_progress)
            if not build.listeners:
                build.cancelled.set()
                if build.task.done():
                    _let_go(build.task)
                else:
                    build.task.add_done_callback(_let_go)
                if self._builds.get(str(reference)) is build:
                    del self._builds[str(reference)]  # who comes now starts anew

    def _start_build(self, reference: Reference) -> _Build:
        build = _Build()
        build.task = asyncio.create_task(self._build(reference, build))
        self._builds[str(reference)] = build
        self._tasks.add(build.task)
        build.task.add_done_callback(self._tasks.discard)
        return build

    async def _build(self, reference: Reference, build: _Build) -> _Held:
        loop = asyncio.get_running_loop()

        def report(progress: Progress) -> None:
            loop.call_soon_threadsafe(build.tell, progress)

        build.tell(Progress("waiting"))
        return await loop.run_in_executor(
            self._builders, partial(self._make, reference, build.cancelled, report)
        )

    def _make(self, reference: Reference, cancelled: threading.Event, report: OnProgress) -> _Held:
        control = Control(self._clock, cancelled, self._settings.build_timeout, report)
        control.check()
        if reference.digest:
            raise NoRecipe(
                f"{reference} names a digest, and what is made here has digests of its own; "
                "name the image by its tag"
            )
        try:
            recipe = read_catalogue(self._settings.recipes).find(reference)
            plan = plan_image(reference, recipe, self._settings.strict)
            for _ in range(_ATTEMPTS):
                lease = self._make_layers(plan, control)
                if lease is not None:
                    self._store.write_record(plan.record)
                    return _Held(plan.record, lease)
                control.wait()
        except BadRecipe as bad:
            raise NoRecipe(f"recipe {bad}") from None
        except OSError as error:
            raise BuildFailed(f"{reference}: {error}") from error
        raise BuildFailed(
            f"{reference} is removed by another process each time it was made; end that one first"
        )

    def _make_layers(self, plan: Plan, control: Control) -> Lease | None:
        """Make what is missing of an image and hold all of it; None if some of it was removed meanwhile."""
        made = (
            Lease()
        )  # no image has these layers yet, so that pruning would remove the first while the last is made
        try:
            for layer in plan.layers:
                self._store.hold_layer(self._store.make_layer(layer, control, plan.needs), made)
            return self._store.lease(plan.record)
        finally:
            made.release()

    def _hold_present(self, reference: Reference) -> _Held | None:
        record = self._store.read_record(str(reference))
        return None if record is None else self._hold(record)

    def _hold(self, record: Record) -> _Held | None:
        for _ in range(_ATTEMPTS):
            lease = self._store.lease(record)
            if lease is not None:
                return _Held(record, lease)
            if not self._store.is_whole(record):
                break
            threading.Event().wait(_MOMENT)  # somebody lists or prunes just now
        return None

    async def _look_up(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._lookups, work)


def _let_go(task: "asyncio.Task[_Held]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().lease.release()


def _ignore(_progress: Progress) -> None:
    """For those who pull without watching."""
