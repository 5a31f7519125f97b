"""The node program: everything of a node that runs inside its own namespaces, put together and taken apart again."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import msgspec

from kubereef.controllers.following import Reader, Sink, follow
from kubereef.controllers.resources import ENDPOINT_SLICES, PODS, SERVICES
from kubereef.gateway.dataplane import GatewayPlane, follow_while_served
from kubereef.node.images import Images
from kubereef.node.images import Settings as ImageSettings
from kubereef.node.kubelet.api import PORT
from kubereef.node.kubelet.api.access import Access
from kubereef.node.kubelet.api.podsockets import PodSockets
from kubereef.node.kubelet.api.server import KubeletApi
from kubereef.node.kubelet.calls import NetworkCalls
from kubereef.node.kubelet.events import PodEvents
from kubereef.node.kubelet.interfaces import NodeFacts, Tools
from kubereef.node.kubelet.kubelet import Kubelet
from kubereef.node.kubelet.runtime import SandboxRuntime
from kubereef.node.kubelet.tasks import Tasks
from kubereef.node.machine.capacity import capacity, find_gpus, node_info
from kubereef.node.machine.client import HttpsClient, TokenFile
from kubereef.node.machine.following import ApiServerHere, ListensToServices, Selected, service_sinks
from kubereef.node.machine.hostimages import HostImages, Keeping
from kubereef.node.machine.keys import client_tls, kubelet_tls
from kubereef.node.machine.networking import NodeNetwork
from kubereef.node.machine.registration import NodeDescription, Registration, limits_message
from kubereef.node.machine.settings import (
    API_SOCKET,
    GATE_SOCKET,
    HOST_NETWORK,
    READY,
    SOCKETS,
    NodeSettings,
    socket_path,
)
from kubereef.node.network import (
    Gate,
    Namespace,
    Relay,
    Resolution,
    connect_unix,
    listen_tcp,
    listen_unix,
)
from kubereef.node.sandbox import CgroupTree, Control, NodeStart
from kubewire import errors
from kubewire.sources import SystemClock, SystemEntropy

log = logging.getLogger(__name__)

DRAIN_SECONDS = 1.0
"""How long requests through Gateways have to finish when the node goes, before the Pods' own time begins."""

GOODBYE_SECONDS = 1.0
"""How long the API server may take to hear that the node goes."""


