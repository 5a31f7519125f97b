"""The node as Kubereef's process sees it: started, reached and ended from here.

    node = Node(NodeOptions(directory=…), ApiServer(…))
    await node.start()                    # NodeFailed if this machine cannot, or if it did not come up
    lines.passages.append(node)           # the API server reaches its kubelet and its Pods through it
    port = await node.forward("10.244.0.7", 8265)       # a loopback port of the host that leads to a Pod
    await node.stop()

However this process ends, the node and everything in it ends with it.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from ipaddress import ip_address, ip_network
from pathlib import Path

import msgspec

from kubereef.node.images import cache_directory, recipe_directory
from kubereef.node.kubelet.api import PORT as KUBELET_PORT
from kubereef.node.machine.capacity import CPU_FACTOR
from kubereef.node.machine.controlplane import ApiServer, ControlPlane
from kubereef.node.machine.leftovers import cgroup_name, sweep_cgroups
from kubereef.node.machine.networking import POD_CIDR, NetworkSettings, gateway_of
from kubereef.node.machine.settings import (
    API_SOCKET,
    DEFAULT_IMAGE_AGE,
    DEFAULT_IMAGE_BYTES,
    GATE_SOCKET,
    HOST_NETWORK,
    READY,
    SOCKETS,
    NodeSettings,
    socket_path,
)
from kubereef.node.network import LoopbackPort, Relay, connect_tcp, listen_unix, open_through
from kubereef.node.sandbox import NodeProcess, SandboxError, choose_root_style, probe
from kubereef.server.frontpages import GIT_VERSION
from kubewire import errors
from kubewire.sources import Clock, SystemClock

__all__ = ["ApiServer", "Node", "NodeFailed", "NodeOptions"]

START_SECONDS = 60.0
GOODBYE_SECONDS = 3.0
"""What the node program has for the rest when its Pods have had their time."""
_LOG_TAIL = 4000
_MOST_LOG = 8 * 1024 * 1024


class NodeFailed(Exception):
    """The node does not run; the message says why."""


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a node shall be. An empty `outbound` is the best way out that the kernel allows.

    `kubelet` is an address and port of the host at which the kubelet is reached too, and which the cluster is told;
    port 0 is any free one. Images that no container uses are removed after `image_max_age` seconds, and when all
    take more than `image_max_bytes`; 0 is no limit.
    """

    directory: Path
    name: str = "kubereef"
    pod_cidr: str = POD_CIDR
    service_cidr: str = "10.96.0.0/16"
    outbound: str = ""
    cpu_factor: float = CPU_FACTOR
    resources: Mapping[str, str] = {}
    labels: Mapping[str, str] = {}
    taints: tuple[Mapping[str, str], ...] = ()
    kubelet: tuple[str, int] | None = None
    images: Path | None = None
    recipes: Path | None = None
    strict_images: bool = False
    image_max_age: float = DEFAULT_IMAGE_AGE
    image_max_bytes: int = DEFAULT_IMAGE_BYTES
    grace: float = 10.0
    version: str = GIT_VERSION

    @property
    def gateway(self) -> str:
        """The node's own address, at which its Pods find the API server."""
        return gateway_of(self.pod_cidr)


