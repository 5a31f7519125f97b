"""Flags of the commands that have a cluster on this machine."""

import argparse

from kubereef.node.arguments import add_abilities, add_recipes


def add_node_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that say what the node is like."""
    add_abilities(parser)
    add_recipes(parser)


def positive_seconds(text: str) -> float:
    """Return a time of at most a year."""
    least, most = 0.001, 366 * 86_400
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not least <= seconds <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:g} to {most:g}")
    return seconds
