"""Programs that give credentials: how they are run, kept, and complained about."""

import asyncio
import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from eagleray.kube.access import CredentialsError, Pair
from eagleray.kube.execplugin import ExecCredentials, Plugin
from eagleray.kube.sections import Section
from kubewire.sources import ManualClock
from kubewire.times import format_time

V1 = "client.authentication.k8s.io/v1"


def credential(version=V1, kind="ExecCredential", **status):
    return {"apiVersion": version, "kind": kind, "status": status}


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def plugin(tmp_path, clock):
    """Make a plugin that counts its runs in a file, with what it was told, and prints what another file holds."""

    class Made:
        runs_file = tmp_path / "runs"
        output = tmp_path / "output"

        def __init__(self, **settings):
            script = (
                "import os, sys; open(sys.argv[1], 'a').write(os.environ['KUBERNETES_EXEC_INFO'] + os.linesep);"
                "sys.stdout.write(open(sys.argv[2]).read().replace('$EXTRA', os.environ.get('EXTRA', '')))"
            )
            arguments = ("-S", "-E", "-c", script, str(self.runs_file), str(self.output))
            self.credentials = ExecCredentials(Plugin(V1, sys.executable, arguments, **settings), {}, clock)

        def prints(self, value):
            self.output.write_text(value if isinstance(value, str) else json.dumps(value))

        @property
        def runs(self):
            return [json.loads(line) for line in self.runs_file.read_text().splitlines()]

    return Made


async def test_a_token_is_kept_until_it_is_about_to_expire(plugin, clock):
    made = plugin()
    made.prints(credential(token="one", expirationTimestamp=format_time(clock.now() + timedelta(hours=1))))
    first = await asyncio.gather(*(made.credentials.current() for _ in range(5)))
    assert {identity.headers for identity in first} == {(("authorization", "Bearer one"),)}
    assert len(made.runs) == 1
    made.prints(credential(token="two", expirationTimestamp=format_time(clock.now() + timedelta(hours=9))))
    clock.advance(3580)
    assert await made.credentials.current() == first[0]
    clock.advance(15)
    assert (await made.credentials.current()).headers == (("authorization", "Bearer two"),)
    assert len(made.runs) == 2


async def test_credentials_without_an_end_are_kept_until_they_are_refused(plugin, clock):
    made = plugin()
    made.prints(credential(clientCertificateData="crt", clientKeyData="key"))
    first = await made.credentials.current()
    assert first.pair == Pair(b"crt", b"key")
    clock.advance(10**6)
    assert await made.credentials.current() == first
    assert made.credentials.refused(first)
    await made.credentials.current()
    assert len(made.runs) == 2


async def test_a_plugin_is_told_of_the_cluster_if_it_wants_to_know(plugin):
    made = plugin(cluster={"server": "https://there"}, environment=(("EXTRA", "from-env"),))
    made.prints(credential(token="$EXTRA"))
    identity = await made.credentials.current()
    assert identity.headers == (("authorization", "Bearer from-env"),)
    assert made.runs == [
        {
            "apiVersion": V1,
            "kind": "ExecCredential",
            "spec": {"interactive": False, "cluster": {"server": "https://there"}},
        }
    ]


@pytest.mark.parametrize(
    ("output", "message"),
    [
        pytest.param("secret!", "has not printed an ExecCredential", id="no JSON"),
        pytest.param(credential(kind="Pod"), "has printed Pod", id="another kind"),
        pytest.param(
            credential(version="client.authentication.k8s.io/v1beta1", token="secret!"),
            "has printed ExecCredential of client.authentication.k8s.io/v1beta1",
            id="another version",
        ),
        pytest.param(credential(), "neither a token nor a certificate", id="nothing"),
        pytest.param(credential(clientKeyData="secret!"), "a key without a certificate", id="half a pair"),
        pytest.param(
            credential(token="secret!", expirationTimestamp="soon"), "expirationTimestamp", id="no time"
        ),
    ],
)
async def test_what_a_plugin_prints_wrongly_is_said_without_its_secrets(plugin, output, message):
    made = plugin()
    made.prints(output)
    with pytest.raises(CredentialsError, match=message) as failed:
        await made.credentials.current()
    assert "secret!" not in str(failed.value)


@pytest.mark.parametrize(
    ("script", "patience", "message"),
    [
        pytest.param(
            "echo first >&2; echo 'please log in' >&2; exit 3",
            60,
            "exec plugin sh: ended with code 3: please log in",
            id="a failure with its last words",
        ),
        pytest.param("exec sleep 60", 0.2, "has not ended within 0.2 s", id="one that does not end"),
    ],
)
async def test_a_plugin_that_fails_is_said(clock, script, patience, message):
    credentials = ExecCredentials(Plugin(V1, "/bin/sh", ("-c", script), patience=patience), {}, clock)
    with pytest.raises(CredentialsError, match=message):
        await credentials.current()


async def test_a_plugin_that_is_not_there_is_named_with_the_way_to_get_it(clock):
    plugin = Plugin(V1, "/nowhere/cloud-login", install_hint="install it from https://example.com")
    with pytest.raises(
        CredentialsError, match=r"cloud-login: cannot be run: No such file.*; install it from"
    ):
        await ExecCredentials(plugin, {}, clock).current()


def test_a_kubeconfig_describes_a_plugin(tmp_path):
    (tmp_path / "ca").write_bytes(b"x")
    section = Section(
        tmp_path / "config",
        ("users", 0, "user", "exec"),
        {
            "apiVersion": V1,
            "command": "bin/login",
            "args": ["--now"],
            "env": [{"name": "A", "value": "1"}],
            "interactiveMode": "IfAvailable",
            "provideClusterInfo": True,
            "installHint": "get it\n",
        },
    )
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "a"}}
    cluster = Section(
        tmp_path / "config",
        ("clusters", 0, "cluster"),
        {"server": "https://there", "certificate-authority": "ca", "extensions": [extension]},
    )
    assert Plugin.of(section, cluster) == Plugin(
        V1,
        str(Path(tmp_path / "bin/login")),
        ("--now",),
        (("A", "1"),),
        "get it",
        {"server": "https://there", "certificate-authority-data": "eA==", "config": {"audience": "a"}},
    )
