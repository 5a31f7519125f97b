"""A Kubereef with a node of its own, as a process; and what it leaves on the machine, which is to be nothing."""

import json
import os
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from kubereef.node.sandbox import probe
from tests.kubereef.node.network.inside import abilities
from tests.reef.process import Kubereef

PATIENCE = 30.0
PODS = "/api/v1/namespaces/default/pods"
BODIES = {
    "PATCH": ("PATCH", "application/merge-patch+json"),
    "STRATEGIC": ("PATCH", "application/strategic-merge-patch+json"),
}


def require_node(directory):
    """Skip where this machine cannot run a node, and say why."""
    if os.geteuid() != 0:
        pytest.skip("a node needs root")
    if (why := probe(directory).obstacle()) is not None:
        pytest.skip(f"this machine cannot run a node: {why}")
    if missing := {name: why for name, why in abilities().items() if name in ("namespaces", "links")}:
        pytest.skip(f"this machine cannot connect Pods: {missing}")


class Refused(Exception):
    """What the API server would not do: the code, and its words."""

    def __init__(self, code, text):
        super().__init__(f"{code} {text}")
        self.code = code


class NodeReef(Kubereef):
    """The process, and requests as its administrator."""

    def __init__(self, directory, *options, port=0, wrapper=()):
        super().__init__(directory, "--node", "--outbound", "off", *options, port=port, wrapper=wrapper)
        self.directory = directory

    def send(self, method, path, body=None):
        """Return the decoded answer; raises Refused."""
        data = None if body is None else json.dumps(body).encode()
        method, kind = BODIES.get(method, (method, "application/json"))
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.trust, timeout=PATIENCE) as answer:
                text = answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise Refused(refusal.code, refusal.read().decode()) from None
        return json.loads(text) if answer.headers.get_content_type() == "application/json" else text.decode()

    def run(self, name, *command, **spec):
        """Make a Pod of one container."""
        container = {"name": "app", "image": "busybox", "command": list(command), **spec.pop("container", {})}
        body = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"containers": [container], **spec},
        }
        body["spec"].setdefault("terminationGracePeriodSeconds", 1)
        return self.send("POST", PODS, body)

    def pod(self, name):
        return self.send("GET", f"{PODS}/{name}")

    def until(self, name, *phases):
        """Return a Pod once it is in one of these phases."""
        return until(lambda: (pod := self.pod(name))["status"].get("phase") in phases and pod)

    def log(self, name, options=""):
        return self.send("GET", f"{PODS}/{name}/log?{options}")

    def result(self, name, *command, **spec):
        """Run a Pod to its end; return what it said."""
        self.run(name, *command, restartPolicy="Never", **spec)
        pod = self.until(name, "Succeeded", "Failed")
        said = self.log(name)
        assert pod["status"]["phase"] == "Succeeded", said
        return said


def until(holds, patience=PATIENCE, where=""):
    deadline = time.monotonic() + patience
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not happen in time {where}"
        time.sleep(0.05)
    return found


def family(pid):
    """Return the processes below one, with when they were started: numbers are used again."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and (facts := _facts(process)) is not None:
            found[int(process.name)] = facts
    below = {pid}
    while more := {child for child, (parent, _) in found.items() if parent in below} - below:
        below |= more
    return {(child, found[child][1]) for child in below - {pid}}


def children_of(pid):
    """Return the children of a process, whichever of its threads has made them."""
    found = []
    with suppress(OSError):  # it may have ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def oldest_child_of(pid):
    """Return the child of a process that was there first; numbers say nothing of that, since they start again."""
    facts = {child: _facts(Path(f"/proc/{child}")) for child in children_of(pid)}
    return min((int(one[1]), child) for child, one in facts.items() if one is not None)[1]


def is_alive(process):
    number, started = process
    facts = _facts(Path(f"/proc/{number}"))
    return facts is not None and facts[1] == started


def _facts(process):
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), fields[19])


def all_processes():
    """Return the numbers of all processes."""
    return [int(process.name) for process in Path("/proc").iterdir() if process.name.isdigit()]


def namespaces(processes):
    """Return the namespaces that these processes are in."""
    found = set()
    for number in processes:
        for kind in ("net", "mnt", "pid", "uts", "ipc"):
            with suppress(OSError):  # it may have ended
                found.add(Path(f"/proc/{number}/ns/{kind}").readlink().name)
    return found


def cgroups_of(pid):
    """Return the cgroups that the node of a process has made; none where nothing lets it make any."""
    return list(Path("/sys/fs/cgroup").glob(f"**/kubereef-{pid}-*"))


def host_devices():
    """Return the modes of the machine's own devices, which containers are given."""
    names = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
    return {name: Path("/dev", name).stat().st_mode for name in names if Path("/dev", name).exists()}


def host_traces():
    """Return what a node could leave on the host: mounts and links."""
    links = {link.name for link in Path("/sys/class/net").iterdir()}
    return links.union(Path("/proc/self/mountinfo").read_text().splitlines())


def left_since(before):
    """Return what the host has had since then and keeps: what another test needs for a moment goes by itself."""
    left, deadline = host_traces() - before, time.monotonic() + PATIENCE
    while left and time.monotonic() < deadline:
        time.sleep(0.1)
        left &= host_traces()
    return left
