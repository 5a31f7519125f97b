"""Packaging is rendered by helm and kubectl, and tried on clusters under virtual time and over HTTPS."""

import asyncio

import pytest

from kubereef.simulation import VirtualLoop
from tests.clients.programs import built
from tests.packaging.helm import Helm
from tests.packaging.kustomize import kustomize
from tests.reef.conftest import kubectl_cache

__all__ = ["kubectl_cache"]


def pytest_asyncio_loop_factories(config, item):
    is_virtual = "virtual_time" in item.fixturenames
    return {"virtual": VirtualLoop} if is_virtual else {"real": asyncio.new_event_loop}


@pytest.fixture
def virtual_time():
    """Make a test run under virtual time."""


@pytest.fixture(scope="session")
def helm():
    """Helm, built once where Go is there."""
    return Helm(built("helm"))


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """Return the objects of a folder of config/, as kubectl builds it."""
    return kustomize(tmp_path_factory.mktemp("manifests"))
