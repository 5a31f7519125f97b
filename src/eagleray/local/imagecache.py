"""The images that this machine has made, for whoever wants to see or remove them."""

from pathlib import Path
from typing import NamedTuple

from kubereef.node.images import ImageInUse, Present, cache_directory
from kubereef.node.images.store import Store
from kubewire.sources import Clock, SystemClock

_FOLDER = "images"


class Removed(NamedTuple):
    """What became of the images: how many went, what that freed, and which stay."""

    directory: Path
    number: int
    freed: int
    in_use: tuple[str, ...]


def images(directory: Path | None = None, clock: Clock | None = None) -> list[Present]:
    """Return the images of a cache, the largest first; raises OSError where it cannot be looked into."""
    folder = (directory or cache_directory()) / _FOLDER
    # No lock is taken for it: a container that starts meanwhile must not find its image held.
    return Store(folder, clock or SystemClock()).present() if folder.exists() else []


def remove_images(directory: Path | None = None, clock: Clock | None = None) -> Removed:
    """Remove all images that no container uses."""
    directory = directory or cache_directory()
    folder = directory / _FOLDER
    if not folder.exists():
        return Removed(directory, 0, 0, ())
    store = Store(folder, clock or SystemClock())
    number = freed = 0
    in_use = []
    for image in store.list():
        try:
            freed += store.remove(image.reference)
            number += 1
        except ImageInUse:
            in_use.append(image.reference)
    freed += store.prune()
    return Removed(directory, number, freed, tuple(in_use))
