"""A node that joins a cluster by a kubeconfig, over the network alone. The control plane here is a Kubereef's."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import yaml

from kubereef.node.__main__ import _node_options, _parser, _ways, main
from kubereef.node.machine.following import ApiServerHere
from kubereef.node.machine.joining import Inwards, Ways, check_rights, service_cidr
from kubereef.node.machine.kubeconfig import Membership
from kubereef.node.machine.launch import NodeFailed
from kubereef.node.network import HttpProxy, NotReached, listen_unix
from kubewire import errors
from kubewire.certificates import Identity, Issuer, Pair
from kubewire.sources import SystemClock, SystemEntropy
from tests.kubereef.node.machine.realnode import NodeReef, family, is_alive, require_node
from tests.reef.process import Kubereef

ASK_API = """
import os, ssl, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount"
trust = ssl.create_default_context(cafile=f"{place}/ca.crt")
headers = {"Authorization": "Bearer " + open(f"{place}/token").read()}
for host in ("kubernetes.default.svc", os.environ["KUBERNETES_SERVICE_HOST"]):
    request = urllib.request.Request(f"https://{host}/version", headers=headers)
    print(urllib.request.urlopen(request, context=trust).status)
"""


# --- a real node


class Foreign(NodeReef):
    """A Kubereef without a node: for a node that joins it, a cluster like any other."""

    def __init__(self, directory):
        Kubereef.__init__(self, directory)
        self.directory = directory

    def kubeconfig_with_token(self):
        """Write a kubeconfig whose only credentials are a token."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self.token}
        path = self.directory / "token.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def kubelet_certificate(self):
        """Write a certificate for a kubelet at loopback that this API server believes; return it and its key."""
        pki = self.directory / "pki"
        authority = Pair.of((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
        pair = Issuer(SystemClock(), SystemEntropy()).serving(authority, Identity("kubelet"), ["127.0.0.1"])
        files = self.directory / "kubelet.crt", self.directory / "kubelet.key"
        files[0].write_bytes(pair.certificate_pem)
        files[1].write_bytes(pair.key_pem)
        return files


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    directory = tmp_path_factory.mktemp("foreign")
    require_node(directory)
    with Foreign(directory) as foreign:
        yield foreign


@contextmanager
def joined(foreign, name):
    """The process of a node that has joined."""
    certificate, key = foreign.kubelet_certificate()
    options = {
        "--kubeconfig": foreign.kubeconfig_with_token(),
        "--name": name,
        "--data-dir": foreign.directory / name,
        "--service-cidr": "10.96.0.0/16",
        "--tls-cert-file": certificate,
        "--tls-private-key-file": key,
        "--label": "place=here",
        "--taint": "guest=yes:NoSchedule",
        "--outbound": "off",
    }
    command = [
        sys.executable,
        "-m",
        "kubereef.node",
        *(str(word) for pair in options.items() for word in pair),
    ]
    node = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert node.stdout is not None
    try:
        line = node.stdout.readline()
        if f"node {name} is ready" not in line:
            raise AssertionError(line + node.communicate(timeout=30)[1])
        yield node
    finally:
        node.kill()
        node.communicate(timeout=30)


@pytest.fixture(scope="module")
def node(foreign):
    with joined(foreign, "guest") as node:
        yield node


def test_a_node_joins_with_a_token_and_tells_where_its_kubelet_is(foreign, node):
    found = foreign.send("GET", "/api/v1/nodes/guest")
    assert found["metadata"]["labels"]["place"] == "here"
    assert {"key": "guest", "value": "yes", "effect": "NoSchedule"} in found["spec"]["taints"]
    (address,) = found["status"]["addresses"]
    assert address == {"type": "InternalIP", "address": "127.0.0.1"}
    assert found["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] != 10250


def test_a_pod_of_it_finds_the_api_server_by_its_service(foreign, node):
    container = {"image": "python:3.11"}
    said = foreign.result("asks", "python", "-c", ASK_API, container=container, nodeName="guest")
    assert said == "200\n200\n", "which was read through the port that the node has on this machine"


@pytest.mark.parametrize(
    "credentials", [{}, {"Authorization": "Bearer nobody"}], ids=["nothing", "a bad token"]
)
def test_its_kubelet_lets_nobody_in_whom_the_api_server_does_not_know(foreign, node, credentials):
    port = foreign.send("GET", "/api/v1/nodes/guest")["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    request = urllib.request.Request(f"https://127.0.0.1:{port}/pods", headers=credentials)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, context=foreign.trust, timeout=30)
    with refusal.value:
        assert refusal.value.code == 401


def test_a_node_that_is_told_to_stop_says_goodbye_and_leaves_no_process(foreign):
    with joined(foreign, "leaving") as node:
        foreign.run("stays", "sleep", "1000", nodeName="leaving")
        foreign.until("stays", "Running")
        processes = family(node.pid)
        node.send_signal(signal.SIGTERM)
        _, complaints = node.communicate(timeout=30)
        assert (node.returncode, complaints) == (0, "")
    assert not any(map(is_alive, processes))
    conditions = foreign.send("GET", "/api/v1/nodes/leaving")["status"]["conditions"]
    assert ("Ready", "False") in [(one["type"], one["status"]) for one in conditions]


# --- what it asks of a cluster before it starts


class Answering:
    """A client that has one answer, or refusal, for everything."""

    def __init__(self, answer):
        self._answer = answer

    async def get(self, _url):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def test_the_first_network_of_services_that_pods_can_use_is_taken():
    cidrs = [{"spec": {"cidrs": ["fd00::/108", "10.43.0.0/16"]}}, {"spec": {"cidrs": ["10.44.0.0/16"]}}]
    assert await service_cidr(Answering({"items": cidrs})) == "10.43.0.0/16"


@pytest.mark.parametrize(
    "answer", [errors.not_found("servicecidrs", ""), {"items": []}], ids=["an old cluster", "none"]
)
async def test_a_cluster_that_does_not_tell_its_network_needs_the_option(answer):
    with pytest.raises(NodeFailed, match="say so with --service-cidr"):
        await service_cidr(Answering(answer))


@pytest.mark.parametrize("ask", [service_cidr, check_rights])
async def test_a_node_that_may_not_read_endpoints_is_told_the_command_that_lets_it(ask):
    with pytest.raises(
        NodeFailed, match=r"kubectl create clusterrolebinding .* --clusterrole=system:node-proxier"
    ):
        await ask(Answering(errors.forbidden("endpointslices", "", "no")))


# --- the Service of the API server


class Heard:
    def __init__(self):
        self.slices = []

    def apply_service(self, service):
        self.slices.append(service["metadata"]["name"])

    def remove_service(self, namespace, name):
        self.slices.append(f"no {name}")

    def apply_slice(self, endpoint_slice):
        self.slices.append(endpoint_slice.get("endpoints", endpoint_slice["metadata"]["name"]))

    def remove_slice(self, namespace, name):
        self.slices.append(f"no {name}")


def test_the_service_of_the_api_server_leads_to_the_node_whatever_its_endpoints_are():
    heard = Heard()
    here = ApiServerHere(heard, "10.244.0.1", 6443)
    meta = {
        "namespace": "default",
        "name": "kubernetes",
        "labels": {"kubernetes.io/service-name": "kubernetes"},
    }
    real = {"metadata": meta, "endpoints": [{"addresses": ["192.0.2.1"]}]}
    service = {"metadata": meta, "spec": {"ports": [{"name": "https", "port": 443}]}}
    here.apply_slice(real)
    here.apply_service(service)
    here.apply_slice(real)
    here.remove_slice("default", "kubernetes")
    assert heard.slices == ["kubernetes", [{"addresses": ["10.244.0.1"], "conditions": {"ready": True}}]]


def test_other_services_are_passed_on_as_they_are():
    heard = Heard()
    here = ApiServerHere(heard, "10.244.0.1", 6443)
    labels = {"kubernetes.io/service-name": "kubernetes"}
    here.apply_service({"metadata": {"namespace": "mine", "name": "kubernetes"}, "spec": {}})
    here.apply_slice({"metadata": {"namespace": "mine", "name": "x", "labels": labels}})
    here.remove_slice("mine", "kubernetes")
    here.remove_service("mine", "kubernetes")
    assert heard.slices == ["kubernetes", "x", "no kubernetes", "no kubernetes"]


# --- the egress socket


class Inside:
    """Stands for a node with one address."""

    def __init__(self, port):
        self._port = port

    def covers(self, host):
        return host == "10.244.0.9"

    async def dial(self, host, port):
        connection = socket.create_connection(("127.0.0.1", self._port))
        connection.setblocking(False)
        return connection


async def test_an_api_server_gets_by_the_egress_socket_into_the_node_and_elsewhere(tmp_path):
    async def greet(_reader, writer):
        writer.write(f"this is {writer.get_extra_info('sockname')[1]}".encode())
        writer.close()

    inside, elsewhere = [await asyncio.start_server(greet, "127.0.0.1", 0) for _ in range(2)]
    ports = [one.sockets[0].getsockname()[1] for one in (inside, elsewhere)]
    proxy = HttpProxy(listen_unix(tmp_path / "egress.sock"), Inwards(Inside(ports[0])))
    said = []
    for target in ("10.244.0.9:80", f"localhost:{ports[1]}"):
        reader, writer = await asyncio.open_unix_connection(tmp_path / "egress.sock")
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        async with asyncio.timeout(5):
            said.append(await reader.read())
        writer.close()
    await proxy.close()
    for one in (inside, elsewhere):
        one.close()
    assert [line.rpartition(b"\r\n")[2].decode() for line in said] == [f"this is {port}" for port in ports]
    assert all(line.startswith(b"HTTP/1.1 200 ") for line in said)


async def test_what_cannot_be_reached_by_the_egress_socket_says_so():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(NotReached, match=f"127.0.0.1:{port} cannot be reached"):
            await Inwards(Inside(1)).connect("127.0.0.1", port)


# --- the command line

NEEDED = ["--kubeconfig", "k"]


def test_who_is_not_root_is_told_the_command_that_works(monkeypatch, capsys):
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert main(NEEDED) == 1
    assert "-m kubereef.node --kubeconfig k" in capsys.readouterr().err


def test_a_kubeconfig_that_is_no_use_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert main(["--kubeconfig", str(tmp_path / "gone")]) == 1
    assert "gone: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--taint", "guest"], "is not KEY[=VALUE]:EFFECT"),
        (["--taint", "guest:Never"], "is not KEY[=VALUE]:EFFECT"),
        (["--label", "guest"], "is not NAME=VALUE"),
        (["--kubelet-address", "here"], "is not HOST:PORT"),
        (["--service-cidr", "10.0.0.1/8"], "has host bits set"),
        (["--tls-cert-file", "c"], "belong together"),
    ],
    ids=" ".join,
)
def test_options_that_make_no_sense_are_refused(options, complaint, capsys):
    with pytest.raises(SystemExit):
        main([*NEEDED, *options])
    assert complaint in capsys.readouterr().err


def test_the_name_is_the_given_one_or_that_of_the_certificate_or_of_the_machine(tmp_path):
    def name(*options, certified=""):
        membership = SimpleNamespace(node_name=certified)
        return _node_options(_parser().parse_args([*NEEDED, *options]), membership, tmp_path).name  # type: ignore[arg-type]  # only its name is asked for

    assert name("--name", "given", certified="certified") == "given"
    assert name(certified="certified") == "certified"
    assert name() == os.uname().nodename.lower()


def test_nothing_is_decided_that_was_not_told():
    assert _ways(_parser().parse_args(NEEDED)) == Ways()
    assert Membership("h", 1, "h").node_name == ""
