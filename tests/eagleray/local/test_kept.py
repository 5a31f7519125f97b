"""The kept cluster as files and a process: found, started, ended, removed; never another process in its place."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from eagleray.local import kept
from eagleray.local.contexts import Context, add
from eagleray.local.kept import (
    EXIT_TAKEN,
    KeepSettings,
    KeptError,
    NotAllowed,
    Place,
    Record,
    Taken,
    disk_size,
    ensure_running,
    find,
    held,
    note,
    place_of,
    purge,
    started_at,
    stop,
)
from eagleray.local.users import User

URL = "https://127.0.0.1:6443"


@pytest.fixture
def place(tmp_path):
    directory = tmp_path / "data" / "eagleray"
    directory.mkdir(parents=True)
    return Place("eagleray", directory, User(os.geteuid(), os.getegid(), tmp_path))


@pytest.fixture
def process():
    """A process that stands in for the one that runs a cluster."""
    with subprocess.Popen(["sleep", "100"]) as running:
        yield running
        running.kill()


def record(pid, **fields):
    known = {"started": started_at(pid), "since": "2030-01-01T00:00:00Z", "version": "1", "url": URL}
    return Record(pid=pid, **{**known, "kubeconfig": "/k", **fields})


def settings(place):
    return KeepSettings(directory=str(place.directory))


# --- where it lives


@pytest.mark.parametrize(
    ("name", "given", "environ", "wanted"),
    [
        pytest.param(
            "eagleray", "", {}, "/home/me/.local/share/eagleray/eagleray", id="with the user's data"
        ),
        pytest.param("b", "", {"XDG_DATA_HOME": "/x"}, "/x/eagleray/b", id="where the user keeps data"),
        pytest.param(
            "b", "", {"XDG_DATA_HOME": "x"}, "/home/me/.local/share/eagleray/b", id="not beside anything"
        ),
        pytest.param("b", "/y", {"XDG_DATA_HOME": "/x"}, "/y/b", id="where it was told to"),
    ],
)
def test_a_cluster_lives_in_a_folder_of_its_name(name, given, environ, wanted):
    assert place_of(name, given, {"HOME": "/home/me", **environ}).directory == Path(wanted)


@pytest.mark.parametrize("name", ["../x", "A", "", "a/b", "-a"])
def test_a_name_that_would_lead_elsewhere_is_refused(name):
    with pytest.raises(KeptError, match="--name"):
        place_of(name, "", {"HOME": "/home/me"})


# --- whether it runs


def test_nothing_noted_is_not_running(place):
    state = find(place)
    assert (state.is_running, state.is_starting, state.has_crashed) == (False, False, False)


def test_a_noted_process_that_lives_runs(place, process):
    note(place, record(process.pid))
    assert find(place).is_running


def test_until_it_is_ready_it_is_starting(place, process):
    note(place, record(process.pid, url=""))
    state = find(place)
    assert (state.is_running, state.is_starting) == (False, True)


def test_a_noted_process_that_is_gone_has_crashed(place, process):
    noted = record(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    note(place, noted)
    assert find(place).has_crashed  # though its parent has not taken notice yet
    process.wait()
    assert find(place).has_crashed


def test_another_process_of_the_same_number_is_not_taken_for_it(place, process):
    boot, _, ticks = started_at(process.pid).partition("/")
    note(place, record(process.pid, started=f"{boot}/{int(ticks) + 1}"))
    assert find(place).has_crashed
    note(place, record(process.pid, started=f"another-boot/{ticks}"))
    assert find(place).has_crashed


def test_a_state_that_cannot_be_read_is_told(place):
    place.state_file.write_text("{")
    with pytest.raises(KeptError, match=r"state\.json cannot be read"):
        find(place)


def test_only_one_process_at_a_time_has_the_directory(place):
    with held(place), pytest.raises(Taken, match="another process"), held(place):
        pass
    with held(place):
        pass


# --- ended


async def test_stopping_ends_exactly_the_noted_process(place, process):
    note(place, record(process.pid))
    assert await stop(place) == "stopped"
    assert process.wait() == -signal.SIGTERM
    assert not place.state_file.exists()


def test_a_process_that_does_not_end_is_killed(place):
    command = ["sh", "-c", "trap '' TERM; echo ready; exec sleep 100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"ready\n"
        note(place, record(stubborn.pid))
        assert asyncio.run(stop(place, seconds=0.2)) == "killed, as it did not end in time"
        assert stubborn.wait() == -signal.SIGKILL


async def test_another_process_of_the_same_number_is_not_ended(place, process):
    note(place, record(process.pid, started="another-boot/1"))
    assert await stop(place) == "it had crashed"
    assert process.poll() is None
    assert not place.state_file.exists()


async def test_stopping_what_does_not_run_does_nothing(place):
    assert await stop(place) == ""


async def test_a_context_that_a_crash_left_is_removed(place, process, tmp_path):
    file = tmp_path / "config"
    add(file, Context("eagleray", str(place.directory), URL, "Q0E=", "t"), place.user)
    config = yaml.safe_load(file.read_text())
    config["users"].append({"name": "other", "user": {}})
    file.write_text(yaml.safe_dump(config))
    note(place, record(process.pid, started="another-boot/1", context_file=str(file)))
    await stop(place)
    left = yaml.safe_load(file.read_text())
    assert (left["contexts"], left["users"]) == ([], [{"name": "other", "user": {}}])


def test_purging_leaves_nothing(place):
    (place.cluster / "deep").mkdir(parents=True)
    (place.cluster / "deep" / "file").write_bytes(b"x" * 10_000)
    freed = purge(place)
    assert freed is not None
    assert freed >= 10_000
    assert not place.directory.parent.exists()
    assert purge(place) is None


def test_purging_leaves_other_clusters_alone(place):
    other = place.directory.parent / "other"
    other.mkdir()
    purge(place)
    assert other.exists()


def test_a_cluster_that_somebody_runs_is_not_purged(place):
    with held(place), pytest.raises(Taken):
        purge(place)
    assert place.directory.exists()


def test_the_size_is_what_is_on_disk(place):
    (place.directory / "sparse").touch()
    os.truncate(place.directory / "sparse", 2**30)
    assert disk_size(place.directory) < 2**20


# --- started


@pytest.fixture
def started(monkeypatch, place):
    """Have a script be started in place of the process that runs a cluster; it finds `$STATE`, and its own `$$`."""
    children = []

    def start(script):
        def spawn(_settings, _place):
            program = f"import os, subprocess, sys; {script}"
            child = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ, setsid=True)
            children.append(child)
            return child

        monkeypatch.setattr(kept, "_start", spawn)
        monkeypatch.setattr(os, "geteuid", lambda: 0)

    yield start
    for child in children:
        try:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def noting(place):
    """Return a program that notes itself as a cluster that is ready, and goes on."""
    return (
        "from eagleray.local.kept import *; from eagleray.local.users import User; from pathlib import Path;"
        "import time;"
        f"place = Place('eagleray', Path({str(place.directory)!r}), User(os.geteuid(), os.getegid(), Path('/')));"
        f"note(place, Record(pid=os.getpid(), started=started_at(os.getpid()), since='', version='', url={URL!r},"
        "kubeconfig='/k')); time.sleep(100)"
    )


async def test_a_cluster_that_does_not_run_is_started_and_waited_for(place, started):
    started(noting(place))
    first = await ensure_running(settings(place))
    assert (first.is_new, first.url, first.kubeconfig) == (True, URL, Path("/k"))
    again = await ensure_running(settings(place))
    assert (again.is_new, again.pid) == (False, first.pid)


async def test_the_last_words_of_a_process_that_ends_are_told(place, started):
    started(f"open({str(place.last_words)!r}, 'w').write('a line\\neagleray up: no room\\n'); sys.exit(1)")
    with pytest.raises(KeptError, match="did not come up: no room"):
        await ensure_running(settings(place))


async def test_whoever_was_faster_is_waited_for(place, started, process):
    started(f"sys.exit({EXIT_TAKEN})")
    with held(place):
        waiting = asyncio.create_task(ensure_running(settings(place)))
        await asyncio.sleep(1)
        assert not waiting.done()
        note(place, record(process.pid))
        assert await waiting == (Path("/k"), URL, process.pid, False)


async def test_a_starting_process_that_dies_is_not_waited_for_for_ever(place, started, process):
    started("sys.exit(1)")
    note(place, record(process.pid, url=""))
    waiting = asyncio.create_task(ensure_running(settings(place)))
    await asyncio.sleep(0.2)
    process.kill()
    with pytest.raises(KeptError, match="did not come up"):
        await waiting


async def test_without_root_nothing_is_started(place, started, monkeypatch):
    started("sys.exit(1)")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NotAllowed, match="needs root"):
        await ensure_running(settings(place))


def test_settings_reach_the_process_as_they_are(place):
    given = KeepSettings(directory=str(place.directory), resources={"a/b": "3"}, operator_flags=("--x=y",))
    assert msgspec.json.decode(msgspec.json.encode(given), type=KeepSettings) == given
