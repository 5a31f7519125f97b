"""A cluster on the wire: its data directory, its certificates and an HTTPS address."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from kubereef.cluster import Cluster, Part
from kubereef.server.addresses import DEFAULT_CIDR
from kubereef.server.bootstrap import Entrance, api_service_ip
from kubereef.server.credentials import Credentials
from kubereef.server.http import HttpsServer
from kubereef.server.lines import DirectLines
from kubereef.store.journal import SqliteJournal, lock_directory
from kubereef.store.store import Store
from kubewire.sources import Clock, Entropy, SystemClock, SystemEntropy

# How long to sleep at most before looking at the certificates again: a machine that was suspended overslept.
_LOOK_EVERY = 3600.0


class Settings(NamedTuple):
    """How to serve a cluster. `directory` holds the credentials and, unless `in_memory`, the objects."""

    directory: Path
    in_memory: bool = False
    host: str = "127.0.0.1"
    port: int = 0
    service_cidr: str = DEFAULT_CIDR
    advertise_address: str = ""
    names: tuple[str, ...] = ()
    parts: Sequence[Part] = ()


class Served(NamedTuple):
    """A cluster that is being served."""

    cluster: Cluster
    url: str
    kubeconfig: Path
    port: int
    credentials: Credentials
    # How the server reaches nodes; what stands between it and them may be added.
    lines: DirectLines


@asynccontextmanager
async def serving(
    settings: Settings, clock: Clock | None = None, entropy: Entropy | None = None
) -> AsyncIterator[Served]:
    """Serve a cluster until the block ends; InUse if another process has the directory."""
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    async with AsyncExitStack() as opened:
        store = _store_in(settings, opened)
        credentials = Credentials(settings.directory, _names(settings), clock, entropy)
        lines = DirectLines(credentials.kubelet_tls)
        cluster = Cluster(
            store,
            clock=clock,
            entropy=entropy,
            tokens=credentials.tokens,
            signer=credentials.signer,
            lines=lines,
            parts=settings.parts,
            authority=credentials.authority,
            service_cidr=settings.service_cidr,
        )
        opened.push_async_callback(cluster.stop)
        https = HttpsServer(cluster.server, credentials.server_tls, clock)
        await https.start(settings.host, settings.port)
        opened.push_async_callback(https.stop, cluster.drain)
        port = https.address[1]
        url = f"https://{_reachable_host(settings.host)}:{port}"
        kubeconfig = credentials.write_kubeconfig(url)
        renewal = asyncio.create_task(_keep_fresh(credentials, url, clock))
        opened.callback(renewal.cancel)
        await cluster.start(Entrance(settings.advertise_address or settings.host, port))
        yield Served(cluster, url, kubeconfig, port, credentials, lines)


def _store_in(settings: Settings, opened: AsyncExitStack) -> Store:
    if not settings.in_memory:
        return Store(SqliteJournal(settings.directory))
    opened.callback(os.close, lock_directory(settings.directory))
    return Store()


async def _keep_fresh(credentials: Credentials, url: str, clock: Clock) -> None:
    """Renew certificates before they expire; connections from then on get the new ones."""
    while True:
        await clock.sleep(min(credentials.certificates.seconds_to_renewal() + 1, _LOOK_EVERY))
        if credentials.refresh():
            credentials.write_kubeconfig(url)


def _names(settings: Settings) -> list[str]:
    """Return the names and addresses under which the server is reached."""
    service_ip = api_service_ip(settings.service_cidr)
    names = (service_ip, settings.host, settings.advertise_address, *settings.names)
    return [name for name in names if name and not _is_wildcard(name)]


def _reachable_host(host: str) -> str:
    """Return a host as it stands in an address; a server on every address is reached on this machine's own."""
    if _is_wildcard(host):
        host = "::1" if ":" in host else "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _is_wildcard(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False
