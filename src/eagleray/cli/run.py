"""`eagleray run FILE…`: runs manifests on a cluster of this machine that exists for as long as they do."""

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine, Iterator
    from pathlib import Path
    from typing import Any

    from eagleray.local.cluster import LocalSettings
    from eagleray.local.kept import KeepSettings
    from eagleray.local.manifests import Manifest
    from eagleray.local.running import Work
    from eagleray.local.screen import Screen

# Imports stand inside the functions: `--help` must not wait for the cluster.

EXIT_FAILED = 1
EXIT_USAGE = 2
# As shells tell of a program that a signal has ended.
EXIT_SIGNAL = 128
# Pods of a cluster that is thrown away have little to put in order.
GRACE_SECONDS = 2.0


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    from eagleray.cli.nodeflags import add_node_flags, positive_seconds

    source_help = "a manifest, a folder to search for manifests, or - for standard input"
    parser.add_argument("sources", nargs="+", metavar="FILE", help=source_help)
    parser.add_argument(
        "-n", "--namespace", default="", help="where objects go that name no namespace (default)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="run on the kept cluster (eagleray up) and leave everything there"
    )
    parser.add_argument(
        "--timeout", type=positive_seconds, default=0.0, metavar="S", help="give up after so many seconds"
    )
    parser.add_argument("--verbose", action="store_true", help="tell more, and show the operator's log")
    add_node_flags(parser)
    parser.epilog = (
        "Exit status: 0 if every RayJob succeeded, 1 if one did not or something else failed, 2 if nothing could be"
        " started as asked, 130 after Ctrl-C."
    )


def run(arguments: "argparse.Namespace") -> int:
    """Run the manifests; returns the exit status."""
    from eagleray.cli.localflags import sudo_command
    from eagleray.local.kept import NotAllowed, require_root
    from kubewire.names import dns1123_label

    if arguments.namespace and (problems := dns1123_label(arguments.namespace)):
        return _complaint(f"{arguments.namespace!r} is no namespace: {problems[0]}", EXIT_USAGE)
    manifests = _valid_manifests(arguments.sources)
    if manifests is None:
        return EXIT_FAILED
    if not manifests:
        return _complaint("there is no object in what was given", EXIT_USAGE)
    try:
        require_root()
    except NotAllowed as refused:
        return _complaint(f"{refused}; run it as: {sudo_command()}")
    return _run(arguments, manifests)


def _valid_manifests(sources: "list[str]") -> "list[Manifest] | None":
    """Return the objects in their order; None after telling what is wrong, as `eagleray validate` does."""
    from eagleray.cli.validate import Finding, Report, check
    from eagleray.local.manifests import BadManifest, manifests_in, read_source
    from eagleray.rayapi.rules import ValidationConfig
    from kubewire.yamltext import Position

    report = Report()
    found: list[Manifest] = []
    for source in sources:
        for name, content in read_source(source):
            if isinstance(content, str):
                report.cannot_read(name, content, Position(1, 1))
                continue
            check(report, name, content, ValidationConfig())
            try:
                found += manifests_in(name, content)
            except BadManifest as bad:
                found_before = {
                    (one.file, one.position.line) for one in report.findings if one.severity == "error"
                }
                if (name, bad.position.line) not in found_before:
                    report.findings.append(Finding(name, bad.position, "error", str(bad)))
    # That other kinds are not judged is no news here: the server will.
    told = [finding for finding in report.findings if finding.severity != "note"]
    for finding in told:
        print(finding.text(), file=sys.stderr)
    return None if any(finding.severity == "error" for finding in told) else found


def _run(arguments: "argparse.Namespace", manifests: "list[Manifest]") -> int:
    import asyncio

    from eagleray.local.running import Work
    from eagleray.local.screen import Screen
    from kubewire.sources import SystemClock

    screen = Screen(sys.stderr, sys.stdout, SystemClock())
    work = Work(
        manifests, arguments.namespace, arguments.timeout, verbose=arguments.verbose, leave=arguments.keep
    )
    doing = _on_kept(arguments, work, screen) if arguments.keep else _on_own(arguments, work, screen)
    try:
        return asyncio.run(_until_interrupted(doing, screen))
    finally:
        screen.close()


async def _until_interrupted(doing: "Coroutine[Any, Any, int]", screen: "Screen") -> int:
    """Return the exit code of the work. The first signal ends it in order, the second one at once."""
    import asyncio
    import os
    import signal

    loop = asyncio.get_running_loop()
    task, moving = asyncio.create_task(doing), asyncio.create_task(screen.move())
    received: list[int] = []

    def interrupt(number: int) -> None:
        received.append(number)
        if len(received) > 1:
            screen.close()
            os._exit(EXIT_SIGNAL + number)  # the node and all that is in it end with this process
        screen.line("ending; once more to end at once", "warn")
        screen.stage("ending")
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt, number)
    try:
        return await task
    except asyncio.CancelledError:
        if not received:
            raise
        return EXIT_SIGNAL + received[0]
    finally:
        moving.cancel()


