"""Measures what it is told to and prints it; fails if something is out of its bounds."""

import argparse
import sys
from collections.abc import Iterator, Sequence

from bench.figures import Figure
from bench.kubernetes import suite

KINDS = ("raycluster", "rayjob", "rayservice")


def main(arguments: Sequence[str]) -> int:
    """Return the exit code of the command."""
    missed = False
    for figure in _figures(parsed(arguments)):
        print(figure.text(), flush=True)
        missed = missed or not figure.within
    return int(missed)


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what the command line asks for, with the defaults of its kind."""
    parser = argparse.ArgumentParser(prog="python -m bench.kubernetes", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, metavar="SIZE", help="how many objects (100)")
    parser.add_argument("--kind", choices=KINDS, default="raycluster", help="of which kind (raycluster)")
    parser.add_argument(
        "--hang", type=float, default=0.0, metavar="SHARE", help="dashboards that never answer"
    )
    parser.add_argument(
        "--neighbour",
        type=int,
        metavar="WORKERS",
        help="measure small clusters beside one that grows to so many",
    )
    parser.add_argument(
        "--settle",
        type=float,
        action="append",
        metavar="SECONDS",
        help="look at idle objects after so long; may be given again (15, and 630 where Ray is asked)",
    )
    parser.add_argument(
        "--idle", type=float, default=30.0, metavar="SECONDS", help="look for so long (30); 0 leaves it out"
    )
    asked = parser.parse_args(arguments)
    if not 0 <= asked.hang < 1:
        parser.error("--hang is a share of all, from 0 to below 1")
    if asked.hang and asked.kind != "rayjob":
        parser.error("--hang is for --kind rayjob")
    if not asked.settle:
        asked.settle = [suite.SOON] if asked.kind == "raycluster" else [suite.SOON, suite.LATE]
    if not asked.idle:
        asked.settle = []
    asked.sizes = asked.sizes or [100]
    return asked


def _figures(asked: argparse.Namespace) -> Iterator[Figure]:
    if asked.neighbour:
        yield from suite.beside(asked.neighbour)
        return
    watching = suite.Watching(asked.settle, asked.idle)
    for size in asked.sizes:
        match asked.kind:
            case "rayjob":
                yield from suite.jobs(size, asked.hang, watching)
            case "rayservice":
                yield from suite.services(size, watching)
            case _:
                yield from suite.clusters(size, watching)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
