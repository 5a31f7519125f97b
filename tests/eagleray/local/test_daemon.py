"""The process that runs a kept cluster: what it tells others while it lives, and that nothing of it is left after."""

import asyncio
import gc
import logging
import os
import signal
import socket
from contextlib import asynccontextmanager, closing
from types import SimpleNamespace

import pytest
import yaml

from eagleray.local import contexts, daemon
from eagleray.local.cluster import ClusterFailed
from eagleray.local.daemon import keep
from eagleray.local.kept import EXIT_TAKEN, KeepSettings, Place, Taken, find, held
from eagleray.local.users import User
from kubereef.store.errors import InUse

KUBECONFIG = {
    "clusters": [{"name": "k", "cluster": {"server": "https://x:1", "certificate-authority-data": "Q0E="}}],
    "users": [{"name": "k", "user": {"token": "secret"}}],
    "contexts": [{"name": "k", "context": {"cluster": "k", "user": "k"}}],
    "current-context": "k",
}


class Stage:
    """A cluster that is played: its settings are noted, and it goes on until a test ends it."""

    def __init__(self, directory):
        self.place = Place("eagleray", directory / "eagleray", User(os.geteuid(), os.getegid(), directory))
        self.context_file = directory / "config"
        self.said = []
        self.ready = asyncio.Event()
        self.settings = None
        self.failure = None
        self.fails_when_ready = None
        self.has_ended_in_order = False

    @asynccontextmanager
    async def local_cluster(self, settings):
        self.settings = settings
        if self.failure is not None:
            raise self.failure
        settings.directory.mkdir(parents=True, exist_ok=True)
        kubeconfig = settings.directory / "admin.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(KUBECONFIG))
        port = settings.port or 40_000
        served = SimpleNamespace(url=f"https://127.0.0.1:{port}", port=port)
        try:
            yield SimpleNamespace(
                kubeconfig=kubeconfig,
                hosted=SimpleNamespace(served=served),
                until_it_fails=self.until_it_fails,
            )
        finally:
            self.has_ended_in_order = True

    async def until_it_fails(self):
        self.ready.set()
        if self.fails_when_ready is not None:
            raise self.fails_when_ready
        await asyncio.Event().wait()

    def keep_settings(self, **fields):
        known = {"directory": str(self.place.directory), "context_file": str(self.context_file)}
        return KeepSettings(**{**known, **fields})

    @asynccontextmanager
    async def kept(self, **fields):
        """Give the block a cluster that is ready, and end it as `eagleray down` does."""
        running = asyncio.create_task(keep(self.keep_settings(**fields), self.said.append))
        waiting = asyncio.create_task(self.ready.wait())
        await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if running.done():
            await running
        yield
        os.kill(os.getpid(), signal.SIGTERM)
        await running


@pytest.fixture
def stage(tmp_path, monkeypatch):
    stage = Stage(tmp_path)
    monkeypatch.setattr(daemon, "local_cluster", stage.local_cluster)
    for name in ("freeze", "set_threshold"):
        monkeypatch.setattr(gc, name, lambda *_: None)
    return stage


@pytest.fixture
def taken_port():
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


async def test_while_it_runs_others_find_it_and_after_that_they_do_not(stage):
    async with stage.kept():
        state = find(stage.place)
        assert state.is_running
        assert state.record is not None
        assert (state.record.pid, state.record.url) == (os.getpid(), "https://127.0.0.1:40000")
        assert "ready at https://127.0.0.1:40000" in stage.said
    assert find(stage.place).record is None
    assert stage.has_ended_in_order


async def test_its_context_comes_and_goes_with_it(stage):
    async with stage.kept():
        config = yaml.safe_load(stage.context_file.read_text())
        assert config["current-context"] == "eagleray"
        # A certificate would expire in a copy, the token does not.
        assert [name for name in config["users"][0]["user"] if name != "extensions"] == ["token"]
    assert not stage.context_file.exists()


