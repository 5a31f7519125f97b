"""Images pulled from inside the node, over the host's network: that is where the package index can be reached.

Threads and programs live in the network namespace of the thread that starts them. So one thread enters the host's and
runs an event loop there, and whatever the pulls start is there as well.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec

from kubereef.node.images import Image, Images, OnProgress, Present, Progress, PullPolicy
from kubereef.node.network import Namespace
from kubewire.sources import Clock

T = TypeVar("T")

log = logging.getLogger(__name__)

TIDY_EVERY = 300.0
"""Seconds between two looks for images that nobody needs."""


class Keeping(NamedTuple):
    """What is kept of images that no container uses; None keeps everything."""

    max_age: timedelta | None = None
    max_bytes: int | None = None


class HostImages:
    """`kubereef.node.images.Images` in the host's network; made by `start`."""

    def __init__(self, there: asyncio.AbstractEventLoop, thread: threading.Thread, images: Images) -> None:
        self.environment: dict[str, str] = {}
        """Variables that every image has besides its own, such as those that lead to a proxy."""
        self._there = there
        self._thread = thread
        self._images = images

    @classmethod
    async def start(cls, host: Namespace, make: Callable[[], Images]) -> "HostImages":
        """Return the images that `make` returns when it is called in the network of a namespace."""
        there = asyncio.new_event_loop()
        made: Future[Images] = Future()

        async def begin() -> None:
            made.set_result(make())

        def run() -> None:
            try:
                host.enter()
                there.run_until_complete(begin())
                there.run_forever()
            except BaseException as problem:  # noqa: BLE001 - told to whoever waits for the start
                made.set_exception(problem)
            finally:
                there.close()

        thread = threading.Thread(target=run, name="kubereef-images", daemon=True)
        thread.start()
        return cls(there, thread, await asyncio.wrap_future(made))

    async def pull(
        self, name: str, policy: PullPolicy = "IfNotPresent", on_progress: OnProgress | None = None
    ) -> Image:
        """Return an image and hold it; progress is told in the caller's event loop."""
        here = asyncio.get_running_loop()

        def tell(progress: Progress) -> None:
            if on_progress is not None:
                here.call_soon_threadsafe(on_progress, progress)

        image = await self._ask(self._images.pull(name, policy, tell))
        return msgspec.structs.replace(image, env={**self.environment, **image.env})

    async def present(self) -> list[Present]:
        """Return what images this machine has, the largest first."""
        return await self._ask(self._images.present())

    async def keep_tidy(self, keeping: Keeping, clock: Clock) -> None:
        """Remove what is not to be kept, now and then, until cancelled; a failure is logged and made up for."""
        while True:
            try:
                freed = await self._ask(self._images.prune(keeping.max_age, keeping.max_bytes))
            except OSError as trouble:
                log.warning("images that nobody needs could not be removed: %s", trouble)
            else:
                if freed:
                    log.info("images that nobody needs were removed: %d bytes", freed)
            await clock.sleep(TIDY_EVERY)

    def release(self, image: Image) -> None:
        """Undo one pull."""
        self._there.call_soon_threadsafe(self._images.release, image)

    async def close(self) -> None:
        """End all builds and let go of all images."""
        await self._ask(self._images.close())
        self._there.call_soon_threadsafe(self._there.stop)
        await asyncio.to_thread(self._thread.join)

    async def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._there))
