"""A private place: a process whose network is its own, in which every Service has a name and every Pod an address.

Names of Services stand for loopback and Pod addresses are the place's own, so that one stand-in can answer for every
Ray cluster. Nothing of the machine's network is touched, and all of it ends with the process. It needs root.
"""

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

from kubereef.node.network.dns.answers import Answers
from kubereef.node.network.dns.records import Answer, Host, Name, Records
from kubereef.node.network.dns.server import DnsServer
from kubereef.node.network.namespaces import SocketsHere
from kubereef.node.sandbox.syscalls import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    MS_PRIVATE,
    MS_REC,
    attach_tree,
    bring_up_loopback,
    clone_tree,
    mount,
    unshare,
)
from tests.kubernetes.plane import NotHere, die_with_parent

P = ParamSpec("P")
T = TypeVar("T")

LOOPBACK = "127.0.0.1"
_RESOLV_CONF = "/etc/resolv.conf"


def in_private_place(network: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what a function returns in a place that owns a network; NotHere says why there can be none."""
    if os.geteuid() != 0:
        raise NotHere("a network of its own needs root")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        process.submit(_enter, network).result()
        return process.submit(function, *args, **kwargs).result()


def _enter(network: str) -> None:
    """Move this process for good; what it starts from now on is there, too."""
    die_with_parent()
    try:
        unshare(CLONE_NEWNET | CLONE_NEWNS)
        mount("none", "/", "", MS_REC | MS_PRIVATE)
        bring_up_loopback()
        _own(network)
        _resolve_at(LOOPBACK)
    except OSError as refusal:
        raise NotHere(f"a network of its own: {refusal}") from None


def _own(network: str) -> None:
    """Make every address of a network this place's own, as an address of loopback is."""
    from pyroute2 import IPRoute

    loopback, local_table = 1, 255
    with IPRoute() as netlink:
        netlink.route("add", dst=network, oif=loopback, type="local", scope="host", table=local_table)


def _resolve_at(server: str) -> None:
    """Have this place ask another server for names. The file goes, what is mounted stays."""
    with tempfile.TemporaryDirectory(prefix="bench-place-") as directory:
        file = Path(directory, "resolv.conf")
        file.write_text(f"nameserver {server}\n")
        tree = clone_tree(str(file))
        try:
            attach_tree(tree, _RESOLV_CONF)
        finally:
            os.close(tree)


class EveryService(Records):
    """Names of a cluster in which every name of a Service stands for one address."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._found = (Host(address),)

    def lookup(self, name: Name) -> Answer:
        is_service = len(name) == len(self.domain) + 3 and name[2:] == ("svc", *self.domain)
        return Answer(True, exists=True, records=self._found) if is_service else super().lookup(name)


@asynccontextmanager
async def named_services(port: int = 53) -> AsyncIterator[int]:
    """Answer for the names of all Services; gives the port."""
    server = await DnsServer.start(Answers(EveryService(LOOPBACK)), SocketsHere(), [LOOPBACK], port)
    try:
        yield server.ports[0]
    finally:
        await server.close()
