"""Scenarios of the four controllers, unchanged, on a real control plane; `make test-kubernetes` has all of them."""

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

# One file of each kind: what a controller makes, that it follows a change, and that it cleans up.
SOME = (
    "raycluster/test_cases_suspend.py",
    "rayjob/test_cases_deletion.py",
    "rayservice/test_cases_suspend.py",
    "raycronjob/test_any_day.py",
)
LONGEST = 1800.0


@pytest.mark.usefixtures("binaries")
def test_scenarios_of_the_controllers_live_on_a_real_control_plane():
    """Two files at a time, each with a plane of its own: they wait most of the time, and for real."""
    command = [sys.executable, "-m", "pytest", "--quiet", "--numprocesses=2", "--dist=loadfile"]
    without = ["-p", "no:cacheprovider", "-p", "no:randomly"]
    files = [f"tests/eagleray/{file}" for file in SOME]
    run = subprocess.run(
        [*command, *without, "-p", "tests.kubernetes.scenarios", *files],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout[-20_000:]}\n{run.stderr[-2000:]}"
    assert " passed" in run.stdout.splitlines()[-1]
