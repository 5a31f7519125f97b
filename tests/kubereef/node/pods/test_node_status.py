"""What the node of the tables says of itself."""

import pytest

from kubereef.node.sandbox import probe
from tests.kubereef.node.machine.realnode import until

pytestmark = pytest.mark.heavy


def node_of(pods):
    return pods.send("GET", "/api/v1/nodes/kubereef")


def test_gpus_of_the_machine_and_resources_that_were_declared_are_its_capacity(pods):
    status = node_of(pods)["status"]
    for amounts in (status["capacity"], status["allocatable"]):
        assert (amounts["nvidia.com/gpu"], amounts["example.com/thing"]) == ("2", "2")


def test_the_images_that_pods_have_pulled_are_listed(pods):
    def listed():
        names = [name for one in node_of(pods)["status"].get("images", ()) for name in one["names"]]
        return {"docker.io/library/busybox:latest", "example.com/python:3"} <= set(names)

    until(listed, patience=60)
    assert all(one["sizeBytes"] >= 0 for one in node_of(pods)["status"]["images"])


def test_many_pods_that_want_an_image_have_it_built_once(pods):
    python = "example.com/python:3"
    wanting = [
        pod["metadata"]["name"]
        for pod in pods.send("GET", "/api/v1/pods")["items"]
        if any(one["image"] == python for one in pod["spec"]["containers"])
    ]
    assert len(wanting) > 10

    def built():
        kept = [note.read_text() for note in pods.images.glob("layers/*/layer.json")]
        return [note for note in kept if "Python" in note]

    until(built, patience=120)
    assert len(built()) == 1


def test_its_lease_is_renewed(pods):
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/kubereef"
    first = pods.send("GET", lease)["spec"]
    assert (first["holderIdentity"], first["leaseDurationSeconds"]) == ("kubereef", 40)
    until(lambda: pods.send("GET", lease)["spec"]["renewTime"] > first["renewTime"])


def test_it_says_whether_limits_are_enforced(pods, tmp_path):
    machine = probe(tmp_path)
    enforced = all(machine.has(f"{name} limits") for name in ("memory", "cpu", "pids"))
    conditions = {one["type"]: one["status"] for one in node_of(pods)["status"]["conditions"]}
    assert conditions == {
        "Ready": "True",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "LimitsEnforced": str(enforced),
    }


def test_the_kubelet_tells_what_pods_use(pods):
    summary = pods.send("GET", "/api/v1/nodes/kubereef/proxy/stats/summary")
    assert summary["node"]["nodeName"] == "kubereef"
    assert summary["pods"]
