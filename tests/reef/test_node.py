"""Pods of a real node, as kubectl's users meet them: logs, exec, attach, cp, port-forward."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import time
import urllib.request

import pytest

from tests.kubereef.node.machine.realnode import NodeReef, require_node
from tests.reef.kubectl import Kubectl

pytestmark = pytest.mark.heavy

PATIENCE = 30.0
# Counts until it is told to stop, answers on port 8000, and repeats what it is told.
SCRIPT = """
import http.server, signal, sys, threading, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello from the Pod\\n")
    def log_message(self, *_): pass
def count():
    number = 0
    while True:
        number += 1
        print("tick", number, flush=True)
        time.sleep(0.3)
threading.Thread(target=http.server.HTTPServer(("127.0.0.1", 8000), Hello).serve_forever, daemon=True).start()
threading.Thread(target=count, daemon=True).start()
for line in sys.stdin:
    print("heard", line.strip(), flush=True)
while True: time.sleep(1)
"""


@pytest.fixture(scope="module")
def reef(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reef")
    require_node(directory)
    with NodeReef(directory, "--in-memory") as server:
        yield server
        server.stop()


@pytest.fixture(scope="module")
def kubectl(reef, kubectl_cache):
    """Kubectl in a namespace with one Pod, `web`."""
    kubectl = Kubectl(reef.kubeconfig, kubectl_cache, "default")
    container = {
        "name": "app",
        "image": "python:3.11",
        "command": ["python3", "-c", SCRIPT],
        "stdin": True,
    }
    helper = {"name": "helper", "image": "busybox", "command": ["sh", "-c", "echo helping; exec sleep 1000"]}
    spec = {"containers": [container, helper], "terminationGracePeriodSeconds": 2}
    kubectl(
        "create",
        "-f",
        "-",
        given={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec},
    )
    kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=25s")
    return kubectl


def lines_of(process, count):
    """Return the next lines of a program that goes on."""
    return [process.stdout.readline().rstrip("\n") for _ in range(count)]


@pytest.fixture
def starts(kubectl):
    """Starts a command of kubectl that is ended with the test."""
    started = []

    def start(*arguments, **options):
        process = subprocess.Popen(
            [*kubectl._command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=PATIENCE)


class Terminal:
    """kubectl on a terminal of its own."""

    def __init__(self, kubectl, *arguments):
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            [*kubectl._command, *arguments], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def write(self, text):
        os.write(self._master, text.encode())

    def resize(self, rows, columns):
        """Be of another size; kubectl is told as programs on a terminal are."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._process.send_signal(signal.SIGWINCH)

    def read_until(self, text):
        """Return what was shown, up to a text."""
        shown, deadline = "", time.monotonic() + PATIENCE
        while text not in shown:
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{text!r} was not shown: {shown!r}"
            shown += os.read(self._master, 4096).decode()
        return shown

    def wait(self):
        return self._process.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_why):
        self._process.kill()
        self._process.wait()
        os.close(self._master)


def test_logs_are_shown_from_their_end(kubectl):
    assert re.fullmatch(r"(tick|heard) \S+\n", kubectl("logs", "web", "-c", "app", "--tail=1"))


def test_logs_carry_times(kubectl):
    (line,) = kubectl("logs", "web", "-c", "helper", "--timestamps").splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z helping", line)


def test_logs_of_all_containers_are_shown_at_once(kubectl):
    said = kubectl("logs", "web", "--all-containers", "--prefix", "--tail=2")
    assert re.search(r"^\[pod/web/app\] (tick|heard) ", said, re.MULTILINE)
    assert "[pod/web/helper] helping\n" in said


