"""Containers, run for real: how they start, end, fail, and what they see of each other."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from kubereef.node.sandbox import Command, Exit, Mount, Refused, Security, StartFailed, Stdio, TerminalSize
from tests.kubereef.node.sandbox.inside import (
    USUAL_ENV,
    eventually,
    in_node,
    processes,
    read_all,
    run_node,
    skip_without,
    text,
)


@in_node()
async def test_a_container_ends_with_the_exit_code_of_its_entrypoint(bench):
    pod = await bench.pod()
    assert (await bench.shell(pod, "exit 3")).exit == Exit(3)
    assert (await bench.shell(pod, "true")).exit == Exit(0)


@in_node()
async def test_the_entrypoint_is_process_1_and_sees_only_its_own_container(bench):
    pod = await bench.pod()
    result = await bench.shell(pod, "echo $$; ls /proc | grep '^[0-9]*$'")
    shell, *seen = result.output.split()
    assert shell == "1"
    assert "1" in seen
    assert len(seen) <= 4


@in_node()
async def test_a_signal_reaches_the_container_and_its_exit_tells_which_one_ended_it(bench):
    pod = await bench.pod()
    trapping = await bench.start(pod, "/bin/sh", "-c", "trap 'exit 5' TERM; while true; do sleep 0.01; done")
    await eventually(lambda: handles_term(trapping.pid))
    assert trapping.signal(signal.SIGTERM)
    assert await trapping.wait() == Exit(5)
    sleeping = await bench.start(pod, "sleep", "1000")
    sleeping.signal(signal.SIGTERM)  # as in Kubernetes: process 1 gets no signal that it does not handle
    await asyncio.sleep(0.05)
    assert sleeping.is_running
    sleeping.signal(signal.SIGKILL)
    assert await sleeping.wait() == Exit(137, signal.SIGKILL)
    assert not sleeping.signal(signal.SIGKILL)


def handles_term(pid):
    fields = dict(line.split(":", 1) for line in text(f"/proc/{pid}/status").splitlines())
    return int(fields["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1


@in_node()
async def test_any_number_of_tasks_may_wait_for_a_container_also_after_its_end(bench):
    pod = await bench.pod()
    container = await bench.start(pod, "sh", "-c", "exit 4")
    assert list(await asyncio.gather(container.wait(), container.wait())) == [Exit(4), Exit(4)]
    assert await container.wait() == Exit(4)


@in_node()
async def test_a_command_that_cannot_run_fails_with_its_reason(bench):
    pod = await bench.pod()
    volume = bench.directory()
    (volume / "text").write_text("no program")
    (volume / "script").write_text("no interpreter line")
    (volume / "script").chmod(0o755)
    mounts = (Mount(target="/volume", source=volume),)
    for argv, message, code in (
        ("nope", 'exec: "nope": executable file not found in $PATH', 127),
        ("/nope", 'exec: "/nope": no such file or directory', 127),
        ("/volume/text", 'exec: "/volume/text": permission denied', 126),
        ("/volume/script", 'exec: "/volume/script": exec format error', 126),
        ("/volume", 'exec: "/volume": permission denied', 126),
    ):
        with pytest.raises(StartFailed) as failed:
            await bench.start(pod, argv, mounts=mounts)
        failure = failed.value
        assert (str(failure), failure.exit_code, failure.reason) == (message, code, "ContainerCannotRun")
    assert (await bench.shell(pod, "true")).exit == Exit(0)


@in_node()
async def test_a_sandbox_that_cannot_be_built_fails_with_the_step(bench):
    pod = await bench.pod()
    with pytest.raises(StartFailed) as failed:
        await bench.start(pod, "true", mounts=(Mount(target="/data", source=Path("/no/such/place")),))
    assert failed.value.step == "volume at /data"
    assert (failed.value.reason, failed.value.exit_code) == ("StartError", 128)


@in_node()
async def test_environment_and_directory_are_the_given_ones_alone(bench):
    pod = await bench.pod()
    result = await bench.run(
        pod, "env", command={"env": {"PATH": "/usr/bin", "A": "b c"}, "cwd": "/made/for/it"}
    )
    assert set(result.output.splitlines()) == {"PATH=/usr/bin", "A=b c"}
    result = await bench.run(pod, "pwd", command={"cwd": "/made/for/it"})
    assert result.output == "/made/for/it\n"


@in_node()
async def test_a_program_gets_no_descriptor_but_its_streams_and_no_ignored_signal(bench):
    pod = await bench.pod()
    result = await bench.run(pod, "ls", "/proc/self/fd")
    assert result.output.split() == ["0", "1", "2", "3"]  # the last is the directory that is being listed
    result = await bench.run(pod, "grep", "-E", "SigIgn|SigBlk|Umask", "/proc/self/status")
    found = dict(line.split(":\t") for line in result.output.splitlines())
    # Signals 32 and 33 are the C library's own, which lets nobody set them; make leaves the first one ignored.
    ignored = int(found.pop("SigIgn"), 16) & ~(0b11 << 31)
    assert (found, ignored) == ({"Umask": "0022", "SigBlk": "0" * 16}, 0), result.output


def test_a_program_starts_afresh_whatever_kubereef_itself_was_started_with():
    skip_without()
    umask = os.umask(0o077)
    ignored = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        code, output = asyncio.run(run_node(__file__, "start_and_enter_afresh"))
    finally:
        os.umask(umask)
        signal.signal(signal.SIGUSR1, ignored)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert code == 0, output


async def start_and_enter_afresh(bench):
    look = ("grep", "-E", "SigIgn|SigBlk|Umask", "/proc/self/status")
    pod = await bench.pod()
    own = text("/proc/self/status")
    assert "Umask:\t0077" in own, "Kubereef's own goes on to the node, else there is nothing to see here"
    container = await bench.start(pod, "sleep", "1000")
    for result in (await bench.run(pod, *look), await bench.enter(container, *look)):
        found = dict(line.split(":\t") for line in result.output.splitlines())
        mine = (1 << (signal.SIGUSR1 - 1)) | (1 << (signal.SIGUSR2 - 1))
        assert (found["Umask"], int(found["SigBlk"], 16), int(found["SigIgn"], 16) & mine) == ("0022", 0, 0)


@in_node()
async def test_a_command_runs_inside_a_container_with_its_files_and_processes(bench):
    pod = await bench.pod()
    container = await bench.start(pod, "/bin/sh", "-c", "echo here >/tmp/mark; exec sleep 1000")
    await eventually(lambda: text(f"/proc/{container.pid}/comm") == "sleep\n")
    assert (await bench.enter(container, "cat", "/tmp/mark")).output == "here\n"
    assert (await bench.enter(container, "cat", "/proc/1/comm")).output == "sleep\n"
    assert (await bench.enter(container, "sh", "-c", "exit 9")).exit == Exit(9)
    with pytest.raises(StartFailed) as failed:
        await bench.enter(container, "nope")
    assert failed.value.exit_code == 127
    container.signal(signal.SIGKILL)
    await container.wait()
    with pytest.raises(StartFailed, match="not running"):
        await bench.enter(container, "true")


@in_node()
async def test_the_end_of_a_container_ends_commands_inside_it(bench):
    pod = await bench.pod()
    container = await bench.start(pod, "sleep", "1000")
    command = await container.enter(Command(argv=("sleep", "1000"), env=USUAL_ENV))
    container.signal(signal.SIGKILL)
    assert await command.wait() == Exit(137, signal.SIGKILL)


@in_node()
async def test_a_command_with_a_terminal_has_it_under_a_name_and_sees_its_size_change(bench):
    pod = await bench.pod()
    container = await bench.start(pod, "sleep", "1000")
    shell = "trap 'stty size' WINCH; tty; stty size; while true; do sleep 0.01; done"
    process = await container.enter(
        Command(argv=("sh", "-c", shell), env=USUAL_ENV, terminal=TerminalSize(30, 100))
    )
    seen = ""
    while "30 100" not in seen:
        seen += (await asyncio.to_thread(os.read, process.terminal, 4096)).decode()
    assert seen.startswith("/dev/pts/0")
    process.resize(40, 120)
    while "40 120" not in seen:
        seen += (await asyncio.to_thread(os.read, process.terminal, 4096)).decode()
    os.write(process.terminal, b"\x03")  # Ctrl-C: the terminal is the controlling one
    assert (await process.wait()).signal == signal.SIGINT


@in_node()
async def test_a_program_with_a_terminal_gets_no_other_descriptor(bench):
    pod = await bench.pod()
    container = await bench.start(pod, "sleep", "1000")
    listing = Command(argv=("ls", "-1", "/proc/self/fd"), env=USUAL_ENV, terminal=TerminalSize())
    process = await container.enter(listing)
    seen = ""
    while "3" not in seen:
        seen += (await asyncio.to_thread(os.read, process.terminal, 4096)).decode()
    assert seen.split() == ["0", "1", "2", "3"]
    assert await process.wait() == Exit(0)


@in_node()
async def test_streams_are_the_callers_descriptors_also_for_another_user(bench):
    pod = await bench.pod()
    (reading_in, writing_in), (reading_out, writing_out) = os.pipe(), os.pipe()
    container = await bench.start(
        pod, "sh", "-c", "cat >/dev/stdout; echo oops >&2",
        stdio=Stdio(stdin=reading_in, stdout=writing_out),
        command={"security": Security(uid=1234, gid=1234)},
    )  # fmt: skip
    os.close(reading_in)
    os.close(writing_out)
    os.write(writing_in, b"through the container\n")
    os.close(writing_in)
    assert await read_all(reading_out) == "through the container\n"
    assert await container.wait() == Exit(0)


@in_node()
async def test_cancelling_a_start_leaves_no_process(bench):
    pod = await bench.pod()
    for delay in (0, 0.001, 0.003, 0.006, 0.01):
        task = asyncio.ensure_future(bench.start(pod, "sleep", "1000"))
        await asyncio.sleep(delay)
        task.cancel()
        started = (await asyncio.gather(task, return_exceptions=True))[0]
        if not isinstance(started, BaseException):
            started.signal(signal.SIGKILL)
    await eventually(lambda: processes() == {1, os.getpid()})


@in_node()
async def test_fifty_containers_start_at_once(bench):
    pod = await bench.pod()
    results = await asyncio.gather(*(bench.shell(pod, f"echo {number}") for number in range(50)))
    assert [result.output for result in results] == [f"{number}\n" for number in range(50)]


@in_node()
async def test_what_cannot_be_a_container_is_refused_before_anything_starts(bench):
    pod = await bench.pod()
    for wanted in (
        {"mounts": (Mount(target="/proc/sys", source=Path("/usr")),)},
        {"mounts": (Mount(target="relative", source=Path("/usr")),)},
        {"mounts": (Mount(target="/a/../../b", source=Path("/usr")),)},
        {"mounts": (Mount(target="/", source=Path("/usr")),)},
        {"mounts": (Mount(target="/data", source=Path("/usr"), sub_path="../etc"),)},
        {"command": {"argv": ()}},
        {"command": {"cwd": "relative"}},
        {"command": {"env": {"A": "nul\0"}}},
    ):
        with pytest.raises(Refused):
            await bench.start(pod, "true", **wanted)
