"""The node as a whole: it starts in namespaces of its own, and its end, however it comes, is the end of everything."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kubereef.node.sandbox import Control, NodeProcess, SandboxError
from tests.kubereef.node.sandbox.inside import (
    REPOSITORY,
    Bench,
    eventually,
    in_node,
    processes,
    run_node,
    skip_without,
    status,
    text,
)

HERE = "tests.kubereef.node.sandbox.test_node_process"


@in_node()
async def test_the_node_has_its_own_processes_mounts_and_network(bench):
    assert os.getppid() == 1
    assert processes() == {1, os.getpid()}
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        await asyncio.to_thread(socket.create_connection(server.getsockname()).close)
    assert "shared:" not in text("/proc/self/mountinfo")


@in_node()
async def test_process_1_reaps_orphans_and_takes_no_exit_code_from_subprocesses(bench):
    pod = await bench.pod()
    children = [await asyncio.create_subprocess_exec("sh", "-c", f"exit {code}") for code in range(8)]
    plain = start_plain_child("(sleep 0.01 &) ; exit 11")
    codes = await asyncio.gather(*(child.wait() for child in children))
    assert codes == list(range(8))
    assert plain.wait() == 11
    assert (await bench.shell(pod, "exit 12")).exit.code == 12
    await eventually(lambda: processes() == {1, os.getpid()})  # the orphan ends and is reaped


def start_plain_child(script):
    return subprocess.Popen(["sh", "-c", script])


@in_node()
async def test_the_interpreter_of_process_1_is_on_a_read_only_mount(bench):
    mode = status("/proc/1/exe").st_mode
    with pytest.raises(OSError, match="Read-only file system"):
        change_mode("/proc/1/exe", mode)


def change_mode(path, mode):
    Path(path).chmod(mode)


def test_the_exit_code_of_the_program_is_the_nodes(monkeypatch):
    skip_without()
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY / 'src'}:{REPOSITORY}")

    async def run():
        node = NodeProcess(f"{HERE}:exit_with", argument=7)
        await node.start()
        return await node.wait()

    assert asyncio.run(run()) == 7


def exit_with(start):
    return start.argument


def test_exits_that_the_program_never_heard_of_do_not_change_its_exit_code():
    skip_without()
    code, output = asyncio.run(run_node(__file__, "end_with_reports_unread"))
    assert (code, output) == (0, "")


async def end_with_reports_unread(bench):
    pod = await bench.pod()
    containers = [await bench.start(pod, "sleep", "1000") for _ in range(3)]
    bench.control._loop.remove_reader(bench.control._socket)
    for container in containers:
        container.signal(signal.SIGKILL)
    await eventually(lambda: processes() == {1, os.getpid()})


def test_the_argument_may_be_large_and_is_not_on_the_command_line(monkeypatch):
    skip_without()
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY / 'src'}:{REPOSITORY}")

    async def run():
        node = NodeProcess(f"{HERE}:exit_with_last_of", argument=[0] * 500_000 + [9])
        await node.start()
        return await node.wait()

    assert asyncio.run(run()) == 9


def exit_with_last_of(start):
    return start.argument[-1]


def test_a_program_that_fails_says_so_and_ends_the_node():
    skip_without()
    code, output = asyncio.run(run_node(__file__, "no_such_function"))
    assert code == 1
    assert "no_such_function" in output


def test_stop_asks_first_and_then_ends_everything(monkeypatch):
    skip_without()
    monkeypatch.setenv("PYTHONPATH", f"{REPOSITORY / 'src'}:{REPOSITORY}")

    async def run(entry, grace):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            node = NodeProcess(f"{HERE}:{entry}", descriptors={"line": theirs.fileno()})
            await node.start()
            theirs.close()
            await asyncio.to_thread(ours.recv, 1)
            return await node.stop(grace)

    assert asyncio.run(run("end_politely", 20)) == 3
    assert asyncio.run(run("never_end", 0.1)) == 128 + signal.SIGKILL


def end_politely(start):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    socket.socket(fileno=start.descriptors["line"]).send(b".")
    signal.pause()


def never_end(start):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    socket.socket(fileno=start.descriptors["line"]).send(b".")
    while True:
        signal.pause()


def test_a_node_that_was_not_started_has_no_end():
    with pytest.raises(SandboxError, match="not been started"):
        asyncio.run(NodeProcess("x:y").wait())


# What follows kills one process of a node that runs Pods: Kubereef's own, the one that holds the namespaces, process 1,
# or the node program. The one that starts it all is a process of its own, so that it can be killed too.


@pytest.mark.parametrize("victim", ["kubereef", "boot", "process 1", "program"])
def test_kill_9_of_any_part_leaves_no_process_mount_or_namespace(victim, tmp_path):
    skip_without()
    with started_node(tmp_path) as (kubereef, told):
        own = set(namespaces_of("self"))
        spaces = {space for pid in descendants(kubereef.pid) for space in namespaces_of(pid)} - own
        family = descendants(kubereef.pid)
        assert len(family) >= 7  # boot, process 1, the program, a keeper, three containers
        assert len(spaces) >= 10
        boot = family[0]
        process_1 = children(boot)[0]
        victims = {
            "kubereef": kubereef.pid,
            "boot": boot,
            "process 1": process_1,
            "program": children(process_1)[0],
        }
        os.kill(victims[victim], signal.SIGKILL)
        deadline = time.monotonic() + 10
        while (left := alive(family)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left == []
        assert not spaces & {space for pid in alive(everybody()) for space in namespaces_of(pid)}
        assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
    shutil.rmtree(told["work"])  # would fail if something were still mounted there


@pytest.mark.parametrize("delay", [0.05, 0.1, 0.15, 0.2, 0.3])
def test_kill_9_of_kubereef_while_the_node_starts_leaves_no_process(delay, tmp_path):
    skip_without()
    with started_node(tmp_path, wait=False) as (kubereef, _):
        time.sleep(delay)
        family = descendants(kubereef.pid)
        kubereef.kill()
        kubereef.wait()
        deadline = time.monotonic() + 10
        while (left := alive(family) + marked(tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left == []


@contextlib.contextmanager
def started_node(tmp_path, wait=True):
    """A process that holds a node with Pods; what is left of it is killed in the end."""
    environment = os.environ | {"PYTHONPATH": f"{REPOSITORY / 'src'}:{REPOSITORY}"}
    with (tmp_path / "output").open("wb") as output:
        kubereef = subprocess.Popen(
            [sys.executable, "-c", f"from {HERE} import hold; hold({str(tmp_path)!r})"],
            env=environment, stdout=subprocess.PIPE, stderr=output,
        )  # fmt: skip
    assert kubereef.stdout is not None
    family = []
    try:
        line = kubereef.stdout.readline() if wait else b"{}"
        assert line, (tmp_path / "output").read_text()
        family = descendants(kubereef.pid)
        yield kubereef, json.loads(line)
    finally:
        for pid in (kubereef.pid, *family):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        kubereef.wait()
        kubereef.stdout.close()


def hold(directory):
    """Be Kubereef: start a node, print what it tells, and wait for its end."""

    async def run():
        node = NodeProcess(f"{HERE}:run_pods", argument=directory)
        await node.start()
        await node.wait()

    asyncio.run(run())


def run_pods(start):
    async def run():
        bench = Bench(Control(start.control), Path(tempfile.mkdtemp(dir=start.argument)))
        one, two = await bench.pod(), await bench.pod(share_process_namespace=True)
        for pod in (one, one, two):
            await bench.start(pod, "sleep", "1000")
        print(json.dumps({"work": str(bench.work)}), flush=True)
        await asyncio.sleep(1000)

    asyncio.run(run())


def children(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    return []


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def alive(pids):
    return [pid for pid in pids if state(pid) not in (None, "Z")]


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def marked(directory):
    """Processes whose command line names the directory."""
    found = []
    for pid in everybody():
        with contextlib.suppress(OSError):
            if str(directory).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return alive(found)


def everybody():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def namespaces_of(pid):
    for kind in ("net", "mnt", "pid", "uts", "ipc"):
        with contextlib.suppress(OSError):
            yield kind, Path(f"/proc/{pid}/ns/{kind}").stat().st_ino