def test_logs_are_shown_since_a_moment(kubectl):
    def stamped(*flags):
        return kubectl("logs", "web", "-c", "app", "--timestamps", *flags).splitlines()

    def second(line):
        return line[: len("2030-01-01T00:00:00")]

    everything = stamped()
    while second(everything[0]) == second(everything[-1]):
        everything = stamped()
    moment = second(everything[-1])
    recent = [line for line in everything if second(line) >= moment]
    assert stamped(f"--since-time={moment}Z")[: len(recent)] == recent
    assert everything[0] not in stamped("--since=1s")
    assert kubectl("logs", "web", "-c", "helper", "--since-time=2100-01-01T00:00:00Z") == ""


def test_logs_are_cut_to_a_number_of_bytes(kubectl):
    assert kubectl("logs", "web", "-c", "helper", "--limit-bytes=4") == "help"


def test_a_pod_of_several_containers_shows_the_log_of_the_first(kubectl):
    assert "tick 1\n" in kubectl("logs", "web")


def test_a_container_that_is_not_there_has_no_log(kubectl):
    assert "container nobody is not valid for pod web" in kubectl("logs", "web", "-c", "nobody", code=1)


def test_logs_are_followed(starts):
    first, second, third = lines_of(starts("logs", "-f", "web", "-c", "app", "--tail=0"), 3)
    numbers = [int(line.removeprefix("tick ")) for line in (first, second, third)]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_exec_returns_output_and_exit_code(kubectl):
    assert kubectl("exec", "web", "-c", "helper", "--", "sh", "-c", "echo $HOSTNAME") == "web\n"
    said = kubectl("exec", "web", "-c", "helper", "--", "sh", "-c", "echo no >&2; exit 7", code=7)
    assert "no\n" in said


@pytest.fixture(params=["true", "false"], ids=["WebSocket", "SPDY"])
def transport(request):
    """What kubectl speaks: today's way, and the one of before."""
    names = ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "KUBECTL_PORT_FORWARD_WEBSOCKETS")
    return {**os.environ, **dict.fromkeys(names, request.param)}


def test_exec_passes_input_to_its_end(starts, transport):
    command = ("exec", "-i", "web", "-c", "helper", "--", "wc", "-c")
    process = starts(*command, stdin=subprocess.PIPE, env=transport)
    said, _ = process.communicate("x" * 200_000, timeout=PATIENCE)
    assert said.strip() == "200000"


def test_exec_on_a_terminal_is_a_conversation(kubectl):
    with Terminal(kubectl, "exec", "-it", "web", "-c", "helper", "--", "sh") as terminal:
        terminal.write("echo $((20 + 22)); tty\n")
        terminal.read_until("/dev/pts/")
        terminal.write("exit 5\n")
        assert terminal.wait() == 5


def test_a_terminal_is_as_large_as_ones_own_and_grows_with_it(kubectl):
    with Terminal(kubectl, "exec", "-it", "web", "-c", "helper", "--", "sh") as terminal:
        terminal.resize(31, 91)
        terminal.write(
            "while ! stty size | grep '31 91'; do sleep 0.1; done; trap 'stty size' WINCH; echo rea''dy\n"
        )
        terminal.read_until("ready")
        terminal.resize(41, 121)
        terminal.write("while ! stty size | grep '41 121'; do sleep 0.1; done; echo gro''wn\n")
        terminal.read_until("grown")
        terminal.write("exit\n")
        assert terminal.wait() == 0


def test_ctrl_c_ends_what_runs_on_the_terminal(kubectl):
    script = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.1; done"
    with Terminal(kubectl, "exec", "-it", "web", "-c", "helper", "--", "sh", "-c", script) as terminal:
        terminal.read_until("ready")
        terminal.write("\x03")
        terminal.read_until("caught")
        assert terminal.wait() == 3


