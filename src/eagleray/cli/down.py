"""`eagleray down`: the end of a kept cluster, and with --purge of everything it kept."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from eagleray.local.kept import Place

# Imports stand inside the functions: `--help` must not wait for them.

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    from eagleray.cli.localflags import add_place_flags

    add_place_flags(parser)
    parser.add_argument(
        "--purge", action="store_true", help="remove its objects, volumes, keys and logs as well"
    )
    parser.add_argument(
        "--images",
        action="store_true",
        help="with --purge: remove the image cache as well, which all clusters share",
    )


def run(arguments: "argparse.Namespace") -> int:
    """End the cluster; 0 if it does not run any more, 1 if it could not be ended, 2 if that cannot be asked for."""
    import asyncio
    import os

    from eagleray.cli.localflags import sudo_command
    from eagleray.local.kept import KeptError, NotAllowed, place_of

    if arguments.images and not arguments.purge:
        return _complaint("--images goes with --purge", EXIT_USAGE)
    try:
        place = place_of(arguments.name, arguments.data_dir, os.environ)
    except KeptError as bad:
        return _complaint(str(bad), EXIT_USAGE)
    try:
        return asyncio.run(_down(place, purge=arguments.purge, images=arguments.images))
    except NotAllowed as refused:
        return _complaint(f"{refused}; run it as: {sudo_command()}")
    except KeptError as bad:
        return _complaint(str(bad))


async def _down(place: "Place", *, purge: bool, images: bool) -> int:
    from eagleray.cli.tables import size
    from eagleray.local import kept

    record = kept.find(place).record
    done = await kept.stop(place)
    if not done:
        print(f"the cluster {place.name} does not run")
    else:
        print(f"the cluster {place.name} has ended: {done}")
    if record is not None and record.context_file:
        print(f"its context is gone from {record.context_file}")
    if purge:
        freed = kept.purge(place)
        removed = f"removed {place.directory} ({size(freed)})" if freed is not None else ""
        print(removed or f"nothing is kept in {place.directory}")
    elif place.directory.exists():
        print(f"its objects are kept in {place.directory}")
    if images:
        _remove_images()
    return EXIT_DONE


def _remove_images() -> None:
    from eagleray.cli.tables import size
    from eagleray.local.imagecache import remove_images

    removed = remove_images()
    for reference in removed.in_use:
        print(f"image {reference} is used by a container and stays")
    print(f"removed {removed.number} images from {removed.directory} ({size(removed.freed)})")


def _complaint(sentence: str, status: int = EXIT_FAILED) -> int:
    print(f"eagleray down: {sentence}", file=sys.stderr)
    return status
