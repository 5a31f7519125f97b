"""Pipes and terminals of other processes, read and written without blocking the event loop."""

import asyncio
import errno
import os
from collections.abc import Callable

PORTION = 64 * 1024


async def read_descriptor(descriptor: int) -> bytes:
    """Return the next bytes, waiting for them; nothing at the end, as of a terminal that nobody holds any more."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            return os.read(descriptor, PORTION)
        except BlockingIOError:
            await _until(loop.add_reader, loop.remove_reader, descriptor)
        except OSError as problem:
            if problem.errno != errno.EIO:
                raise
            return b""


async def write_descriptor(descriptor: int, data: bytes) -> None:
    """Write all of it, waiting where there is no room; OSError if nobody reads any more."""
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            await _until(loop.add_writer, loop.remove_writer, descriptor)


async def _until(
    watch: Callable[[int, Callable[[], None]], object], unwatch: Callable[[int], object], descriptor: int
) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    watch(descriptor, wake)
    try:
        await ready
    finally:
        unwatch(descriptor)
