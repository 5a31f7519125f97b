"""A Pod's sandbox: the namespaces that its containers share.

    pod = await PodSandbox.open(control, PodSpec(hostname="web-0"))
    …                       # the network attaches a link to pod.network, containers start in it
    await pod.close()       # after its containers have ended

The namespaces are kept by open descriptors and need no process; only a Pod whose containers share one pid namespace
has a keeper in it, which reaps what they leave behind and whose end is theirs.
"""

import asyncio
import os
import signal

from kubereef.node.sandbox.control import Control, Process
from kubereef.node.sandbox.errors import Refused
from kubereef.node.sandbox.messages import OpenPod, close_descriptors
from kubereef.node.sandbox.specs import PodSpec

LONGEST_HOSTNAME = 64  # the kernel's bound

_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_NETWORK_SYSCTLS = ("net.",)


def check_pod(spec: PodSpec) -> None:
    """Raise `Refused` for a sysctl that is not the Pod's own, or a hostname that cannot be set."""
    if not 0 < len(spec.hostname.encode()) <= LONGEST_HOSTNAME:
        raise Refused(f"hostname {spec.hostname!r}: must have 1 to {LONGEST_HOSTNAME} bytes")
    for name in spec.sysctls:
        parts = name.split(".")
        if "" in parts or "/" in name:
            raise Refused(f"sysctl {name!r}: not a sysctl's name")
        if name.startswith(_NETWORK_SYSCTLS) and spec.host_network:
            raise Refused(
                f"sysctl {name!r}: a Pod in the host's network cannot change that network's settings"
            )
        if not name.startswith(_IPC_SYSCTLS + _NETWORK_SYSCTLS):
            raise Refused(f"sysctl {name!r}: is the whole machine's, not a Pod's own")


class PodSandbox:
    """Descriptors of the namespaces: `network`, `uts`, `ipc`, and `pid` if the containers share one."""

    def __init__(self, spec: PodSpec, namespaces: tuple[int, ...], keeper: Process | None) -> None:
        self.spec = spec
        self.network, self.uts, self.ipc = namespaces[:3]
        self.pid = namespaces[3] if len(namespaces) > 3 else None
        self.keeper = keeper

    @classmethod
    async def open(cls, control: Control, spec: PodSpec) -> "PodSandbox":
        """Make the namespaces, with the hostname, loopback and sysctls set."""
        check_pod(spec)
        answer = await control.ask(OpenPod(spec))
        return cls(spec, answer.namespaces, Process(answer.birth) if answer.birth else None)

    @property
    def network_path(self) -> str:
        """A path that opens the network namespace, for any process of the node, until the sandbox is closed."""
        return f"/proc/{os.getpid()}/fd/{self.network}"

    def descriptors(self) -> dict[str, int]:
        """The namespaces by kind, as helpers want them."""
        shared = {"net": self.network, "uts": self.uts, "ipc": self.ipc}
        return shared if self.pid is None else {**shared, "pid": self.pid}

    async def ended(self) -> None:
        """Return when somebody has killed the keeper, and so all of the Pod; without one, that never happens."""
        if self.keeper is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self.keeper.wait()

    async def close(self) -> None:
        """Let the namespaces go: they end with the last process in them, and with them the Pod's links."""
        if self.network < 0:
            return
        if self.keeper is not None:
            self.keeper.signal(signal.SIGKILL)
            await self.keeper.wait()
            self.keeper.close()
        close_descriptors(list(self.descriptors().values()))
        self.network = self.uts = self.ipc = -1
        self.pid = None
