"""What a person sees, on a terminal and without one."""

import asyncio
import io
import os
import re

import pytest

from eagleray.local.screen import LabelledOutput, Screen, printable
from kubewire.sources import ManualClock

STEERING = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Terminal:
    """A terminal of which both streams are, and what it shows in the end."""

    def __init__(self, columns=80):
        self._reader, writer = os.openpty()
        os.set_blocking(self._reader, False)
        self.stream = os.fdopen(writer, "w", encoding="utf-8")
        self.columns = columns

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        self.stream.close()
        os.close(self._reader)

    def raw(self):
        self.stream.flush()
        parts = []
        try:
            while part := os.read(self._reader, 65536):
                parts.append(part)
        except OSError:
            pass
        return b"".join(parts).decode()

    def shown(self):
        """Return the lines as they stand there: a carriage return goes back, and erasing erases."""
        lines, current, place = [], "", 0
        text = re.sub(r"\x1b\[[0-9;]*m", "", self.raw()).replace("\r\n", "\n")
        for piece in re.findall(r"\x1b\[K|\r|\n|[^\x1b\r\n]+", text):
            if piece == "\x1b[K":
                current = current[:place]
            elif piece == "\r":
                place = 0
            elif piece == "\n":
                lines.append(current)
                current, place = "", 0
            else:
                current = current[:place] + piece + current[place + len(piece) :]
                place += len(piece)
        return [*lines, current]


@pytest.fixture
def terminal():
    with Terminal() as terminal:
        yield terminal


def screen_on(stream, output=None, **environment):
    clock = ManualClock()
    return Screen(stream, output or stream, clock, environment), clock


def test_without_a_terminal_there_are_plain_lines_with_their_times():
    lines, output = io.StringIO(), io.StringIO()
    screen, clock = screen_on(lines, output)
    screen.stage("it starts")
    clock.advance(1.25)
    screen.line("up", "good")
    screen.output("of the job\n")
    screen.close()
    assert (lines.getvalue(), output.getvalue()) == ("    1.2s  up\n", "of the job\n")


def test_output_is_passed_on_as_it_is():
    output = io.StringIO()
    screen, _ = screen_on(io.StringIO(), output)
    for text in ("50 %\r", "\x1b[31mred\x1b[0m", " no end"):
        screen.output(text)
    assert output.getvalue() == "50 %\r\x1b[31mred\x1b[0m no end"


def test_the_moving_line_is_gone_when_something_else_is_shown(terminal):
    screen, clock = screen_on(terminal.stream)
    screen.stage("the cluster starts")
    screen.line("a head has started")
    screen.output("hello\n")
    clock.advance(2)
    screen.stage("the job runs")
    assert terminal.shown() == ["    0.0s  a head has started", "hello", "    2.0s ⠋ the job runs (0 s)"]


def test_the_moving_line_never_touches_a_line_that_a_job_has_begun(terminal):
    screen, _ = screen_on(terminal.stream)
    screen.stage("the job runs")
    screen.output("computing")
    screen.stage("still running")
    screen.output(" ... done\n")
    screen.output("half")
    screen.line("a worker is ready")
    screen.close()
    assert terminal.shown() == ["computing ... done", "half", "    0.0s  a worker is ready", ""]


def test_a_progress_bar_of_a_job_keeps_its_line(terminal):
    screen, _ = screen_on(terminal.stream)
    screen.stage("the job runs")
    for text in ("10 %\r", "20 %\r"):
        screen.output(text)
        screen.stage(text.strip())
    assert terminal.shown() == ["20 %"]


def test_output_that_goes_elsewhere_does_not_stop_the_moving_line(terminal):
    screen, _ = screen_on(terminal.stream, io.StringIO())
    screen.output("no end of line")
    screen.stage("the job runs")
    assert terminal.shown() == ["    0.0s ⠋ the job runs (0 s)"]


def test_a_stage_is_cut_at_the_edge(terminal):
    screen, _ = screen_on(terminal.stream)
    screen.stage("x" * 500)
    (line,) = terminal.shown()
    assert len(line) == 79


@pytest.mark.parametrize(
    ("environment", "is_coloured", "is_live"),
    [
        pytest.param({}, True, True, id="as usual"),
        pytest.param({"NO_COLOR": "1"}, False, True, id="NO_COLOR"),
        pytest.param({"NO_COLOR": ""}, True, True, id="NO_COLOR that is empty says nothing"),
        pytest.param({"TERM": "dumb"}, False, False, id="a terminal that can do nothing"),
    ],
)
def test_colours_and_movement(terminal, environment, is_coloured, is_live):
    screen, _ = screen_on(terminal.stream, **environment)
    screen.line("bad", "bad")
    screen.stage("goes on")
    raw = terminal.raw()
    assert ("\x1b[31m" in raw) is is_coloured
    assert ("goes on" in raw) is is_live


async def test_the_moving_line_moves(terminal):
    screen, clock = screen_on(terminal.stream)
    screen.stage("it runs")
    moving = asyncio.create_task(screen.move())
    for _ in range(11):
        await asyncio.sleep(0)
        clock.advance(0.1)
    await asyncio.sleep(0)
    moving.cancel()
    assert terminal.shown() == ["    1.1s ⠙ it runs (1 s)"]


def test_lines_of_several_jobs_never_mix():
    output = io.StringIO()
    screen, _ = screen_on(io.StringIO(), output)
    first, second = (LabelledOutput(screen, name) for name in ("a", "b"))
    first("one ")
    second("two\nthr")
    first("whole\n")
    for one in (first, second):
        one.close()
    assert output.getvalue() == "b | two\na | one whole\nb | thr\n"


def test_what_would_steer_a_terminal_is_shown_as_text():
    assert printable("\x1b[2Jgone\r") == "\\x1b[2Jgone\\r"
    assert printable("café") == "café"
