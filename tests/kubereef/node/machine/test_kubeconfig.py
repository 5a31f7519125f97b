"""What a node takes of a kubeconfig, and what it refuses."""

from base64 import b64encode

import pytest
import yaml

from kubereef.node.machine.kubeconfig import BadKubeconfig, read_membership
from kubewire.certificates import Identity, Issuer
from kubewire.sources import SystemClock, SystemEntropy

CLUSTER = {"server": "https://api.example:6443"}
TOKEN = {"token": "sesame"}


def write(directory, cluster=None, user=None, **changes):
    config = {
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster if cluster is not None else CLUSTER}],
        "users": [{"name": "u", "user": user if user is not None else TOKEN}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "there", "context": {"cluster": "d", "user": "u"}},
        ],
        **changes,
    }
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def certificate(user, *groups):
    issuer = Issuer(SystemClock(), SystemEntropy())
    return issuer.client(issuer.authority("a"), Identity(user, groups))


def test_a_node_with_a_certificate_has_its_name(tmp_path):
    pair = certificate("system:node:reef", "system:nodes")
    (tmp_path / "node.key").write_bytes(pair.key_pem)
    user = {"client-certificate-data": b64encode(pair.certificate_pem).decode(), "client-key": "node.key"}
    cluster = {**CLUSTER, "certificate-authority-data": b64encode(b"authority").decode()}
    found = read_membership(write(tmp_path, cluster, user))
    assert (found.host, found.port, found.server_name) == ("api.example", 6443, "api.example")
    assert (found.certificate, found.key, found.authority) == (
        pair.certificate_pem,
        pair.key_pem,
        b"authority",
    )
    assert found.node_name == "reef"


def test_who_is_no_node_has_no_name(tmp_path):
    pair = certificate("admin", "system:masters")
    data = {
        "client-certificate-data": b64encode(pair.certificate_pem).decode(),
        "client-key-data": b64encode(pair.key_pem).decode(),
    }
    assert read_membership(write(tmp_path, user=data)).node_name == ""
    assert read_membership(write(tmp_path, user=TOKEN)).node_name == ""


def test_files_are_found_beside_the_kubeconfig_and_the_server_may_have_another_name(tmp_path):
    cluster = {"server": "https://[::1]", "tls-server-name": "kubernetes"}
    found = read_membership(write(tmp_path, cluster, {"tokenFile": "token"}))
    assert (found.host, found.port, found.server_name) == ("::1", 443, "kubernetes")
    assert found.token_file == str(tmp_path / "token")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        pytest.param({"current-context": ""}, "current-context is not set", id="no context"),
        pytest.param(
            {"current-context": "away"}, "contexts has no 'away'; there are: here, there", id="unknown"
        ),
        pytest.param({"current-context": "there"}, "clusters has no 'd'; there are: c", id="no such cluster"),
        pytest.param({"contexts": {}}, "contexts must be a list", id="no list"),
        pytest.param({"users": ["u"]}, r"users\[0\] is no mapping", id="no mapping"),
        pytest.param({"cluster": {"server": "http://a"}}, "not https://HOST", id="without TLS"),
        pytest.param({"cluster": {"server": "https://a:b"}}, "is no address", id="no port"),
        pytest.param({"cluster": {"server": "https://a/k8s/c-1"}}, "has a path", id="behind a path"),
        pytest.param({"cluster": {"server": 3}}, "server must be text", id="a number"),
        pytest.param(
            {"cluster": {**CLUSTER, "insecure-skip-tls-verify": True}},
            r"clusters\[0\].cluster.insecure-skip-tls-verify is not for a node",
            id="anybody is trusted",
        ),
        pytest.param({"cluster": {**CLUSTER, "proxy-url": "http://p"}}, "proxy-url is not for", id="a proxy"),
        pytest.param(
            {"cluster": {**CLUSTER, "certificate-authority": "gone"}},
            "cannot be read",
            id="a file that is gone",
        ),
        pytest.param({"user": {"exec": {"command": "x"}}}, "exec is not for a node", id="a plugin"),
        pytest.param({"user": {**TOKEN, "as": "root"}}, "as is not for a node", id="somebody else"),
        pytest.param({"user": {}}, "neither a token nor a tokenFile", id="nothing to show"),
        pytest.param(
            {"user": {"client-key-data": "YQ=="}}, "client-certificate is missing", id="a key alone"
        ),
        pytest.param({"user": {"client-key-data": "?"}}, "client-key-data is not base64", id="not base64"),
        pytest.param(
            {"user": {"client-key-data": "YQ==", "client-certificate-data": "YQ=="}},
            "holds no certificate",
            id="not a certificate",
        ),
    ],
)
def test_what_a_node_cannot_use_is_refused_by_its_field(tmp_path, change, complaint):
    with pytest.raises(BadKubeconfig, match=complaint):
        read_membership(write(tmp_path, **change))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a: [", "kubeconfig: "), ("- a", "this is no mapping")],
    ids=["no YAML", "a list"],
)
def test_what_is_no_kubeconfig_is_refused(tmp_path, text, complaint):
    (tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(BadKubeconfig, match=complaint):
        read_membership(tmp_path / "kubeconfig")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadKubeconfig, match=r"nowhere: No such file"):
        read_membership(tmp_path / "nowhere")
