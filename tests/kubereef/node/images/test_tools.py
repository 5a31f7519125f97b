"""The bash, wget and curl that images get where the machine lacks them."""

import http.server
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from kubereef.node.images.planning import TOOLS


class Answers(http.server.BaseHTTPRequestHandler):
    """success, errors, redirects, and an echo of what was sent."""

    def do_GET(self):
        match self.path:
            case "/healthz":
                self.answer(200, b"success")
            case "/moved":
                self.answer(302, b"elsewhere", {"Location": "/healthz"})
            case "/slow":
                threading.Event().wait(0.6)
                with suppress(BrokenPipeError):  # the client is gone by then
                    self.answer(200, b"late")
            case _:
                self.answer(503, b"sick")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.answer(200, f"{self.command} {self.headers['X-Test']} {body}".encode())

    do_PUT = do_POST  # noqa: N815 - http.server's names

    def do_HEAD(self):
        self.answer(200 if self.path == "/healthz" else 404, b"")

    def answer(self, status, body, headers=None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


def run(tool, *arguments, cwd=None):
    """The exit code and the output of a tool."""
    done = subprocess.run(
        [sys.executable, "-I", str(TOOLS[tool]), *arguments], capture_output=True, timeout=30, cwd=cwd
    )
    return done.returncode, done.stdout.decode()


def test_wget_runs_the_probe_of_a_ray_pod(server):
    assert run("wget", "--tries", "1", "-T", "2", "-q", "-O-", f"{server}/healthz") == (0, "success")


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        pytest.param("wget", ["-q", "-O-", "{server}/sick"], 8, id="wget: an error status"),
        pytest.param("wget", ["-q", "-O-", "-T", "0.2", "-t", "1", "{server}/slow"], 4, id="wget: too slow"),
        pytest.param("wget", ["-q", "-O-", "-t", "1", "http://127.0.0.1:1/"], 4, id="wget: nobody there"),
        pytest.param("wget", ["-q", "--nonsense", "{server}"], 2, id="wget: a wrong option"),
        pytest.param("wget", ["-q", "-O-", "file:///etc/passwd"], 2, id="wget: another scheme"),
        pytest.param("wget", ["-q", "--spider", "{server}/healthz"], 0, id="wget: only looking"),
        pytest.param("wget", ["-q", "--spider", "{server}/none"], 8, id="wget: looking in vain"),
        pytest.param("curl", ["-sf", "{server}/sick"], 22, id="curl: an error status with -f"),
        pytest.param("curl", ["-s", "--max-time", "0.2", "{server}/slow"], 28, id="curl: too slow"),
        pytest.param("curl", ["-s", "http://127.0.0.1:1/"], 7, id="curl: nobody there"),
        pytest.param("curl", ["-s", "http://no-such-host.invalid/"], 6, id="curl: an unknown host"),
        pytest.param("curl", ["--nonsense", "{server}"], 2, id="curl: a wrong option"),
        pytest.param("curl", ["-s", "file:///etc/passwd"], 1, id="curl: another scheme"),
    ],
)
def test_a_tool_ends_with_the_code_of_its_model(server, tool, arguments, code):
    assert run(tool, *(argument.format(server=server) for argument in arguments)) == (code, "")


def test_wget_saves_under_the_name_in_the_url(server, tmp_path):
    assert run("wget", "-q", f"{server}/healthz", cwd=tmp_path)[0] == 0
    assert (tmp_path / "healthz").read_text() == "success"


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        pytest.param(["-s", "{server}/healthz"], "success", id="prints the answer"),
        pytest.param(["-s", "{server}/sick"], "sick", id="prints an error's answer too"),
        pytest.param(["-s", "{server}/moved"], "elsewhere", id="does not follow by itself"),
        pytest.param(["-sL", "{server}/moved"], "success", id="follows with -L"),
        pytest.param(
            ["-s", "-H", "X-Test: a", "-d", "x=1", "-d", "y=2", "{server}/e"],
            "POST a x=1&y=2",
            id="posts data",
        ),
        pytest.param(
            ["-s", "-X", "PUT", "-H", "X-Test: b", "-d", "z", "{server}/e"], "PUT b z", id="another method"
        ),
        pytest.param(
            ["-s", "-o", "/dev/null", "-w", "%{{http_code}}", "{server}/sick"], "503", id="writes the status"
        ),
    ],
)
def test_curl_does_as_told(server, arguments, output):
    assert run("curl", *(argument.format(server=server) for argument in arguments)) == (0, output)


def test_curl_writes_into_a_file(server, tmp_path):
    assert run("curl", "-s", "-o", "out", f"{server}/healthz", cwd=tmp_path) == (0, "")
    assert (tmp_path / "out").read_text() == "success"


def bash(*arguments):
    return subprocess.run(
        [sys.executable, str(TOOLS["bash"]), *arguments], capture_output=True, text=True, timeout=20
    )


@pytest.mark.parametrize(
    "options",
    [["-c"], ["-lc"], ["-l", "-c"], ["--login", "-c"], ["-ec"], ["-euo", "pipefail", "-c"], ["-c", "--"]],
    ids=" ".join,
)
def test_bash_runs_a_command_with_the_options_that_scripts_use(options):
    said = bash(*options, 'ulimit -n; echo "$0 $1" && exit 3', "name", "word")
    assert said.stdout.splitlines()[1:] == ["name word"]
    assert said.returncode == 3


def test_bash_runs_a_file(tmp_path):
    script = tmp_path / "script"
    script.write_text('echo "$1"\n')
    assert bash(str(script), "-c").stdout == "-c\n"


def test_bash_keeps_options_that_every_shell_has():
    assert bash("-o", "errexit", "-c", "false; echo on").stdout == ""


def test_bash_names_an_option_that_it_cannot_have():
    said = bash("--rcfile", "x", "-c", "true")
    assert (said.returncode, "--rcfile" in said.stderr) == (2, True)
