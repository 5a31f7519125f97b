"""Linux calls that Python 3.11 lacks, by ctypes; every one raises `SyscallFailed` with the call in words.

Nothing here decides anything. Calls that are newer than the C library are made by number; those numbers are the same on
every architecture.
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from typing import Final

from kubereef.node.sandbox.errors import SyscallFailed

_libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
MNT_DETACH: Final = 2

ATTR_RDONLY: Final = 0x1
ATTR_NOSUID: Final = 0x2
ATTR_NODEV: Final = 0x4
ATTR_NOEXEC: Final = 0x8

RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_BENEATH: Final = 0x08

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_NAME: Final = 15
PR_SET_SECCOMP: Final = 22
PR_CAPBSET_READ: Final = 23
PR_CAPBSET_DROP: Final = 24
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
SECCOMP_MODE_FILTER: Final = 2

_AT_FDCWD: Final = -100
_AT_EMPTY_PATH: Final = 0x1000
_AT_RECURSIVE: Final = 0x8000
_OPEN_TREE_CLONE: Final = 1
_MOVE_MOUNT_FROM_EMPTY_PATH: Final = 0x4
_MOVE_MOUNT_TO_SYMLINKS: Final = 0x10
_CLOSE_RANGE_CLOEXEC: Final = 4
_CAPABILITY_VERSION_3: Final = 0x20080522
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1

_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_CLOSE_RANGE, _SYS_OPENAT2, _SYS_MOUNT_SETATTR = 428, 429, 436, 437, 442


def _check(result: int, call: str) -> int:
    if result < 0:
        raise SyscallFailed(call, ctypes.get_errno())
    return result


def _syscall(
    call: str, number: int, *arguments: "ctypes._SimpleCData[int] | bytes | ctypes._Pointer[_Attr]"
) -> int:
    return _check(_libc.syscall(ctypes.c_long(number), *arguments), call)


class _Attr(ctypes.Structure):
    """`struct mount_attr` and `struct open_how`, which both are whole 64-bit words; unused words stay zero."""

    _fields_ = [("words", ctypes.c_uint64 * 4)]


def unshare(flags: int) -> None:
    """Give the calling process (its children, for a pid namespace) new namespaces of the kinds in `flags`."""
    _check(_libc.unshare(ctypes.c_int(flags)), f"unshare({flags:#x})")


def setns(fd: int, flags: int) -> None:
    """Enter the namespace behind `fd`, or, if it is a pidfd, that process's namespaces of the kinds in `flags`."""
    _check(_libc.setns(ctypes.c_int(fd), ctypes.c_int(flags)), f"setns({fd}, {flags:#x})")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system of that kind, or change the propagation of a mount if `kind` is empty."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind) or None,
        ctypes.c_ulong(flags),
        os.fsencode(options) or None,
    )
    _check(result, f"mount({kind or source} at {target}{', ' + options if options else ''})")


def detach(target: str) -> None:
    """Take the mount at `target` out of sight at once; it ends when its last user does."""
    _check(_libc.umount2(os.fsencode(target), ctypes.c_int(MNT_DETACH)), f"umount({target})")


def pivot_root(new_root: str, put_old: str) -> None:
    """Make `new_root` this mount namespace's root and leave the old one mounted at `put_old`."""
    _check(_libc.pivot_root(os.fsencode(new_root), os.fsencode(put_old)), f"pivot_root({new_root})")


def prctl(option: int, second: int | bytes = 0, third: int = 0) -> int:
    """Do one of prctl's many things; the arguments an option does not use are zero."""
    argument = ctypes.c_char_p(second) if isinstance(second, bytes) else ctypes.c_ulong(second)
    zero = ctypes.c_ulong(0)
    return _check(
        _libc.prctl(ctypes.c_int(option), argument, ctypes.c_ulong(third), zero, zero), f"prctl({option})"
    )


