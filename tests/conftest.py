"""Fixtures and settings that every tier shares."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parents[1]

# The same examples in every run, so that a red test is about the change at hand. To look for new ones:
# pytest --hypothesis-profile=explore
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def reference() -> Path:
    """The reference's CRDs, samples and recorded objects, which are not ours and lie beside the checkout."""
    folder = REPOSITORY.parent / "shared" / "data" / "upstream"
    if not folder.is_dir():
        pytest.skip("the reference material is not beside this checkout (../shared/data/upstream)")
    return folder


def pytest_collection_finish() -> None:
    """Have operators watched over where tests are about to start some; elsewhere that would cost its imports."""
    if "eagleray.operator.assembly" in sys.modules:
        importlib.import_module("tests.rights")


@pytest.fixture(autouse=True)
def permitted_requests() -> Iterator[None]:
    """Fail a test in which an operator asks for something that its roles, as they are packaged, do not allow."""
    rights = sys.modules.get("tests.rights")
    if rights is None:
        yield
        return
    rights.uncovered.clear()
    yield
    noted = sorted(set(rights.uncovered))
    assert not noted, f"not in eagleray.operator.permissions: {noted}"
