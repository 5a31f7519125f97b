"""`eagleray serve`: how RayServices are: their clusters, who gets how many requests, and their applications."""

import os
import sys
from typing import TYPE_CHECKING, TextIO

from eagleray.cli.arguments import Actions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from eagleray.cli.serveactions import ServeActions

# Imports stand inside the functions: `--help` must not wait for the client.

EXIT_DONE = 0
EXIT_USAGE = 2
_UP_AND_CLEAR = "\x1b[{}A\x1b[J"


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    status = Actions(parser).add(
        "status", "show the clusters of services, their traffic and capacity, and their applications"
    )
    status.add_argument("name", nargs="?", default="", help="a RayService; by default all of the namespace")
    status.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces")
    status.add_argument("-w", "--watch", action="store_true", help="go on, and show every change")


def run(arguments: "argparse.Namespace") -> int:
    """Print how the services are; 0 if that is done, 2 if it could not be asked for."""
    import asyncio

    from eagleray.cli.connecting import Connection, NotAsked, place_of
    from eagleray.cli.serveactions import ServeActions

    if arguments.name and arguments.all_namespaces:
        return _complaint("name a RayService, or ask for all namespaces (-A)")
    try:
        access, namespace = place_of(arguments, arguments.name)
    except NotAsked as bad:
        return _complaint(str(bad))

    async def ask() -> int:
        async with Connection(access) as connection:
            actions = ServeActions(connection.client, connection.clock)
            return await perform(actions, arguments, "" if arguments.all_namespaces else namespace)

    return asyncio.run(ask())


async def perform(actions: "ServeActions", arguments: "argparse.Namespace", namespace: str) -> int:
    """Print how the services of a namespace, or of all, are; once or at every change."""
    from kubewire import errors

    try:
        if arguments.watch:
            await _watch(actions, namespace, arguments.name)
        else:
            _print(await actions.status(namespace, arguments.name))
    except errors.NotFound:
        what = f"RayService {namespace}/{arguments.name}" if arguments.name else "RayService"
        return _complaint(f"there is no {what}, or its CRD is not installed")
    except (errors.ApiError, OSError) as refusal:
        return _complaint(str(refusal))
    return EXIT_DONE


async def _watch(actions: "ServeActions", namespace: str, name: str) -> None:
    """Print pictures, on a terminal each in the place of the one before."""
    from contextlib import aclosing

    is_live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    height = 0
    async with aclosing(actions.live(namespace, name, times=is_live)) as pictures:
        async for lines in pictures:
            if is_live:
                fitting = fitted(lines, *_size(sys.stdout))
                _print(fitting, before=_UP_AND_CLEAR.format(height) if height else "")
                height = len(fitting)
            else:
                _print(lines, before="\n" if height else "")
                height = len(lines)


def fitted(lines: "Sequence[str]", columns: int, rows: int) -> "list[str]":
    """Return lines cut to what a terminal can show without scrolling: only that can be drawn over."""
    shown = [line[: columns - 1].rstrip() for line in lines[: rows - 1]]
    if len(lines) > len(shown):
        shown[-1] = f"… {len(lines) - len(shown) + 1} more lines"[: columns - 1]
    return shown


def _size(stream: TextIO) -> tuple[int, int]:
    """Return how many columns and rows a terminal has; those that do not know get the usual numbers."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except OSError:
        return 80, 24
    return max(size.columns or 80, 20), max(size.lines or 24, 3)


def _print(lines: "Sequence[str]", before: str = "") -> None:
    from eagleray.local.screen import printable

    print(before + "\n".join(map(printable, lines)), flush=True)


def _complaint(sentence: str) -> int:
    print(f"eagleray serve: {sentence}", file=sys.stderr)
    return EXIT_USAGE
