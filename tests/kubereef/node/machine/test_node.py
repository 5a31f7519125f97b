"""A whole node, started as users start it. One serves all tests of this module but those that end theirs."""

import os
import signal
import stat

import pytest

from kubereef.node.machine.leftovers import sweep_cgroups
from tests.kubereef.node.machine.realnode import (
    NodeReef,
    Refused,
    all_processes,
    cgroups_of,
    family,
    host_traces,
    is_alive,
    left_since,
    namespaces,
    oldest_child_of,
    require_node,
    until,
)

SLEEP = ("sh", "-c", "exec sleep 1000")
ASK_API = """
import ssl, urllib.error, urllib.request
place = "/var/run/secrets/kubernetes.io/serviceaccount"
trust = ssl.create_default_context(cafile=f"{place}/ca.crt")
headers = {"Authorization": "Bearer " + open(f"{place}/token").read()}
request = urllib.request.Request("https://kubernetes.default.svc/api/v1/nodes", headers=headers)
try:
    urllib.request.urlopen(request, context=trust)
except urllib.error.HTTPError as refusal:
    print(refusal.code, refusal.read().decode())
"""
PYTHON = {"image": "python:3.11"}


@pytest.fixture(scope="module")
def reef(tmp_path_factory):
    directory = tmp_path_factory.mktemp("node")
    require_node(directory)
    # Sockets of the node are below the directory: a path longer than they may have must not matter.
    deep = directory / ("d" * 120)
    deep.mkdir()
    with NodeReef(deep, "--in-memory", "--resource", "example.com/thing=2") as reef:
        yield reef
        assert reef.stop() == ""


def test_the_node_is_ready_with_what_the_machine_has(reef):
    node = reef.send("GET", "/api/v1/nodes/kubereef")
    conditions = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert "LimitsEnforced" in conditions
    capacity = node["status"]["capacity"]
    assert int(capacity["cpu"]) == 4 * len(os.sched_getaffinity(0))
    assert capacity["example.com/thing"] == "2"


def test_the_kubelets_page_is_reached_through_the_api_server(reef):
    assert reef.send("GET", "/api/v1/nodes/kubereef/proxy/healthz") == "ok"
    assert reef.send("GET", "/api/v1/nodes/kubereef/proxy/stats/summary")["node"]["nodeName"] == "kubereef"


def test_a_pod_runs_and_its_log_is_read(reef):
    assert reef.result("says", "sh", "-c", "echo one; echo two") == "one\ntwo\n"
    assert reef.log("says", "tailLines=1") == "two\n"


def test_a_pod_speaks_to_the_api_server_with_its_own_token(reef):
    said = reef.result("asks", "python3", "-c", ASK_API, container=PYTHON)
    assert said.startswith("403 ")
    assert "system:serviceaccount:default:default" in said


def test_names_of_services_lead_to_pods(reef):
    ports = [{"port": 80, "targetPort": 8000}]
    service = {"metadata": {"name": "site"}, "spec": {"selector": {"app": "serves"}, "ports": ports}}
    reef.send("POST", "/api/v1/namespaces/default/services", service)
    serve = "cd /tmp; echo hello > index.html; exec python3 -m http.server 8000"
    reef.run("serves", "sh", "-c", serve, container=PYTHON)
    reef.until("serves", "Running")
    fetch = (
        "import time, urllib.request as u\n"
        "for _ in range(100):\n"
        "    try: print(u.urlopen('http://site.default').read().decode(), end=''); break\n"
        "    except OSError: time.sleep(0.1)\n"
    )
    assert reef.result("fetches", "python3", "-c", fetch, container=PYTHON) == "hello\n"
    assert reef.send("GET", "/api/v1/namespaces/default/pods/serves:8000/proxy/") == "hello\n"
    assert reef.send("GET", "/api/v1/namespaces/default/services/site:80/proxy/") == "hello\n"


def test_the_api_server_has_an_endpoint_that_pods_reach(reef):
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
    (endpoint,) = reef.send("GET", slices)["endpoints"]
    assert endpoint["addresses"] == ["10.244.0.1"]


def test_what_the_node_keeps_is_its_owners_alone(reef):
    for path in (reef.directory / "node", reef.directory / "node" / "pki"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (reef.directory / "node" / "pki").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for name in ("api.sock", "gate.sock", "node.log"):
        assert stat.S_IMODE((reef.directory / "node" / name).stat().st_mode) == 0o600


def test_what_the_kubelet_does_not_have_is_not_found(reef):
    with pytest.raises(Refused) as refusal:
        reef.send("GET", "/api/v1/nodes/kubereef/proxy/nothing")
    assert refusal.value.code == 404


def _kubereef(reef):
    return reef.pid


def _holder(reef):
    """The process that holds the namespaces, from outside."""
    return oldest_child_of(reef.pid)


def _process_1(reef):
    return oldest_child_of(_holder(reef))


def _program(reef):
    return oldest_child_of(_process_1(reef))


@pytest.mark.parametrize(
    "whom", [_kubereef, _holder, _process_1, _program], ids=lambda whom: whom.__name__.strip("_")
)
def test_nothing_is_left_when_somebody_is_killed(tmp_path, whom):
    require_node(tmp_path)
    before = host_traces()
    with NodeReef(tmp_path, "--in-memory") as reef:
        reef.run("sleeps", *SLEEP)
        reef.until("sleeps", "Running")
        processes = family(reef.pid)
        assert cgroups_of(reef.pid)
        own = namespaces(number for number, _ in processes) - namespaces([os.getpid()])
        # Of the node and of the Pod: network, mount and pid; and the Pod's uts and ipc besides.
        assert len(own) >= 8
        others = all_processes()  # later ones may be in new namespaces that got the numbers of old ones
        os.kill(whom(reef), signal.SIGKILL)
        until(lambda: not any(is_alive(one) for one in processes))
        complaints = reef.wait()
        # Kubereef without its node has nothing to do, and says so.
        assert whom is _kubereef or "the node has ended" in complaints
    sweep_cgroups()  # as the next node does
    assert not cgroups_of(reef.pid)
    until(lambda: not own & namespaces(others))  # the machine's own init takes a moment for orphans
    assert not left_since(before)


def test_pods_are_told_to_end_when_kubereef_is(tmp_path):
    require_node(tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o777)
    script = "trap 'echo ended > /kept/word; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    with NodeReef(tmp_path / "reef") as reef:
        volume = {"name": "kept", "hostPath": {"path": str(kept)}}
        mount = {"name": "kept", "mountPath": "/kept"}
        reef.run("ends", "sh", "-c", script, container={"volumeMounts": [mount]}, volumes=[volume])
        reef.until("ends", "Running")
        until(lambda: reef.log("ends") == "ready\n")
        processes = family(reef.pid)
        assert reef.stop() == ""
        until(lambda: not any(is_alive(one) for one in processes))
        assert (kept / "word").read_text() == "ended\n"
        assert not cgroups_of(reef.pid)
    # The objects were kept, and so the Pod lives again when Kubereef does.
    with NodeReef(tmp_path / "reef") as reef:
        until(lambda: reef.log("ends") == "ready\n")
        reef.stop()