async def _on_own(arguments: "argparse.Namespace", work: "Work", screen: "Screen") -> int:
    """Run the work on a cluster that is made for it and gone with it."""
    import asyncio
    import tempfile
    from pathlib import Path

    from eagleray.local.applying import NotApplied
    from eagleray.local.cluster import ClusterFailed

    directory = Path(tempfile.mkdtemp(prefix="eagleray-run-"))
    code = EXIT_FAILED
    try:
        code = await _with_cluster(arguments, work, screen, directory)
    except (ClusterFailed, NotApplied) as failure:
        screen.line(str(failure), "bad")
    except asyncio.CancelledError:
        code = EXIT_SIGNAL
        raise
    finally:
        logs = await _cleared(directory, keep_logs=code == EXIT_FAILED)
    if logs is not None:
        screen.line(f"logs of the operator and the node: {logs}", "quiet")
    return code


async def _with_cluster(
    arguments: "argparse.Namespace", work: "Work", screen: "Screen", directory: "Path"
) -> int:
    from eagleray.local.cluster import local_cluster
    from eagleray.local.running import Way, perform
    from kubewire.sources import SystemClock, SystemEntropy

    with _logging_to(directory / "operator.log", screen if work.verbose else None):
        screen.stage("a Kubernetes starts")
        async with local_cluster(_settings(arguments, directory)) as cluster:
            screen.line("a Kubernetes with Ray's operator is up, for this run")
            if work.stays:
                screen.line(f"for kubectl: export KUBECONFIG={cluster.kubeconfig}", "quiet")
            way = Way(
                cluster.client,
                cluster.transport,
                SystemClock(),
                SystemEntropy(),
                forward=cluster.forward,
                fails=cluster.until_it_fails,
            )
            code = await perform(work, way, screen)
            screen.stage("ending")
        return code


def _settings(arguments: "argparse.Namespace", directory: "Path") -> "LocalSettings":
    from eagleray.local.cluster import LocalSettings

    return LocalSettings(
        directory / "cluster",
        in_memory=True,
        cpu_factor=arguments.cpu_factor,
        outbound=arguments.outbound,
        resources=dict(arguments.resource),
        recipes=arguments.recipes.absolute() if arguments.recipes else None,
        strict_images=arguments.strict_images,
        grace=GRACE_SECONDS,
    )


@contextmanager
def _logging_to(file: "Path", screen: "Screen | None") -> "Iterator[None]":
    """Have what the operator and the cluster log go to a file, and to the screen as well if one is given."""
    import logging

    from eagleray.runtime.logging import LineFormatter, LogOptions, Logs
    from kubewire.sources import SystemClock

    class ToScreen(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if screen is not None:
                screen.line(self.format(record).replace("\t", " "), "quiet")

    options = LogOptions(encoder="console")
    handler = ToScreen()
    handler.setFormatter(LineFormatter("console", options))
    with file.open("w", encoding="utf-8") as opened, Logs.open(options, SystemClock(), opened):
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)


async def _cleared(directory: "Path", *, keep_logs: bool) -> "Path | None":
    """Remove a run's directory; returns where its logs are if they are kept."""
    import asyncio
    import shutil
    import tempfile
    from pathlib import Path

    kept = None
    if keep_logs:
        kept = Path(tempfile.mkdtemp(prefix="eagleray-logs-"))
        for log in (directory / "operator.log", directory / "cluster" / "node" / "node.log"):
            if log.exists():
                shutil.move(log, kept / log.name)
    await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
    return kept


async def _on_kept(arguments: "argparse.Namespace", work: "Work", screen: "Screen") -> int:
    """Run the work on the cluster that is kept, which is started if it does not run, and leave it all there."""
    import os

    from eagleray.cli.connecting import Connection
    from eagleray.kube.access import ConfigError
    from eagleray.kube.kubeconfig import find_access
    from eagleray.local.applying import NotApplied
    from eagleray.local.kept import KeptError, ensure_running
    from eagleray.local.running import Way, perform
    from kubewire.sources import SystemClock, SystemEntropy

    clock = SystemClock()
    screen.stage("the kept cluster starts")
    try:
        kept = await ensure_running(_keep_settings(arguments), say=screen.line)
        screen.line(f"the kept cluster is {'up' if kept.is_new else 'there already'}, at {kept.url}")
        access = find_access(os.environ, clock, kubeconfig=str(kept.kubeconfig))
        async with Connection(access) as connection:
            way = Way(connection.client, connection.transport, clock, SystemEntropy())
            code = await perform(work, way, screen)
    except (KeptError, ConfigError, NotApplied) as failure:
        screen.line(str(failure), "bad")
        return EXIT_FAILED
    screen.line(
        f"everything is left there: kubectl --kubeconfig {kept.kubeconfig}, eagleray status, eagleray down"
    )
    return code


def _keep_settings(arguments: "argparse.Namespace") -> "KeepSettings":
    import os

    from eagleray.local.contexts import kubeconfig_file
    from eagleray.local.kept import DEFAULT_NAME, KeepSettings, place_of

    place = place_of(DEFAULT_NAME, "", os.environ)
    return KeepSettings(
        name=place.name,
        directory=str(place.directory),
        cpu_factor=arguments.cpu_factor,
        outbound=arguments.outbound,
        resources=dict(arguments.resource),
        recipes=str(arguments.recipes.absolute()) if arguments.recipes else "",
        strict_images=arguments.strict_images,
        context_file=str(kubeconfig_file(os.environ, place.user)),
    )


def _complaint(sentence: str, status: int = EXIT_FAILED) -> int:
    print(f"eagleray run: {sentence}", file=sys.stderr)
    return status
