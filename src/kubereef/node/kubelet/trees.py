"""Directory trees that containers have filled: removed, measured and handed over, however deep somebody made them.

Nothing here recurses or follows a symlink. Everything here blocks.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from kubereef.node.sandbox.syscalls import open_beneath

# Directories whose path is longer are moved up before they are entered: the kernel takes 4096 characters at most.
_LONG_PATH = 2048


def remove_tree(root: Path) -> None:
    """Remove a directory with all that is in it; one that is not there is fine."""
    if not root.is_dir() or root.is_symlink():
        return
    moved = 0
    waiting = [(str(root), False)]
    while waiting:
        folder, is_empty = waiting.pop()
        if is_empty:
            Path(folder).rmdir()
            continue
        waiting.append((folder, True))
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    Path(entry.path).unlink()
                elif len(entry.path) < _LONG_PATH:
                    waiting.append((entry.path, False))
                else:
                    waiting.append((_moved_up(entry.path, root, moved), False))
                    moved += 1


def _moved_up(path: str, root: Path, number: int) -> str:
    target = f"{root}/.removed-{os.getpid()}-{number}"
    Path(path).rename(target)
    return target


def entries_below(root: Path) -> Iterator[os.DirEntry[str]]:
    """Yield everything below a directory; what vanishes meanwhile, or cannot be reached any more, is left out."""
    waiting = [str(root)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def disk_usage(root: Path) -> int:
    """Return the bytes that a directory takes on disk."""
    total = 0
    for entry in entries_below(root):
        with suppress(OSError):
            total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def give_directory(place: Path, mode: int, group: int | None) -> None:
    """Set the mode of a directory; files made in it belong to the group if one is given."""
    if group is not None:
        os.chown(place, -1, group)
        mode |= 0o2000
    place.chmod(mode)


def give_tree(root: Path, group: int, *, only_if_root_differs: bool) -> None:
    """Make everything below a directory readable and writable for a group.

    Somebody may put a symlink in the place of a file at any moment, so files are opened beneath the directory first.
    """
    found = root.stat()
    if only_if_root_differs and found.st_gid == group and found.st_mode & 0o2060 == 0o2060:
        return
    top = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for entry in entries_below(root):
            with suppress(OSError):  # it has vanished, or leads out of the volume
                fd = open_beneath(top, os.path.relpath(entry.path, root))
                try:
                    _give(fd, group)
                finally:
                    os.close(fd)
        _give(top, group)
    finally:
        os.close(top)


def _give(fd: int, group: int) -> None:
    mode = os.fstat(fd).st_mode
    path = Path(f"/proc/self/fd/{fd}")  # means this very file, whatever its name leads to now
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        os.chown(path, -1, group)
        path.chmod(stat.S_IMODE(mode) | (0o2770 if stat.S_ISDIR(mode) else 0o660))
