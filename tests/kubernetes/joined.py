"""Real Ray on a real control plane: its only node is Kubereef's, joined to it, and the operator is a process.

    with JoinedReef(directory, programs()) as reef:
        reef.create(cluster("hello", workers=2))
        reef.ready("hello")

It is a `RayReef`, so that whatever can be asked of Ray on Kubereef can be asked of it here.
"""

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import yaml

from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from tests.kubereef.node.machine.realnode import BODIES, PATIENCE, Refused
from tests.kubernetes.plane import Plane
from tests.ray.reef import CRDS, RayReef

NODE = "reef"
WANTED = tuple(kind for kind in KINDS if kind.name in ("RayCluster", "RayJob"))
MAY_PROXY = {
    "metadata": {"name": "kubereef-nodes"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "system:node-proxier",
    },
    "subjects": [{"kind": "Group", "name": "system:nodes", "apiGroup": "rbac.authorization.k8s.io"}],
}


class JoinedPlane:
    """A control plane, and a node of this machine that has joined it by the command that users have."""

    def __init__(self, directory: Path, binaries: Path) -> None:
        self._socket = directory / "egress.sock"
        selector = directory / "egress.yaml"
        selector.write_text(yaml.safe_dump(_egress_selector(self._socket)))
        flags = {"kube-apiserver": [f"--egress-selector-config-file={selector}"]}
        self.plane = Plane(directory / "plane", binaries, flags)
        self.plane.__enter__()
        self._node: subprocess.Popen[str] | None = None
        try:
            # The server digests them while the node starts.
            for kind in WANTED:
                self.send("POST", CRDS, crd(kind))
            self._join(directory / "node")
        except BaseException:
            self.kill()
            raise

    def _join(self, directory: Path) -> None:
        self.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", MAY_PROXY)
        kubeconfig = self.plane.kubeconfig_of("node", f"system:node:{NODE}", "system:nodes")
        command = [sys.executable, "-m", "kubereef.node", "--kubeconfig", str(kubeconfig)]
        command += ["--data-dir", str(directory), "--egress-socket", str(self._socket), "--outbound", "off"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._node = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self._node.stdout is not None
        line = self._node.stdout.readline()
        if f"node {NODE} is ready" not in line:
            _, complaints = self._node.communicate(timeout=PATIENCE)
            raise AssertionError(f"the node has not joined: {line}{complaints}")

    @property
    def kubeconfig(self) -> Path:
        return self.plane.kubeconfig

    @property
    def port(self) -> int:
        return self.plane.port

    @property
    def pid(self) -> int:
        """The process that has the node."""
        assert self._node is not None
        return self._node.pid

    def kill(self) -> None:
        """End the node as `kill -9` does, and then the control plane."""
        if self._node is not None:
            self._node.kill()
            self._node.communicate(timeout=PATIENCE)
            self._node = None
        self.plane.stop()

    def send(self, method, path, body=None):
        """Return the decoded answer of the API server to its administrator; raises Refused."""
        trust = ssl.create_default_context(cafile=str(self.plane.authority))
        trust.load_cert_chain(self.plane.directory / "admin.crt", self.plane.directory / "admin.key")
        data = None if body is None else json.dumps(body).encode()
        method, kind = BODIES.get(method, (method, "application/json"))
        request = urllib.request.Request(self.plane.url + path, data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, context=trust, timeout=PATIENCE) as answer:
                text = answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise Refused(refusal.code, refusal.read().decode()) from None
        return json.loads(text) if answer.headers.get_content_type() == "application/json" else text.decode()


class JoinedReef(RayReef):
    """The control plane with its node, and the operator for RayClusters and RayJobs.

    The other kinds are left out: a kube-apiserver takes seconds for each of these definitions.
    """

    def __init__(self, directory: Path, binaries: Path, *operator_flags: str) -> None:
        super().__init__(directory, *operator_flags)
        self._binaries = binaries

    def __enter__(self):
        try:
            self.start_kubereef()
            self.until(self._are_served, "Ray's kinds are served")
            self.start_operator()
        except BaseException:
            self._end()
            raise
        return self

    def start_kubereef(self):
        self._kubereef = JoinedPlane(self.directory, self._binaries)  # type: ignore[assignment]  # as far as it is used

    def _are_served(self) -> bool:
        try:
            served = {one["name"] for one in self.send("GET", "/apis/ray.io/v1")["resources"]}
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return False
        return {kind.plural for kind in WANTED} <= served


def _egress_selector(path: Path):
    """Return what tells a kube-apiserver to reach kubelets, Pods and Services by a unix socket."""
    connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(path)}}}
    return {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{"name": "cluster", "connection": connection}],
    }
