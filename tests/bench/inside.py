"""What is looked at from inside of a private place."""

import asyncio
import socket
from pathlib import Path

from bench.kubernetes.place import named_services


def look_around():
    """Return what a Service's name stands for, whether a Pod's address is the place's own, and its links."""
    found = asyncio.run(_addresses("c-head-svc.default.svc.cluster.local"))
    with socket.create_server(("10.64.12.34", 0)) as server:
        own = server.getsockname()[0]
    links = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return found, own, links


async def _addresses(name):
    async with named_services():
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(name, 8265, type=socket.SOCK_STREAM)
    return [address[4][0] for address in found]