def run(start: NodeStart) -> int:
    """Be the node program until told to end; see `kubereef.node.sandbox.NodeProcess`."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    settings = msgspec.convert(start.argument, NodeSettings)
    try:
        asyncio.run(_serve(settings, start))
    except Exception as problem:
        log.exception("the node does not run")
        print(
            f"{type(problem).__name__}: {problem}", file=sys.stderr, flush=True
        )  # the last line is what is told
        return 1
    return 0


async def _serve(settings: NodeSettings, start: NodeStart) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as opened:
        await _Assembly(settings, start, opened).build()
        os.write(start.descriptors[READY], b"ready\n")
        os.close(start.descriptors[READY])
        await stopped.wait()
        log.info("the node ends")


class _Assembly:
    """Builds the node part by part; what is built is undone in the opposite order."""

    def __init__(self, settings: NodeSettings, start: NodeStart, opened: AsyncExitStack) -> None:
        self._settings = settings
        self._start = start
        self._opened = opened
        self._clock = SystemClock()
        self._entropy = SystemEntropy()
        self._directory = Path(settings.directory)

    async def build(self) -> None:
        """Return when all of the node runs and the API server knows of it."""
        host = Namespace(self._start.descriptors[HOST_NETWORK])
        network = await NodeNetwork.start(self._settings.network, host, self._clock, self._entropy)
        self._opened.push_async_callback(network.close)
        client = await self._api_client(network.gateway)
        images = await self._images(network, host)
        kubelet, description = await self._kubelet(network, client, images)
        await self._kubelet_api(kubelet, client, network.gateway)
        registration = Registration(description, client, self._clock, self._directory, images.present)
        await registration.register()
        self._opened.push_async_callback(_say_goodbye, registration)
        self._run(registration.beat(), "heartbeat")
        listeners: tuple[ListensToServices, ...] = network.listeners
        if self._settings.leads_to_api:
            port = self._settings.api_port
            listeners = tuple(ApiServerHere(one, network.gateway, port) for one in listeners)
        if self._settings.gateways:
            listeners = (*listeners, self._gateways(network, client))
        services, slices = service_sinks(*listeners)
        self._follow(client, SERVICES.url(), services)
        self._follow(client, ENDPOINT_SLICES.url(), slices)
        own = Selected(client, f"spec.nodeName={self._settings.name}")
        self._follow(own, PODS.url(), kubelet)
        log.info("the node %s serves; Pods go out by: %s", self._settings.name, network.way.value)

    def _gateways(self, network: NodeNetwork, client: HttpsClient) -> GatewayPlane:
        """Serve Gateways at the addresses of their Services."""
        plane = GatewayPlane(network.places.service_sockets, network.places.claims, self._clock)
        plane.start()
        self._opened.push_async_callback(plane.close, DRAIN_SECONDS)
        for resource, held in plane.sinks.items():
            following = follow_while_served(client, resource, held, self._clock)
            self._run(following, f"following {resource.plural}")
        return plane

    async def _api_client(self, gateway: str) -> HttpsClient:
        """Lead the node's own port for the API server, which is Pods' too, to the server outside; return a client."""
        path = socket_path(self._start.descriptors[SOCKETS], API_SOCKET)
        relay = Relay.to(listen_tcp(gateway, self._settings.api_port), partial(connect_unix, path))
        self._opened.push_async_callback(relay.close)
        settings = self._settings
        token = TokenFile(Path(settings.token_file), self._clock) if settings.token_file else None
        url = f"https://{gateway}:{settings.api_port}"
        client = HttpsClient(url, client_tls(settings.keys), server_name=settings.api_name, token=token)
        self._opened.push_async_callback(client.close)
        return client

    async def _images(self, network: NodeNetwork, host: Namespace) -> HostImages:
        settings = self._settings
        how = ImageSettings(Path(settings.recipes) if settings.recipes else None, settings.strict_images)
        images = await HostImages.start(host, lambda: Images(Path(settings.images), self._clock, how))
        images.environment = network.environment
        self._opened.push_async_callback(images.close)
        max_age = timedelta(seconds=settings.image_max_age) if settings.image_max_age else None
        keeping = Keeping(max_age, settings.image_max_bytes or None)
        self._run(images.keep_tidy(keeping, self._clock), "images that nobody needs")
        return images

    async def _kubelet(
        self, network: NodeNetwork, client: HttpsClient, images: HostImages
    ) -> tuple[Kubelet, NodeDescription]:
        settings = self._settings
        cgroups = await asyncio.to_thread(CgroupTree.open, settings.cgroup)
        self._opened.push_async_callback(asyncio.to_thread, cgroups.root.try_remove)
        control = Control(self._start.control)
        self._opened.callback(control.close)
        prober, tasks = NetworkCalls(), Tasks()
        self._opened.push_async_callback(prober.close)
        self._opened.push_async_callback(tasks.close)
        tools = Tools(
            client=client,
            clock=self._clock,
            entropy=self._entropy,
            runtime=SandboxRuntime(control, cgroups, self._clock),
            images=images,
            network=network,
            prober=prober,
            events=PodEvents(client, self._clock, settings.name),
            offload=asyncio.to_thread,
            tasks=tasks,
        )
        gpus = find_gpus()
        address, port = settings.kubelet or (network.gateway, PORT)
        description = NodeDescription(
            name=settings.name,
            address=address,
            port=port,
            has_resolvable_name=settings.kubelet is None,
            pod_cidr=settings.network.pod_cidr,
            capacity=capacity(
                self._directory,
                cpu_factor=settings.cpu_factor,
                gpus=len(gpus.devices),
                extra=settings.resources,
            ),
            info=node_info(settings.version),
            labels=settings.labels,
            taints=settings.taints,
            unenforced=limits_message(cgroups.unenforced),
        )
        dns = settings.network.dns
        facts = NodeFacts(
            name=settings.name,
            directory=self._directory,
            host_ips=(network.gateway,),
            cluster_dns=(dns,),
            domain=settings.network.domain,
            # The host's own servers may listen on its loopback; the cluster's, which asks them, is reached everywhere.
            resolution=Resolution((dns,), network.resolution.searches, network.resolution.options),
            allocatable=description.capacity,
            gpus=gpus.devices,
            shared_devices=gpus.shared,
            root_style=settings.root_style,
        )
        kubelet = Kubelet(tools, facts)
        await kubelet.start()
        self._opened.push_async_callback(kubelet.stop, settings.grace)
        return kubelet, description

    async def _kubelet_api(self, kubelet: Kubelet, client: HttpsClient, gateway: str) -> None:
        """Serve the kubelet's API, and let those in who come from outside through the node's socket."""
        sockets = PodSockets()
        self._opened.callback(sockets.close)
        access = Access(client, self._settings.name, self._clock)
        api = KubeletApi(self._settings.name, kubelet, access, sockets, self._clock)
        self._opened.push_async_callback(api.stop)
        await api.start(listen_tcp(gateway, PORT), kubelet_tls(self._settings.keys))
        path = socket_path(self._start.descriptors[SOCKETS], GATE_SOCKET)
        inside = [
            ip_network(one) for one in (self._settings.network.pod_cidr, self._settings.network.service_cidr)
        ]
        gate = Gate(listen_unix(path), lambda host, _: any(ip_address(host) in one for one in inside))
        self._opened.push_async_callback(gate.close)

    def _follow(self, client: Reader, url: str, sink: Sink) -> None:
        self._run(follow(client, url, sink), f"following {url}")

    def _run(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._opened.push_async_callback(_cancelled, task)


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _say_goodbye(registration: Registration) -> None:
    """Let the cluster know that the node goes, if it can be told in a moment."""
    try:
        async with asyncio.timeout(GOODBYE_SECONDS):
            await registration.tell_status(is_ready=False)
    except (errors.ApiError, TimeoutError) as problem:
        log.info("the API server does not know that the node goes: %s", problem)
