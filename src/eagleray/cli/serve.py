"""`eagleray serve`: how RayServices are: their clusters, who gets how many requests, and their applications."""

import sys
from typing import TYPE_CHECKING

from eagleray.cli.arguments import Actions

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Sequence

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

    try:
        access, namespace = place_of(arguments, arguments.name)
    except NotAsked as bad:
        return _complaint(str(bad))

    async def ask() -> int:
        async with Connection(access) as connection:
            actions = ServeActions(connection.client, connection.clock)
            return await perform(actions, arguments, namespace)

    return asyncio.run(ask())


async def perform(actions: "ServeActions", arguments: "argparse.Namespace", namespace: str) -> int:
    """Print how the services of a namespace are, once or at every change."""
    from kubewire import errors

    namespace = "" if arguments.all_namespaces and not arguments.name else namespace
    try:
        await _show(actions.status(namespace, arguments.name, watch=arguments.watch))
    except errors.NotFound:
        what = f"RayService {namespace}/{arguments.name}" if arguments.name else "RayService"
        return _complaint(f"there is no {what}, or its CRD is not installed")
    except (errors.ApiError, OSError) as refusal:
        return _complaint(str(refusal))
    return EXIT_DONE


async def _show(pictures: "AsyncIterator[Sequence[str]]") -> None:
    """Print pictures, on a terminal each in the place of the one before."""
    is_live, height = sys.stdout.isatty(), 0
    async for lines in pictures:
        before = _UP_AND_CLEAR.format(height) if is_live and height else ""
        print(before + "\n".join(lines), flush=True)
        height = len(lines)


def _complaint(sentence: str) -> int:
    print(f"eagleray serve: {sentence}", file=sys.stderr)
    return EXIT_USAGE
