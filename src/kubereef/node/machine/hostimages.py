"""Images pulled from inside the node, over the host's network: that is where the package index can be reached.

Threads and programs live in the network namespace of the thread that starts them. So one thread enters the host's and
runs an event loop there, and whatever the pulls start is there as well.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec

from kubereef.node.images import Image, Images, OnProgress, Progress, PullPolicy
from kubereef.node.network import Namespace

T = TypeVar("T")


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
