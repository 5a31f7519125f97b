"""Builds can be watched, cancelled and timed out, and leave no program behind."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kubereef.node.images.control import Progress
from kubereef.node.images.errors import BuildCancelled, BuildFailed, BuildTimedOut, DiskFull
from kubewire.sources import ManualClock
from tests.kubereef.node.images.making import control

ENDLESS = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


def python(code):
    return [sys.executable, "-I", "-S", "-c", code]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_is_followed_line_by_line():
    lines: list[str] = []
    control().run(python("print('one'); print('two', end='')"), on_line=lines.append)
    assert lines == ["one", "two"]


def test_a_failure_quotes_what_the_program_said():
    with pytest.raises(BuildFailed, match="code 3: ERROR: no such thing"):
        control().run(python("print('fine'); print('ERROR: no such thing'); raise SystemExit(3)"))


def test_a_failure_may_be_allowed():
    assert control().run(python("print('no'); raise SystemExit(3)"), allow_failure=True) == "no"


def test_a_program_that_finds_the_disk_full_is_reported_as_that():
    with pytest.raises(DiskFull):
        control().run(python("print('OSError: [Errno 28] No space left on device'); raise SystemExit(2)"))


def test_a_cancelled_program_is_killed():
    cancelled = threading.Event()
    pids: list[int] = []

    def cancel(line):
        pids.append(int(line))
        cancelled.set()

    with pytest.raises(BuildCancelled):
        control(cancelled=cancelled).run(python(ENDLESS), on_line=cancel)
    assert not is_alive(pids[0])


def test_a_late_program_is_killed_and_the_message_says_where_it_was():
    clock = ManualClock()
    building = control(timeout=30, clock=clock)
    building.tell("downloading", "ray.whl")
    pids: list[int] = []

    def wait(line):
        pids.append(int(line))
        clock.advance(30)

    with pytest.raises(BuildTimedOut, match=r"30 s \(at: downloading\)"):
        building.run(python(ENDLESS), on_line=wait)
    assert not is_alive(pids[0])


def test_an_endless_line_takes_no_endless_memory():
    lines: list[str] = []
    control().run(python("print('x' * 3_000_000)"), on_line=lines.append)
    assert len(lines[0]) <= 4096


def test_a_program_dies_with_the_process_that_builds():
    builder = (
        "from tests.kubereef.node.images.making import control\n"
        "from tests.kubereef.node.images.test_control import ENDLESS, python\n"
        "control().run(python(ENDLESS), on_line=lambda line: print(line, flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", builder], stdout=subprocess.PIPE, cwd=Path(__file__).parents[4]
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.kill()
        process.wait()
        process.stdout.read()  # ends when the last who could write to it is gone; the program's output is not it
    for _ in range(100):
        if not is_alive(pid):
            break
        threading.Event().wait(0.02)
    assert not is_alive(pid)
    assert os.getpid() != pid


def test_progress_is_reported_when_a_reader_could_tell_the_difference():
    reports: list[Progress] = []
    building = control(reports)
    for done in range(1001):
        building.tell("downloading", "ray.whl", done, 1000)
    assert len(reports) == 101
    assert reports[50] == Progress("downloading", "ray.whl", 500, 1000)
    assert [reports[0].percent, reports[-1].percent, Progress("x").percent] == [0, 100, None]
