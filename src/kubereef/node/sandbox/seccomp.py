"""The RuntimeDefault seccomp profile: system calls that no ordinary container needs fail with EPERM.

`default_profile(capabilities)` returns the filter program; a capability that exists for some of the calls (SYS_ADMIN
for mount, SYS_PTRACE for kcmp, …) lets them through, as it does in container runtimes. Calls of another architecture's
numbering fail with ENOSYS, since their numbers mean something else, and so do calls that are newer than this table.
`Refused` is raised on a machine whose numbers are not known here.
"""

import platform
import struct
from collections.abc import Iterable
from errno import ENOSYS, EPERM

from kubereef.node.sandbox.errors import Refused

# The capability that makes a call legitimate ("" for none), and the calls it governs.
_GOVERNED: dict[str, tuple[str, ...]] = {
    "": (
        "add_key", "keyctl", "request_key", "userfaultfd", "nfsservctl", "lookup_dcookie",
        "io_uring_setup", "io_uring_enter", "io_uring_register", "uselib", "ustat", "sysfs", "_sysctl",
        "create_module", "get_kernel_syms", "query_module",
    ),
    "SYS_ADMIN": (
        "mount", "umount2", "pivot_root", "setns", "unshare", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree",
        "move_mount", "mount_setattr", "quotactl", "quotactl_fd", "fanotify_init", "sethostname", "setdomainname",
        "swapon", "swapoff",
    ),
    "BPF": ("bpf",),
    "PERFMON": ("perf_event_open",),
    "DAC_READ_SEARCH": ("open_by_handle_at",),
    "SYS_BOOT": ("reboot", "kexec_load", "kexec_file_load"),
    "SYS_MODULE": ("init_module", "finit_module", "delete_module"),
    "SYS_PACCT": ("acct",),
    "SYS_PTRACE": ("kcmp",),
    "SYS_RAWIO": ("ioperm", "iopl"),
    "SYS_TIME": ("settimeofday", "clock_settime"),
    "SYS_TTY_CONFIG": ("vhangup",),
    "SYSLOG": ("syslog",),
    "SYS_NICE": ("mbind", "set_mempolicy", "migrate_pages", "move_pages"),
}  # fmt: skip

_SHARED_NUMBERS = {
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "mount_setattr": 442, "quotactl_fd": 443,
}  # fmt: skip
_CLONE3 = 435
_NEWEST = 470  # the highest number that this table was checked against (Linux 6.18)
_NAMESPACE_FLAGS = 0x7E020000  # every CLONE_NEW… flag that clone takes

_X86_64 = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "setns": 308, "unshare": 272, "quotactl": 179,
    "fanotify_init": 300, "sethostname": 170, "setdomainname": 171, "swapon": 167, "swapoff": 168, "add_key": 248,
    "request_key": 249, "keyctl": 250, "userfaultfd": 323, "nfsservctl": 180, "lookup_dcookie": 212,
    "uselib": 134, "ustat": 136, "sysfs": 139, "_sysctl": 156, "create_module": 174, "get_kernel_syms": 177,
    "query_module": 178, "bpf": 321, "perf_event_open": 298, "open_by_handle_at": 304, "reboot": 169,
    "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "acct": 163, "kcmp": 312, "ioperm": 173, "iopl": 172, "settimeofday": 164, "clock_settime": 227,
    "vhangup": 153, "syslog": 103, "mbind": 237, "set_mempolicy": 238, "migrate_pages": 256,
    "move_pages": 279, "clone": 56,
}  # fmt: skip
_AARCH64 = {
    "mount": 40, "umount2": 39, "pivot_root": 41, "setns": 268, "unshare": 97, "quotactl": 60, "fanotify_init": 262,
    "sethostname": 161, "setdomainname": 162, "swapon": 224, "swapoff": 225, "add_key": 217, "request_key": 218,
    "keyctl": 219, "userfaultfd": 282, "nfsservctl": 42, "lookup_dcookie": 18, "bpf": 280,
    "perf_event_open": 241, "open_by_handle_at": 265, "reboot": 142, "kexec_load": 104, "kexec_file_load": 294,
    "init_module": 105, "finit_module": 273, "delete_module": 106, "acct": 89, "kcmp": 272, "settimeofday": 170,
    "clock_settime": 112, "vhangup": 58, "syslog": 116, "mbind": 235, "set_mempolicy": 237,
    "migrate_pages": 238, "move_pages": 239, "clone": 220,
}  # fmt: skip
_MACHINES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_GREATER, _JUMP_IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_ALLOW, _FAIL_WITH = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # offsets in struct seccomp_data, little-endian


def default_profile(capabilities: Iterable[str], machine: str | None = None) -> bytes:
    """Return the filter for a container with these capabilities, for `set_seccomp_filter`."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        raise Refused(
            f"seccompProfile: RuntimeDefault is not known for {machine}; leave the profile out or Unconfined"
        )
    architecture, own_numbers = _MACHINES[machine]
    numbers = _SHARED_NUMBERS | own_numbers
    allowed = set(capabilities)
    if "SYS_ADMIN" in allowed:
        allowed |= {"BPF", "PERFMON"}  # they were split off from it
    denied = sorted(
        numbers[call]
        for capability, calls in _GOVERNED.items()
        if capability not in allowed
        for call in calls
        if call in numbers
    )
    return _program(architecture, numbers["clone"], denied, guard_clone="SYS_ADMIN" not in allowed)


def _program(architecture: int, clone: int, denied: list[int], *, guard_clone: bool) -> bytes:
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _FAIL_WITH | ENOSYS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_GREATER, 0, 1, _NEWEST),  # x32's numbers, which carry a high bit, end here too
        (_RETURN, 0, 0, _FAIL_WITH | ENOSYS),
    ]
    for number in denied:
        code += [(_JUMP_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _FAIL_WITH | EPERM)]
    if guard_clone:
        # clone3 keeps its flags in memory, where a filter cannot look; with ENOSYS the C library falls back to clone.
        code += [(_JUMP_IF_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _FAIL_WITH | ENOSYS)]
        code += [
            (_JUMP_IF_EQUAL, 0, 3, clone),
            (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
            (_JUMP_IF_ANY_BIT, 0, 1, _NAMESPACE_FLAGS),
            (_RETURN, 0, 0, _FAIL_WITH | EPERM),
        ]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
