"""What a container's process may do: Linux capabilities, as Pods name them, and who it runs as.

`resolve_capabilities(add, drop)` turns a securityContext's lists into the set a container gets and raises `Refused` for
a name nobody knows or a capability this node does not hold itself. `take_identity` makes the calling process that user
with those capabilities and nothing more.
"""

import os
from collections.abc import Iterable, Sequence

from kubereef.node.sandbox.errors import Refused
from kubereef.node.sandbox.syscalls import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_CAPBSET_READ,
    PR_SET_NO_NEW_PRIVS,
    prctl,
    set_capabilities,
)

# In the kernel's order: the position is the bit.
CAPABILITY_NAMES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip

# What container runtimes leave to a container that asks for nothing.
DEFAULT_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW",
        "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
    }
)  # fmt: skip

_BITS = {name: bit for bit, name in enumerate(CAPABILITY_NAMES)}


def held_capabilities() -> frozenset[str]:
    """The capabilities this process may hand on: those in its bounding set."""
    return frozenset(name for name, bit in _BITS.items() if _in_bounding_set(bit))


def resolve_capabilities(
    add: Iterable[str] = (), drop: Iterable[str] = (), held: frozenset[str] | None = None
) -> frozenset[str]:
    """Return the defaults, without `drop`, with `add`, as container runtimes combine them; `ALL` means every one held.

    A named capability that the node does not hold is refused; a default one that it does not hold is left out.
    """
    held = held_capabilities() if held is None else held
    added, dropped = _known(add), _known(drop)
    if missing := sorted(added - held - {"ALL"}):
        raise Refused(
            f"capabilities.add: this node does not hold {', '.join(missing)} itself; remove it from the Pod"
        )
    base = held if "ALL" in added else DEFAULT_CAPABILITIES & held
    kept = frozenset[str]() if "ALL" in dropped else base - dropped
    return kept | (added - {"ALL"})


def capability_mask(names: Iterable[str]) -> int:
    """Return the bit mask the kernel uses for these names."""
    return sum(1 << _BITS[name] for name in set(names))


def take_identity(
    uid: int, gid: int, groups: Sequence[int], capabilities: Iterable[str], *, no_new_privileges: bool
) -> None:
    """Become that user, able to do what `capabilities` name and nothing else, in this program and in all it executes.

    A user other than root holds none of them, but a set-uid program may gain them unless `no_new_privileges`.
    """
    mask = capability_mask(capabilities)
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    for bit in range(64):  # a kernel newer than the table above may know more of them; none may stay
        if not mask >> bit & 1 and _in_bounding_set(bit):
            prctl(PR_CAPBSET_DROP, bit)
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if uid == 0:
        set_capabilities(effective=mask, permitted=mask, inheritable=0)
    else:  # the kernel has emptied the first two already
        set_capabilities(effective=0, permitted=0, inheritable=0)
    if no_new_privileges:
        prctl(PR_SET_NO_NEW_PRIVS, 1)


def _in_bounding_set(bit: int) -> bool:
    try:
        return prctl(PR_CAPBSET_READ, bit) == 1
    except OSError:  # EINVAL: this kernel has fewer capabilities
        return False


def _known(names: Iterable[str]) -> frozenset[str]:
    plain = frozenset(name.upper().removeprefix("CAP_") for name in names)
    if unknown := sorted(plain - _BITS.keys() - {"ALL"}):
        raise Refused(f"capabilities: {', '.join(unknown)}: no such capability")
    return plain
