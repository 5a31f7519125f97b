"""Logs and streams of containers."""

import asyncio
import os

import pytest

from kubereef.node.kubelet.logs import LONGEST_LINE, ContainerLog, log_tail, rotated
from kubereef.node.kubelet.streams import ContainerStreams
from kubereef.node.sandbox import Exit
from kubewire.sources import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


def lines(file):
    return [line.split(" ", 1)[1] for line in file.read_text().splitlines()]


def test_lines_are_written_with_time_and_stream(tmp_path, clock):
    log = ContainerLog(tmp_path / "deep" / "0.log", clock)
    log.write("stdout", b"one\ntw")
    log.write("stderr", b"oh\n")
    log.write("stdout", b"o\n\n")
    log.write("stdout", b"unfinished")
    log.close()
    file = tmp_path / "deep" / "0.log"
    assert lines(file) == ["stdout F one", "stderr F oh", "stdout F two", "stdout F ", "stdout P unfinished"]
    assert file.read_text().startswith("2030-01-01T00:00:00.000000000Z stdout F one\n")


def test_long_lines_are_cut_into_parts(tmp_path, clock):
    log = ContainerLog(tmp_path / "0.log", clock)
    log.write("stdout", b"x" * (LONGEST_LINE + 5))
    log.write("stdout", b"y\n")
    log.close()
    first, second = lines(tmp_path / "0.log")
    assert first == "stdout P " + "x" * LONGEST_LINE
    assert second == "stdout F xxxxxy"
    assert log_tail(tmp_path / "0.log", 5, 10) == "xxxxxxxxy\n"[-10:]


def test_a_log_that_grows_is_continued_in_a_new_file_and_old_ones_go(tmp_path, clock):
    log = ContainerLog(tmp_path / "0.log", clock, most_bytes=100, most_files=3)
    for number in range(10):
        log.write("stdout", b"line %d\n" % number)
        clock.advance(1)
    log.close()
    parts = [*rotated(tmp_path / "0.log"), tmp_path / "0.log"]
    assert len(parts) == 3
    text = [line for part in parts for line in lines(part)]
    assert text == [f"stdout F line {number}" for number in range(10 - len(text), 10)]
    assert all(part.stat().st_size <= 100 for part in parts)


def test_the_tail_of_a_log_is_its_last_lines(tmp_path, clock):
    log = ContainerLog(tmp_path / "0.log", clock)
    log.write("stdout", b"a\nb\nc\n")
    log.close()
    assert log_tail(tmp_path / "0.log", 2, 100) == "b\nc\n"
    assert log_tail(tmp_path / "none", 2, 100) == ""


class Process:
    """One without a terminal."""

    terminal: int | None = None

    async def wait(self):
        return Exit(0)

    def signal(self, number):
        return False

    def resize(self, rows, columns):
        """Nothing to do."""

    def close(self):
        """Nothing to do."""


async def test_who_is_attached_sees_the_output_from_then_on_and_writes_the_input(tmp_path, clock):
    streams = ContainerStreams(
        ContainerLog(tmp_path / "0.log", clock), has_stdin=True, has_terminal=False, stdin_once=True
    )
    stdin, stdout, stderr = (os.dup(fd or -1) for fd in streams.stdio)
    streams.begin(Process())
    os.write(stdout, b"early\n")
    await asyncio.sleep(0.01)
    attached = streams.attach()
    assert (attached.has_terminal, attached.takes_input) == (False, True)
    os.write(stderr, b"late\n")
    assert await attached.read() == ("stderr", b"late\n")
    await attached.write(b"in\n")
    assert os.read(stdin, 100) == b"in\n"
    attached.end_input()
    assert os.read(stdin, 100) == b""  # stdinOnce: the first client's end is the container's
    for fd in (stdin, stdout, stderr):
        os.close(fd)
    await streams.finish(1.0)
    assert await attached.read() is None
    assert lines(tmp_path / "0.log") == ["stdout F early", "stderr F late"]


async def test_input_that_nobody_reads_waits_and_is_dropped_at_the_end(tmp_path, clock):
    streams = ContainerStreams(
        ContainerLog(tmp_path / "0.log", clock), has_stdin=True, has_terminal=False, stdin_once=False
    )
    held = [os.dup(fd or -1) for fd in streams.stdio]
    streams.begin(Process())
    writing = asyncio.ensure_future(streams.attach().write(b"x" * 1_000_000))
    await asyncio.sleep(0.01)
    assert not writing.done()
    streams.close()
    await asyncio.wait_for(writing, 1)
    for fd in held:
        os.close(fd)


async def test_output_that_somebody_else_holds_open_is_not_waited_for_forever(tmp_path, clock):
    streams = ContainerStreams(
        ContainerLog(tmp_path / "0.log", clock), has_stdin=False, has_terminal=False, stdin_once=False
    )
    held = [os.dup(fd) for fd in streams.stdio if fd is not None]
    streams.begin(Process())
    await streams.finish(0.02)
    for fd in held:
        os.close(fd)


async def test_one_who_does_not_read_is_let_go(tmp_path, clock):
    streams = ContainerStreams(
        ContainerLog(tmp_path / "0.log", clock), has_stdin=False, has_terminal=False, stdin_once=False
    )
    writing = os.dup(streams.stdio.stdout or -1)
    streams.begin(Process())
    attached = streams.attach()
    for _ in range(80):
        os.write(writing, b"x" * 65536)
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
    count = 0
    while await attached.read() is not None:
        count += 1
    assert count <= 64
    os.close(writing)
    streams.close()
