"""`python -m tests.kubereef.durability --kills 1000`: the kills that take longer than a test may."""

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from tests.kubereef.durability.kills import survive

_TELL_EVERY = 50


def main() -> None:
    """Kill as often as was asked and say what came of it; AssertionError if a write was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubereef.durability", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, metavar="N", help="how often to kill the server")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()) // 86400, metavar="N", help="that of the day unless told"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    began = time.monotonic()

    def tell(life: int, writes: int) -> None:
        if life % _TELL_EVERY == 0:
            spent = time.monotonic() - began
            print(f"{life} kills survived, {writes} writes acknowledged, {spent:.0f} s", flush=True)

    with tempfile.TemporaryDirectory(prefix="kubereef-kills-") as directory:
        outcome = asyncio.run(survive(Path(directory), options.kills, options.seed, tell))
    print(
        f"{options.kills} kills in {time.monotonic() - began:.0f} s: {outcome.writes} acknowledged writes, none lost; "
        f"{outcome.resumed} watches went on, {outcome.told_to_list} were told to list"
    )


if __name__ == "__main__":
    main()
