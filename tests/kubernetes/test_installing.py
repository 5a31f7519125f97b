"""Installing by kubectl and helm on a real control plane: the tests of tests/packaging, on another cluster."""

import tempfile
from pathlib import Path

import pytest

from tests.kubernetes.plane import Plane
from tests.packaging.conftest import helm
from tests.packaging.test_installing import (
    install,
    kubectl,
    test_a_release_fits_into_its_secret_and_is_upgraded_and_leaves_the_definitions_when_it_goes,
    test_a_release_of_the_reference_is_upgraded_in_place_and_rolled_back_and_no_pod_is_touched,
    test_an_operator_of_the_manifests_is_ready_and_does_its_work_under_its_account,
    test_with_webhooks_a_bad_name_is_refused_at_admission,
)
from tests.reef.conftest import kubectl_cache

__all__ = [
    "helm",
    "install",
    "kubectl",
    "kubectl_cache",
    "test_a_release_fits_into_its_secret_and_is_upgraded_and_leaves_the_definitions_when_it_goes",
    "test_a_release_of_the_reference_is_upgraded_in_place_and_rolled_back_and_no_pod_is_touched",
    "test_an_operator_of_the_manifests_is_ready_and_does_its_work_under_its_account",
    "test_with_webhooks_a_bad_name_is_refused_at_admission",
]

pytestmark = pytest.mark.heavy


@pytest.fixture
def reef(binaries):
    """A plane of its own for each test: what is installed belongs to the whole cluster."""
    with tempfile.TemporaryDirectory(prefix="plane-") as made, Plane(Path(made), binaries) as plane:
        yield plane
