"""One Kubereef per module, spoken to by programs that others wrote."""

import os
import shutil

import pytest

from tests.reef.kubectl import Kubectl
from tests.reef.process import Kubereef


@pytest.fixture(scope="module")
def reef(tmp_path_factory):
    """A Kubereef with its controllers and without a node."""
    with Kubereef(tmp_path_factory.mktemp("reef"), "--no-node") as server:
        yield server


@pytest.fixture(scope="session")
def kubectl_cache(tmp_path_factory):
    """Where kubectl keeps what it learned about servers; without kubectl its tests are skipped, but not in CI."""
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "kubectl is not on the PATH, and CI has to have it"
        pytest.skip("kubectl is not on the PATH")
    return tmp_path_factory.mktemp("kubectl-cache")


@pytest.fixture
def kubectl(reef, kubectl_cache, request):
    """Kubectl in a namespace of its own, named after the test."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**9}"
    kubectl = Kubectl(reef.kubeconfig, kubectl_cache, name)
    kubectl("create", "namespace", name)
    yield kubectl
    kubectl("delete", "namespace", name, "--wait=false")
