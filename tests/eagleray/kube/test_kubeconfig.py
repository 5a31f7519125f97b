"""Kubeconfigs in all their forms, and what is said of those that are wrong."""

import base64
from functools import partial

import pytest
import yaml

from eagleray.kube.access import ConfigError, CredentialsError, Impersonation
from eagleray.kube.incluster import in_cluster
from eagleray.kube.kubeconfig import find_access, load
from kubewire.sources import ManualClock


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def config(user=None, cluster=None, **rest):
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://there:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **rest,
    }


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def loaded(tmp_path, clock):
    """Write kubeconfigs and load them as one."""

    def write(*configs, environ=None, **options):
        files = []
        for number, content in enumerate(configs):
            files.append(tmp_path / f"config-{number}")
            files[-1].write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return load(files, environ or {}, clock, **options)

    return write


async def test_the_current_context_leads_to_its_cluster_and_user(loaded):
    access = loaded(config({"token": "t"}))
    assert (access.server, access.namespace) == ("https://there:6443", "team")
    assert (await access.credentials.current()).headers == (("authorization", "Bearer t"),)


async def test_another_context_is_chosen_by_name(loaded):
    contexts = [
        {"name": "here", "context": {"cluster": "c", "user": "u"}},
        {"name": "there", "context": {"cluster": "d"}},
    ]
    clusters = [{"name": n, "cluster": {"server": f"https://{n}/prefix/"}} for n in "cd"]
    access = loaded(config(contexts=contexts, clusters=clusters), context="there")
    assert (access.server, access.namespace) == ("https://d/prefix", "default")
    assert (await access.credentials.current()).headers == ()


async def test_of_several_files_the_first_that_has_an_entry_wins_as_a_whole(loaded):
    first = {"users": [{"name": "u", "user": {"token": "first"}}]}
    second = config({"username": "x", "password": "y"})
    third = {"current-context": "other", "clusters": [{"name": "c", "cluster": {"server": "https://no"}}]}
    access = loaded(first, second, third)
    assert access.server == "https://there:6443"
    assert (await access.credentials.current()).headers == (("authorization", "Bearer first"),)


async def test_files_of_a_list_may_be_missing_but_not_all_of_them(tmp_path, clock):
    there = tmp_path / "there"
    there.write_text(yaml.safe_dump(config()))
    access = find_access({"KUBECONFIG": f"{tmp_path / 'missing'}::{there}"}, clock)
    assert access.server == "https://there:6443"
    with pytest.raises(ConfigError, match="none of these files exists"):
        find_access({"KUBECONFIG": str(tmp_path / "missing")}, clock)
    with pytest.raises(ConfigError, match="missing: No such file"):
        find_access({}, clock, kubeconfig=str(tmp_path / "missing"))


