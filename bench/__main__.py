"""Runs every benchmark and fails if one is out of its bounds."""

import sys

from bench import startup

if __name__ == "__main__":
    results = startup.measure()
    for result in results:
        print(result.text())
    sys.exit(any(not result.within for result in results))
