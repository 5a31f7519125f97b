"""What the machine can do, and how its lacks are told."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubereef.node.sandbox import Ability, Machine, SandboxError, choose_root_style, probe
from tests.kubereef.node.sandbox.inside import REPOSITORY


def test_probing_tries_everything_and_leaves_nothing(tmp_path):
    mounts = Path("/proc/self/mountinfo").read_text()
    machine = probe(tmp_path)
    assert {"root", "pid namespace", "mount calls", "process descriptors"} <= set(machine.needed)
    assert {"overlay", "seccomp", "memory limits", "cpu limits", "pids limits"} <= set(machine.optional)
    assert all(reason for reason in machine.missing().values())
    assert list(tmp_path.iterdir()) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts


def test_a_user_who_is_not_root_is_told_to_use_sudo(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    code = (
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "from kubereef.node.sandbox.capabilities import _probe_here\n"
        "from pathlib import Path\n"
        "print(_probe_here(Path('/nowhere')).obstacle())"
    )
    environment = {"PYTHONPATH": str(REPOSITORY / "src")}
    preload = "import sys, msgspec, kubereef.node.sandbox.capabilities, encodings.idna\n"
    ran = subprocess.run(
        [sys.executable, "-c", preload + code], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "root: Pods need root; this is user 65534: run it with sudo\n"


def test_an_attempt_that_dies_or_surprises_is_an_ability_that_is_missing():
    code = (
        "import os\nfrom kubereef.node.sandbox.capabilities import _try\n"
        "print(_try(os.abort).reason)\nprint(_try(lambda: 1 / 0).reason)\nprint(_try(lambda: None).present)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = ran.stdout.splitlines()
    assert lines == ["the attempt was ended by SIGABRT", "ZeroDivisionError: division by zero", "True"], (
        ran.stderr
    )


def machine(**optional):
    return Machine(
        {"root": Ability(True)},
        {
            name.replace("_", " "): Ability(present, "" if present else "because")
            for name, present in optional.items()
        },
    )


@pytest.mark.parametrize(
    ("found", "want"),
    [
        pytest.param({"overlay": True, "overlay_in_memory": True}, "overlay", id="on disk where possible"),
        pytest.param({"overlay": False, "overlay_in_memory": True}, "overlay in memory", id="else in memory"),
        pytest.param({"overlay": False, "overlay_in_memory": False}, "read-only layers", id="else read-only"),
    ],
)
def test_the_best_root_style_is_chosen(found, want):
    assert choose_root_style(machine(**found)) == want


def test_only_a_needed_ability_is_an_obstacle():
    lacking = machine(overlay=False)
    assert lacking.obstacle() is None
    assert lacking.missing() == {"overlay": "because"}
    assert not lacking.has("overlay")
    assert Machine({"root": Ability(False, "why")}, {}).obstacle() == "root: why"


def test_a_probe_that_fails_says_what_it_said(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, b"", b"Traceback: no such thing\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(SandboxError, match="no such thing"):
        probe(tmp_path)
