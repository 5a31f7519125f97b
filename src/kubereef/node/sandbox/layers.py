"""Layers put together without overlayfs: the tree is writable only where nothing of the image lies.

Directories that one layer alone brings are bound read-only, those that several bring are made anew and filled from
each, files are bound, symlinks repeated. It is the fallback of machines that have no overlayfs.
"""

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from kubereef.node.sandbox.syscalls import ATTR_RDONLY, attach_tree, clone_tree, mount, restrict_mount

# What programs expect to write to, wherever they come from.
SCRATCH = ("tmp", "run", "var/tmp", "var/log")
MOST_MOUNTS = 4096  # layers that overlap in more places than this are not an image


def assemble_layers(layers: Sequence[Path], root: Path) -> None:
    """Fill the empty directory `root` from the layers, of which the first wins, and give it scratch directories."""
    budget = [MOST_MOUNTS]
    _fill(layers, root, budget)
    for name in SCRATCH:
        scratch = root / name
        if not scratch.is_symlink():
            _make_scratch(scratch)


def _fill(layers: Sequence[Path], root: Path, budget: list[int]) -> None:
    owners: dict[str, list[Path]] = {}
    for layer in layers:
        for entry in os.scandir(layer):
            owners.setdefault(entry.name, []).append(layer / entry.name)
    for name, places in owners.items():
        _place(places, root / name, budget)


def _place(places: Sequence[Path], target: Path, budget: list[int]) -> None:
    budget[0] -= 1
    if budget[0] < 0:
        raise OSError(
            f"the layers of this image overlap in more than {MOST_MOUNTS} places; overlayfs is needed"
        )
    kind = places[0].lstat()
    if stat.S_ISLNK(kind.st_mode):
        target.symlink_to(places[0].readlink())
        return
    if not stat.S_ISDIR(kind.st_mode):
        target.touch()
        _bind(places[0], target)
        return
    # The first layer's directory hides what follows a layer that has something else under this name.
    directories = []
    for place in places:
        if not stat.S_ISDIR(place.lstat().st_mode):
            break
        directories.append(place)
    target.mkdir()
    if len(directories) == 1 and not _holds_scratch(target):
        _bind(places[0], target)
        return
    shutil.copystat(places[0], target)
    os.chown(target, kind.st_uid, kind.st_gid)
    _fill(directories, target, budget)


def _holds_scratch(target: Path) -> bool:
    inside = "/".join(target.parts[1:])
    return any(name == inside or name.startswith(inside + "/") for name in SCRATCH)


def _bind(source: Path, target: Path) -> None:
    tree = clone_tree(str(source))
    restrict_mount(tree, ATTR_RDONLY, recursive=True)
    attach_tree(tree, str(target))
    os.close(tree)


def _make_scratch(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    mode = 0o1777 if target.name == "tmp" else 0o755
    mount("scratch", str(target), "tmpfs", 0, f"mode={mode:o}")