def set_seccomp_filter(program: bytes) -> None:
    """Put this process, for good, under a filter program of 8-byte instructions."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    described = Program(len(program) // 8, program)
    zero = ctypes.c_ulong(0)
    mode = ctypes.c_ulong(SECCOMP_MODE_FILTER)
    result = _libc.prctl(ctypes.c_int(PR_SET_SECCOMP), mode, ctypes.byref(described), zero, zero)
    _check(result, "prctl(PR_SET_SECCOMP)")


def set_capabilities(effective: int, permitted: int, inheritable: int) -> None:
    """Set this process's capability sets, given as bit masks."""
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    low = [mask & 0xFFFFFFFF for mask in (effective, permitted, inheritable)]
    high = [mask >> 32 for mask in (effective, permitted, inheritable)]
    _check(_libc.capset(header, struct.pack("=6I", *low, *high)), "capset")


def clone_tree(path: str, directory: int = _AT_FDCWD, *, recursive: bool = True) -> int:
    """Return a descriptor of a detached copy of the mount at `path`; an empty path means `directory` itself."""
    flags = (
        _OPEN_TREE_CLONE
        | os.O_CLOEXEC
        | (_AT_RECURSIVE if recursive else 0)
        | (0 if path else _AT_EMPTY_PATH)
    )
    name = f"open_tree({path or directory})"
    return _syscall(name, _SYS_OPEN_TREE, ctypes.c_int(directory), os.fsencode(path), ctypes.c_uint(flags))


def attach_tree(tree: int, target: str) -> None:
    """Mount a tree that `clone_tree` detached at `target`, whose symlinks are followed."""
    flags = ctypes.c_uint(_MOVE_MOUNT_FROM_EMPTY_PATH | _MOVE_MOUNT_TO_SYMLINKS)
    here = ctypes.c_int(_AT_FDCWD)
    _syscall(
        f"move_mount(to {target})", _SYS_MOVE_MOUNT, ctypes.c_int(tree), b"", here, os.fsencode(target), flags
    )


def restrict_mount(target: int | str, attributes: int, *, recursive: bool) -> None:
    """Add ATTR_ flags to the mount at a path or behind a tree's descriptor, and to all below it if `recursive`."""
    attr = _Attr((ctypes.c_uint64 * 4)(attributes, 0, 0, 0))
    flags = (_AT_RECURSIVE if recursive else 0) | (_AT_EMPTY_PATH if isinstance(target, int) else 0)
    directory = target if isinstance(target, int) else _AT_FDCWD
    path = b"" if isinstance(target, int) else os.fsencode(target)
    _syscall(
        f"mount_setattr({target})",
        _SYS_MOUNT_SETATTR,
        ctypes.c_int(directory),
        path,
        ctypes.c_uint(flags),
        ctypes.pointer(attr),
        ctypes.c_size_t(ctypes.sizeof(attr)),
    )


def open_beneath(directory: int, path: str, flags: int = os.O_PATH) -> int:
    """Open a path below `directory`, or fail with EXDEV where it, or a symlink in it, leads out."""
    how = _Attr((ctypes.c_uint64 * 4)(flags | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, 0))
    size = ctypes.c_size_t(24)  # struct open_how has three words
    fd = ctypes.c_int(directory)
    return _syscall(f"openat2({path})", _SYS_OPENAT2, fd, os.fsencode(path), ctypes.pointer(how), size)


def close_on_exec_from(first: int) -> None:
    """Mark every descriptor from `first` on to be closed when another program is executed."""
    last = ctypes.c_uint(0xFFFFFFFF)
    _syscall("close_range", _SYS_CLOSE_RANGE, ctypes.c_uint(first), last, ctypes.c_uint(_CLOSE_RANGE_CLOEXEC))


def close_all_but(kept: Sequence[int]) -> None:
    """Close every descriptor from 3 on that is not in `kept`."""
    first = 3
    for fd in sorted(fd for fd in kept if fd >= first):
        if fd > first:
            _syscall(
                "close_range", _SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(fd - 1), ctypes.c_uint(0)
            )
        first = fd + 1
    _syscall(
        "close_range", _SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0)
    )


def bring_up_loopback() -> None:
    """Switch on `lo` in the current network namespace, which brings 127.0.0.1 and ::1 with it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
