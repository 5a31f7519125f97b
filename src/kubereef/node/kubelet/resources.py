"""What containers and Pods may use, as limits of their cgroups: pure functions of the manifest."""

from collections.abc import Sequence
from pathlib import Path

from kubereef.kinds.behaviours.pod_resources import aggregated, amounts, quality_of_service, quantity
from kubereef.kinds.resource import Object
from kubereef.node.kubelet.problems import ConfigProblem
from kubereef.node.sandbox import Limits

_SHARES_PER_CPU = 1024
_FEWEST_SHARES = 2
_BEST_EFFORT = 1000
GPU = "nvidia.com/gpu"


def container_limits(container: Object) -> Limits:
    """Return the limits of one container; what it may use without limit is None."""
    limits, requests = amounts(container, "limits"), amounts(container, "requests")
    cpu = requests.get("cpu") or limits.get("cpu")
    return Limits(
        memory=limits["memory"].value() if limits.get("memory") else None,
        cpu_cores=limits["cpu"].milli_value() / 1000 if limits.get("cpu") else None,
        cpu_shares=cpu_shares(cpu.milli_value() if cpu else 0),
        kill_together=True,
    )


def pod_limits(spec: Object) -> Limits:
    """Return the limits of all containers together; a container without a limit leaves the Pod without one."""
    own = spec.get("resources") or {}
    together = aggregated(spec, "limits") | amounts({"resources": own}, "limits")
    requests = aggregated(spec, "requests") | amounts({"resources": own}, "requests")
    runs = [*spec["containers"], *(spec.get("initContainers") or ())]

    def has_limit(resource: str) -> bool:
        if resource in (own.get("limits") or {}):
            return True
        return all(resource in amounts(container, "limits") for container in runs)

    cpu = requests.get("cpu")
    return Limits(
        memory=together["memory"].value() if has_limit("memory") else None,
        cpu_cores=together["cpu"].milli_value() / 1000 if has_limit("cpu") else None,
        cpu_shares=cpu_shares(cpu.milli_value() if cpu else 0),
    )


def wider(first: Limits, second: Limits) -> Limits:
    """Return limits within which there is room for both: what the one or the other leaves open stays as it is."""

    def both(one: float | None, other: float | None) -> float | None:
        return None if one is None or other is None else max(one, other)

    memory = both(first.memory, second.memory)
    return Limits(
        memory=None if memory is None else int(memory),
        cpu_cores=both(first.cpu_cores, second.cpu_cores),
    )


def cpu_shares(milli_cpu: int) -> int:
    """Return the kernel's shares for a request in thousandths of a CPU."""
    return max(_FEWEST_SHARES, milli_cpu * _SHARES_PER_CPU // 1000)


def oom_score(spec: Object, container: Object, memory: str) -> int | None:
    """Return how soon the kernel is to end a container when the machine's `memory` runs out; None: as the node itself.

    Guaranteed Pods would have a score below the node's, which not every node may give.
    """
    service = quality_of_service(spec)
    if service == "Guaranteed":
        return None
    if service == "BestEffort":
        return _BEST_EFFORT
    asked = amounts(container, "requests").get("memory")
    capacity = quantity(memory).value() if memory else 0
    if not asked or not capacity:
        return _BEST_EFFORT - 1
    return min(max(1000 - 1000 * asked.value() // capacity, 3), _BEST_EFFORT - 1)


def gpus_wanted(container: Object) -> int:
    """Return how many GPUs a container asks for."""
    wanted = amounts(container, "limits").get(GPU)
    return wanted.value() if wanted else 0


class GpuPool:
    """The GPUs of this node, each given to one container at a time."""

    def __init__(self, devices: Sequence[Path] = (), shared: Sequence[Path] = ()) -> None:
        self._devices = tuple(devices)
        self._shared = tuple(shared)
        self._taken: dict[Path, tuple[str, str]] = {}

    def claim(self, uid: str, container: str, count: int) -> tuple[Path, ...]:
        """Return the devices of a container: those it has already, or as many free ones; `ConfigProblem` if too few."""
        if not count:
            return ()
        owner = (uid, container)
        mine = [device for device in self._devices if self._taken.get(device) == owner]
        free = [device for device in self._devices if device not in self._taken]
        chosen = [*mine, *free][:count]
        if len(chosen) < count:
            raise ConfigProblem(f"Allocate failed due to requested number of devices unavailable for {GPU}")
        self._taken.update(dict.fromkeys(chosen, owner))
        return (*chosen, *self._shared)

    def release(self, uid: str) -> None:
        """Take the devices of a Pod back."""
        self._taken = {device: owner for device, owner in self._taken.items() if owner[0] != uid}
