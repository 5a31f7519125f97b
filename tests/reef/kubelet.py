"""Stands in for a kubelet: says of Pods that they run, for there is no node in these tests."""

import json
import time

from tests.reef.kubectl import Kubectl

READY = {
    "phase": "Running",
    "conditions": [
        {"type": condition, "status": "True"} for condition in ("PodScheduled", "Ready", "ContainersReady")
    ],
    "podIP": "10.1.2.3",
    "podIPs": [{"ip": "10.1.2.3"}],
}


def make_ready(kubectl: Kubectl, selector: str, count: int, patience: float = 20.0) -> list[str]:
    """Wait until there are that many Pods of a selector and say of each that it is ready; return their names."""
    deadline = time.monotonic() + patience
    while True:
        pods = [pod for pod in kubectl.read("pods", "-l", selector)["items"] if not _is_going(pod)]
        if len(pods) == count:
            break
        assert time.monotonic() < deadline, f"there are {len(pods)} Pods instead of {count}"
        time.sleep(0.1)
    for pod in pods:
        if pod["status"].get("phase") != "Running":
            name = pod["metadata"]["name"]
            kubectl("patch", "pod", name, "--subresource=status", "-p", json.dumps({"status": READY}))
    return [pod["metadata"]["name"] for pod in pods]


def _is_going(pod: dict[str, dict[str, str]]) -> bool:
    return "deletionTimestamp" in pod["metadata"]
