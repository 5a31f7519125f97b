"""What a node is started with: by `launch`, outside, and read by `program`, inside."""

from pathlib import Path

import msgspec

from kubereef.node.machine.capacity import CPU_FACTOR
from kubereef.node.machine.networking import NetworkSettings
from kubereef.node.sandbox.specs import RootStyle

API_SOCKET = "api.sock"
"""Outside listens here and leads to the API server."""

GATE_SOCKET = "gate.sock"
"""Inside listens here and leads to the kubelet and to Pods."""

# The descriptors by which the node is given what paths cannot name: the host's network namespace, the directory of the
# sockets, and a pipe to say that it serves.
HOST_NETWORK, SOCKETS, READY = "host-network", "sockets", "ready"


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is. `directory` is its own; paths travel as text."""

    name: str
    directory: str
    images: str
    cgroup: str
    api_port: int
    network: NetworkSettings = NetworkSettings()
    cpu_factor: float = CPU_FACTOR
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    root_style: RootStyle = "overlay"
    version: str = ""
    recipes: str = ""
    strict_images: bool = False
    grace: float = 10.0  # seconds that Pods have when the node is told to end

    @property
    def keys(self) -> Path:
        """Where the node's certificates are."""
        return Path(self.directory) / "pki"


def socket_path(directory: int, name: str) -> Path:
    """Return the path of a unix socket in an open directory: its own path may be longer than the kernel takes."""
    return Path(f"/proc/self/fd/{directory}/{name}")
