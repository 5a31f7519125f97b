"""How much a command costs before it does anything."""

import os
import subprocess
import sys

import pytest

ROUNDS = 5


def cpu_of(*arguments):
    """Return the least CPU time that a Python with these arguments has taken; noise only ever adds to it."""
    seconds = []
    for _ in range(ROUNDS):
        process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
        _, code, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(code)
        assert process.returncode == 0
        seconds.append(usage.ru_utime + usage.ru_stime)
    return min(seconds)


@pytest.mark.case("OP-190")
def test_help_costs_little_more_than_python_itself():
    assert cpu_of("-m", "eagleray.cli.main", "--help") <= 4 * cpu_of("-c", "pass")
