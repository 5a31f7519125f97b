"""A Kubernetes on this machine that runs real Ray: Kubereef with its node, and the operator, as processes.

    with RayReef(directory) as reef:
        reef.create(cluster("hello", workers=2))
        reef.ready("hello")

Both processes can be killed and started again. What fails says what the cluster looked like.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubereef.node.machine.leftovers import sweep_cgroups
from tests.eagleray.world import PATHS, QUIET, raycluster
from tests.kubereef.node.machine.realnode import (
    NodeReef,
    Refused,
    family,
    is_alive,
    until,
)
from tests.ray.traces import Traces, traces_of

# Much longer than anything takes, since the machine may be busy with other tests: a wait ends when the thing happened.
PATIENCE = 300.0
STEP = 0.2
NAMESPACE = "default"
IMAGE = "rayproject/ray:2.52.0"
# On a busy machine a head may need longer than the 60 s that Ray grants its dashboard, and the 30 s of its modules.
SLOW_START = [
    {"name": "RAY_DASHBOARD_STARTUP_TIMEOUT_S", "value": "240"},
    {"name": "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "value": "180"},
]
HEAD = {"resources": {"limits": {"cpu": "1", "memory": "3Gi"}}, "env": SLOW_START}
WORKER = {"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KILL = """
import os, pathlib, signal, sys
names = {path.parent.name: path.read_text().strip() for path in pathlib.Path("/proc").glob("[0-9]*/comm")}
(found,) = (number for number, name in names.items() if name == sys.argv[1])
os.kill(int(found), signal.SIGKILL)
"""


def cluster(name="c", *, workers=2, head=None, group=None, **spec):
    """Return a small RayCluster; `head` and `group` are laid over its groups as in `raycluster`, `spec` over its spec.

    The container of a group is replaced as a whole: start from HEAD or WORKER.
    """
    return raycluster(
        name,
        head={"container": HEAD, **(head or {})},
        workers=[{"container": WORKER, "groupName": "small", "replicas": workers, **(group or {})}],
        **{"rayVersion": "2.52.0", **spec},
    )


class RayReef:
    """The two processes, and requests as the administrator. As a context both are ended at the end."""

    def __init__(self, directory: Path, *operator_flags: str) -> None:
        self.directory = directory
        self._flags = operator_flags
        self._kubereef: NodeReef | None = None
        self._operator: subprocess.Popen[bytes] | None = None
        self._port = 0

    def __enter__(self):
        try:
            self.start_kubereef()
            for kind in KINDS:
                self.send("POST", CRDS, crd(kind))
            self.start_operator()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_why):
        self._end()

    def _end(self):
        """End both, whatever state they are in, and remove the one thing that the kernel leaves."""
        self.kill_operator()
        self.kill_kubereef()
        sweep_cgroups()

    # -- the processes -----------------------------------------------------------------------------------------------

    @property
    def kubereef(self) -> NodeReef:
        assert self._kubereef is not None, "Kubereef does not run"
        return self._kubereef

    @property
    def kubeconfig(self) -> Path:
        return self.kubereef.kubeconfig

    def start_kubereef(self):
        """Start Kubereef, at the same address as before if it ran before."""
        self._kubereef = NodeReef(self.directory / "reef", port=self._port)
        self._port = self._kubereef.port

    def kill_kubereef(self):
        """End Kubereef at once, and wait until the kernel has ended all that ran below it."""
        if self._kubereef is not None:
            processes = family(self._kubereef.pid)
            self._kubereef.kill()
            self._kubereef = None
            until(lambda: not any(map(is_alive, processes)), PATIENCE)

    def start_operator(self):
        """Start the operator; one that ran before has to be ended first."""
        assert self._operator is None, "an operator runs"
        command = [sys.executable, "-m", "eagleray.cli.main", "operator", *QUIET]
        command += ["--kubeconfig", str(self.kubeconfig), "--use-kubernetes-proxy", *self._flags]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with self.operator_log.open("a") as log:
            self._operator = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def kill_operator(self):
        if self._operator is not None:
            self._operator.kill()
            self._operator.wait(PATIENCE)
            self._operator = None

    @property
    def operator_log(self) -> Path:
        """Where all operators of this reef have written."""
        return self.directory / "operator.log"

    # -- objects -----------------------------------------------------------------------------------------------------

    def send(self, method, path, body=None):
        """Return the decoded answer of the API server; raises Refused."""
        return self.kubereef.send(method, path, body)

    def create(self, obj):
        return self.send("POST", _path(obj["kind"]), obj)

    def get(self, kind, name):
        """Return an object, or None."""
        try:
            return self.send("GET", _path(kind, name))
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return None

    def list(self, kind, labels=""):
        """Return the objects that a label selector picks."""
        return self.send("GET", f"{_path(kind)}?labelSelector={labels}")["items"]

    def patch(self, kind, name, change):
        """Merge a change into an object."""
        return self.send("PATCH", _path(kind, name), change)

    def delete(self, kind, name, *, grace=None):
        """Delete an object, and what it owns in the background."""
        options = "" if grace is None else f"?gracePeriodSeconds={grace}"
        return self.send("DELETE", _path(kind, name) + options)

    def status(self, kind, name):
        return (self.get(kind, name) or {}).get("status") or {}

    def pods(self, name="c", node_type=""):
        """Return the Pods of a RayCluster: all, or those of a node type, `head` or `worker`."""
        return self.list(
            "Pod", f"ray.io/cluster={name}" + (f",ray.io/node-type={node_type}" if node_type else "")
        )

    def head(self, name="c"):
        """Return the name of the head Pod."""
        (pod,) = self.pods(name, "head")
        return pod["metadata"]["name"]

    def scale(self, replicas, name="c"):
        """Ask for other replicas of a RayCluster's only group."""
        (group,) = self.get("RayCluster", name)["spec"]["workerGroupSpecs"]
        return self.patch(
            "RayCluster", name, {"spec": {"workerGroupSpecs": [{**group, "replicas": replicas}]}}
        )

    def ray_nodes(self, name="c"):
        """Return the ids of the nodes that Ray itself says are alive; none while its dashboard cannot be reached."""
        try:
            nodes = self.dashboard("GET", "/nodes?view=summary", name=name)["data"]["summary"]
        except Refused as refusal:
            if refusal.code != 503:
                raise
            return set()
        return {one["raylet"]["nodeId"] for one in nodes if one["raylet"]["state"] == "ALIVE"}

    # -- waiting -----------------------------------------------------------------------------------------------------

    def until(self, holds, what, patience=PATIENCE):
        """Return what `holds` returns once it is true; a failure says what the cluster looked like."""
        deadline = time.monotonic() + patience
        while not (found := holds()):
            assert time.monotonic() < deadline, f"not in time: {what}\n{self.picture()}"
            time.sleep(STEP)
        return found

    def ready(self, name="c", workers=None):
        """Wait until a RayCluster is ready, with as many workers if given; returns its status."""

        def is_ready():
            found = self.get("RayCluster", name)
            status = found.get("status") or {}
            return (
                status.get("state") == "ready"  # which it stays when a Pod ends, so the Pods are asked too
                and status.get("observedGeneration") == found["metadata"]["generation"]
                and (workers is None or status.get("readyWorkerReplicas", 0) == workers)
                and all(map(_is_ready, self.pods(name)))
                and status
            )

        return self.until(is_ready, f"RayCluster {name} is ready")

    def gone(self, kind, name):
        """Wait until there is no such object."""
        self.until(lambda: self.get(kind, name) is None, f"{kind} {name} is gone")

    def ended(self, name):
        """Wait until a Pod has ended by itself; returns its phase and its log."""
        phase = self.until(
            lambda: (found := self.status("Pod", name).get("phase")) in ("Succeeded", "Failed") and found,
            f"Pod {name} has ended",
        )
        return phase, self.log(name)

    def log(self, name, options=""):
        """Return the log of a Pod."""
        return self.send("GET", f"{_path('Pod', name)}/log?{options}")

    # -- inside Pods, and what is seen of them from outside ------------------------------------------------------------

    def run(self, pod, *command, container=""):
        """Run a command in a container of a Pod, as kubectl does; returns what it printed once it succeeded."""
        ended = self.try_run(pod, *command, container=container)
        assert ended.returncode == 0, f"{' '.join(command)}: {ended.stdout}{ended.stderr}\n{self.picture()}"
        return ended.stdout

    def try_run(self, pod, *command, container=""):
        """Run a command in a container of a Pod, as kubectl does; returns how it ended."""
        choice = ("-c", container) if container else ()
        return subprocess.run(
            [*self.kubectl, "exec", pod, *choice, "--", *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def kill_inside(self, pod, program):
        """End the one process of a Pod that runs a program, as `kill -9` does."""
        self.run(pod, "python", "-c", _KILL, program)

    @property
    def kubectl(self):
        """The beginning of a kubectl command."""
        return (
            "kubectl",
            "--kubeconfig",
            str(self.kubeconfig),
            "--cache-dir",
            str(self.directory / "kubectl"),
        )

    @contextmanager
    def forwarded(self, target, port):
        """Give the local port that leads to a port of a Pod or Service, such as `svc/c-head-svc`."""
        command = [*self.kubectl, "port-forward", target, f":{port}"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as forwarding:
            assert forwarding.stdout is not None
            line = forwarding.stdout.readline()
            try:
                assert line.startswith("Forwarding from 127.0.0.1:"), line
                yield int(line.split()[2].rpartition(":")[2])
            finally:
                forwarding.send_signal(signal.SIGINT)

    def dashboard(self, method, path, body=None, *, name="c"):
        """Ask the dashboard of a RayCluster through the API server's proxy; returns the decoded answer."""
        service = f"{_path('Service')}/{name}-head-svc:dashboard/proxy"
        answer = self.send(method, service + path, body)
        return json.loads(answer) if isinstance(answer, str) and answer.startswith(("{", "[")) else answer

    def traces(self) -> Traces:
        """Return what is on the machine for the node and its Pods at this moment."""
        return traces_of(self.kubereef.pid)

    def picture(self):
        """Return what the cluster looks like, for the message of a failure."""
        lines = []
        for kind in ("RayCluster", "RayJob", "RayService", "Job", "Pod"):
            for obj in self.list(kind):
                status = json.dumps(obj.get("status") or {}, indent=None)
                lines.append(f"{kind} {obj['metadata']['name']}: {status}")
        events = [event for event in self.list("Event") if event.get("type") != "Normal"]
        lines += [f"{one.get('reason')}: {one.get('note') or one.get('message')}" for one in events[-15:]]
        if self.operator_log.exists():
            lines += self.operator_log.read_text().splitlines()[-15:]
        return "\n".join(lines)


def _path(kind, name=""):
    place = PATHS[kind].format(NAMESPACE)
    return f"{place}/{name}" if name else place


def _is_ready(pod):
    conditions = {one["type"]: one["status"] for one in pod["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]
