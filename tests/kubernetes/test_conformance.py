"""What scenarios say of Kubernetes is so: a real control plane answers them all as recorded.

The server's scenarios are told to an API server alone, the others to one with controllers and scheduler.
"""

import secrets
import tempfile
from pathlib import Path

import pytest

from tests.kubereef.conformance.judging import against
from tests.kubereef.conformance.scenarios import load, names
from tests.kubernetes.plane import Plane

TOKEN = secrets.token_hex(16)
CONTROLLERS = ("kube-controller-manager", "kube-scheduler")


class Stage:
    """A control plane whose controllers come and go as a scenario needs them."""

    def __init__(self, plane):
        self.plane = plane
        self._has_controllers = True
        self._told = 0

    def tell(self, scenario):
        """Return the steps that are answered differently."""
        self._set_up(scenario.needs_controllers)
        self._told += 1
        # Names of scenarios are made of letters that never stand in generated ones.
        identity = "".join("bcdfghjklm"[int(digit)] for digit in f"{self._told:06}")
        judged = against(scenario, self.plane.url, TOKEN, self.plane.authority, identity)
        return [f"{step.name}: {'; '.join(step.differences[:5])}" for step in judged if step.differences]

    def _set_up(self, wants_controllers):
        if self._has_controllers != wants_controllers:
            for part in CONTROLLERS:
                (self.plane.start if wants_controllers else self.plane.kill)(part)
            self._has_controllers = wants_controllers


@pytest.fixture(scope="module")
def stage(binaries):
    """A control plane of its own, since scenarios count what there is; a token stands for its administrator."""
    with tempfile.TemporaryDirectory(prefix="plane-") as made:
        directory = Path(made)
        users = directory / "users.csv"
        users.touch(mode=0o600)
        users.write_text(f'{TOKEN},admin,1,"system:masters"\n')
        with Plane(directory, binaries, {"kube-apiserver": [f"--token-auth-file={users}"]}) as plane:
            yield Stage(plane)


# Those that need no controllers come first, so that these are stopped and started once.
ALONE = [name for name in names() if not load(name).needs_controllers]
TOGETHER = [name for name in names() if name not in ALONE]


@pytest.mark.parametrize("name", [*ALONE, *TOGETHER])
def test_a_real_control_plane_answers_as_recorded(stage, name):
    scenario = load(name)
    # Orders and events that depend on when a second ends vary on the real server itself: one of two runs is enough.
    problems = stage.tell(scenario) and stage.tell(scenario)
    assert not problems, "\n".join(problems)
