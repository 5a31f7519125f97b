"""Sudden ends: of a container, as the kernel sees it, and of whatever a seed picks among what RayJobs consist of."""

import os
import random
import signal
import time
from pathlib import Path

from tests.kubereef.node.machine.realnode import Refused, family
from tests.ray.jobs import ENDS
from tests.ray.reef import RayReef

RAY, SUBMITTER = "ray", "ray-job-submitter"  # containers


def kill_container(reef: RayReef, pod: str, *, submitter: bool = False) -> bool:
    """End the first process of a Pod's Ray container, or of its submitter, by kill -9; False if there is none."""
    for number, _ in family(reef.kubereef.pid):
        try:
            handle = os.pidfd_open(number)
        except ProcessLookupError:
            continue
        try:
            if _is_first_of(Path(f"/proc/{number}"), pod, submitter=submitter):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
        except OSError:
            continue  # it has ended meanwhile
        finally:
            os.close(handle)
    return False


def _is_first_of(process: Path, pod: str, *, submitter: bool) -> bool:
    """Tell whether a process is the first one of a container of a Pod."""
    variables = process.joinpath("environ").read_bytes().split(b"\0")
    is_submitter = any(variable.startswith(b"RAY_JOB_SUBMISSION_ID=") for variable in variables)
    is_of_the_pod = f"HOSTNAME={pod}".encode() in variables
    return is_of_the_pod and is_submitter == submitter and _field(process, "NSpid")[-1] == "1"


def _field(process: Path, name: str) -> list[str]:
    lines = process.joinpath("status").read_text().splitlines()
    return next(line.split()[1:] for line in lines if line.startswith(f"{name}:"))


class Reaper:
    """Kills heads, submitters and the operator of the RayJobs that go on; a seed decides which, when and how."""

    def __init__(self, reef: RayReef, seed: int) -> None:
        self._reef = reef
        self._dice = random.Random(seed)
        self.killed: list[str] = []

    def victims(self, times: int) -> list[str]:
        """Return whom to kill so many times: all kinds alike, in some order."""
        kinds = ("head", "submitter", "operator")
        return self._dice.sample([kinds[number % len(kinds)] for number in range(times)], times)

    def pause(self, longest: float) -> None:
        time.sleep(self._dice.uniform(0, longest))

    def kill(self, victim: str) -> bool:
        """Kill a victim of a kind; False if there is none at this moment."""
        kills = {"head": self._kill_head, "submitter": self._kill_submitter, "operator": self._kill_operator}
        return kills[victim]()

    def _kill_operator(self) -> bool:
        self._reef.kill_operator()
        self.killed.append("operator")
        self.pause(2.0)
        self._reef.start_operator()
        return True

    def _kill_head(self) -> bool:
        heads = [pod for pod in self._pods("ray.io/node-type=head") if _runs(pod, RAY)]
        return bool(heads) and self._end(self._dice.choice(heads))

    def _kill_submitter(self) -> bool:
        # One beside a Ray that only starts would be met nearly always, and its job would never run.
        besides = [
            pod
            for pod in self._pods("ray.io/node-type=head")
            if _runs(pod, SUBMITTER) and _runs(pod, RAY, "ready")
        ]
        alone = [
            pod for pod in self._pods("ray.io/originated-from-crd=RayJob,job-name") if _runs(pod, SUBMITTER)
        ]
        if not besides + alone:
            return False
        chosen = self._dice.choice(besides + alone)
        return self._end(chosen, submitter=True, whole=chosen in alone)

    def _end(self, pod, *, submitter: bool = False, whole: bool = True) -> bool:
        """End a container of a Pod, or the whole Pod if that may be; False if somebody was quicker."""
        name = pod["metadata"]["name"]
        if whole and self._dice.random() < 0.5:
            is_done, how = self._deleted(name), "Pod"
        else:
            is_done, how = kill_container(self._reef, name, submitter=submitter), "container of"
        if is_done:
            self.killed.append(f"{'submitter' if submitter else 'head'}: {how} {name}")
        return is_done

    def _deleted(self, name: str) -> bool:
        try:
            self._reef.delete("Pod", name, grace=0)
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return False
        return True

    def _pods(self, labels: str):
        """Return Pods of RayJobs that have not ended."""
        owners = set()
        for one in self._reef.list("RayJob"):
            status = one.get("status") or {}
            if status.get("jobDeploymentStatus") not in ENDS:
                owners |= {
                    ("job-name", one["metadata"]["name"]),
                    ("ray.io/cluster", status.get("rayClusterName")),
                }
        return [pod for pod in self._reef.list("Pod", labels) if owners & pod["metadata"]["labels"].items()]


def _runs(pod, container: str, *wanted: str) -> bool:
    """Tell whether a container of a Pod runs at this moment, and its status says what is wanted besides."""
    statuses = [one for one in pod["status"].get("containerStatuses") or () if one["name"] == container]
    is_running = any("running" in one["state"] and all(one.get(word) for word in wanted) for one in statuses)
    return is_running and not pod["metadata"].get("deletionTimestamp")
