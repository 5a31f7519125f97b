"""`python -m tests.kubereef.hostile --requests 10000 --seed N`: attack a server, over HTTPS and in this process."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.kubereef.hostile.campaign import (
    MAX_GROWTH,
    Tally,
    attack_in_process,
    attack_over_https,
    complaints,
)

_MIB = 1024 * 1024


def main() -> int:
    """Attack as often as was asked and say what came of it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubereef.hostile", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, metavar="N", help="how many to send (10000)")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) // 86400, metavar="N", help="that of the day unless told"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}")
    began = time.monotonic()
    inside = asyncio.run(attack_in_process(options.requests, options.seed))
    wrong = _tell("in process", inside, began)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kubereef-hostile-") as directory:
        outcome = asyncio.run(attack_over_https(Path(directory), options.requests, options.seed))
    wrong += _tell("over HTTPS", outcome.tally, began)
    print(f"memory: {outcome.warm / _MIB:.0f} MiB after a quarter, {outcome.memory / _MIB:.0f} MiB after all")
    for complaint in complaints(outcome.log):
        wrong += 1
        print(complaint)
    return 1 if wrong or outcome.growth > MAX_GROWTH else 0


def _tell(where: str, tally: Tally, began: float) -> int:
    """Print what has happened; returns how much of it must not."""
    spent = time.monotonic() - began
    print(
        f"{where}: {tally.requests} requests in {spent:.0f} s, {tally.accepted} writes accepted and read again"
    )
    print(f"  the slowest took {tally.slowest[0]:.2f} s: {tally.slowest[1]}")
    for finding in tally.findings:
        print(finding)
    return len(tally.findings)


if __name__ == "__main__":
    sys.exit(main())