class Node:
    """One node of this machine. It is also the API server's passage into the node's network."""

    def __init__(self, options: NodeOptions, api: ControlPlane, clock: Clock | None = None) -> None:
        self._options = options
        self._api = api
        self._clock = clock or SystemClock()
        self._pods = ip_network(options.pod_cidr)
        self._services = ip_network(options.service_cidr)
        self._opened = ExitStack()
        self._sockets = -1
        self._relay: Relay | None = None
        self._forwards: list[LoopbackPort] = []
        self._process: NodeProcess | None = None

    @property
    def log_path(self) -> Path:
        """Where the node program writes what it has to say."""
        return self._options.directory / "node.log"

    @property
    def pid(self) -> int:
        """The process that holds the node; its end is the node's."""
        if self._process is None:
            raise NodeFailed("the node has not been started")
        return self._process.pid

    async def start(self) -> None:
        """Return when the node serves: it is registered and its kubelet runs. Raises NodeFailed."""
        try:
            await self._start()
        except (SandboxError, OSError, errors.ApiError) as problem:
            await self.stop(0)
            raise NodeFailed(str(problem)) from problem
        except BaseException:
            await self.stop(0)
            raise

    async def wait(self) -> int:
        """Return the node's exit code, once it has ended."""
        assert self._process is not None, "a node is started before it is waited for"
        return await self._process.wait()

    async def stop(self, grace: float | None = None) -> None:
        """End the node: its Pods get as long as they are given, at most the options' grace. With 0 it ends at once."""
        grace = self._options.grace if grace is None else grace
        for forward in self._forwards:
            await forward.close()
        self._forwards.clear()
        if self._process is not None:
            await self._process.stop(grace + GOODBYE_SECONDS if grace else 0.0)
            self._process = None
            await asyncio.to_thread(sweep_cgroups)
        if self._relay is not None:
            await self._relay.close()
            self._relay = None
        self._opened.close()

    async def forward(self, address: str, port: int, at: int = 0, on: str = "127.0.0.1") -> int:
        """Open a port of the host, of loopback unless told, that leads to an address inside; return the port."""
        opened = LoopbackPort(self._gate, address, port, loopback=on, at=at)
        self._forwards.append(opened)
        return opened.port

    # --- the API server's way in (see lines.Passage)

    def covers(self, host: str) -> bool:
        """Tell whether a host is this node, or inside it."""
        if host == self._options.name:
            return True
        with suppress(ValueError):
            address = ip_address(host)
            return address in self._pods or address in self._services
        return False

    async def dial(self, host: str, port: int) -> socket.socket:
        """Return a connection to a host inside."""
        address = self._options.gateway if host == self._options.name else host
        return await open_through(self._gate, address, port)

    @property
    def _gate(self) -> Path:
        return socket_path(self._sockets, GATE_SOCKET)

    async def _start(self) -> None:
        options = self._options
        keys = options.directory / "pki"
        for directory in (options.directory, keys):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        machine = await asyncio.to_thread(probe, options.directory)
        if (obstacle := machine.obstacle()) is not None:
            raise NodeFailed(f"this machine cannot run a node: {obstacle}")
        await asyncio.to_thread(sweep_cgroups)
        names = (options.name, options.gateway, "127.0.0.1", *(options.kubelet or ())[:1])
        self._api.write_keys(keys, options.name, tuple(dict.fromkeys(names)))
        self._sockets = os.open(options.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._opened.callback(os.close, self._sockets)
        self._relay = Relay.to(listen_unix(socket_path(self._sockets, API_SOCKET)), self._connect_to_api)
        published = None
        if options.kubelet is not None:
            address, wanted = options.kubelet
            published = (address, await self.forward(options.gateway, KUBELET_PORT, wanted, address))
        settings = NodeSettings(
            name=options.name,
            directory=str(options.directory.resolve()),
            images=str(options.images or cache_directory()),
            cgroup=cgroup_name(),
            api_port=self._api.inner_port,
            api_name=self._api.server_name,
            token_file=self._api.token_file,
            leads_to_api=self._api.is_foreign,
            kubelet=published,
            network=NetworkSettings(
                pod_cidr=options.pod_cidr,
                service_cidr=options.service_cidr,
                dns=await self._api.dns_address(self._services),
                outbound=options.outbound,
            ),
            cpu_factor=options.cpu_factor,
            resources=dict(options.resources),
            labels=dict(options.labels),
            taints=[dict(one) for one in options.taints],
            root_style=choose_root_style(machine),
            version=options.version,
            recipes=str((options.recipes or recipe_directory()).resolve()),
            strict_images=options.strict_images,
            image_max_age=options.image_max_age,
            image_max_bytes=options.image_max_bytes,
            gateways=await self._api.has_gateways(),
            grace=options.grace,
        )
        await self._run(settings)

    async def _run(self, settings: NodeSettings) -> None:
        with ExitStack() as handed_over:
            network = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            handed_over.callback(os.close, network)
            if self.log_path.exists() and self.log_path.stat().st_size > _MOST_LOG:
                self.log_path.replace(self.log_path.with_suffix(".log.old"))
            output = os.open(self.log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            handed_over.callback(os.close, output)
            told, tells = os.pipe2(os.O_CLOEXEC)
            reader = handed_over.enter_context(os.fdopen(told, "rb", buffering=0))
            with os.fdopen(tells, "wb", buffering=0) as writer:
                descriptors = {HOST_NETWORK: network, SOCKETS: self._sockets, READY: writer.fileno()}
                self._process = NodeProcess(
                    "kubereef.node.machine.program:run",
                    msgspec.to_builtins(settings),
                    descriptors,
                    output=output,
                    clock=self._clock,
                )
                await self._process.start()
            await self._until_ready(reader.fileno())

    async def _until_ready(self, told: int) -> None:
        """Wait for the word of the node program; its end without one is a failure."""
        os.set_blocking(told, False)
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(told, readable.set)
        try:
            async with asyncio.timeout(START_SECONDS):
                await readable.wait()
        except TimeoutError:
            raise NodeFailed(
                f"the node did not come up in {START_SECONDS:g} s: {self._last_words()}"
            ) from None
        finally:
            loop.remove_reader(told)
        if not os.read(told, 16):
            raise NodeFailed(f"the node did not come up: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self.log_path.read_bytes()[-_LOG_TAIL:].decode(errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (see {self.log_path})"

    async def _connect_to_api(self) -> socket.socket:
        return await connect_tcp(self._api.host, self._api.port)
