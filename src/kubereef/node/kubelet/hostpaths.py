"""hostPath volumes: what a Pod may be given of the node's own files. Everything here blocks."""

import stat
from collections.abc import Callable
from pathlib import Path

_OPEN_DEVICES = ("/dev/shm",)  # noqa: S108 - a directory for memory, not one of devices
_KINDS: dict[str, tuple[str, Callable[[int], bool]]] = {
    "Directory": ("directory", stat.S_ISDIR),
    "DirectoryOrCreate": ("directory", stat.S_ISDIR),
    "File": ("file", stat.S_ISREG),
    "FileOrCreate": ("file", stat.S_ISREG),
    "Socket": ("socket", stat.S_ISSOCK),
    "CharDevice": ("character device", stat.S_ISCHR),
    "BlockDevice": ("block device", stat.S_ISBLK),
}


class HostPathRefused(Exception):
    """The node has nothing of that kind there, or does not give it away; the message says which."""


def host_path(path: str, kind: str) -> Path:
    """Return the path of a hostPath volume, made where its type says so."""
    place = Path(path)
    if not place.is_absolute() or ".." in place.parts:
        raise HostPathRefused(f"hostPath {path!r} must be an absolute path without '..'")
    if kind == "DirectoryOrCreate" and not place.exists():
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not place.exists():
        place.touch(0o644)
    elif not kind and not place.exists():
        place.mkdir(mode=0o755, parents=True, exist_ok=True)  # as container runtimes do for a missing source
    if not place.exists():
        raise HostPathRefused(f"hostPath type check failed: {path} is not a {_KINDS[kind][0]}")
    mode = place.stat().st_mode
    if kind and not _KINDS[kind][1](mode):
        raise HostPathRefused(f"hostPath type check failed: {path} is not a {_KINDS[kind][0]}")
    real = str(place.resolve())
    is_of_dev = real == "/dev" or real.startswith("/dev/")
    is_device = stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
    if is_of_dev and not is_device and not real.startswith(_OPEN_DEVICES):
        raise HostPathRefused(
            f"hostPath {path}: this node shares its devices one by one; name the device itself instead"
        )
    return place


def is_device(path: Path) -> bool:
    """Tell whether a path is a device, which containers get at its own place only."""
    mode = path.stat().st_mode
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)
