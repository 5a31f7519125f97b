"""The submitter: its Job, its container, its command word by word, and what that command does when a shell runs it."""

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eagleray.gates import parse_gates
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import RayJob
from eagleray.manifests.settings import Settings
from eagleray.manifests.submitter import (
    OTHER_HEAD_EXIT_CODE,
    Expected,
    NotSubmittable,
    sidecar_submitter,
    submitter_job,
)
from tests.eagleray.world import raycluster, rayjob

SESSION = "session_2030-01-01_00-00-01_000003_1"
EXPECTED = Expected(SESSION, "2030-01-01T00:00:05Z")
RESTARTS = Settings(gates=parse_gates("SidecarSubmitterRestart=true"))


def stored(*, url="test-url", job_id="j-1", **spec):
    """Return a RayJob whose attempt has its names."""
    obj = rayjob()
    obj["metadata"]["uid"] = "u"
    obj["spec"] |= spec
    return RayJob({**obj, "status": {"jobId": job_id, "dashboardURL": url, "rayClusterName": "c"}})


def job_of(cluster=None, settings=None, expected=EXPECTED, **spec):
    return submitter_job(stored(**spec), Cluster(cluster or raycluster()), expected, settings or Settings())


def container_of(made):
    return made["spec"]["template"]["spec"]["containers"][0]


def command_of(**spec):
    (command,) = container_of(job_of(**spec))["args"]
    return command


def environment_of(container):
    return {one["name"]: one.get("value", one.get("valueFrom", "")) for one in container["env"]}


# --- the words

UNTIL = (
    "until python -c \"import urllib.request; r=urllib.request.urlopen('{health}', timeout=10);"
    " exit(0 if b'success' in r.read() else 1)\" >/dev/null 2>&1 ; do"
    ' echo "Waiting for Ray Dashboard GCS to become healthy at {address} ..." ; sleep 2 ; done ;'
)
STATUS = "if ! ray job status --address {address} j-1 >/dev/null 2>&1 ; then"
LOGS = "fi ; ray job logs --address {address} --follow j-1"


@pytest.mark.case("RJ-67", "RJ-69")
def test_the_command_of_a_job_is_made_of_these_words():
    address = "http://test-url"
    command = command_of()
    health, _, rest = command.partition(" if ! ")
    assert health == UNTIL.format(address=address, health=f"{address}/api/gcs_healthz")
    status, _, rest = f"if ! {rest}".partition(" python -c ")
    assert status == STATUS.format(address=address)
    check, _, rest = rest.partition(" ray job submit ")
    assert check.endswith("exit $code ; } ;")
    assert f'{address} "{SESSION}" 1893456005 || {{ code=$? ;' in check
    assert rest == (
        f"--address {address} --no-wait --submission-id j-1 -- python job.py ; {LOGS.format(address=address)}"
    )


@pytest.mark.case("RJ-69")
@pytest.mark.parametrize("url", ["test-url", "http://test-url"])
def test_an_address_has_one_scheme(url):
    made = container_of(job_of(url=url))
    assert "--address http://test-url " in made["args"][0]
    assert "http://http://" not in made["args"][0]
    assert environment_of(made)["RAY_DASHBOARD_ADDRESS"] == url


@pytest.mark.case("RJ-70")
def test_resources_are_given_in_order_and_quoted():
    command = command_of(
        entrypointNumCpus=1, entrypointNumGpus=0.5, entrypointResources='{"Custom_1": 1, "Custom_2": 5.5}'
    )
    assert (
        "--submission-id j-1 --entrypoint-num-cpus 1.000000 --entrypoint-num-gpus 0.500000"
        ' --entrypoint-resources "{\\"Custom_1\\": 1, \\"Custom_2\\": 5.5}" -- python job.py ;'
    ) in command


def test_an_environment_and_metadata_are_json_in_quotes():
    command = command_of(
        runtimeEnvYAML="pip: [a<b]\nenv_vars: {B: '1', A: '2'}",
        metadata={"z": "$HOME", "a": 'say "x"'},
        entrypoint="  python a.py \n",
    )
    environment = json.dumps({"env_vars": {"A": "2", "B": "1"}, "pip": ["a\u0000b"]}, separators=(",", ":"))
    environment = environment.replace("\\u0000", "\\u003c").replace("\\", "\\\\").replace('"', '\\"')
    assert f' --no-wait --runtime-env-json "{environment}" --metadata-json ' in command
    assert (
        ' --metadata-json "{\\"a\\":\\"say \\\\\\"x\\\\\\"\\",\\"z\\":\\"$HOME\\"}" --submission-id j-1 '
        in command
    )
    assert " -- python a.py ; fi ;" in command


