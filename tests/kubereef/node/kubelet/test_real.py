"""Pods run for real, one for each thing that a manifest can ask for; all of them on one node, at the same time."""

import tempfile
from pathlib import Path

import pytest

from tests.kubereef.node.kubelet import inside
from tests.kubereef.node.sandbox.inside import machine

QUIET = {"automountServiceAccountToken": False}


def shell(script, name="app", **fields):
    return {"name": name, "image": "host", "command": ["/bin/sh", "-c", script], **fields}


def once(script, *, volumes=(), **fields):
    """Return a Pod with one container that runs a script."""
    return {"spec": {**QUIET, "containers": [shell(script, **fields)], "volumes": list(volumes)}}


def field(name, path):
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
FILL = "dd if=/dev/zero of=/memory/big bs=1M count=9"
ASK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8080/').status)"
LOOP = "while true; do sleep 0.05; done"
SERVER = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if os.path.exists("/tmp/up") or self.path != "/ready" else 503)
        self.end_headers()
    def log_message(self, *_): pass
open("/tmp/up", "w").close()
http.server.HTTPServer(("", 8080), Handler).serve_forever()
"""

TABLE = {
    "exits": once("exit 3"),
    "logs": once("echo out; echo err >&2; printf unfinished"),
    "not-found": {"spec": {**QUIET, "containers": [{"name": "app", "image": "host", "command": ["nope"]}]}},
    "env": once(
        'echo "$A $B $COLOR $PASSWORD $NODE $IP $CPU $FROM_size $HOSTNAME"; pwd',
        env=[
            {"name": "A", "value": "a"},
            {"name": "B", "value": "$(A)b $$(A)"},
            {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "config", "key": "color"}}},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "secret", "key": "password"}}},
            field("NODE", "spec.nodeName"),
            field("IP", "status.podIP"),
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        ],
        envFrom=[{"prefix": "FROM_", "configMapRef": {"name": "config"}}],
        resources={"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}},
        workingDir="/somewhere/new",
    ),
    "config": once(
        "cat /config/color /one; ls -A /config; cat /secret/password; touch /config/x",
        volumes=[
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "secret", "secret": {"secretName": "secret"}},
        ],
        volumeMounts=[
            {"name": "config", "mountPath": "/config"},
            {"name": "config", "mountPath": "/one", "subPath": "size"},
            {"name": "secret", "mountPath": "/secret"},
        ],
        securityContext={"runAsUser": 1234},
    ),
    "token": {"spec": {"containers": [shell(f"cd {ACCOUNT}; cat namespace ca.crt; ls; wc -c < token")]}},
    "empty-dirs": {
        "spec": {
            **QUIET,
            "initContainers": [
                shell(
                    "echo from init > /disk/file; echo memory > /memory/file",
                    "init",
                    volumeMounts=[
                        {"name": "disk", "mountPath": "/disk"},
                        {"name": "memory", "mountPath": "/memory"},
                    ],
                )
            ],
            "containers": [
                shell(
                    f"cat /disk/file /memory/sub/../file; df /memory | tail -1; {FILL}",
                    volumeMounts=[
                        {"name": "disk", "mountPath": "/disk"},
                        {"name": "memory", "mountPath": "/memory"},
                        {"name": "memory", "mountPath": "/memory/sub", "subPath": "sub"},
                    ],
                )
            ],
            "volumes": [
                {"name": "disk", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
            ],
        }
    },
    "identity": {
        "spec": {
            **QUIET,
            "securityContext": {"runAsUser": 1234, "fsGroup": 4321, "supplementalGroups": [99]},
            "containers": [
                shell(
                    "exec 2>&1; id -u; id -g; id -G; touch /v/file; stat -c %g /v/file; touch /x; "
                    "grep NoNewPrivs /proc/self/status",
                    securityContext={"readOnlyRootFilesystem": True, "allowPrivilegeEscalation": False},
                    volumeMounts=[{"name": "v", "mountPath": "/v"}],
                )
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
        }
    },
    "message": once("echo last words > /dev/termination-log; exit 4", securityContext={"runAsUser": 1234}),
    "hosts": {
        "spec": {
            **QUIET,
            "hostname": "web",
            "subdomain": "sub",
            "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["other"]}],
            "dnsConfig": {"searches": ["more.example"], "options": [{"name": "ndots", "value": "2"}]},
            "containers": [shell("hostname; cat /etc/hostname /etc/hosts /etc/resolv.conf")],
        }
    },
    "shared-network": {
        "spec": {
            **QUIET,
            "initContainers": [
                {
                    **shell("", "server"),
                    "command": ["python3", "-c", SERVER],
                    "restartPolicy": "Always",
                    "startupProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
                },
            ],
            "containers": [{**shell(""), "command": ["python3", "-c", ASK]}],
        }
    },
    "ready": {
        **once("", resources={"requests": {"memory": "10Mi"}}),
        "until": "ready",
        "enter": ["sh", "-c", "echo entered as $(id -u) $EXTRA; exit 5"],
    },
    "alive": {
        "spec": {
            **QUIET,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                shell(
                    "trap 'exit 9' TERM; test -e /v/again || { sleep 1; touch /v/again /v/sick; }; "
                    "while true; do sleep 0.1; done",
                    livenessProbe={
                        "exec": {"command": ["sh", "-c", "if test -e /v/sick; then rm /v/sick; exit 1; fi"]},
                        "periodSeconds": 1,
                        "failureThreshold": 1,
                    },
                    volumeMounts=[{"name": "v", "mountPath": "/v"}],
                )
            ],
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
        "until": "restarted",
    },
    "hooks": once(
        "sleep 0.5; cat /v/started",
        lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo the hook ran > /v/started"]}}},
        volumes=[{"name": "v", "emptyDir": {}}],
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
    ),
    "stubborn": {
        "spec": {**QUIET, "terminationGracePeriodSeconds": 1, "containers": [shell(f"trap '' TERM; {LOOP}")]},
        "until": "ready",
    },
    "polite": {
        "spec": {
            **QUIET,
            "terminationGracePeriodSeconds": 30,
            # Ready once it handles the signal: process 1 gets none that it does not.
            "containers": [
                shell(
                    f"trap 'exit 0' TERM; touch /tmp/up; {LOOP}",
                    readinessProbe={"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1},
                )
            ],
        },
        "until": "ready",
    },
    "out-of-memory": once(
        "python3 -c 'x = bytearray(300 << 20)'", resources={"limits": {"memory": "40Mi", "cpu": "1"}}
    ),
    "privileged": once("true", securityContext={"privileged": True}),
    "non-root": once("true", securityContext={"runAsNonRoot": True}),
    "terminal": once("test -t 0 && test -t 1 && echo a terminal; echo $TERM", tty=True, stdin=True),
    "one-pid-namespace": {
        "spec": {
            **QUIET,
            "shareProcessNamespace": True,
            "containers": [shell("sleep 0.3; ls /proc | grep -c '^[0-9]'"), shell("sleep 1", "other")],
        }
    },
}
TABLE["ready"]["spec"]["containers"][0] |= {
    "command": ["python3", "-c", SERVER],
    "env": [{"name": "EXTRA", "value": "with its environment"}],
    "readinessProbe": {"httpGet": {"path": "/ready", "port": "web"}, "periodSeconds": 1},
    "ports": [{"name": "web", "containerPort": 8080}],
}
TABLE["non-root"]["spec"]["activeDeadlineSeconds"] = 2


@pytest.fixture(scope="module")
def outcomes():
    if why := machine().obstacle():
        pytest.skip(f"no Pod can run here: {why}")
    if not Path("/usr/bin/python3").exists():
        pytest.skip("the image of these tests is the host's /usr, and there is no /usr/bin/python3")
    work = Path(tempfile.mkdtemp(prefix="kubelet-"))
    try:
        work.chmod(0o755)
        yield inside.outcomes(TABLE, work)
    finally:
        inside.remove(work)


def app(outcome, name="app"):
    statuses = [*outcome["status"]["containerStatuses"], *outcome["status"].get("initContainerStatuses", ())]
    return next(one for one in statuses if one["name"] == name)


def ended(outcome, name="app"):
    return app(outcome, name)["state"]["terminated"]


def test_an_exit_code_is_the_pods_failure(outcomes):
    assert outcomes["exits"]["status"]["phase"] == "Failed"
    assert (ended(outcomes["exits"])["exitCode"], ended(outcomes["exits"])["reason"]) == (3, "Error")


def test_output_is_logged_the_last_line_without_an_end_too(outcomes):
    assert sorted(outcomes["logs"]["logs"]["app"].split()) == ["err", "out", "unfinished"]
    assert outcomes["logs"]["status"]["phase"] == "Succeeded"


def test_a_command_that_is_not_there_cannot_run(outcomes):
    found = ended(outcomes["not-found"])
    assert (found["exitCode"], found["reason"]) == (127, "ContainerCannotRun")
    assert "executable file not found in $PATH" in found["message"]


def test_the_environment_comes_from_everywhere(outcomes):
    found = outcomes["env"]
    address = found["status"]["podIP"]
    assert found["logs"]["app"].splitlines() == [
        f"a ab $(A) blue hush node-1 {address} 500 7 env",
        "/somewhere/new",
    ]


def test_mounted_config_maps_and_secrets_can_be_read_and_not_written(outcomes):
    text = outcomes["config"]["logs"]["app"]
    assert text.startswith("blue7")
    assert {"color", "size", "..data"} <= set(text.split())
    assert "hush" in text
    assert "Read-only file system" in text


def test_a_pod_has_the_token_of_its_account(outcomes):
    first, *names, size = outcomes["token"]["logs"]["app"].split()
    assert first == "defaultpemca.crt"
    assert names == ["namespace", "token"]
    assert int(size) > 300


def test_empty_dirs_are_shared_by_containers_and_those_in_memory_have_their_size(outcomes):
    found = outcomes["empty-dirs"]
    lines = found["logs"]["app"].splitlines()
    assert lines[:2] == ["from init", "memory"]
    assert lines[2].split()[1] == "8192"
    assert "No space left on device" in found["logs"]["app"]


def test_a_container_runs_as_whom_its_pod_says(outcomes):
    lines = outcomes["identity"]["logs"]["app"].splitlines()
    assert lines[0] == "1234"
    assert lines[1] == "100"  # of the image's /etc/passwd
    assert set(lines[2].split()) == {"100", "99", "4321", "777"}
    assert lines[3] == "4321"
    assert any("Read-only file system" in line for line in lines)
    assert lines[-1].split() == ["NoNewPrivs:", "1"]
    assert app(outcomes["identity"])["state"]["terminated"]["exitCode"] == 0


def test_the_last_words_of_a_container_are_in_its_status(outcomes):
    assert ended(outcomes["message"])["message"] == "last words\n"
    assert ended(outcomes["message"])["exitCode"] == 4


def test_names_are_looked_up_as_the_pod_says(outcomes):
    found = outcomes["hosts"]
    text = found["logs"]["app"]
    assert text.splitlines()[:2] == ["web", "web"]
    assert f"{found['status']['podIP']}\tweb.sub.default.svc.cluster.local\tweb" in text
    assert "10.1.2.3\tother" in text
    assert "nameserver 10.96.0.10" in text
    assert "more.example" in text
    assert "ndots:2" in text


def test_containers_of_a_pod_share_its_network_and_a_sidecar_is_there_first(outcomes):
    found = outcomes["shared-network"]
    assert found["logs"]["app"] == "200\n"
    assert found["status"]["phase"] == "Succeeded"
    assert ended(found, "server")["exitCode"] in (
        0,
        137,
        143,
    )  # ended with the Pod, which its exit is no failure of


def test_a_pod_is_ready_when_it_answers_and_commands_run_inside(outcomes):
    found = outcomes["ready"]
    assert app(found)["ready"] is True
    assert found["entered"] == "5 entered as 0 with its environment\n"
    assert found["status"]["qosClass"] == "Burstable"


def test_a_failed_liveness_probe_restarts_the_container(outcomes):
    found = app(outcomes["alive"])
    assert (found["restartCount"], found["lastState"]["terminated"]["exitCode"]) == (1, 9)
    assert ["Killing", "Container app failed liveness probe, will be restarted"] in outcomes["alive"][
        "events"
    ]


def test_a_hook_runs_in_the_container(outcomes):
    assert outcomes["hooks"]["logs"]["app"] == "the hook ran\n"


def test_a_container_that_ignores_sigterm_is_killed_after_its_grace(outcomes):
    assert 1.0 <= outcomes["stubborn"]["deletion"] < 4.0


def test_a_container_that_heeds_sigterm_ends_at_once(outcomes):
    assert outcomes["polite"]["deletion"] < 3.0


def test_a_container_above_its_memory_is_killed_for_it(outcomes):
    if why := outcomes[""]["unenforced"].get("memory"):
        pytest.skip(f"memory limits are not enforced here: {why}")
    assert (ended(outcomes["out-of-memory"])["reason"], ended(outcomes["out-of-memory"])["exitCode"]) == (
        "OOMKilled",
        137,
    )


def test_what_cannot_be_honoured_is_refused(outcomes):
    status = outcomes["privileged"]["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "SecurityContextNotSupported")
    assert "spec.containers[0].securityContext.privileged" in status["message"]


def test_a_container_that_must_not_be_root_is_not_started_as_root(outcomes):
    status = outcomes["non-root"]["status"]
    assert app(outcomes["non-root"])["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert status["reason"] == "DeadlineExceeded"


def test_a_container_may_have_a_terminal(outcomes):
    assert outcomes["terminal"]["logs"]["app"].split() == ["a", "terminal", "xterm"]


def test_containers_may_share_one_pid_namespace(outcomes):
    assert int(outcomes["one-pid-namespace"]["logs"]["app"]) >= 4


def test_nothing_is_left_of_pods_that_are_gone(outcomes):
    node = outcomes[""]
    assert (node["held"], node["mounts"], node["directories"]) == (0, [], [])
    assert node["processes"] == 2  # process 1 and the node program
