"""`python -m kubereef` as its users start it: a process of its own, spoken to over HTTPS."""

import json
import os
import re
import shutil
import signal
import ssl
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml

MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE = 30


class Process:
    """A running Kubereef."""

    def __init__(self, *options, **environment):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kubereef", "--listen", "127.0.0.1:0", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.search(r"ready at (https://127\.0\.0\.1:\d+) \(kubeconfig: (.*)\)", self.line)
        if found is None:
            raise AssertionError(f"not ready: {self.line}{self.process.communicate(timeout=PATIENCE)[1]}")
        self.url, self.kubeconfig = found[1], Path(found[2])

    def send(self, method, path, body=None, **headers):
        """Send a request with the administrator's token; return status and answer."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        context = ssl.create_default_context(cafile=str(self.kubeconfig.parent / "ca.crt"))
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **headers}
        headers.setdefault("Authorization", f"Bearer {config['users'][0]['user']['token']}")
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.loads(refusal.read())

    def stop(self, number=signal.SIGTERM):
        """End it and return its exit code and what it has written since."""
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, output, errors


@pytest.fixture
def start():
    started = []

    def run(*options, **environment):
        started.append(Process(*options, **environment))
        return started[-1]

    yield run
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def modes(directory):
    return {
        str(path.relative_to(directory)): stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*")
    }


def test_it_keeps_objects_and_credentials_from_one_run_to_the_next(start, tmp_path):
    directory = tmp_path / "data"
    first = start("--data-dir", directory, "--no-controllers")
    assert first.line.count("\n") == 1
    status, made = first.send("POST", MAPS, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    assert status == 201
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert first.send("POST", accounts, {"metadata": {"name": "robot"}})[0] == 201
    robot = first.send("POST", f"{accounts}/robot/token", token)[1]["status"]["token"]
    files = modes(directory)
    assert {mode for name, mode in files.items() if (directory / name).is_file()} == {0o600}
    assert files["pki"] == stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {"admin.kubeconfig", "ca.crt", "tokens.csv"} <= set(files)
    assert first.stop() == (0, "", "")

    second = start("--data-dir", directory, "--no-controllers")
    assert second.send("GET", f"{MAPS}/a") == (200, made)
    who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    status, review = second.send("POST", who, {}, Authorization=f"Bearer {robot}")
    assert (status, review["status"]["userInfo"]["username"]) == (201, "system:serviceaccount:default:robot")
    assert second.stop(signal.SIGINT) == (0, "", "")


def test_a_second_process_on_the_same_directory_is_refused(start, tmp_path):
    start("--data-dir", tmp_path / "data", "--no-controllers")
    for mode in ([], ["--in-memory"]):
        again = subprocess.run(
            [
                sys.executable,
                "-m",
                "kubereef",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                tmp_path / "data",
                *mode,
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert again.returncode == 1
        assert again.stdout == ""
        assert again.stderr == (
            f"kubereef: another process uses {tmp_path / 'data'}; stop it or choose another data directory\n"
        )


def test_credentials_that_cannot_be_read_are_said_plainly(tmp_path):
    (tmp_path / "tokens.csv").write_text("only-a-token\n")
    run = subprocess.run(
        [sys.executable, "-m", "kubereef", "--in-memory", "--data-dir", tmp_path, "--listen", "127.0.0.1:0"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert run.returncode == 1
    assert run.stderr == f"kubereef: {tmp_path / 'tokens.csv'}, line 1: token, user and uid are needed\n"


def test_a_taken_port_is_said_plainly(start, tmp_path):
    first = start("--in-memory", "--no-controllers")
    again = subprocess.run(
        [sys.executable, "-m", "kubereef", "--in-memory", "--listen", first.url.removeprefix("https://")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert again.returncode == 1
    assert "address already in use" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param([], "--data-dir DIR, or --in-memory", id="nowhere to keep the objects"),
        pytest.param(["--in-memory", "--listen", "localhost"], "is not HOST:PORT", id="no port"),
        pytest.param(["--in-memory", "--service-cidr", "10.96.0.1/16"], "has host bits set", id="no network"),
    ],
)
def test_options_that_make_no_sense_are_explained(options, message):
    run = subprocess.run(
        [sys.executable, "-m", "kubereef", *options], capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 2
    assert message in run.stderr


def test_in_memory_nothing_is_left_behind(start, tmp_path):
    one = start("--in-memory", TMPDIR=str(tmp_path))
    assert one.kubeconfig.is_relative_to(tmp_path)
    assert one.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert one.send("GET", "/api/v1/namespaces/default")[0] == 200
    assert one.stop() == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_in_memory_the_credentials_may_be_kept(start, tmp_path):
    one = start("--in-memory", "--no-controllers", "--data-dir", tmp_path)
    assert one.kubeconfig == tmp_path / "admin.kubeconfig"
    assert one.stop()[0] == 0
    assert not list(tmp_path.glob("*.db*"))
    again = start("--in-memory", "--no-controllers", "--data-dir", tmp_path)
    assert again.send("GET", "/api/v1/namespaces/default")[0] == 200


def test_nobody_gets_in_without_credentials_or_is_believed_without_the_authority(start):
    one = start("--in-memory", "--no-controllers")
    assert one.send("GET", "/api/v1/namespaces", Authorization="Bearer wrong")[0] == 401
    assert one.send("GET", "/api/v1/namespaces", Authorization="")[0] == 403
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(f"{one.url}/livez", timeout=PATIENCE)


def test_stopping_it_ends_a_watch_and_leaves_no_child(start):
    one = start("--in-memory", "--no-controllers")
    children = Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").read_text().split()
    assert children == []
    config = yaml.safe_load(one.kubeconfig.read_text())
    context = ssl.create_default_context(cafile=str(one.kubeconfig.parent / "ca.crt"))
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    request = urllib.request.Request(f"{one.url}{MAPS}?watch=true", headers=headers)
    with urllib.request.urlopen(request, context=context, timeout=PATIENCE) as watch:
        assert one.stop() == (0, "", "")
        assert watch.read() == b""


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on the PATH")
def test_kubectl_works_with_the_kubeconfig(start, tmp_path):
    one = start("--in-memory", "--no-controllers")

    def kubectl(*arguments):
        command = ["kubectl", "--kubeconfig", one.kubeconfig, "--cache-dir", tmp_path, *arguments]
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert run.returncode == 0, run.stderr
        return run.stdout

    assert "v1.36." in kubectl("version")
    assert kubectl("get", "ns", "-o", "name").split() == [
        "namespace/default",
        "namespace/kube-node-lease",
        "namespace/kube-public",
        "namespace/kube-system",
    ]
    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    assert kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "kubernetes-admin"
    kubectl("create", "serviceaccount", "robot")
    assert kubectl("create", "token", "robot").count(".") == 2
    as_robot = ["--as", "system:serviceaccount:default:robot"]
    kubectl("create", "rolebinding", "robot", "--clusterrole=view", "--serviceaccount=default:robot")
    assert kubectl("auth", "can-i", "list", "pods", *as_robot) == "yes\n"
    assert "selfsubjectreviews" in kubectl("auth", "can-i", "--list", *as_robot)
