"""Flags that every command about a cluster on this machine has, and how it asks for root."""

import os
import shlex
import sys
from typing import TYPE_CHECKING

from eagleray.local.kept import DEFAULT_NAME

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def add_place_flags(parser: "argparse.ArgumentParser") -> None:
    """Declare the flags that say which cluster is meant."""
    parser.add_argument(
        "--name", default=DEFAULT_NAME, help=f"which cluster, and what its context is called ({DEFAULT_NAME})"
    )
    parser.add_argument(
        "--data-dir",
        default="",
        metavar="DIR",
        help="where clusters are kept, each in a folder of its name ($XDG_DATA_HOME/eagleray, ~/.local/share/eagleray)",
    )


def sudo_command(arguments: "Sequence[str] | None" = None) -> str:
    """Return the command that was typed, as root would have to type it."""
    program = os.path.realpath(sys.argv[0])
    is_script = os.access(program, os.X_OK) and not program.endswith(".py")
    start = [program] if is_script else [sys.executable, "-m", "eagleray.cli.main"]
    kept = [name for name in ("KUBECONFIG", "XDG_DATA_HOME", "EAGLERAY_CACHE") if name in os.environ]
    environment = [f"--preserve-env={','.join(kept)}"] if kept else []
    return shlex.join(["sudo", *environment, *start, *(sys.argv[1:] if arguments is None else arguments)])
