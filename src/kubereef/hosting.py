"""A cluster with a node of its own: the API server, its controllers and the machine that runs Pods, as one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from kubereef.node.machine.launch import ApiServer, Node, NodeFailed, NodeOptions
from kubereef.serving import Served, Settings, serving

__all__ = ["Hosted", "NodeFailed", "NodeOptions", "hosting"]


class Hosted(NamedTuple):
    """A cluster that is being served, and its node."""

    served: Served
    node: Node


@asynccontextmanager
async def hosting(
    settings: Settings,
    options: NodeOptions,
    meanwhile: Callable[[Served], Awaitable[None]] | None = None,
) -> AsyncIterator[Hosted]:
    """Serve a cluster with a node until the block ends; NodeFailed if the node does not come up.

    `meanwhile` is done while the node, which is another process, starts.
    """
    # Pods find the API server at the address of their node, which leads them out to it.
    address = settings.advertise_address or options.gateway
    settings = settings._replace(advertise_address=address)
    async with serving(settings) as served:
        beside = asyncio.ensure_future(meanwhile(served)) if meanwhile is not None else None
        try:
            async with _node_of(served, settings.host, options) as node:
                if beside is not None:
                    await beside
                yield Hosted(served, node)
        finally:
            if beside is not None:
                beside.cancel()
                await asyncio.gather(beside, return_exceptions=True)


@asynccontextmanager
async def _node_of(served: Served, host: str, options: NodeOptions) -> AsyncIterator[Node]:
    api = ApiServer(host, served.port, served.credentials.certificates, served.cluster.client())
    node = Node(options, api)
    await node.start()
    served.lines.passages.append(node)
    try:
        yield node
    finally:
        await node.stop()
        served.lines.passages.remove(node)
