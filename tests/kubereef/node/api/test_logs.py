"""Logs from their files: what of them, in which form, and how they are followed."""

import asyncio
from datetime import UTC, datetime

import pytest

from kubereef.node.kubelet.api.logoptions import BadOption, read_options
from kubereef.node.kubelet.api.logs import LogOptions, read_log
from kubewire.sources import ManualClock, SystemClock
from tests.kubereef.node.api.standins import until

LINES = (
    "2030-01-01T00:00:01.000000001Z stdout F one",
    "2030-01-01T00:00:02.5Z stderr F two",
    "2030-01-01T00:00:03Z stdout P thr",
    "2030-01-01T00:00:03.1Z stdout F ee",
    "2030-01-01T00:00:04Z stdout F four",
)


def write(path, lines=LINES):
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


async def shown(path, options=None, **wanted):
    return b"".join(
        [part async for part in read_log(path, options or LogOptions(**wanted), SystemClock())]
    ).decode()


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param({}, "one\ntwo\nthree\nfour\n", id="all of it, with the parts of a line joined"),
        pytest.param({"tail_lines": 2}, "three\nfour\n", id="the last lines, of which one came in parts"),
        pytest.param({"tail_lines": 0}, "", id="none of the last lines"),
        pytest.param({"tail_lines": 99}, "one\ntwo\nthree\nfour\n", id="more last lines than there are"),
        pytest.param({"stream": "stderr"}, "two\n", id="one stream"),
        pytest.param(
            {"stream": "stdout", "tail_lines": 2}, "three\nfour\n", id="the last lines of one stream"
        ),
        pytest.param({"limit_bytes": 5}, "one\nt", id="so many bytes and no more"),
        pytest.param(
            {"timestamps": True, "tail_lines": 2},
            "2030-01-01T00:00:03Z three\n2030-01-01T00:00:04Z four\n",
            id="times stand before lines and not before their parts",
        ),
        pytest.param(
            {"since": datetime(2030, 1, 1, 0, 0, 2, 500_000, UTC)}, "two\nthree\nfour\n", id="since a moment"
        ),
        pytest.param(
            {"since": datetime(2030, 1, 1, 0, 0, 2, 500_001, UTC)}, "three\nfour\n", id="since just after it"
        ),
    ],
)
async def test_what_of_a_log_is_shown(tmp_path, options, want):
    assert await shown(write(tmp_path / "0.log"), **options) == want


async def test_a_rotated_log_is_read_as_one(tmp_path):
    write(tmp_path / "0.log.20300101-000001", LINES[:1])
    write(tmp_path / "0.log.20300101-000002", LINES[1:2])
    write(tmp_path / "0.log", LINES[2:])
    write(tmp_path / "1.log", LINES[:1])  # of another run
    assert await shown(tmp_path / "0.log") == "one\ntwo\nthree\nfour\n"
    assert await shown(tmp_path / "0.log", tail_lines=3) == "two\nthree\nfour\n"


async def test_the_last_lines_of_a_large_log_are_found_across_blocks(tmp_path):
    lines = [f"2030-01-01T00:00:01Z stdout F line {number} {'x' * 50}" for number in range(20_000)]
    path = write(tmp_path / "0.log", lines)
    assert (await shown(path, tail_lines=9000)).splitlines() == [
        line.split(" ", 3)[3] for line in lines[-9000:]
    ]


async def test_an_unfinished_last_line_counts_as_one(tmp_path):
    path = write(tmp_path / "0.log", [*LINES[:2], "2030-01-01T00:00:09Z stdout P half"])
    assert await shown(path, tail_lines=1) == "half"


async def test_what_is_no_log_line_is_passed_over(tmp_path):
    path = write(tmp_path / "0.log", ["", "nonsense", "2030-01-01T00:00:01Z stdin F no", LINES[0]])
    assert await shown(path) == "one\n"


async def test_a_log_that_is_gone_is_empty(tmp_path):
    assert await shown(tmp_path / "none" / "0.log") == ""


class Follower:
    """Follows a log and keeps what it has seen."""

    def __init__(self, path, **options):
        self.seen = b""
        self.over = False
        wanted = LogOptions(follow=True, **options)
        self.task = asyncio.create_task(self._run(read_log(path, wanted, SystemClock(), lambda: self.over)))

    async def _run(self, parts):
        async for part in parts:
            self.seen += part

    async def until(self, text):
        await until(lambda: self.seen.decode() == text)

    async def end(self):
        self.over = True
        async with asyncio.timeout(5):
            await self.task


async def test_a_followed_log_goes_on_until_its_container_ends(tmp_path):
    path = write(tmp_path / "0.log", LINES[:1])
    follower = Follower(path)
    await follower.until("one\n")
    with path.open("a") as file:
        file.write(LINES[1][:30])
        file.flush()
        await asyncio.sleep(0.15)
        file.write(LINES[1][30:] + "\n")
    await follower.until("one\ntwo\n")
    await follower.end()


async def test_a_followed_log_that_is_rotated_goes_on_with_the_next_file(tmp_path):
    path = write(tmp_path / "0.log", LINES[:1])
    follower = Follower(path, tail_lines=0)
    await asyncio.sleep(0.05)
    with path.open("a") as file:
        file.write(LINES[1] + "\n")
    path.rename(tmp_path / "0.log.20300101-000001")
    write(path, LINES[2:4])
    path.rename(tmp_path / "0.log.20300101-000002")
    write(path, LINES[4:])
    await follower.until("two\nthree\nfour\n")
    await follower.end()


async def test_what_is_written_just_before_the_end_is_not_missed(tmp_path):
    path = write(tmp_path / "0.log", LINES[:1])
    follower = Follower(path)
    await follower.until("one\n")
    with path.open("a") as file:
        file.write(LINES[1] + "\n")
    await follower.end()
    assert follower.seen == b"one\ntwo\n"


def test_options_of_a_request():
    query = {"follow": "true", "tailLines": "3", "timestamps": "1", "limitBytes": "9", "stream": "Stderr"}
    options, previous = read_options({**query, "previous": "true"}, ManualClock())
    assert options == LogOptions(True, 3, None, True, 9, "stderr")
    assert previous


def test_since_is_a_moment_or_so_many_seconds_ago():
    clock = ManualClock(datetime(2030, 1, 1, 1, tzinfo=UTC))
    assert read_options({"sinceSeconds": "60"}, clock)[0].since == datetime(2030, 1, 1, 0, 59, tzinfo=UTC)
    moment = read_options({"sinceTime": "2030-01-01T02:00:00+01:00"}, clock)[0].since
    assert moment == datetime(2030, 1, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "query",
    [
        {"tailLines": "-1"},
        {"limitBytes": "x"},
        {"sinceTime": "yesterday"},
        {"stream": "both"},
        {"tailLines": "9" * 30},
    ],
    ids=lambda query: next(iter(query)),
)
def test_options_that_mean_nothing_are_refused(query):
    with pytest.raises(BadOption, match=next(iter(query))):
        read_options(query, ManualClock())
