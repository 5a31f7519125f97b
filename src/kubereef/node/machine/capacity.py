"""What this machine has to offer: processors, memory, disk, GPUs. Reads the machine and decides nothing."""

import os
import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PODS = 250
CPU_FACTOR = 4.0
_SHARED_GPU_DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_KIBIBYTE = 1024
_GPU = re.compile(r"nvidia\d+")
_MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


class Gpus(NamedTuple):
    """Device nodes: one for each GPU, and those that all of them need."""

    devices: tuple[Path, ...] = ()
    shared: tuple[Path, ...] = ()


def find_gpus(devices: Path = Path("/dev")) -> Gpus:
    """Return the GPUs of this machine."""
    found = [one for one in devices.glob("nvidia[0-9]*") if _GPU.fullmatch(one.name)]
    found.sort(key=lambda one: int(one.name.removeprefix("nvidia")))
    if not found:
        return Gpus()
    shared = [devices / name for name in _SHARED_GPU_DEVICES if (devices / name).exists()]
    return Gpus(tuple(found), tuple(shared))


def memory_bytes(meminfo: str, limits: tuple[str, ...] = ()) -> int:
    """Return the memory there is: the machine's, or what a limit on this very process leaves of it."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    total = int(found[1]) * _KIBIBYTE if found is not None else 0
    return min([total, *(int(text) for text in limits if text.strip().isdigit())])


def capacity(
    directory: Path, *, cpu_factor: float = CPU_FACTOR, gpus: int = 0, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return a node's capacity; `directory` is on the disk that Pods use, `extra` are resources to be declared besides.

    More processors are declared than there are, for most Pods ask for whole ones and use little of them. Memory is
    what there is.
    """
    limits = tuple(path.read_text(encoding="ascii") for path in _MEMORY_LIMITS if path.exists())
    memory = memory_bytes(Path("/proc/meminfo").read_text(encoding="ascii"), limits)
    cpus = len(os.sched_getaffinity(0)) * cpu_factor
    amounts = {
        "cpu": f"{round(cpus * 1000)}m" if cpus % 1 else str(int(cpus)),
        "memory": f"{memory // _KIBIBYTE}Ki",
        "ephemeral-storage": f"{shutil.disk_usage(directory).total // _KIBIBYTE}Ki",
        "pods": str(PODS),
    }
    if gpus:
        amounts["nvidia.com/gpu"] = str(gpus)
    return amounts | dict(extra or {})


def node_info(version: str) -> dict[str, str]:
    """Return what a node's status tells of the machine and its software."""
    return {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "bootID": _first_line(Path("/proc/sys/kernel/random/boot_id")),
        "containerRuntimeVersion": f"kubereef://{version}",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": version,
        "kubeletVersion": version,
        "machineID": _first_line(Path("/etc/machine-id")),
        "operatingSystem": "linux",
        "osImage": _os_name(),
        "systemUUID": _first_line(Path("/etc/machine-id")),
    }


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0]
    except OSError:
        return ""