def test_attach_on_a_terminal_joins_the_containers_own(kubectl):
    script = 'while read line; do test "$line" = end && exit 4; echo heard $line of $(stty size); done'
    container = {
        "name": "app",
        "image": "busybox",
        "command": ["sh", "-c", script],
        "stdin": True,
        "tty": True,
    }
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talks"}, "spec": spec}
    kubectl("create", "-f", "-", given=pod)
    kubectl("wait", "--for=condition=Ready", "pod/talks", "--timeout=25s")
    with Terminal(kubectl, "attach", "-it", "talks") as terminal:
        terminal.resize(33, 93)
        deadline = time.monotonic() + PATIENCE
        shown = ""
        while "of 33 93" not in shown:
            assert time.monotonic() < deadline, shown
            terminal.write("word\n")
            shown += terminal.read_until("heard word of ")
        terminal.write("end\n")
        terminal.wait()
    kubectl("wait", "--for=jsonpath={.status.phase}=Failed", "pod/talks", "--timeout=25s")
    kubectl("delete", "pod", "talks", "--now")


def test_attach_joins_the_containers_own_streams(starts):
    process = starts("attach", "-i", "web", "-c", "app", stdin=subprocess.PIPE)
    process.stdin.write("word\n")
    process.stdin.flush()
    deadline = time.monotonic() + PATIENCE
    while "heard word" not in (line := process.stdout.readline()):
        assert time.monotonic() < deadline, line


def test_files_are_copied_both_ways(kubectl, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(300_000))
    kubectl("cp", str(there), "web:/tmp/copied", "-c", "helper")
    kubectl("cp", "web:/tmp/copied", str(back), "-c", "helper")
    assert back.read_bytes() == there.read_bytes()


def test_directories_are_copied_both_ways(kubectl, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    (there / "deep").mkdir(parents=True)
    (there / "deep" / "file").write_text("word")
    (there / "script").write_text("#!/bin/sh\n")
    (there / "script").chmod(0o755)
    kubectl("cp", str(there), "web:/tmp/tree", "-c", "helper")
    look = "cat /tmp/tree/deep/file && test -x /tmp/tree/script"
    assert kubectl("exec", "web", "-c", "helper", "--", "sh", "-c", look) == "word"
    kubectl("cp", "web:/tmp/tree", str(back), "-c", "helper")
    assert (back / "deep" / "file").read_text() == "word"


def test_ports_are_forwarded_also_to_what_listens_on_loopback(starts, transport):
    process = starts("port-forward", "pod/web", ":8000", env=transport)
    (line, *_) = lines_of(process, 1)
    port = re.search(r"127\.0\.0\.1:(\d+) -> 8000", line)
    assert port is not None, line
    for _ in range(3):
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/", timeout=PATIENCE) as answer:
            assert answer.read() == b"hello from the Pod\n"


def test_a_port_where_nobody_listens_is_told(starts):
    process = starts("port-forward", "pod/web", ":8001")
    (line, *_) = lines_of(process, 1)
    port = re.search(r"127\.0\.0\.1:(\d+) -> 8001", line)
    assert port is not None, line
    with socket.create_connection(("127.0.0.1", int(port[1])), timeout=PATIENCE) as connection:
        assert connection.recv(1) == b""
    shown = ""
    while "error forwarding port 8001" not in shown:
        shown += (text := process.stdout.readline())
        assert text, shown


def test_the_log_of_the_run_before_is_kept(kubectl):
    container = {"name": "app", "image": "busybox", "command": ["sh", "-c", "echo run; exit 1"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "again"},
        "spec": {"containers": [container]},
    }
    kubectl("create", "-f", "-", given=pod)
    jsonpath = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
    kubectl("wait", jsonpath, "pod/again", "--timeout=25s")
    assert kubectl("logs", "again", "--previous") == "run\n"
    kubectl("delete", "pod", "again", "--now")


def test_a_deleted_pod_is_gone_when_kubectl_says_so(kubectl):
    container = {"name": "app", "image": "busybox", "command": ["sleep", "1000"]}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "short"}, "spec": spec}
    kubectl("create", "-f", "-", given=pod)
    kubectl("wait", "--for=condition=Ready", "pod/short", "--timeout=25s")
    kubectl("delete", "pod", "short")
    assert "short" not in kubectl("get", "pods")
