"""Programs that others wrote, or that use libraries others wrote, built once by scripts of ours where Go is there."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
# The first build compiles most of Kubernetes' client libraries.
PATIENCE = 1800.0


def built(script: str, *arguments: str) -> Path:
    """Return what a script has built; without Go the test is skipped."""
    if shutil.which("go") is None:
        pytest.skip("go is not on the PATH")
    run = subprocess.run(
        [str(SCRIPTS / script), *arguments], capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 0, f"{script}: {run.stderr}"
    return Path(run.stdout.strip())
