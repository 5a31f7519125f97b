"""Runs every benchmark and fails if one is out of its bounds."""

import logging
import sys

from bench import kubernetes, raycluster, rayjob, rayservice, reef, run, serving, startup

if __name__ == "__main__":
    logging.disable(logging.WARNING)  # what an operator has to say is no figure
    missed = False
    for part in (startup, reef, raycluster, rayjob, rayservice, kubernetes, run, serving):
        for result in part.measure():
            print(result.text(), flush=True)
            missed = missed or not result.within
    sys.exit(missed)
