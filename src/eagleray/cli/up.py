"""`eagleray up`: a Kubernetes with Ray's operator on this machine that is kept until `eagleray down`."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from eagleray.local.kept import KeepSettings, Place

# Imports stand inside the functions: `--help` must not wait for the cluster.

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    from eagleray.cli.localflags import add_place_flags
    from eagleray.cli.nodeflags import add_node_flags

    parser.usage = "%(prog)s [-d] [FLAG ...] [-- OPERATOR_FLAG ...]"
    parser.add_argument(
        "-d", "--detach", action="store_true", help="return once it is ready, and leave it running"
    )
    add_place_flags(parser)
    parser.add_argument(
        "--listen",
        type=_port,
        default=0,
        metavar="PORT",
        help="the port of the API server, on this machine alone; by default the same as last time",
    )
    parser.add_argument(
        "--keep-context", action="store_true", help="add a context, but leave the current one current"
    )
    parser.add_argument(
        "--no-context",
        action="store_true",
        help="leave the kubeconfig alone; kubectl --kubeconfig DIR/NAME/cluster/admin.kubeconfig works",
    )
    add_node_flags(parser)
    parser.add_argument(
        "operator_flags",
        nargs="*",
        metavar="OPERATOR_FLAG",
        help="flags of the operator, see eagleray operator -h",
    )


def run(arguments: "argparse.Namespace") -> int:
    """Run the cluster, or have it run; 0 if it is up or was ended by request, 1 if it failed, 2 if it cannot be."""
    import asyncio
    import os

    from eagleray.cli.localflags import sudo_command
    from eagleray.local.kept import KeptError, NotAllowed, place_of

    try:
        place = place_of(arguments.name, arguments.data_dir, os.environ)
    except KeptError as bad:
        return _complaint(str(bad), EXIT_USAGE)
    if problem := _wrong_flags(arguments.operator_flags):
        return _complaint(problem, EXIT_USAGE)
    settings = _settings(arguments, place)
    try:
        return asyncio.run(_detached(settings, place) if arguments.detach else _foreground(settings, place))
    except NotAllowed as refused:
        return _complaint(f"{refused}; run it as: {sudo_command()}")
    except KeptError as bad:
        return _complaint(str(bad))


async def _detached(settings: "KeepSettings", place: "Place") -> int:
    from eagleray.local.kept import ensure_running, find

    kept = await ensure_running(settings, say=_say)
    record = find(place).record
    has_context = record is not None and bool(record.context_file)
    _say(f"ready at {kept.url}" if kept.is_new else f"the cluster {place.name} is up already, at {kept.url}")
    for line in how_to_use(place, str(kept.kubeconfig), has_context=has_context, is_detached=True):
        _say(line)
    return EXIT_DONE


async def _foreground(settings: "KeepSettings", place: "Place") -> int:
    from eagleray.local.kept import find, require_root

    state = find(place)
    if state.is_running and state.record is not None:
        _say(f"the cluster {place.name} is up already, at {state.record.url}, as process {state.record.pid}")
        return EXIT_DONE
    require_root()
    from eagleray.local.cluster import ClusterFailed
    from eagleray.local.daemon import keep

    def say(line: str) -> None:
        _say(line)
        if line.startswith("ready at "):
            record = find(place).record
            has_context = record is not None and bool(record.context_file)
            kubeconfig = record.kubeconfig if record is not None else ""
            for more in how_to_use(place, kubeconfig, has_context=has_context, is_detached=False):
                _say(more)

    _say(f"starting the cluster {place.name} in {place.directory}")
    try:
        await keep(settings, say)
    except ClusterFailed as bad:
        return _complaint(f"{bad} (see {place.log})")
    _say(f"the cluster {place.name} has ended; its objects are kept for the next eagleray up")
    return EXIT_DONE


def how_to_use(place: "Place", kubeconfig: str, *, has_context: bool, is_detached: bool) -> list[str]:
    """Return what to tell a user whose cluster is ready."""
    from eagleray.local.kept import DEFAULT_NAME

    name = "" if place.name == DEFAULT_NAME else f" --name {place.name}"
    way = f"kubectl --context {place.name} get pods -A"
    lines = [
        f"  {way if has_context else f'kubectl --kubeconfig {kubeconfig} get pods -A'}",
        "  eagleray job submit --working-dir . -- python main.py",
        f"  eagleray status{name}",
    ]
    lines.append(f"  eagleray down{name}" if is_detached else "  Ctrl-C ends it")
    return lines


def _settings(arguments: "argparse.Namespace", place: "Place") -> "KeepSettings":
    import os

    from eagleray.local.contexts import kubeconfig_file
    from eagleray.local.kept import KeepSettings

    return KeepSettings(
        name=place.name,
        directory=str(place.directory),
        port=arguments.listen,
        cpu_factor=arguments.cpu_factor,
        outbound=arguments.outbound,
        resources=dict(arguments.resource),
        recipes=str(arguments.recipes.absolute()) if arguments.recipes else "",
        strict_images=arguments.strict_images,
        operator_flags=tuple(arguments.operator_flags),
        context_file="" if arguments.no_context else str(kubeconfig_file(os.environ, place.user)),
        make_current=not arguments.keep_context,
    )


def _wrong_flags(flags: list[str]) -> str:
    """Return what is wrong with the operator's flags, before anything is started."""
    if not flags:
        return ""
    from eagleray.runtime.optionkinds import OptionError
    from eagleray.runtime.options import read_options

    try:
        read_options(tuple(flags), {})
    except OptionError as bad:
        return " ".join(str(bad).split())
    return ""


def _port(text: str) -> int:
    import argparse

    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:6]) < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return int(text)


def _say(line: str) -> None:
    print(line, flush=True)


def _complaint(sentence: str, status: int = EXIT_FAILED) -> int:
    print(f"eagleray up: {sentence}", file=sys.stderr)
    return status
