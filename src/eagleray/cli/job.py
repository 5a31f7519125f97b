"""`eagleray job`: new RayJobs, those of a cluster, what a job prints, and a hand on the brake."""

import sys
from typing import TYPE_CHECKING

from eagleray.cli import submit
from eagleray.cli.arguments import Actions

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from eagleray.cli.jobactions import JobActions

# Imports stand inside the functions: `--help` must not wait for the client.

EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_USAGE = 2


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    action = Actions(parser).add
    submit.configure(action("submit", "have Ray run a command in a cluster, and follow what it prints"))
    listing = action("list", "show the RayJobs, how far they are and what they wait for")
    listing.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces")
    logs = action("logs", "print what a job has printed")
    logs.add_argument("name", help="a RayJob")
    logs.add_argument("-f", "--follow", action="store_true", help="go on until the job has ended")
    action("stop", "have Ray stop a job; its cluster is left to the RayJob").add_argument(
        "name", help="a RayJob"
    )


def run(arguments: "argparse.Namespace") -> int:
    """Do what is asked; 0 if it is done, 1 if it was refused, 2 if it could not be asked for."""
    if arguments.action == "submit":
        return submit.run(arguments)

    import asyncio

    from eagleray.cli.connecting import Connection, NotAsked, place_of
    from eagleray.cli.jobactions import JobActions

    try:
        access, namespace = place_of(arguments, getattr(arguments, "name", ""))
    except NotAsked as bad:
        return _complaint(str(bad))

    async def ask() -> int:
        async with Connection(access) as connection:
            actions = JobActions(connection.client, connection.transport, connection.clock)
            return await perform(actions, arguments, namespace)

    return asyncio.run(ask())


async def perform(actions: "JobActions", arguments: "argparse.Namespace", namespace: str) -> int:
    """Do one action in a cluster, and print what it says as it says it."""
    from eagleray.cli.jobactions import Refused
    from eagleray.dashboard.errors import DashboardError, Unreachable
    from kubewire import errors

    name = getattr(arguments, "name", "")
    try:
        async for text in _said(actions, arguments, namespace, name):
            print(text, end="", flush=True)
    except Refused as refused:
        return _complaint(str(refused), EXIT_REFUSED)
    except Unreachable as silent:
        return _complaint(f"Ray's dashboard cannot be reached through the API server: {silent}")
    except DashboardError as refused:
        return _complaint(f"Ray refused: {refused}", EXIT_REFUSED)
    except errors.NotFound as missing:
        what = f"RayJob {namespace}/{name}" if name else "RayJob"
        is_job = "rayjobs" in str(missing) or not name
        return _complaint(f"there is no {what}, or its CRD is not installed" if is_job else str(missing))
    except (errors.ApiError, OSError) as refusal:
        return _complaint(str(refusal))
    return EXIT_DONE


async def _said(
    actions: "JobActions", arguments: "argparse.Namespace", namespace: str, name: str
) -> "AsyncIterator[str]":
    if arguments.action == "logs":
        async for text in actions.logs(namespace, name, follow=arguments.follow):
            yield text
        return
    if arguments.action == "list":
        lines = await actions.list("" if arguments.all_namespaces else namespace)
    else:
        lines = await actions.stop(namespace, name)
    for line in lines:
        yield f"{line}\n"


def _complaint(sentence: str, status: int = EXIT_USAGE) -> int:
    print(f"eagleray job: {sentence}", file=sys.stderr)
    return status
