"""What the containers of the node use, as /stats/summary tells it."""

from typing import Any

from kubereef.node.kubelet.handles import ContainerHandle, PodHandle, Pods
from kubereef.node.sandbox import Usage
from kubewire.sources import Clock
from kubewire.times import format_time

_NANOSECONDS = 1_000_000_000


def summary(node: str, pods: Pods, clock: Clock) -> dict[str, Any]:
    """Return the usage of the node's Pods and of each container that runs."""
    now = format_time(clock.now())
    told = [_pod(pod, now) for pod in pods.all()]
    total = Usage(
        memory=sum(pod["memory"]["usageBytes"] for pod in told),
        working_set=sum(pod["memory"]["workingSetBytes"] for pod in told),
        cpu_seconds=sum(pod["cpu"]["usageCoreNanoSeconds"] for pod in told) / _NANOSECONDS,
    )
    return {"node": {"nodeName": node, **_usage(total, now)}, "pods": told}


def _pod(pod: PodHandle, now: str) -> dict[str, Any]:
    meta = pod.manifest["metadata"]
    running = [(one, one.usage()) for one in pod.containers() if one.is_running]
    total = Usage(
        memory=sum(usage.memory for _, usage in running),
        working_set=sum(usage.working_set for _, usage in running),
        cpu_seconds=sum(usage.cpu_seconds for _, usage in running),
    )
    return {
        "podRef": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
        "startTime": (pod.manifest.get("status") or {}).get("startTime"),
        "containers": [_container(one, usage, now) for one, usage in running],
        **_usage(total, now),
    }


def _container(container: ContainerHandle, usage: Usage, now: str) -> dict[str, Any]:
    return {"name": container.name, **_usage(usage, now)}


def _usage(usage: Usage, now: str) -> dict[str, Any]:
    return {
        "cpu": {"time": now, "usageCoreNanoSeconds": int(usage.cpu_seconds * _NANOSECONDS)},
        "memory": {"time": now, "usageBytes": usage.memory, "workingSetBytes": usage.working_set},
    }
