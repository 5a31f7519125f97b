"""`python -m kubereef.node`: this machine as a node of a cluster that a kubeconfig leads to."""

import argparse
import asyncio
import contextlib
import logging
import os
import platform
import re
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kubereef.node.arguments import (
    add_image_options,
    add_node_options,
    common_options,
    host_and_port,
    network,
)
from kubereef.node.machine.joining import Ways, joining
from kubereef.node.machine.kubeconfig import BadKubeconfig, Membership, read_membership
from kubereef.node.machine.launch import Node, NodeFailed, NodeOptions

_TAINT = re.compile(r"(?P<key>[^=:]+)(=(?P<value>[^=:]*))?:(?P<effect>NoSchedule|PreferNoSchedule|NoExecute)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Be a node until told to stop; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (options.tls_cert_file is None) != (options.tls_private_key_file is None):
        parser.error("--tls-cert-file and --tls-private-key-file belong together")
    if os.geteuid() != 0:
        given = sys.argv[1:] if arguments is None else arguments
        command = shlex.join([sys.executable, "-m", "kubereef.node", *given])
        print(f"kubereef: a node needs root; run it as: sudo {command}", file=sys.stderr)
        return 1
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        membership = read_membership(options.kubeconfig, options.context)
    except BadKubeconfig as bad:
        print(f"kubereef: {bad}", file=sys.stderr)
        return 1
    with contextlib.ExitStack() as opened:
        directory = options.data_dir
        if directory is None:
            directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kubereef-node-")))
        try:
            return asyncio.run(
                _serve(membership, _node_options(options, membership, directory), _ways(options))
            )
        except NodeFailed as bad:
            print(f"kubereef: {bad}", file=sys.stderr)
            return 1


async def _serve(membership: Membership, options: NodeOptions, ways: Ways) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with joining(membership, options, ways) as node:
        server = f"https://{membership.host}:{membership.port}"
        print(f"kubereef: node {options.name} is ready in the cluster at {server}", flush=True)
        waiting = [asyncio.create_task(stopped.wait()), asyncio.create_task(_until_ended(node))]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
    return 0 if stopped.is_set() else 1


async def _until_ended(node: Node) -> bool:
    code = await node.wait()
    print(f"kubereef: the node has ended with code {code}; see {node.log_path}", file=sys.stderr)
    return True


def _node_options(options: argparse.Namespace, membership: Membership, directory: Path) -> NodeOptions:
    return NodeOptions(
        directory=directory,
        name=options.name or membership.node_name or platform.node().lower(),
        labels=dict(options.label),
        taints=tuple(options.taint),
        kubelet=options.kubelet_address,
        **common_options(options),
    )


def _ways(options: argparse.Namespace) -> Ways:
    serving = (options.tls_cert_file, options.tls_private_key_file) if options.tls_cert_file else None
    return Ways(
        options.service_cidr or "",
        options.cluster_dns,
        options.client_ca_file,
        serving,
        options.egress_socket,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kubereef.node", description="This machine as a node of any Kubernetes cluster."
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        required=True,
        metavar="FILE",
        help="where the API server is, and what the node shows it: a certificate or a token",
    )
    parser.add_argument("--context", default="", metavar="NAME", help="a context other than the current one")
    parser.add_argument(
        "--name",
        default="",
        metavar="NAME",
        help="what the node is called; the one of its certificate, or the machine's, unless told otherwise",
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="where the files of Pods and the node's log are kept; a temporary directory unless told otherwise",
    )
    _add_cluster_options(parser.add_argument_group("the cluster"))
    node = parser.add_argument_group("the node")
    node.add_argument(
        "--label",
        type=_label,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one more label of the node; may be repeated",
    )
    node.add_argument(
        "--taint",
        type=_taint,
        action="append",
        default=[],
        metavar="KEY[=VALUE]:EFFECT",
        help="a taint that the node has when it first joins; may be repeated",
    )
    add_node_options(node)
    add_image_options(parser.add_argument_group("images of the node"))
    return parser


def _add_cluster_options(cluster: argparse._ArgumentGroup) -> None:
    cluster.add_argument(
        "--kubelet-address",
        type=host_and_port,
        metavar="IP:PORT",
        help="where on this machine the API server reaches the kubelet; without an egress socket, any free port (0)"
        " of the address that leads to the API server",
    )
    cluster.add_argument(
        "--egress-socket",
        type=Path,
        metavar="PATH",
        help="a unix socket by which a kube-apiserver on this machine reaches the kubelet, Pods and Services: the"
        " proxy of its egress selector `cluster`",
    )
    cluster.add_argument(
        "--service-cidr",
        type=network,
        metavar="CIDR",
        help="addresses of Services, where the cluster does not tell them",
    )
    cluster.add_argument(
        "--cluster-dns",
        default="",
        metavar="IP",
        help="the address of the cluster's DNS, which the node serves itself; that of the Service kube-dns unless"
        " told otherwise",
    )
    cluster.add_argument(
        "--client-ca-file",
        type=Path,
        metavar="FILE",
        help="who vouches for callers of the kubelet; the authority in the kubeconfig unless told otherwise",
    )
    cluster.add_argument(
        "--tls-cert-file",
        type=Path,
        metavar="FILE",
        help="the kubelet's certificate, where the API server checks it; one that nobody vouches for is made unless"
        " told otherwise",
    )
    cluster.add_argument("--tls-private-key-file", type=Path, metavar="FILE", help="its key")


def _label(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _taint(text: str) -> dict[str, str]:
    found = _TAINT.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not KEY[=VALUE]:EFFECT with NoSchedule, PreferNoSchedule or NoExecute"
        )
    return {name: value for name, value in found.groupdict().items() if value}


if __name__ == "__main__":
    sys.exit(main())
