"""Flags about the node that a cluster of this machine has, and numbers as flags take them."""

import argparse


def add_node_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that say what the node is like."""
    parser.add_argument(
        "--cpu-factor",
        type=factor,
        default=4.0,
        metavar="N",
        help="declare N times the processors that there are (4), since Pods ask for whole ones and use little",
    )
    parser.add_argument(
        "--outbound",
        choices=("redirect", "proxy", "off"),
        default="",
        help="how Pods reach the world outside; the best way that the kernel allows unless told otherwise",
    )
    parser.add_argument(
        "--resource",
        type=resource,
        action="append",
        default=[],
        metavar="NAME=AMOUNT",
        help="one more resource that the node declares; may be repeated",
    )
    parser.add_argument("--recipes", default="", metavar="DIR", help="a folder of image recipes of your own")
    parser.add_argument(
        "--strict-images",
        action="store_true",
        help="fail an image whose tag asks for another Python than this machine has",
    )


def factor(text: str) -> float:
    """Return how many processors stand for one."""
    return _number(text, 0.01, 1000)


def positive_seconds(text: str) -> float:
    """Return a time of at most a year."""
    return _number(text, 0.001, 366 * 86_400)


def resource(text: str) -> tuple[str, str]:
    """Return name and amount of a resource."""
    from kubewire.quantity import Quantity

    name, sign, amount = text.partition("=")
    try:
        Quantity.parse(amount)
    except ValueError as bad:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=AMOUNT: {bad}") from None
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=AMOUNT")
    return name, amount


def _number(text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:g} to {most:g}")
    return number
