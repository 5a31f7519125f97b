"""Options of the command line that every node has, whoever starts it. Imports nothing of the node itself."""

import argparse
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import Any

from kubewire.quantity import Quantity
from kubewire.times import parse_go_duration


def add_node_options(node: argparse._ArgumentGroup) -> None:
    """Add what a node is like."""
    add_abilities(node)
    node.add_argument(
        "--pod-cidr", type=_pod_network, default="10.244.0.0/16", metavar="CIDR", help="addresses of Pods"
    )


def add_abilities(node: argparse._ActionsContainer) -> None:
    """Add what a node offers to Pods."""
    node.add_argument(
        "--outbound",
        choices=("redirect", "proxy", "off"),
        default="",
        help="how Pods reach the world outside; the best way that the kernel allows unless told otherwise",
    )
    node.add_argument(
        "--cpu-factor",
        type=_factor,
        default=4.0,
        metavar="N",
        help="declare N times the processors that there are (4), since Pods ask for whole ones and use little",
    )
    node.add_argument(
        "--resource",
        type=_resource,
        action="append",
        default=[],
        metavar="NAME=AMOUNT",
        help="one more resource that the node declares; may be repeated",
    )


def add_image_options(images: argparse._ArgumentGroup) -> None:
    """Add where a node's images come from, and how long they stay."""
    add_recipes(images)
    images.add_argument(
        "--image-cache", type=Path, metavar="DIR", help="where images are kept (~/.cache/eagleray)"
    )
    images.add_argument(
        "--image-max-age",
        type=_duration,
        default="720h",
        metavar="DURATION",
        help="remove images that no container has used for so long (720h); 0 keeps them",
    )
    images.add_argument(
        "--image-max-size",
        type=_size,
        default="20Gi",
        metavar="SIZE",
        help="remove the least recently used images while all take more than this (20Gi); 0 keeps them",
    )


def add_recipes(images: argparse._ActionsContainer) -> None:
    """Add what images are made of."""
    images.add_argument(
        "--recipes",
        type=Path,
        metavar="DIR",
        help="a folder with recipes for images of your own (~/.config/eagleray/recipes)",
    )
    images.add_argument(
        "--strict-images",
        action="store_true",
        help="refuse an image rather than run it with another Python than its tag asks for",
    )


def common_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of `NodeOptions` that these options give."""
    return {
        "pod_cidr": options.pod_cidr,
        "outbound": options.outbound,
        "cpu_factor": options.cpu_factor,
        "resources": dict(options.resource),
        "images": options.image_cache,
        "recipes": options.recipes,
        "strict_images": options.strict_images,
        "image_max_age": options.image_max_age,
        "image_max_bytes": options.image_max_size,
    }


def host_and_port(text: str) -> tuple[str, int]:
    """Return the two parts of HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def network(text: str) -> str:
    """Return a network as it is usually written."""
    try:
        return str(ip_network(text))
    except ValueError as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None


def _pod_network(text: str) -> str:
    try:
        network = IPv4Network(text)
    except ValueError as bad:
        raise argparse.ArgumentTypeError(str(bad)) from None
    if network.prefixlen > 28:
        raise argparse.ArgumentTypeError(f"{text} has room for too few Pods: use a /28 or a larger network")
    return str(network)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0.01 <= factor <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.01 to 1000")
    return factor


def _duration(text: str) -> float:
    try:
        seconds = parse_go_duration(text) / 1e9
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 720h or 90m")
    return seconds


def _size(text: str) -> int:
    try:
        size = Quantity.parse(text).value()
    except ValueError:
        size = -1
    if size < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 20Gi")
    return size


def _resource(text: str) -> tuple[str, str]:
    name, sign, amount = text.partition("=")
    try:
        Quantity.parse(amount)
    except ValueError as bad:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=AMOUNT: {bad}") from None
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=AMOUNT")
    return name, amount
