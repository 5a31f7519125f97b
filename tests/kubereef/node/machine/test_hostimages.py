"""Images are made in the network of the host, though the node has one of its own."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kubereef.node.images import Image, Present, Progress
from kubereef.node.machine.hostimages import TIDY_EVERY, HostImages, Keeping
from kubereef.node.network import Namespace
from tests.kubereef.node.network.inside import in_namespace


def here():
    return Path("/proc/thread-self/ns/net").readlink().name


def name_of(namespace):
    return Path(f"/proc/self/fd/{namespace.fd}").readlink().name


class Builder:
    """Stands in for `Images`: what it makes tells in which network a thread and a program of it were."""

    def __init__(self):
        self.released = []
        self.pruned = []

    async def pull(self, name, policy, on_progress):
        on_progress(Progress("building"))
        if name == "broken":
            raise ValueError("cannot be made")
        if name == "slow":
            await asyncio.sleep(60)
        thread = await asyncio.get_running_loop().run_in_executor(None, here)
        program = await asyncio.to_thread(os.popen, "readlink /proc/self/ns/net")
        env = {"THREAD": thread, "PROGRAM": program.read().strip(), "OWN": "image"}
        program.close()
        return Image(name, "sha256:1", (), env=env)

    def release(self, image):
        self.released.append(image.reference)

    async def present(self):
        return [Present(("busybox:latest",), 1)]

    async def prune(self, max_age, max_bytes):
        self.pruned.append((max_age, max_bytes, here()))
        if len(self.pruned) == 1:
            raise OSError("the disk is busy")
        return 7

    async def close(self):
        pass


class Quick:
    """A clock for which all pauses are short; it counts them."""

    def __init__(self):
        self.slept = []

    async def sleep(self, seconds):
        self.slept.append(seconds)
        await asyncio.sleep(0.01)


async def _started():
    host = Namespace.new()
    builder: Any = Builder()
    images = await HostImages.start(host, lambda: builder)
    return images, builder, name_of(host)


@in_namespace()
async def test_threads_and_programs_of_a_pull_are_in_the_hosts_network():
    images, _, host = await _started()
    progress: list[Progress] = []
    image = await images.pull("busybox", "Always", progress.append)
    assert image.env["THREAD"] == image.env["PROGRAM"] == host
    assert here() != host
    await asyncio.sleep(0)
    assert progress == [Progress("building")]
    await images.close()


@in_namespace()
async def test_the_way_out_is_in_the_environment_unless_the_image_says_otherwise():
    images, builder, _ = await _started()
    images.environment = {"http_proxy": "http://10.244.0.1:3128", "OWN": "node"}
    image = await images.pull("busybox")
    assert (image.env["http_proxy"], image.env["OWN"]) == ("http://10.244.0.1:3128", "image")
    images.release(image)
    await images.close()
    assert builder.released == ["busybox"]


@in_namespace()
async def test_images_that_nobody_needs_are_removed_again_and_again_also_after_a_failure():
    images, builder, host = await _started()
    clock: Any = Quick()
    tidying = asyncio.create_task(images.keep_tidy(Keeping(timedelta(days=1), 1000), clock))
    while len(builder.pruned) < 3:  # noqa: ASYNC110 - another thread's event loop does it
        await asyncio.sleep(0.01)
    tidying.cancel()
    assert set(builder.pruned) == {(timedelta(days=1), 1000, host)}
    assert set(clock.slept) == {TIDY_EVERY}
    assert [one.names for one in await images.present()] == [("busybox:latest",)]
    await images.close()


@in_namespace()
async def test_a_pull_that_fails_or_is_cancelled_is_so_for_who_asked():
    images, _, _ = await _started()
    with pytest.raises(ValueError, match="cannot be made"):
        await images.pull("broken")
    waiting = asyncio.create_task(images.pull("slow"))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    await images.close()