@pytest.mark.case("RJ-71")
@pytest.mark.parametrize("version", ["2.5.0", "not-a-version", "2.5.9"])
def test_metadata_needs_a_ray_that_knows_it(version):
    with pytest.raises(NotSubmittable, match="rayVersion"):
        job_of(metadata={"a": "b"}, rayClusterSpec={"rayVersion": version})


@pytest.mark.case("RJ-71")
@pytest.mark.parametrize(
    "spec",
    [{}, {"rayClusterSpec": {"rayVersion": "2.6.0"}}, {"rayClusterSpec": None}],
    ids=["no version", "the oldest that knows it", "a chosen cluster"],
)
def test_metadata_is_passed_on(spec):
    assert (
        ' --metadata-json "{\\"a\\":\\"b\\"}" '
        in container_of(job_of(metadata={"a": "b"}, **spec))["args"][0]
    )


# --- the Job


@pytest.mark.case("RJ-67")
def test_the_job_without_a_template():
    made = job_of(raycluster(head={"container": {"image": "mine:1"}}))
    assert made["metadata"]["name"] == "j"
    labels = {
        "ray.io/originated-from-cr-name": "j",
        "ray.io/originated-from-crd": "RayJob",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }
    assert made["metadata"]["labels"] == made["spec"]["template"]["metadata"]["labels"] == labels
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    container = container_of(made)
    assert (container["name"], container["image"]) == ("ray-job-submitter", "mine:1")
    assert container["command"] == ["/bin/bash", "-ce", "--"]
    assert container["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "200Mi"},
    }
    assert environment_of(container) == {
        "PYTHONUNBUFFERED": "1",
        "RAY_DASHBOARD_ADDRESS": "test-url",
        "RAY_JOB_SUBMISSION_ID": "j-1",
    }


def test_a_login_shell_is_an_option():
    assert container_of(job_of(settings=Settings(login_shell=True)))["command"] == ["/bin/bash", "-cel", "--"]


@pytest.mark.case("RJ-68")
@pytest.mark.parametrize(
    ("given", "command", "generates"),
    [
        pytest.param({"command": ["user-command"], "args": ["a"]}, ["user-command"], False, id="a command"),
        pytest.param({"command": [], "args": ["a"]}, ["/bin/bash", "-ce", "--"], True, id="an empty command"),
        pytest.param({}, ["/bin/bash", "-ce", "--"], True, id="no command"),
    ],
)
def test_a_template_keeps_its_command_and_gets_the_environment(given, command, generates):
    template = {
        "metadata": {"labels": {"mine": "kept", "ray.io/originated-from-cr-name": "lost"}},
        "spec": {
            "containers": [{"name": "mine", "image": "i", "env": [{"name": "A", "value": "b"}], **given}]
        },
    }
    made = job_of(submitterPodTemplate=template)
    container = container_of(made)
    assert container["command"] == command
    assert ("ray job submit" in container["args"][0]) is generates
    assert list(environment_of(container)) == [
        "A",
        *([] if generates else ["EAGLERAY_HEAD_SESSION", "EAGLERAY_REQUESTED_AT"]),
        "PYTHONUNBUFFERED",
        "RAY_DASHBOARD_ADDRESS",
        "RAY_JOB_SUBMISSION_ID",
    ]
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert (labels["mine"], labels["ray.io/originated-from-cr-name"]) == ("kept", "j")
    assert "restartPolicy" not in made["spec"]["template"]["spec"]


# --- the sidecar


def sidecar(settings=None, port=None):
    ports = [{"name": "dashboard", "containerPort": port}] if port else []
    described = raycluster(head={"container": {"ports": ports}})
    return sidecar_submitter(stored(submissionMode="SidecarMode"), Cluster(described), settings or Settings())


