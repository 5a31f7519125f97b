"""One cluster per module, spoken to by clients that others wrote.

It is a Kubereef, unless EAGLERAY_TEST_KUBECONFIG names the kubeconfig of another cluster, which should do the same.
"""

import os
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.nodes import Nodes
from tests.reef import conftest as reef
from tests.reef.kubectl import Kubectl
from tests.reef.process import Kubereef

DEADLINE = 90

kubectl_cache = reef.kubectl_cache


class Cluster(NamedTuple):
    """Where a cluster is."""

    kubeconfig: Path


@pytest.fixture(autouse=True)
def deadline():
    """End a test that a client holds up: some of them wait for news without an end."""

    def give_up(*_signal):
        raise TimeoutError(f"the test has not ended within {DEADLINE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(DEADLINE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster with controllers and a scripted node, on which Pods live as their label `life` says (see `nodes`)."""
    other = os.environ.get("EAGLERAY_TEST_KUBECONFIG")
    if other:
        with Nodes(Path(other)):
            yield Cluster(Path(other))
        return
    directory = tmp_path_factory.mktemp("reef")
    with Kubereef(directory, "--no-node", "--in-memory") as server:
        with Nodes(server.kubeconfig):
            yield Cluster(server.kubeconfig)
        assert server.stop() == ""


@pytest.fixture
def kubectl(cluster, kubectl_cache, namespace):
    return Kubectl(cluster.kubeconfig, kubectl_cache, namespace)


@pytest.fixture
def namespace(cluster, kubectl_cache, request):
    """A namespace of its own, named after the test."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**9}"
    kubectl = Kubectl(cluster.kubeconfig, kubectl_cache, name)
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
