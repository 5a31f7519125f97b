"""Tests that run as the node program of a real node, in a process of their own.

`@in_node` makes a coroutine a test that starts a `NodeProcess`; the coroutine runs inside as its program and is given
a `Bench` to make Pods and containers with. When it ends, or fails, the kernel ends everything it started. What the
machine cannot do is probed for real first, and the test skipped with the reason.
"""

import asyncio
import functools
import importlib.util
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple

import pytest

from kubereef.node.sandbox import (
    CgroupTree,
    Command,
    ContainerSpec,
    Control,
    Exit,
    Mount,
    NodeProcess,
    PodSandbox,
    PodSpec,
    Root,
    Stdio,
    probe,
    start_container,
)

REPOSITORY = Path(__file__).parents[4]
SECONDS = 30
USUAL_ENV = {"PATH": "/usr/bin:/bin"}


def in_node(*needs):
    """Mark a coroutine as one that runs inside; `needs` are names of optional abilities."""

    def decorate(function):
        @functools.wraps(function)
        def test():
            skip_without(*needs)
            path = sys.modules[function.__module__].__file__
            code, output = asyncio.run(run_node(path, function.__name__))
            if code:
                pytest.fail(f"inside the node (exit code {code}):\n{output}", pytrace=False)

        del test.__wrapped__  # pytest must see a plain function: the wrapped one is a coroutine
        vars(test)["inside"] = function
        return test

    return decorate


def skip_without(*needs):
    """Skip the running test where no Pod can run, or an optional ability is missing."""
    found = machine()
    if why := found.obstacle():
        pytest.skip(f"no Pod can run here: {why}")
    for name in needs:
        if not found.has(name):
            pytest.skip(f"{name}: {found.missing()[name]}")


@functools.cache
def machine():
    return probe(Path(tempfile.gettempdir()))


async def run_node(path, name, argument=None):
    """Run one coroutine of a test file as a node program; return the exit code and what it printed."""
    os.environ["PYTHONPATH"] = f"{REPOSITORY / 'src'}:{REPOSITORY}"
    work = tempfile.mkdtemp(prefix="sandbox-")
    try:
        with tempfile.TemporaryFile() as output:
            started = {"path": path, "name": name, "work": work, "argument": argument}
            node = NodeProcess("tests.kubereef.node.sandbox.inside:program", started, output=output.fileno())
            await node.start()
            try:
                code = await asyncio.wait_for(node.wait(), SECONDS)
            finally:
                node.signal(9)
            output.seek(0)
            return code, output.read().decode(errors="replace")
    finally:
        shutil.rmtree(work)
        CgroupTree.open(
            cgroup_name(work)
        ).root.try_remove()  # the one thing that the kernel leaves of a killed node


def cgroup_name(work):
    return f"kubereef-test-{Path(work).name}"


def program(start):
    """The node program: load the test file and run its coroutine."""
    spec = importlib.util.spec_from_file_location("inside_the_node", start.argument["path"])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function = getattr(module, start.argument["name"])

    async def run():
        bench = Bench(Control(start.control), Path(start.argument["work"]), start.argument["argument"])
        await getattr(function, "inside", function)(bench)

    try:
        asyncio.run(run())
    except BaseException:  # noqa: BLE001 - the top of a process: printed, and told by the exit code
        traceback.print_exc()
        return 1
    return 0


class Result(NamedTuple):
    exit: Exit
    output: str


class Bench:
    """Makes Pods and containers of a small image: the host's /usr, and an /etc with one file."""

    def __init__(self, control, work, argument=None):
        self.control = control
        self.work = work
        self.argument = argument
        self.image = work / "image"
        self._count = 0
        (self.image / "etc").mkdir(parents=True)
        (self.image / "etc" / "release").write_text("a small image\n")
        for name in ("bin", "sbin", "lib", "lib64"):
            host = Path("/", name)
            if host.is_symlink():
                (self.image / name).symlink_to(host.readlink())

    async def pod(self, **spec):
        return await PodSandbox.open(self.control, PodSpec(**{"hostname": "web-0", **spec}))

    def directory(self):
        """A new directory."""
        self._count += 1
        path = self.work / f"directory-{self._count}"
        path.mkdir()
        return path

    def spec(self, *argv, mounts=(), layers=None, read_only=False, style="overlay", command=None, **rest):
        root = Root(
            layers=tuple(layers or (self.image,)), writable=self.directory(), read_only=read_only, style=style
        )
        command = Command(**{"argv": argv, "env": USUAL_ENV, **(command or {})})
        own = [Mount(target=name, source=Path(name), read_only=True) for name in ("/usr",)]
        own += [Mount(target=f"/{name}", source=Path("/", name), read_only=True) for name in ("bin", "lib", "lib64")
                if not (self.image / name).is_symlink() and Path("/", name).is_dir()]  # fmt: skip
        return ContainerSpec(command=command, root=root, mounts=(*own, *mounts), **rest)

    async def start(self, pod, *argv, stdio=None, **rest):
        return await start_container(self.control, pod, self.spec(*argv, **rest), stdio or Stdio())

    async def run(self, pod, *argv, **rest):
        """Run a container to its end; return how it ended and what it printed."""
        reading, writing = os.pipe()
        try:
            container = await self.start(pod, *argv, stdio=Stdio(stdout=writing, stderr=writing), **rest)
        finally:
            os.close(writing)
        return Result(await container.wait(), await read_all(reading))

    async def shell(self, pod, script, **rest):
        return await self.run(pod, "/bin/sh", "-c", script, **rest)

    async def enter(self, container, *argv, **rest):
        """Run a command inside a container to its end."""
        reading, writing = os.pipe()
        command = Command(argv=argv, env=USUAL_ENV, **rest)
        try:
            process = await container.enter(command, Stdio(stdout=writing, stderr=writing))
        finally:
            os.close(writing)
        return Result(await process.wait(), await read_all(reading))


async def eventually(condition):
    """Return once the condition holds; the time limit of the test ends the wait for one that never does."""
    while not condition():  # noqa: ASYNC110 - what changes is another process, which sets no event of ours
        await asyncio.sleep(0.01)


def processes():
    """Every process of the node."""
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def text(path):
    return Path(path).read_text()


def status(path):
    return Path(path).stat()


async def read_all(descriptor):
    def read():
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read().decode()

    return await asyncio.to_thread(read)
