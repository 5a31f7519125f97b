"""`python -m kubereef`: a Kubernetes in one process."""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kubereef.cluster import Part
from kubereef.controllers.standard import standard_parts
from kubereef.node.arguments import (
    add_image_options,
    add_node_options,
    common_options,
    host_and_port,
    network,
)
from kubereef.server.addresses import DEFAULT_CIDR
from kubereef.server.certificates import BadCredentials
from kubereef.serving import Settings, serving
from kubereef.store.errors import StoreError

if TYPE_CHECKING:
    from kubereef.node.machine.launch import Node, NodeOptions

# A request makes a few hundred objects that are gone after it; looking for cycles is worth it less often than usual.
_COLLECT_AFTER = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.data_dir is None and not options.in_memory:
        parser.error("say where to keep the objects: --data-dir DIR, or --in-memory")
    if options.node and (options.no_node or options.no_controllers):
        parser.error(
            "a node needs the controllers that give it Pods: leave --no-node and --no-controllers out"
        )
    if options.node and os.geteuid() != 0:
        command = shlex.join(
            [sys.executable, "-m", "kubereef", *(sys.argv[1:] if arguments is None else arguments)]
        )
        print(f"kubereef: a node needs root; run it as: sudo {command}", file=sys.stderr)
        return 1
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with contextlib.ExitStack() as opened:
        directory = options.data_dir
        if directory is None:
            # The objects are gone with the process, and so are the keys that opened it.
            directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kubereef-")))
        host, port = options.listen
        node = _node_options(options, directory) if options.node else None
        settings = Settings(
            directory,
            options.in_memory,
            host,
            port,
            options.service_cidr,
            options.advertise_address,
            tuple(options.tls_name),
            _parts(options),
        )
        try:
            return asyncio.run(_serve(settings, node))
        except (StoreError, BadCredentials, OSError) as bad:
            print(f"kubereef: {bad}", file=sys.stderr)
            return 1


def _parts(options: argparse.Namespace) -> Sequence[Part]:
    """Return what runs along with the server; storage of the machine only where there is a node to use it."""
    if options.no_controllers:
        return ()
    with_gateways = options.node if options.gateway is None else options.gateway
    return standard_parts(with_storage=not options.no_node, with_gateways=with_gateways)


def _node_options(options: argparse.Namespace, directory: Path) -> "NodeOptions":
    from kubereef.node.machine.launch import NodeOptions  # without a node nothing of it is imported

    return NodeOptions(
        directory=directory / "node",
        name=options.node_name,
        service_cidr=options.service_cidr,
        **common_options(options),
    )


async def _serve(settings: Settings, node_options: "NodeOptions | None") -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    waiting: list[asyncio.Task[object]] = [asyncio.create_task(stopped.wait())]
    async with contextlib.AsyncExitStack() as opened:
        if node_options is None:
            served = await opened.enter_async_context(serving(settings))
        else:
            from kubereef.hosting import NodeFailed, hosting  # without a node nothing of it is imported

            try:
                served, node = await opened.enter_async_context(hosting(settings, node_options))
            except NodeFailed as bad:
                print(f"kubereef: {bad}", file=sys.stderr)
                return 1
            waiting.append(asyncio.create_task(_until_ended(node)))
        # What is there now stays for good, so the collector need not look through it again and again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
        print(f"kubereef is ready at {served.url} (kubeconfig: {served.kubeconfig})", flush=True)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
    return 0 if stopped.is_set() else 1


async def _until_ended(node: "Node") -> None:
    code = await node.wait()
    print(f"kubereef: the node has ended with code {code}; see {node.log_path}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kubereef", description="A Kubernetes in one process.")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where the objects are kept, and the certificates and admin.kubeconfig",
    )
    parser.add_argument(
        "--in-memory",
        action="store_true",
        help="keep no objects; without --data-dir the certificates are in a temporary directory",
    )
    parser.add_argument(
        "--listen",
        type=host_and_port,
        default=("127.0.0.1", 6443),
        metavar="HOST:PORT",
        help="where to listen (127.0.0.1:6443); port 0 takes any free one",
    )
    parser.add_argument(
        "--advertise-address",
        default="",
        metavar="IP",
        help="the address by which Pods reach the server, if it is not the one it listens on",
    )
    parser.add_argument(
        "--service-cidr", type=network, default=DEFAULT_CIDR, metavar="CIDR", help="addresses of Services"
    )
    parser.add_argument(
        "--tls-name",
        action="append",
        default=[],
        metavar="NAME",
        help="one more name or address that the serving certificate is valid for",
    )
    parser.add_argument("--no-controllers", action="store_true", help="serve the API and nothing else")
    parser.add_argument("--no-node", action="store_true", help="run no node: Pods stay where they are put")
    parser.add_argument(
        "--gateway",
        action=argparse.BooleanOptionalAction,
        help="have Gateways of class kubereef; so it is where there is a node, unless told otherwise",
    )
    node = parser.add_argument_group("the node")
    node.add_argument(
        "--node", action="store_true", help="run Pods on this machine, as sandboxed processes (needs root)"
    )
    node.add_argument(
        "--node-name", default="kubereef", metavar="NAME", help="what the node is called (kubereef)"
    )
    add_node_options(node)
    add_image_options(parser.add_argument_group("images of the node"))
    return parser


if __name__ == "__main__":
    sys.exit(main())
