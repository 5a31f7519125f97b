"""The first moments of an operator: its options or one line that says what is wrong with them, then its log."""

import logging
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn, TextIO

from eagleray.runtime.flags import HELP
from eagleray.runtime.logging import Logs
from eagleray.runtime.optionkinds import OptionError
from eagleray.runtime.options import Options, read_options, usage
from kubewire.sources import Clock


def options_or_exit(arguments: Sequence[str], variables: Mapping[str, str]) -> Options:
    """Return the options, or end the process: 0 after the help text, 1 after one line that says what is wrong."""
    if HELP.intersection(arguments):
        print(usage())
        raise SystemExit(0)
    try:
        return read_options(arguments, variables)
    except OptionError as error:
        _exit(error)


def begin_logging(
    options: Options, clock: Clock, stream: TextIO | None = None, logger: logging.Logger | None = None
) -> Logs:
    """Open the log and note there what was odd about the options; a file that cannot be written ends the process."""
    logger = logger or logging.getLogger()
    try:
        logs = Logs.open(options.log, clock, stream, logger)
    except OSError as refusal:
        _exit(OptionError(f"--log-file-path: {options.log.file}: {refusal.strerror or refusal}"))
    for notice in options.notices:
        logger.warning("%s", notice)
    return logs


def _exit(error: OptionError) -> NoReturn:
    print(f"eagleray operator: {' '.join(str(error).split())}", file=sys.stderr)
    raise SystemExit(error.exit_code)
