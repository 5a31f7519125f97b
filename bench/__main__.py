"""Runs every benchmark and fails if one is out of its bounds."""

import sys

from bench import raycluster, reef, startup

if __name__ == "__main__":
    missed = False
    for measure in (startup.measure, reef.measure, raycluster.measure):
        for result in measure():
            print(result.text(), flush=True)
            missed = missed or not result.within
    sys.exit(missed)
