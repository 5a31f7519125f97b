"""One Kubereef with real Ray per module."""

import fcntl
import os
import shutil

import pytest

from kubereef.node.images import cache_directory
from tests.kubereef.node.machine.realnode import require_node
from tests.ray.reef import RayReef


@pytest.fixture(scope="module", autouse=True)
def turn():
    """A turn on the machine: several Rays that start at once on few processors miss their own deadlines."""
    images = cache_directory()
    images.mkdir(parents=True, exist_ok=True)
    handle = os.open(images, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@pytest.fixture(scope="module")
def reef(tmp_path_factory):
    """A Kubernetes with a node, and the operator; skipped, with the reason, where the machine cannot run one."""
    directory = tmp_path_factory.mktemp("ray")
    require_node(directory)
    if shutil.which("kubectl") is None:
        assert not os.environ.get("CI"), "kubectl is not on the PATH, and CI has to have it"
        pytest.skip("kubectl is not on the PATH")
    with RayReef(directory) as reef:
        yield reef
