"""A kubelet whose containers are scripts: nothing runs, time is virtual, and the API server is a real one.

bench = Bench(cluster, tmp_path)
bench.runtime.programs["app"] = [Exits(after=5, code=1), Runs()]     # its runs, one after the other; the last repeats
await bench.start()
await bench.create(pod(container()))
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any, NamedTuple

from kubereef.controllers.following import follow
from kubereef.node.images import Image, ImageError, User
from kubereef.node.kubelet.events import PodEvents
from kubereef.node.kubelet.interfaces import Answer, NodeFacts, Tools
from kubereef.node.kubelet.kubelet import Kubelet
from kubereef.node.kubelet.tasks import Tasks
from kubereef.node.network.resolv import Resolution
from kubereef.node.sandbox import Exit, StartFailed, Usage

NODE = "node-1"
PODS = "/api/v1/namespaces/default/pods"
IMAGE = "registry.test/app:1"


class Runs(NamedTuple):
    """A run that goes on until somebody ends it; `code` is how it answers SIGTERM, None if it does not."""

    code: int | None = 0
    after: float = 0.0
    output: bytes = b""
    message: str = ""
    oom: bool = False
    ends: float | None = None


def Exits(code=0, after=1.0, **more):  # noqa: N802 - reads as the class beside it
    """A run that ends by itself."""
    return Runs(code=code, ends=after, **more)


class Cannot(NamedTuple):
    """A run that does not start."""

    step: str = "command"
    message: str = 'exec: "nope": executable file not found in $PATH'
    errno: int = 2


async def at_once(function, /, *arguments):
    """Run what blocks here and now: virtual time knows no threads."""
    return function(*arguments)


class FakeProcess:
    terminal = None

    def __init__(self, clock, script, stdio, spec):
        self._clock = clock
        self.script = script
        self.spec = spec
        self.signals = []
        self.commands = []
        self._exit = asyncio.get_running_loop().create_future()
        self._fds = [os.dup(fd) for fd in (stdio.stdout, stdio.stderr) if fd is not None]
        if script.output and self._fds:
            os.write(self._fds[0], script.output)
        if script.ends is not None:
            self._task = asyncio.ensure_future(self._end_later(script.ends, script.code or 0))

    @property
    def is_running(self):
        return not self._exit.done()

    async def _end_later(self, after, code):
        await self._clock.sleep(after)
        self.end(code)

    def end(self, code):
        if self._exit.done():
            return
        if self.script.message:
            target = self.spec.mounts
            file = next(mount.source for mount in target if mount.target == "/dev/termination-log")
            file.write_text(self.script.message)
        for fd in self._fds:
            os.close(fd)
        self._fds = []
        self._exit.set_result(Exit(code))

    async def wait(self):
        return await asyncio.shield(self._exit)

    def signal(self, number):
        if self._exit.done():
            return False
        self.signals.append(signal.Signals(number).name)
        if number == signal.SIGKILL:
            self.end(137)
        elif self.script.code is not None:
            self._task = asyncio.ensure_future(self._end_later(self.script.after, self.script.code))
        return True

    def resize(self, rows, columns):
        pass

    def close(self):
        pass

    async def enter(self, command, stdio):
        """Run what stands for a command: "false" fails, "sleep N" takes its time, "nope" is not there, others pass."""
        self.commands.append(command.argv)
        word = command.argv[0]
        if word == "nope":
            raise StartFailed("command", 'exec: "nope": executable file not found in $PATH', 2)
        code = 1 if word == "false" else 0
        delay = float(command.argv[1]) if word == "sleep" else 0.0
        return FakeProcess(
            self._clock, Runs(code=code, ends=delay, output=b"no" if code else b""), stdio, command
        )


class FakeSandbox:
    network = 99

    def __init__(self, spec):
        self.spec = spec
        self.is_open = True
        self.killed = asyncio.Event()

    async def ended(self):
        await self.killed.wait()

    async def close(self):
        self.is_open = False


class FakeRuntime:
    def __init__(self, clock):
        self._clock = clock
        self.programs = {}
        self.started = []  # (container, ContainerSpec, Limits)
        self.processes = {}
        self.sandboxes = []
        self.resized = []
        self.resize_refusal = ""
        self.memory = {}
        self.oom = {}
        self.removed = []

    async def open_sandbox(self, uid, spec, limits):
        self.sandboxes.append(FakeSandbox(spec))
        return self.sandboxes[-1]

    async def start(self, uid, name, sandbox, spec, limits, stdio):
        assert sandbox.is_open
        assert not sandbox.killed.is_set()
        self.started.append((name, spec, limits))
        scripts = self.programs.get(name) or [Runs()]
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        if isinstance(script, Cannot):
            raise StartFailed(script.step, script.message, script.errno)
        process = FakeProcess(self._clock, script, stdio, spec)
        self.processes[name] = process
        if script.oom:
            self.oom[name] = self.oom.get(name, 0) + 1
        return process

    def spec_of(self, name):
        return [spec for started, spec, _ in self.started if started == name][-1]

    @property
    def order(self):
        return [name for name, _, _ in self.started]

    def resize(self, uid, name, limits):
        if self.resize_refusal:
            raise OSError(self.resize_refusal)
        self.resized.append((name, limits))

    def usage(self, uid, name=""):
        # Of a container that will be killed for memory, it is known only once it has been.
        process = self.processes.get(name)
        return Usage(
            working_set=self.memory.get(name, 0),
            oom_kills=self.oom.get(name, 0) if process and not process.is_running else 0,
        )

    async def remove(self, uid):
        self.removed.append(uid)

    def mount_memory(self, directory, size):
        pass

    def unmount(self, directory):
        pass


class FakeImages:
    """Every image is there, except those that `failures` name."""

    def __init__(self, layers):
        self._layers = layers
        self.failures = {}
        self.slow = {}
        self.pulls = []
        self.held = 0

    async def pull(self, name, policy="IfNotPresent", on_progress=None):
        self.pulls.append((name, policy))
        if name in self.slow:
            await self.slow[name](on_progress)
        if name in self.failures:
            raise self.failures[name]
        self.held += 1
        return Image(
            reference=f"{name}",
            digest="sha256:" + "1" * 64,
            layers=(self._layers,),
            env={"FROM_IMAGE": "yes"},
            user=User("app", 1000, "app", 100, "/home/app"),
            workdir="/srv",
            entrypoint=("serve",),
            command=("--all",),
            size=42,
        )

    def release(self, image):
        self.held -= 1


class FakeNetwork:
    def __init__(self):
        self.attached = {}
        self._count = 0

    async def attach(self, uid, namespace):
        self._count += 1
        self.attached[uid] = f"10.244.0.{self._count}"
        return (self.attached[uid],)

    async def detach(self, uid):
        self.attached.pop(uid, None)


class FakeProber:
    """Answers by path or port; what nobody named passes."""

    def __init__(self):
        self.answers = {}
        self.asked = []

    async def http_get(self, address, port, action, patience):
        self.asked.append((address, port, action.get("path"), patience))
        return self._next(action.get("path"))

    async def tcp_connect(self, address, port, patience):
        self.asked.append((address, port, None, patience))
        return self._next(port)

    def _next(self, key):
        answers = self.answers.get(key)
        if not answers:
            return Answer(True)
        passed = answers.pop(0) if len(answers) > 1 else answers[0]
        return Answer(passed, "" if passed else "HTTP probe failed with statuscode: 500")


class Bench:
    """A kubelet beside an API server."""

    def __init__(self, cluster, directory: Path):
        self.cluster = cluster
        self.client = cluster.client
        self.clock = cluster.clock
        (directory / "image" / "etc").mkdir(parents=True, exist_ok=True)
        self.layers = directory / "image"
        self.directory = directory / "node"
        self.runtime = FakeRuntime(cluster.clock)
        self.images = FakeImages(self.layers)
        self.network = FakeNetwork()
        self.prober = FakeProber()
        self.kubelet: Any = None
        self._following: asyncio.Task[None] | None = None

    async def start(self):
        tools = Tools(
            client=self.client,
            clock=self.clock,
            entropy=self.cluster.entropy,
            runtime=self.runtime,
            images=self.images,
            network=self.network,
            prober=self.prober,
            events=PodEvents(self.client, self.clock, NODE),
            offload=at_once,
            tasks=Tasks(),
        )
        facts = NodeFacts(
            name=NODE,
            directory=self.directory,
            host_ips=("192.168.1.10",),
            cluster_dns=("10.96.0.10",),
            resolution=Resolution(("9.9.9.9",), ("example.org",), ()),
            allocatable={"cpu": "8", "memory": "16Gi"},
        )
        self.directory.mkdir(exist_ok=True)
        self.kubelet = Kubelet(tools, facts)
        await self.kubelet.start()
        url = f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}"
        self._following = asyncio.ensure_future(
            follow(_Selecting(self.client, url), "/api/v1/pods", self.kubelet)
        )
        await self.pass_time(0.1)

    async def stop(self, grace=5.0):
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
            self._following = None
            await self.kubelet.stop(grace)

    async def restart(self):
        """Lose the node and everything that ran on it, and start it anew."""
        await self.stop(0.0)
        self.runtime.sandboxes.clear()
        await self.start()

    async def create(self, manifest, *, after=0.5):
        made = await self.client.create(PODS, manifest)
        await self.pass_time(after)
        return made["metadata"]["name"]

    async def pass_time(self, seconds):
        await self.cluster.pass_time(seconds)

    async def get(self, name="pod"):
        return await self.client.get(f"{PODS}/{name}")

    async def status(self, name="pod"):
        return (await self.get(name))["status"]

    async def container(self, name="app", pod="pod"):
        status = await self.status(pod)
        fields = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        return next(one for field in fields for one in status.get(field) or () if one["name"] == name)

    async def conditions(self, name="pod"):
        return {one["type"]: one for one in (await self.status(name))["conditions"]}

    async def events(self, *reasons):
        """Return (reason, message) of all events, in order, or those of some reasons only."""
        listed = (await self.client.get("/api/v1/namespaces/default/events"))["items"]
        listed.sort(key=lambda event: int(event["metadata"]["name"].rpartition(".")[2], 16))
        return [
            (event["reason"], event["message"])
            for event in listed
            if not reasons or event["reason"] in reasons
        ]

    async def is_gone(self, name="pod"):
        listed = (await self.client.get(PODS))["items"]
        return name not in [one["metadata"]["name"] for one in listed]


class _Selecting:
    """Reads only the Pods of this node, whatever address `follow` asks for."""

    def __init__(self, client, url):
        self._client = client
        self._url = url

    async def get(self, url):
        return await self._client.get(self._url)

    def watch(self, url):
        revision = url.partition("resourceVersion=")[2]
        return self._client.watch(f"{self._url}&resourceVersion={revision}")


def container(name="app", **fields):
    return {"name": name, "image": IMAGE, **fields}


def pod(*containers, name="pod", **spec):
    """Return a Pod of this node."""
    meta = spec.pop("metadata", {})
    base = {
        "nodeName": NODE,
        "automountServiceAccountToken": False,
        "containers": list(containers) or [container()],
    }
    return {"metadata": {"name": name, **meta}, "spec": {**base, **spec}}


class PullFails(ImageError):
    """As when no recipe makes an image."""
