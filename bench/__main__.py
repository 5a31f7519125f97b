"""Runs every benchmark and fails if one is out of its bounds."""

import logging
import sys

from bench import raycluster, rayjob, reef, run, startup

if __name__ == "__main__":
    logging.disable(logging.WARNING)  # what an operator has to say is no figure
    missed = False
    for measure in (startup.measure, reef.measure, raycluster.measure, rayjob.measure, run.measure):
        for result in measure():
            print(result.text(), flush=True)
            missed = missed or not result.within
    sys.exit(missed)