@pytest.mark.case("RJ-72")
@pytest.mark.parametrize("port", [None, 9000])
def test_a_sidecar_asks_and_submits_beside_it(port):
    number = port or 8265
    address = f"http://127.0.0.1:{number}"
    container = sidecar(port=port)
    assert container["args"] == [
        UNTIL.format(address=address, health=f"http://localhost:{number}/api/gcs_healthz")
        + f" ray job submit --address {address} --submission-id j-1 -- python job.py ;"
    ]
    assert "restartPolicy" not in container
    assert environment_of(container)["RAY_DASHBOARD_ADDRESS"] == ""


@pytest.mark.case("RJ-72")
def test_a_sidecar_that_restarts_looks_whether_it_has_submitted():
    address = "http://127.0.0.1:9000"
    container = sidecar(RESTARTS, 9000)
    assert container["restartPolicy"] == "OnFailure"
    assert container["args"][0].endswith(
        f"{STATUS.format(address=address)} ray job submit --address {address} --no-wait"
        f" --submission-id j-1 -- python job.py ; {LOGS.format(address=address)}"
    )


# --- what a shell makes of it

FAKE_RAY = """#!/bin/sh
echo "$@" >> {log}
case "$2" in
status) test -e {known} ;;
submit) touch {known} ;;
logs) test -e {known} ;;
esac
"""


class HeadServer(ThreadingHTTPServer):
    """Where a head answers, and what it was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Head)
        self.asked: list[tuple[str, str | None]] = []
        self.session = SESSION


class Head(BaseHTTPRequestHandler):
    """A head that is healthy and tells its session to whoever has the token."""

    server: HeadServer

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("x-ray-authorization")))
        body = (
            b"success"
            if self.path == "/api/gcs_healthz"
            else json.dumps({"session_name": self.server.session}).encode()
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def head():
    server = HeadServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


async def run(tmp_path, head, expected, **environment):
    """Run the command as the submitter's container does; returns its exit code and what it had Ray do."""
    log, known = tmp_path / "log", tmp_path / "known"
    ray = tmp_path / "ray"
    ray.write_text(FAKE_RAY.format(log=log, known=known))
    ray.chmod(0o755)
    url = f"127.0.0.1:{head.server_port}"
    made = container_of(job_of(url=url, expected=expected, entrypoint="python job.py"))
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        *made["command"],
        *made["args"],
        env={"PATH": path, "TZ": "UTC", **environment},
        stdout=asyncio.subprocess.DEVNULL,
    )
    code = await process.wait()
    return code, [line.split()[1] for line in log.read_text().splitlines()]


UNKNOWN = Expected("", "2030-01-01T00:00:05Z")


@pytest.mark.case("RJ-67", "RJ-93")
@pytest.mark.parametrize(
    ("session", "expected", "code"),
    [
        pytest.param(SESSION, EXPECTED, 0, id="the head that was meant"),
        pytest.param(
            "session_2030-01-01_00-00-09_000003_1", EXPECTED, OTHER_HEAD_EXIT_CODE, id="another head"
        ),
        pytest.param(SESSION, UNKNOWN, 0, id="a head that had begun by then"),
        pytest.param(
            "session_2030-01-01_00-00-09_000003_1",
            UNKNOWN,
            OTHER_HEAD_EXIT_CODE,
            id="a head that began later",
        ),
    ],
)
async def test_a_shell_submits_to_the_head_that_was_meant_and_to_no_other(
    tmp_path, head, session, expected, code
):
    head.session = session
    told = ["status", "submit", "logs"] if code == 0 else ["status"]
    assert await run(tmp_path, head, expected) == (code, told)


@pytest.mark.case("RJ-67")
async def test_a_shell_that_finds_the_job_only_follows_it(tmp_path, head):
    (tmp_path / "known").touch()
    head.session = "session_2030-01-01_00-00-09_000003_1"
    assert await run(tmp_path, head, EXPECTED) == (0, ["status", "logs"])


@pytest.mark.case("RJ-76")
async def test_the_check_shows_the_token(tmp_path, head):
    await run(tmp_path, head, EXPECTED, RAY_AUTH_TOKEN="secret")
    assert ("/api/version", "Bearer secret") in head.asked


def test_every_entrypoint_is_handed_over_as_it_is():
    for entrypoint in ("python -c 'print(1)'", "echo a && echo b", "a; b"):
        assert f" -- {entrypoint} ; fi ; " in command_of(entrypoint=entrypoint)
