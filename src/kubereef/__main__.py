"""`python -m kubereef`: a Kubernetes in one process."""

import argparse
import asyncio
import contextlib
import gc
import logging
import signal
import sys
import tempfile
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

from kubereef.cluster import Part
from kubereef.controllers.standard import CONTROLLERS, LOCAL, runner_for
from kubereef.server.addresses import DEFAULT_CIDR
from kubereef.server.certificates import BadCredentials
from kubereef.serving import Settings, serving
from kubereef.store.errors import StoreError

# A request makes a few hundred objects that are gone after it; looking for cycles is worth it less often than usual.
_COLLECT_AFTER = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.data_dir is None and not options.in_memory:
        parser.error("say where to keep the objects: --data-dir DIR, or --in-memory")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    with contextlib.ExitStack() as opened:
        directory = options.data_dir
        if directory is None:
            # The objects are gone with the process, and so are the keys that opened it.
            directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kubereef-")))
        host, port = options.listen
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
            asyncio.run(_serve(settings))
        except (StoreError, BadCredentials, OSError) as bad:
            print(f"kubereef: {bad}", file=sys.stderr)
            return 1
    return 0


def _parts(options: argparse.Namespace) -> tuple[Part, ...]:
    """Return what runs along with the server; storage of the machine only where there is a node to use it."""
    if options.no_controllers:
        return ()
    factories = CONTROLLERS if options.no_node else (*CONTROLLERS, *LOCAL)
    return (lambda cluster: runner_for(cluster, factories),)


async def _serve(settings: Settings) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with serving(settings) as served:
        # What is there now stays for good, so the collector need not look through it again and again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
        print(f"kubereef is ready at {served.url} (kubeconfig: {served.kubeconfig})", flush=True)
        await stopped.wait()


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
        type=_address,
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
        "--service-cidr", type=_network, default=DEFAULT_CIDR, metavar="CIDR", help="addresses of Services"
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
    return parser


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _network(text: str) -> str:
    try:
        return str(ip_network(text))
    except ValueError as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None


if __name__ == "__main__":
    sys.exit(main())
