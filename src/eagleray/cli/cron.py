"""`eagleray cron`: the RayCronJobs of a cluster, when they run next, and a hand on the switch."""

import sys
from typing import TYPE_CHECKING

from eagleray.cli.arguments import Actions

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Iterable

    from eagleray.cli.cronactions import CronActions

# Imports stand inside the functions: `--help` must not wait for the client.

EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_USAGE = 2

_MOST_RUNS = 1000
_RUNS = 10


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    action = Actions(parser).add
    listing = action("list", "show the RayCronJobs with their last and next runs")
    listing.add_argument("-A", "--all-namespaces", action="store_true", help="those of all namespaces")
    coming = action("next", "show the coming runs, and where the clock is set between them")
    coming.add_argument("name", nargs="?", default="", help="a RayCronJob")
    coming.add_argument("--schedule", default="", help="a schedule instead of a RayCronJob; needs no cluster")
    coming.add_argument("--zone", default="", help="the time zone, where none is set; by default UTC")
    coming.add_argument("-c", "--count", type=int, default=_RUNS, help=f"how many; by default {_RUNS}")
    for name, summary in (
        ("trigger", "start a run now, whatever the schedule says"),
        ("suspend", "make no further runs; those that go on are left alone"),
        ("resume", "go on with the schedule"),
    ):
        action(name, summary).add_argument("name", help="a RayCronJob")


def run(arguments: "argparse.Namespace") -> int:
    """Do what is asked; 0 if it is done, 1 if it was refused, 2 if it could not be asked for."""
    if arguments.action != "next":
        return _in_cluster(arguments)
    if not 1 <= arguments.count <= _MOST_RUNS:
        return _complaint(f"--count {arguments.count}: choose a number from 1 to {_MOST_RUNS}")
    if bool(arguments.name) == bool(arguments.schedule):
        return _complaint("next: name a RayCronJob, or give a --schedule")
    return _print_next(arguments) if arguments.schedule else _in_cluster(arguments)


def _print_next(arguments: "argparse.Namespace") -> int:
    from eagleray.cli.cronruns import coming_runs
    from eagleray.cron import InvalidSchedule, UnknownZone
    from kubewire.sources import SystemClock

    zone = arguments.zone or "UTC"
    try:
        return _print(coming_runs(arguments.schedule, zone, SystemClock().now(), arguments.count))
    except (InvalidSchedule, UnknownZone) as bad:
        return _complaint(str(bad))


def _in_cluster(arguments: "argparse.Namespace") -> int:
    import asyncio

    from eagleray.cli.connecting import Connection, NotAsked, place_of
    from eagleray.cli.cronactions import CronActions

    try:
        access, namespace = place_of(arguments, getattr(arguments, "name", ""))
    except NotAsked as bad:
        return _complaint(str(bad))

    async def ask() -> int:
        async with Connection(access) as connection:
            actions = CronActions(connection.client, connection.clock, connection.entropy)
            return await perform(actions, arguments, namespace)

    return asyncio.run(ask())


async def perform(actions: "CronActions", arguments: "argparse.Namespace", namespace: str) -> int:
    """Do one action in a cluster, and print what it says."""
    from eagleray.cli.cronactions import Refused
    from kubewire import errors

    name = getattr(arguments, "name", "")
    chosen: dict[str, Callable[[], Awaitable[Iterable[str]]]] = {
        "list": lambda: actions.list("" if arguments.all_namespaces else namespace),
        "next": lambda: actions.next(namespace, name, arguments.count, arguments.zone or "UTC"),
        "trigger": lambda: actions.trigger(namespace, name),
        "suspend": lambda: actions.suspend(namespace, name),
        "resume": lambda: actions.resume(namespace, name),
    }
    try:
        return _print(await chosen[arguments.action]())
    except Refused as refused:
        return _complaint(str(refused), EXIT_REFUSED)
    except errors.NotFound:
        what = f"RayCronJob {namespace}/{name}" if name else "RayCronJob"
        return _complaint(f"there is no {what}, or its CRD is not installed")
    except (errors.ApiError, OSError) as refusal:
        return _complaint(str(refusal))


def _print(lines: "Iterable[str]") -> int:
    print("\n".join(lines))
    return EXIT_DONE


def _complaint(sentence: str, status: int = EXIT_USAGE) -> int:
    print(f"eagleray cron: {sentence}", file=sys.stderr)
    return status