@pytest.mark.case("OP-34")
def test_the_file_given_is_asked_before_the_environment_and_that_before_the_home(tmp_path, clock):
    home = tmp_path / ".kube"
    home.mkdir()
    for file, server in ((home / "config", "home"), (tmp_path / "env", "env"), (tmp_path / "given", "given")):
        file.write_text(yaml.safe_dump(config(cluster={"server": f"https://{server}"})))
    environ = {"HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "env")}
    assert find_access(environ, clock, kubeconfig=str(tmp_path / "given")).server == "https://given"
    assert find_access(environ, clock).server == "https://env"
    assert find_access({"HOME": str(tmp_path)}, clock).server == "https://home"
    with pytest.raises(ConfigError, match="no cluster to speak to"):
        find_access({"HOME": str(tmp_path / "nowhere")}, clock)


async def test_certificates_come_as_data_or_as_files_beside_the_kubeconfig(loaded, tmp_path):
    for name in ("ca", "crt", "key"):
        (tmp_path / name).write_text(f"file {name}")
    by_file = loaded(
        config({"client-certificate": "crt", "client-key": "key"}, {"certificate-authority": "ca"})
    )
    assert by_file.authority.read() == b"file ca"
    assert (await by_file.credentials.current()).pair == (b"file crt", b"file key")
    user = {"client-certificate": "missing", "client-certificate-data": encoded("data crt")}
    by_data = loaded(
        config(
            {**user, "client-key-data": encoded("data key")},
            {"certificate-authority-data": encoded("data ca"), "certificate-authority": "ca"},
        )
    )
    assert by_data.authority.read() == b"data ca"
    assert (await by_data.credentials.current()).pair == (b"data crt", b"data key")


async def test_a_token_file_wins_over_a_token_and_is_read_again(loaded, tmp_path, clock):
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = loaded(config({"token": "fixed", "tokenFile": "token"})).credentials
    first = await credentials.current()
    assert first.headers == (("authorization", "Bearer one"),)
    file.write_text("two")
    assert await credentials.current() == first
    clock.advance(60)
    assert (await credentials.current()).headers == (("authorization", "Bearer two"),)
    file.unlink()
    clock.advance(60)
    assert (await credentials.current()).headers == (("authorization", "Bearer two"),)


async def test_a_refused_token_is_looked_up_again_at_once(loaded, tmp_path):
    file = tmp_path / "token"
    file.write_text("one")
    credentials = loaded(config({"tokenFile": "token"})).credentials
    first = await credentials.current()
    assert not credentials.refused(first)
    file.write_text("two")
    assert credentials.refused(first)
    assert (await credentials.current()).headers == (("authorization", "Bearer two"),)


async def test_a_token_file_that_is_just_being_written_changes_nothing(loaded, tmp_path):
    file = tmp_path / "token"
    file.write_text("old")
    credentials = loaded(config({"tokenFile": "token"})).credentials
    identity = await credentials.current()
    file.write_text("")
    assert not credentials.refused(identity)
    assert await credentials.current() == identity
    file.write_text("new")
    assert credentials.refused(identity)


async def test_a_token_that_is_none_is_not_sent_and_not_shown(loaded):
    credentials = loaded(config({"token": "half a\nsecret"})).credentials
    with pytest.raises(CredentialsError, match="the token is empty or holds") as refused:
        await credentials.current()
    assert "secret" not in str(refused.value)


async def test_a_name_and_a_password_are_shown_as_such(loaded):
    credentials = loaded(config({"username": "me", "password": "p:w"})).credentials
    assert (await credentials.current()).headers == (("authorization", f"Basic {encoded('me:p:w')}"),)


def test_the_clusters_other_settings_are_kept(loaded):
    access = loaded(
        config(
            cluster={
                "insecure-skip-tls-verify": True,
                "tls-server-name": "inside",
                "proxy-url": "http://proxy:3128",
            }
        )
    )
    assert (access.insecure, access.server_name, access.proxy) == (True, "inside", "http://proxy:3128")


def test_another_may_be_acted_as(loaded):
    user = {"as": "jane", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"Scopes/x": ["1", "2"]}}
    assert loaded(config(user)).impersonation.headers == (
        ("impersonate-user", "jane"),
        ("impersonate-uid", "7"),
        ("impersonate-group", "a"),
        ("impersonate-group", "b"),
        ("impersonate-extra-scopes%2Fx", "1"),
        ("impersonate-extra-scopes%2Fx", "2"),
    )
    assert loaded(config()).impersonation == Impersonation()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("a: [", r"config-0: ", id="what is no YAML"),
        pytest.param("[]", r"config-0: this is no kubeconfig but a list", id="what is no mapping"),
        pytest.param({}, r"current-context is not set; .* there are: none", id="no context at all"),
        pytest.param(
            config(**{"current-context": "x"}),
            r"there is no context 'x'; there are: here",
            id="no such context",
        ),
        pytest.param(
            config(clusters=[]),
            r"contexts\[0\]\.context\.cluster: clusters has no 'c'; there are: none",
            id="no such cluster",
        ),
        pytest.param(config(users=[]), r"contexts\[0\]\.context\.user: users has no 'u'", id="no such user"),
        pytest.param(config(users={}), r"users: must be a list, not a mapping", id="users that are no list"),
        pytest.param(
            config(users=["u"]), r"users\[0\]: must be a mapping, not text", id="a user that is a text"
        ),
        pytest.param(config(users=[{}]), r"users\[0\]\.name: is missing", id="a user without a name"),
        pytest.param(
            config({"token": 12345}),
            r"users\[0\]\.user\.token: must be text, not a number",
            id="a number as token",
        ),
        pytest.param(
            config({"client-certificate-data": "%%%", "client-key-data": ""}),
            r"users\[0\]\.user\.client-certificate-data: is not base64",
            id="data that is not base64",
        ),
        pytest.param(
            config({"client-certificate-data": "eA=="}),
            r"users\[0\]\.user\.client-key: is missing; a certificate and its key belong together",
            id="a certificate without a key",
        ),
        pytest.param(
            config({"client-key": "nowhere"}),
            r"users\[0\]\.user\.client-key: there is no file .*nowhere",
            id="a file that is not there",
        ),
        pytest.param(
            config({"token": "t", "username": "x"}),
            r"users\[0\]\.user\.username: stands beside other ways .*a token and a password",
            id="two ways to say who one is",
        ),
        pytest.param(
            config({"auth-provider": {"name": "gcp"}}),
            r"users\[0\]\.user\.auth-provider: is no longer supported",
            id="a way that Kubernetes has dropped",
        ),
        pytest.param(
            config({"as-groups": ["a"]}), r"users\[0\]\.user\.as: is missing", id="groups of nobody"
        ),
        pytest.param(
            config(cluster={"server": ""}), r"clusters\[0\]\.cluster\.server: is missing", id="no address"
        ),
        pytest.param(
            config(cluster={"server": "there:6443"}),
            r"clusters\[0\]\.cluster\.server: 'there:6443' is no address; write https://",
            id="an address without a scheme",
        ),
        pytest.param(
            config(cluster={"insecure-skip-tls-verify": "yes"}),
            r"insecure-skip-tls-verify: must be true or false, not text",
            id="a text as truth",
        ),
        pytest.param(
            config(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="}),
            r"clusters\[0\]\.cluster\.insecure-skip-tls-verify: stands beside",
            id="an authority that is never asked",
        ),
        pytest.param(
            config(cluster={"proxy-url": "socks5://x"}), r"proxy-url: only http and https", id="a SOCKS proxy"
        ),
        pytest.param(
            config({"exec": {"command": "x"}}), r"user\.exec\.apiVersion: is missing", id="a plugin's version"
        ),
        pytest.param(
            config({"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}),
            r"user\.exec\.apiVersion: .* is not supported",
            id="a plugin of another time",
        ),
        pytest.param(
            config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x"}}),
            r"user\.exec\.interactiveMode: must be one of",
            id="a plugin without its mode",
        ),
        pytest.param(
            config(
                {
                    "exec": {
                        "apiVersion": "client.authentication.k8s.io/v1",
                        "command": "x",
                        "interactiveMode": "Always",
                    }
                }
            ),
            r"user\.exec\.interactiveMode: the plugin wants a terminal",
            id="a plugin that wants a terminal",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(loaded, content, message):
    with pytest.raises(ConfigError, match=message):
        loaded(content)


# --- inside a Pod


@pytest.fixture
def mounted(tmp_path):
    for name, content in (("token", "one"), ("ca.crt", "authority"), ("namespace", "team\n")):
        (tmp_path / name).write_text(content)
    return tmp_path


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def test_a_pod_speaks_as_its_service_account_whose_token_is_renewed(mounted, clock):
    access = in_cluster(POD, clock, mounted)
    assert (access.server, access.namespace) == ("https://10.0.0.1:443", "team")
    assert access.authority is not None
    assert access.authority.read() == b"authority"
    assert (await access.credentials.current()).headers == (("authorization", "Bearer one"),)
    (mounted / "token").write_text("two")
    clock.advance(60)
    assert (await access.credentials.current()).headers == (("authorization", "Bearer two"),)


def test_an_address_of_version_6_stands_in_brackets(mounted, clock):
    access = in_cluster({**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, clock, mounted)
    assert access.server == "https://[fd00::1]:443"


def test_a_pod_without_a_token_is_told_what_it_lacks(mounted, clock):
    (mounted / "token").unlink()
    with pytest.raises(ConfigError, match=r"token: there is no such file; .*automountServiceAccountToken"):
        in_cluster(POD, clock, mounted)
    with pytest.raises(ConfigError, match="this is no Pod"):
        in_cluster({}, clock, mounted)


@pytest.mark.case("OP-34")
def test_a_pod_is_found_before_the_home(tmp_path, clock, mounted, monkeypatch):
    monkeypatch.setattr("eagleray.kube.kubeconfig.in_cluster", partial(in_cluster, mounted=mounted))
    assert find_access({**POD, "HOME": str(tmp_path)}, clock).server == "https://10.0.0.1:443"
