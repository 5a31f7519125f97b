"""Fixtures that every tier shares."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def reference() -> Path:
    """The reference's CRDs, samples and recorded objects, which are not ours and lie beside the checkout."""
    folder = REPOSITORY.parent / "shared" / "data" / "upstream"
    if not folder.is_dir():
        pytest.skip("the reference material is not beside this checkout (../shared/data/upstream)")
    return folder
