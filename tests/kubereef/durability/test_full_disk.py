"""A full disk: writes are refused plainly, reads go on, and with room there is also life again."""

import resource
import subprocess

import pytest

from kubereef.store.errors import InUse
from kubereef.store.journal import SqliteJournal
from tests.kubereef.durability.clients import MAPS, Api, State
from tests.reef.process import Kubereef

SMALL = 3 * 1024 * 1024
PADDING = "x" * 50_000
MOUNTED = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=3m tmpfs "$0" && exec "$@"')


def can_mount(directory):
    probe = subprocess.run([*MOUNTED, directory, "true"], capture_output=True)
    return probe.returncode == 0


async def fill(api):
    """Write until it is refused; return the names of what was acknowledged, and the refusal."""
    written: dict[str, State] = {}
    for number in range(200):
        name = f"n{number:03}"
        body = {"metadata": {"name": name}, "data": {"v": str(number), "padding": PADDING}}
        status, answer = await api.send("POST", MAPS, body)
        if status != 201:
            return written, status, answer
        written[name] = State(int(answer["metadata"]["resourceVersion"]), str(number))
    raise AssertionError("the disk did not become full")


async def is_refused_and_recovers(api, make_room):
    written, status, refusal = await fill(api)
    assert len(written) > 5
    assert (status, refusal["kind"], refusal["reason"]) == (500, "Status", "InternalError")
    assert "the write could not be stored" in refusal["message"]
    assert PADDING not in refusal["message"]
    assert (await api.stored())[1] == written
    make_room()
    status, made = await api.send("POST", MAPS, {"metadata": {"name": "later"}, "data": {"v": "later"}})
    assert status == 201, made
    written["later"] = State(int(made["metadata"]["resourceVersion"]), "later")
    version, stored = await api.stored()
    assert stored == written
    assert version == written["later"].version
    return written


async def test_a_full_file_system_refuses_writes_and_recovers(tmp_path):
    if not can_mount(tmp_path):
        pytest.skip("mounting a small file system needs privileges that this machine does not give")
    with Kubereef(tmp_path, "--no-controllers", wrapper=(*MOUNTED, str(tmp_path))) as server:
        ballast = server.root / str(tmp_path).removeprefix("/") / "ballast"
        ballast.write_bytes(bytes(1024 * 1024))
        async with Api(server) as api:
            await is_refused_and_recovers(api, ballast.unlink)


async def test_a_limit_on_file_sizes_refuses_writes_and_recovers_and_the_store_is_whole(tmp_path):
    with Kubereef(tmp_path, "--no-controllers") as server:
        hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (SMALL, hard))

        def make_room():
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (hard, hard))

        async with Api(server) as api:
            written = await is_refused_and_recovers(api, make_room)
        server.kill()
    with Kubereef(tmp_path, "--no-controllers") as server:
        async with Api(server) as api:
            assert (await api.stored())[1] == written


def test_a_journal_that_is_held_is_refused_and_free_again_once_its_holder_was_killed(tmp_path):
    with Kubereef(tmp_path, "--no-controllers") as server:
        with pytest.raises(InUse, match="another process uses"):
            SqliteJournal(tmp_path)
        server.kill()
    SqliteJournal(tmp_path).close()
