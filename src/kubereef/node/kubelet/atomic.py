"""A directory whose files change all at once, as programs that read mounted ConfigMaps know it.

    volume/..data -> ..2030_01_01_12_00_00.x7k2p      the present content
    volume/..2030_01_01_12_00_00.x7k2p/a/b            the files
    volume/a -> ..data/a                              what programs open

A new content is written beside the old one and takes its place by the rename of one symlink. Everything here blocks.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from kubereef.node.kubelet.projections import File
from kubereef.node.kubelet.trees import entries_below, remove_tree

DATA = "..data"


def write_files(directory: Path, files: Mapping[str, File], stamp: str, group: int | None = None) -> bool:
    """Make these the directory's files; False if they are so already. `stamp` names this version and is new."""
    data = directory / DATA
    if data.is_symlink() and _is_same(data, files):
        return False
    directory.mkdir(parents=True, exist_ok=True)
    fresh = directory / f"..{stamp}"
    fresh.mkdir()
    fresh.chmod(0o755)
    for name, file in files.items():
        _write(fresh, name, file, group)
    old = data.readlink() if data.is_symlink() else None
    link = directory / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.replace(data)
    _link_names(directory, {name.partition("/")[0] for name in files})
    if old is not None:
        remove_tree(directory / old)
    return True


def _write(fresh: Path, name: str, file: File, group: int | None) -> None:
    place = fresh / name
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"the path {name!r} leads out of its volume")
    for parent in reversed(place.relative_to(fresh).parents[:-1]):
        folder = fresh / parent
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    mode = file.mode
    with place.open("xb") as new:
        new.write(file.data)
        if group is not None:
            os.fchown(new.fileno(), -1, group)
            mode |= 0o440  # whoever is in the Pod's group may read, as the group is for
        if file.owner is not None:
            os.fchown(new.fileno(), file.owner, -1)
        os.fchmod(new.fileno(), mode)


def _link_names(directory: Path, names: set[str]) -> None:
    for name in sorted(names):
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(f"{DATA}/{name}")
    for entry in directory.iterdir():
        if entry.is_symlink() and not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()


def _is_same(data: Path, files: Mapping[str, File]) -> bool:
    root = data.resolve()
    present = {os.path.relpath(one.path, root) for one in entries_below(root) if one.is_file()}
    return present == set(files) and all(
        (root / name).read_bytes() == file.data for name, file in files.items()
    )
