"""The process that runs a kept cluster until it is told to end: `keep`, in the foreground or detached.

`python -m eagleray.local.daemon SETTINGS` is how `kept.ensure_running` starts it; SETTINGS is JSON.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from eagleray import __version__
from eagleray.kube.sections import Section
from eagleray.local import contexts
from eagleray.local.cluster import ClusterFailed, LocalCluster, LocalSettings, local_cluster
from eagleray.local.contexts import Context, ContextError
from eagleray.local.kept import (
    EXIT_TAKEN,
    KeepSettings,
    Place,
    Record,
    Taken,
    forget_context,
    held,
    note,
    settings_place,
    started_at,
)
from eagleray.local.users import give
from eagleray.runtime.logfiles import Bounds, RotatingFile
from eagleray.runtime.logging import LineFormatter, LogOptions
from kubereef.node.images import cache_directory
from kubereef.server.certificates import BadCredentials
from kubereef.store.errors import StoreError
from kubewire.sources import Clock, SystemClock
from kubewire.times import format_time

log = logging.getLogger(__name__)

Say = Callable[[str], None]

_LOG_BOUNDS: Final = Bounds(size=10 * 1024 * 1024, backups=4)
# A request makes a few hundred objects that are gone after it; looking for cycles is worth it less often than usual.
_COLLECT_AFTER: Final = 20_000


async def keep(settings: KeepSettings, say: Say, clock: Clock | None = None) -> None:
    """Run a cluster until SIGTERM or SIGINT; `say` is told what happens.

    Raises Taken if another process runs it, ClusterFailed if it cannot come up or a part of it ends.
    """
    clock = clock or SystemClock()
    place = settings_place(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with held(place), _logged(place, clock):
        serving = asyncio.create_task(_serve(settings, place, say, clock))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not serving.done():
            say("stopping; Pods have up to 10 s to end")
            serving.cancel()
            await asyncio.wait((serving,))
        if not serving.cancelled():
            _told_as_failures(serving)


def _told_as_failures(serving: "asyncio.Task[None]") -> None:
    try:
        serving.result()
    except (StoreError, BadCredentials, OSError) as bad:
        raise ClusterFailed(str(bad)) from bad


async def _serve(settings: KeepSettings, place: Place, say: Say, clock: Clock) -> None:
    pid = os.getpid()
    record = Record(
        pid=pid,
        started=started_at(pid),
        since=format_time(clock.now()),
        version=__version__,
        images=str(cache_directory()),
        cpu_factor=settings.cpu_factor,
    )
    note(place, record)
    try:
        port = _port(settings.port, place, say)
        async with local_cluster(_local(settings, place, port)) as cluster:
            served = cluster.hosted.served
            _remember_port(place, served.port)
            # Noted before it is made: whenever this process is killed, somebody knows where to look for its context.
            record = msgspec.structs.replace(
                record, kubeconfig=str(cluster.kubeconfig), context_file=settings.context_file
            )
            note(place, record)
            if problem := _add_context(settings, place, cluster):
                say(f"note: no context: {problem}")
                record = msgspec.structs.replace(record, context_file="")
            record = msgspec.structs.replace(record, url=served.url)
            note(place, record)
            # What is there now stays for good, so the collector need not look through it again and again.
            gc.collect()
            gc.freeze()
            gc.set_threshold(_COLLECT_AFTER)
            log.info("the cluster %s is ready at %s", place.name, served.url)
            say(f"ready at {served.url}")
            await cluster.until_it_fails()
    finally:
        if problem := forget_context(place, record):
            say(f"note: the context is left: {problem}")
        place.state_file.unlink(missing_ok=True)
        log.info("the cluster %s has ended", place.name)


def _local(settings: KeepSettings, place: Place, port: int) -> LocalSettings:
    return LocalSettings(
        place.cluster,
        port=port,
        cpu_factor=settings.cpu_factor,
        outbound=settings.outbound,
        resources=settings.resources,
        recipes=Path(settings.recipes) if settings.recipes else None,
        strict_images=settings.strict_images,
        operator_flags=settings.operator_flags,
    )


def _port(wanted: int, place: Place, say: Say) -> int:
    """Return the port to listen on; 0 lets the kernel choose."""
    if wanted:
        if not _is_free(wanted):
            raise ClusterFailed(f"port {wanted} is in use; choose another with --listen, or none for any")
        return wanted
    try:
        before = int(place.port_file.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0
    if 0 < before < 65536 and _is_free(before):
        return before
    say(f"note: port {before}, which the cluster had before, is in use: another one is taken")
    return 0


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _remember_port(place: Place, port: int) -> None:
    place.port_file.write_text(f"{port}\n", encoding="ascii")
    give(place.port_file, place.user)


def _add_context(settings: KeepSettings, place: Place, cluster: LocalCluster) -> str:
    """Put a context into the user's kubeconfig, if one is wanted; returns what prevented it."""
    if not settings.context_file:
        return ""
    own = Section.read(cluster.kubeconfig)
    described = own.sections("clusters")[0].section("cluster")
    administrator = own.sections("users")[0].section("user")
    context = Context(
        place.name,
        str(place.directory),
        described.needed("server"),
        described.needed("certificate-authority-data"),
        administrator.needed("token"),
    )
    try:
        contexts.add(Path(settings.context_file), context, place.user, make_current=settings.make_current)
    except ContextError as bad:
        return str(bad)
    return ""


@contextmanager
def _logged(place: Place, clock: Clock) -> Iterator[None]:
    """Have everything that is logged go to the cluster's own file."""
    to_file = RotatingFile(place.log, clock, _LOG_BOUNDS)
    give(place.log, place.user)
    to_file.setFormatter(LineFormatter("console", LogOptions()))
    root = logging.getLogger()
    before = root.level
    root.addHandler(to_file)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(to_file)
        root.setLevel(before)
        to_file.close()


def main(arguments: list[str]) -> int:
    """Run a cluster by settings in JSON; returns the exit code."""
    settings = msgspec.json.decode(arguments[0], type=KeepSettings)
    os.chdir("/")  # whatever directory it was started from can be removed

    def say(line: str) -> None:
        print(line, flush=True)

    try:
        asyncio.run(keep(settings, say))
    except Taken as taken:
        print(f"eagleray up: {taken}", flush=True)
        return EXIT_TAKEN
    except ClusterFailed as bad:
        print(f"eagleray up: {bad}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
