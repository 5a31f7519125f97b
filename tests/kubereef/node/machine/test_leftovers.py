"""Whose cgroups are whose."""

import os
import subprocess
from pathlib import Path

import pytest

from kubereef.node.machine.leftovers import _is_nobodys, cgroup_name


def test_those_of_a_living_process_are_left_alone():
    with subprocess.Popen(["sleep", "100"]) as other:
        started = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        assert not _is_nobodys(f"kubereef-{other.pid}-{started}")
        assert _is_nobodys(f"kubereef-{other.pid}-{int(started) - 1}"), (
            "another process had the number before"
        )
        other.kill()
        other.wait()
        assert _is_nobodys(f"kubereef-{other.pid}-{started}")


def test_our_own_are_ours_to_remove():
    assert cgroup_name().startswith(f"kubereef-{os.getpid()}-")
    assert _is_nobodys(cgroup_name())


@pytest.mark.parametrize(
    "name", ["kubereef-mine", "kubereef-1", "kubereef-1-x", "other-1-1", "kubereef-1-1-1"]
)
def test_what_has_another_name_is_somebody_elses(name):
    assert not _is_nobodys(name)