async def test_a_context_is_noted_before_it_is_made(stage, monkeypatch):
    noted = []

    def add(*_, **__):
        record = find(stage.place).record
        noted.append(record is not None and record.context_file)

    monkeypatch.setattr(contexts, "add", add)
    async with stage.kept():
        pass
    assert noted == [str(stage.context_file)]


async def test_no_context_is_made_unless_one_is_wanted(stage):
    async with stage.kept(context_file=""):
        assert not stage.context_file.exists()


async def test_a_context_that_cannot_be_made_is_told_and_the_cluster_runs(stage):
    stage.context_file.write_text("[]")
    async with stage.kept():
        assert any("note: no context: " in line for line in stage.said)
        assert find(stage.place).is_running
    assert stage.context_file.read_text() == "[]"


async def test_a_second_process_is_turned_away(stage):
    with held(stage.place), pytest.raises(Taken):
        await keep(stage.keep_settings(), stage.said.append)
    assert stage.settings is None


async def test_the_port_is_the_same_again(stage):
    async with stage.kept(port=0):
        pass
    async with stage.kept(port=0):
        assert stage.settings.port == 40_000


async def test_a_port_that_was_chosen_and_is_in_use_is_told(stage, taken_port):
    with pytest.raises(ClusterFailed, match=f"port {taken_port} is in use; choose another with --listen"):
        await keep(stage.keep_settings(port=taken_port), stage.said.append)
    assert find(stage.place).record is None


async def test_a_port_of_before_that_is_in_use_is_given_up(stage, taken_port):
    stage.place.directory.mkdir()
    stage.place.port_file.write_text(f"{taken_port}\n")
    async with stage.kept():
        assert stage.settings.port == 0
        assert any(f"note: port {taken_port}" in line for line in stage.said)


@pytest.mark.parametrize(
    "failure",
    [InUse("somebody has it"), OSError(28, "No space left on device"), ClusterFailed("no namespaces here")],
    ids=["a directory in use", "a full disk", "a machine that cannot"],
)
async def test_what_does_not_come_up_leaves_nothing(stage, failure):
    stage.failure = failure
    with pytest.raises(ClusterFailed, match=str(failure).removeprefix("[Errno 28] ")):
        await keep(stage.keep_settings(), stage.said.append)
    assert find(stage.place).record is None
    assert not stage.context_file.exists()


async def test_a_part_that_fails_ends_it_and_takes_the_context_away(stage):
    stage.fails_when_ready = ClusterFailed("the node has ended with code 9")
    with pytest.raises(ClusterFailed, match="code 9"):
        await keep(stage.keep_settings(), stage.said.append)
    assert not stage.context_file.exists()


async def test_a_stop_during_the_start_ends_it(stage, monkeypatch):
    @asynccontextmanager
    async def never(_settings):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
        yield

    monkeypatch.setattr(daemon, "local_cluster", never)
    await keep(stage.keep_settings(), stage.said.append)
    assert find(stage.place).record is None


async def test_what_is_logged_goes_to_its_file(stage):
    async with stage.kept():
        logging.getLogger("x").info("something happened")
    logging.getLogger("x").warning("and this after it")
    text = stage.place.log.read_text()
    assert "something happened" in text
    assert "after it" not in text


@pytest.mark.parametrize(
    ("failure", "code"),
    [(Taken("another process"), EXIT_TAKEN), (ClusterFailed("no room"), 1), (None, 0)],
    ids=["taken", "failed", "ended"],
)
def test_the_exit_code_tells_how_it_went(stage, monkeypatch, capsys, failure, code):
    async def played(_settings, _say):
        if failure is not None:
            raise failure

    monkeypatch.setattr(daemon, "keep", played)
    monkeypatch.setattr(os, "chdir", lambda _path: None)
    assert daemon.main(['{"directory": "/d"}']) == code
    assert capsys.readouterr().out == (f"eagleray up: {failure}\n" if failure else "")
