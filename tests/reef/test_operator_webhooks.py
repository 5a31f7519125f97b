"""The operator's webhooks, asked by an API server: what they refuse does not get in."""

import base64
import http.client
import json
import ssl
import subprocess
from pathlib import Path

import pytest

from kubewire.certificates import Identity, Issuer, Pair, names_of
from kubewire.sources import SystemClock, SystemEntropy
from tests.eagleray.webhooks.test_reviews import TWINS, review
from tests.eagleray.world import raycluster, rayjob, rayservice
from tests.reef.test_operator import Operator, _free_port, wait_until

REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60.0
PATHS = {kind: f"/validate-ray-io-v1-{kind.lower()}" for kind in ("RayCluster", "RayJob", "RayService")}


@pytest.fixture(scope="module")
def served(reef, kubectl_cache):
    """A Kubereef that knows the kinds that have webhooks."""
    for kind in PATHS:
        file = REPOSITORY / "config" / "crd" / f"ray.io_{kind.lower()}s.yaml"
        command = (
            "kubectl",
            "--kubeconfig",
            reef.kubeconfig,
            "--cache-dir",
            kubectl_cache,
            "create",
            "-f",
            file,
        )
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return reef


@pytest.fixture
def start(served, kubectl, tmp_path, monkeypatch):
    """Start an operator with webhooks on a free port, and end it with the test; returns both."""
    running: list[Operator] = []

    def started(*flags, enabled="true", port=0):
        monkeypatch.setenv("ENABLE_WEBHOOKS", enabled)
        port = port or _free_port()
        log = tmp_path / f"{len(running)}.log"
        flags = (
            f"--webhook-addr=127.0.0.1:{port}",
            f"--webhook-cert-dir={tmp_path / 'certificates'}",
            *flags,
        )
        operator = Operator(served, kubectl, log, *flags)
        running.append(operator)
        wait_until(lambda: operator.page("/readyz")[0] == 200, PATIENCE)
        return operator, port

    yield started
    for operator in running:
        operator.kill()


@pytest.fixture
def configure(kubectl):
    """Have the API server ask at a port about the namespace of the test; returns the configuration's name."""
    name = f"webhooks-{kubectl.namespace}"

    def configured(port):
        webhooks = [
            {
                "name": f"v{kind.lower()}.kb.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
                "clientConfig": {"url": f"https://127.0.0.1:{port}{path}"},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kubectl.namespace}},
                "rules": [
                    {
                        "apiGroups": ["ray.io"],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE", "DELETE"],
                        "resources": [f"{kind.lower()}s"],
                    }
                ],
            }
            for kind, path in PATHS.items()
        ]
        made = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": webhooks,
        }
        kubectl("create", "-f", "-", given=made)
        return name

    yield configured
    kubectl("delete", "validatingwebhookconfiguration", name, "--ignore-not-found")


def trusted(kubectl, name):
    """Return the authority that a configuration trusts, once all its webhooks do."""

    def found():
        webhooks = kubectl.read("validatingwebhookconfiguration", name)["webhooks"]
        bundles = {webhook["clientConfig"].get("caBundle") for webhook in webhooks}
        return bundles if None not in bundles else None

    (bundle,) = wait_until(found, PATIENCE)
    return base64.b64decode(bundle)


def asked(port, authority, obj):
    """Return whether a webhook allows an object to be made."""
    context = ssl.create_default_context(cadata=authority.decode())
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
    try:
        body = json.dumps(review(obj))
        connection.request("POST", PATHS[obj["kind"]], body, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())["response"]["allowed"]
    finally:
        connection.close()


@pytest.mark.case("OP-53")
def test_an_operator_serves_its_webhooks_and_has_them_trusted(kubectl, start, configure):
    port = _free_port()
    name = configure(port)
    operator, _ = start(f"--webhook-configuration={name}", "--webhook-service=mine", port=port)
    assert "[+]webhooks ok" in operator.page("/readyz")[1]
    authority = trusted(kubectl, name)
    for make in (raycluster, rayjob, rayservice):
        assert asked(port, authority, make("fine"))
        assert not asked(port, authority, make("x" * 54))
    kept = {
        name: base64.b64decode(text)
        for name, text in kubectl.read("secret", "webhook-server-cert")["data"].items()
    }
    assert kept["ca.crt"] == authority
    assert f"mine.{kubectl.namespace}.svc" in names_of(Pair.of(kept["tls.crt"], kept["tls.key"]).certificate)
    assert operator.terminate() == 0


@pytest.mark.case("OP-53")
def test_an_operator_serves_with_the_certificate_that_is_mounted(kubectl, start, tmp_path):
    issuer = Issuer(SystemClock(), SystemEntropy())
    authority = issuer.authority("mine")
    pair = issuer.serving(authority, Identity("my webhooks"), ["127.0.0.1"])
    (tmp_path / "certificates").mkdir()
    (tmp_path / "certificates" / "tls.crt").write_bytes(pair.certificate_pem)
    (tmp_path / "certificates" / "tls.key").write_bytes(pair.key_pem)
    _, port = start()
    assert asked(port, authority.certificate_pem, raycluster("fine"))
    assert kubectl.read("secrets")["items"] == []


@pytest.mark.case("OP-53")
@pytest.mark.parametrize("enabled", ["TRUE", ""], ids=["written in capitals", "not set"])
def test_without_the_very_word_there_are_no_webhooks(start, enabled):
    operator, port = start(enabled=enabled)
    assert "webhooks" not in operator.page("/readyz")[1]
    with pytest.raises(ConnectionRefusedError):
        asked(port, Issuer(SystemClock(), SystemEntropy()).authority("x").certificate_pem, raycluster("c"))


@pytest.mark.case("OP-107", "OP-108", "OP-109", "OP-110")
def test_what_the_webhooks_refuse_does_not_get_in_and_what_is_there_can_go(kubectl, start, configure):
    old = raycluster("before", namespace=kubectl.namespace, workers=TWINS)
    kubectl("create", "-f", "-", given=old)
    port = _free_port()
    name = configure(port)
    start(f"--webhook-configuration={name}", port=port)
    trusted(kubectl, name)
    for make in (raycluster, rayjob, rayservice):
        bad = make("9x", namespace=kubectl.namespace)
        told = kubectl("create", "-f", "-", given=bad, code=1)
        # kubectl shows the causes of what is invalid, and not who found them.
        assert f'The {bad["kind"]} "9x" is invalid: metadata.name: Invalid value: "9x": ' in told
        kubectl("create", "-f", "-", given=make("fine", namespace=kubectl.namespace))
    kubectl("label", "raycluster", "before", "a=b")
    kubectl("delete", "raycluster", "before")


def test_two_replicas_serve_with_one_certificate_whoever_leads(kubectl, start, configure):
    port = _free_port()
    name = configure(port)
    first, _ = start(f"--webhook-configuration={name}", port=port)
    second, other = start(f"--webhook-configuration={name}")
    authority = trusted(kubectl, name)
    wait_until(lambda: first.leads() or second.leads())
    assert not (first.leads() and second.leads())
    assert asked(port, authority, raycluster("c"))
    assert asked(other, authority, raycluster("c"))
