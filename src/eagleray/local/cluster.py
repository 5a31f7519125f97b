"""A whole cluster in this process: Kubereef with its node, Ray's kinds, and the operator.

async with local_cluster(LocalSettings(directory)) as cluster:
    await cluster.client.create(RAY_JOBS, job)
    url = await cluster.forward(...)
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from eagleray.kube.client import Client
from eagleray.kube.resources import CRDS, Ref
from eagleray.kube.transport import Transport
from eagleray.local.inprocess import transport_to
from eagleray.operator.assembly import Operator
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from eagleray.runtime.options import read_options
from kubereef.controllers.standard import standard_parts
from kubereef.hosting import Hosted, NodeFailed, NodeOptions, hosting
from kubereef.serving import Served, Settings
from kubewire import errors
from kubewire.sources import SystemClock, SystemEntropy

# One process on one machine needs no election, and nobody scrapes what lives for minutes. Pods are reached through the
# API server, because their network is the node's own.
OPERATOR_FLAGS = (
    "--enable-leader-election=false",
    "--metrics-addr=0",
    "--health-probe-bind-address=0",
    "--use-kubernetes-proxy",
    # A few clusters on the same machine may be asked often, and somebody waits for what they say.
    "--dashboard-poll-interval=500ms",
)
# Somebody waits for Pods that start on this very machine, so that they are asked often whether they are ready.
OPERATOR_ENVIRONMENT = {"EAGLERAY_READINESS_PERIOD_SECONDS": "2"}
# A head whose dashboard has not come up in the 30 s that Ray grants its parts never gets ready, and says nothing. On a
# machine that is busy or slow they take longer. What a manifest says wins.
CONTAINER_ENVIRONMENT = ({"name": "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "value": "180"},)


class ClusterFailed(Exception):
    """A part of the cluster is gone; the message says which and why."""


class LocalSettings(NamedTuple):
    """How a local cluster shall be. `directory` is its own, and is made if need be."""

    directory: Path
    in_memory: bool = False
    port: int = 0
    cpu_factor: float = 4.0
    outbound: str = ""
    resources: Mapping[str, str] = {}
    recipes: Path | None = None
    strict_images: bool = False
    operator_flags: Sequence[str] = ()
    grace: float = 10.0  # seconds that Pods have at the end


class LocalCluster:
    """A cluster that runs. `client` speaks to it as its administrator, without a wire."""

    def __init__(
        self, hosted: Hosted, client: Client, transport: Transport, operator: "asyncio.Task[int]"
    ) -> None:
        self.hosted = hosted
        self.client = client
        self.transport = transport
        self._operator = operator

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in, for kubectl."""
        return self.hosted.served.kubeconfig

    async def forward(self, address: str, port: int, at: int = 0) -> int:
        """Return a loopback port of this machine that leads to an address inside the cluster."""
        return await self.hosted.node.forward(address, port, at)

    async def until_it_fails(self) -> None:
        """Wait until a part of the cluster ends by itself; raises ClusterFailed."""
        node = asyncio.create_task(self.hosted.node.wait())
        try:
            await asyncio.wait((node, self._operator), return_when=asyncio.FIRST_COMPLETED)
        finally:
            node.cancel()
        if self._operator.done():
            raise ClusterFailed(f"the operator has ended: {self._operator.exception() or 'see its log'}")
        log = self.hosted.node.log_path
        raise ClusterFailed(f"the node has ended with code {node.result()}; see {log}")


@asynccontextmanager
async def local_cluster(settings: LocalSettings) -> AsyncIterator[LocalCluster]:
    """Run a cluster until the block ends; ClusterFailed if this machine cannot, or if it did not come up."""
    clock, entropy = SystemClock(), SystemEntropy()
    options = read_options((*OPERATOR_FLAGS, *settings.operator_flags), OPERATOR_ENVIRONMENT)
    options = options._replace(container_env=(*CONTAINER_ENVIRONMENT, *options.container_env))
    server = Settings(
        settings.directory,
        settings.in_memory,
        port=settings.port,
        parts=standard_parts(with_storage=True),
    )

    async def install(served: Served) -> None:
        await _install_kinds(Client(transport_to(served.cluster.server), clock, entropy))

    try:
        async with hosting(server, _node_options(settings), meanwhile=install) as hosted:
            transport = transport_to(hosted.served.cluster.server)
            client = Client(transport, clock, entropy)
            operator = Operator(
                options, transport_to(hosted.served.cluster.server), clock=clock, entropy=entropy
            )
            stop = asyncio.Event()
            running = asyncio.create_task(operator.run(stop))
            try:
                yield LocalCluster(hosted, client, transport, running)
            finally:
                stop.set()
                await asyncio.wait((running,))
                await operator.close()
    except NodeFailed as bad:
        raise ClusterFailed(str(bad)) from bad


def _node_options(settings: LocalSettings) -> NodeOptions:
    return NodeOptions(
        directory=settings.directory / "node",
        cpu_factor=settings.cpu_factor,
        outbound=settings.outbound,
        resources=settings.resources,
        recipes=settings.recipes,
        strict_images=settings.strict_images,
        grace=settings.grace,
    )


async def _install_kinds(client: Client) -> None:
    """Have the server know Ray's kinds as this version does; a kept cluster may know those of an earlier one."""
    for kind in KINDS:
        definition = crd(kind)
        try:
            await client.create(CRDS, definition)
        except errors.AlreadyExists:
            await client.patch(CRDS, Ref("", definition["metadata"]["name"]), {"spec": definition["spec"]})
