"""The `eagleray` command: finds the subcommand and hands over.

Only the chosen command is imported, so that `eagleray --help` starts as fast as Python does.
"""

import os
import sys
from typing import NamedTuple


class Command(NamedTuple):
    """A subcommand: its module, and one line about it.

    The module has `configure(parser)` and `run(arguments)`, or, if it `reads_flags` itself, `main(arguments)`.
    """

    module: str
    summary: str
    reads_flags: bool = False


COMMANDS = {
    "run": Command("eagleray.cli.run", "run manifests on a cluster of this machine, made for them alone"),
    "up": Command("eagleray.cli.up", "keep a Kubernetes with Ray's operator on this machine"),
    "down": Command("eagleray.cli.down", "end the kept cluster"),
    "status": Command("eagleray.cli.status", "tell how the kept cluster is"),
    "validate": Command("eagleray.cli.validate", "check Ray manifests without a cluster"),
    "explain": Command("eagleray.cli.explain", "describe a field of a Ray kind"),
    "why": Command("eagleray.cli.why", "tell what an object waits for, and what would help"),
    "job": Command("eagleray.cli.job", "submit RayJobs, list them, show what one prints, and stop one"),
    "serve": Command("eagleray.cli.serve", "show the clusters, traffic and applications of RayServices"),
    "cron": Command("eagleray.cli.cron", "list RayCronJobs, show coming runs, trigger, suspend and resume"),
    "operator": Command(
        "eagleray.cli.operator", "run the controllers against a Kubernetes", reads_flags=True
    ),
}

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    name = arguments[0] if arguments else "--help"
    if name in ("-h", "--help", "help"):
        print(usage())
        return 0
    if name in ("-V", "--version", "version"):
        from eagleray import __version__

        print(f"eagleray {__version__}")
        return 0
    command = COMMANDS.get(name)
    if command is None:
        print(f"eagleray: there is no command {name!r}{_nearest(name)}; see eagleray --help", file=sys.stderr)
        return EXIT_USAGE
    return _run(name, command, arguments[1:])


def usage() -> str:
    """Return the help text of the whole program."""
    rows = "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items())
    return (
        "Usage: eagleray COMMAND [ARGUMENT ...]\n\n"
        "Runs Ray on Kubernetes, and on a machine without one.\n\n"
        f"Commands:\n{rows}\n\n"
        "  eagleray COMMAND --help   tells what a command takes\n"
        "  eagleray --version        prints the version"
    )


def _run(name: str, command: Command, arguments: list[str]) -> int:
    import argparse
    import functools
    import gc
    import importlib

    module = importlib.import_module(command.module)
    if command.reads_flags:
        served: int = module.main(arguments)
        return served
    # A command is short-lived and bounded in what it reads: looking for garbage early would only cost time.
    gc.set_threshold(100_000)
    # argparse would ask shutil for the width, whose import takes longer than all the rest of the parser.
    formatter = functools.partial(argparse.HelpFormatter, width=_width())
    parser = argparse.ArgumentParser(
        prog=f"eagleray {name}", description=command.summary, formatter_class=formatter
    )
    module.configure(parser)
    try:
        status: int = module.run(parser.parse_args(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has seen enough; Python would complain again when it closes the stream.
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return status


def _width() -> int:
    """Return how many characters a line of help may have."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit():
        return max(int(columns), 20)
    try:
        return max(os.get_terminal_size().columns, 20)
    except OSError:
        return 80


def _nearest(name: str) -> str:
    import difflib

    found = difflib.get_close_matches(name, COMMANDS, 1)
    return f", did you mean {found[0]!r}?" if found else ""


if __name__ == "__main__":
    sys.exit(main())
