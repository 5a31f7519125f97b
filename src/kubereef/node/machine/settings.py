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


DEFAULT_IMAGE_AGE = 30 * 24 * 3600.0
DEFAULT_IMAGE_BYTES = 20 * 1024**3
"""What is kept of images that no container uses: those of a month, as long as all together do not take more."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a node is. `directory` is its own; paths travel as text."""

    name: str
    directory: str
    images: str
    cgroup: str
    api_port: int
    """At the node's own address, from where a relay leads to the API server."""
    api_name: str = ""  # by which the API server's certificate is checked; empty is the node's own address
    token_file: str = ""  # holds the token that the node shows, if it shows one
    leads_to_api: bool = (
        False  # whether the `kubernetes` Service leads over the relay, whatever its endpoints say
    )
    kubelet: tuple[str, int] | None = (
        None  # where the cluster reaches the kubelet, if not at the node's address
    )
    network: NetworkSettings = NetworkSettings()
    cpu_factor: float = CPU_FACTOR
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    root_style: RootStyle = "overlay"
    version: str = ""
    recipes: str = ""
    strict_images: bool = False
    image_max_age: float = DEFAULT_IMAGE_AGE  # seconds; 0 keeps images whatever their age
    image_max_bytes: int = DEFAULT_IMAGE_BYTES  # of all together; 0 keeps them whatever their size
    gateways: bool = False  # whether Gateways are served
    grace: float = 10.0  # seconds that Pods have when the node is told to end

    @property
    def keys(self) -> Path:
        """Where the node's certificates are."""
        return Path(self.directory) / "pki"


def socket_path(directory: int, name: str) -> Path:
    """Return the path of a unix socket in an open directory: its own path may be longer than the kernel takes."""
    return Path(f"/proc/self/fd/{directory}/{name}")
