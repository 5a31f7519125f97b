"""A whole cluster on the wire, with its data directory."""

import asyncio
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from kubereef.serving import Settings, serving
from kubereef.store.errors import InUse
from kubewire.sources import ManualClock, SystemClock, SystemEntropy


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_certificates_are_renewed_while_the_server_runs(tmp_path):
    clock = ManualClock(SystemClock().now())
    async with serving(Settings(tmp_path, in_memory=True), clock, SystemEntropy()) as served:
        before = (tmp_path / "pki" / "server.crt").read_bytes(), served.kubeconfig.read_bytes()
        for _ in range(2):
            await settled()
            clock.advance(3601)
        await settled()
        assert (tmp_path / "pki" / "server.crt").read_bytes() == before[0]
        clock.advance(250 * 24 * 3600)
        await settled()
        assert (tmp_path / "pki" / "server.crt").read_bytes() != before[0]
        assert served.kubeconfig.read_bytes() != before[1]
        assert (tmp_path / "ca.crt").read_bytes() == (tmp_path / "pki" / "ca.crt").read_bytes()


async def test_the_kubeconfig_leads_to_the_server_with_certificate_and_token(tmp_path):
    async with serving(Settings(tmp_path, in_memory=True)) as served:
        config = yaml.safe_load(served.kubeconfig.read_text())
        assert config["clusters"][0]["cluster"]["server"] == served.url
        user = config["users"][0]["user"]
        assert {"client-certificate-data", "client-key-data", "token"} == set(user)


async def test_a_directory_serves_one_cluster_at_a_time_and_the_next_when_it_is_done(tmp_path):
    settings = Settings(tmp_path)
    async with serving(settings):
        with pytest.raises(InUse, match="another process uses"):
            async with serving(settings):
                pass
    async with serving(settings) as served:
        assert served.url.startswith("https://127.0.0.1:")


async def test_a_server_on_every_address_is_reached_on_this_machines_own(tmp_path):
    async with serving(Settings(tmp_path, in_memory=True, host="0.0.0.0")) as served:
        assert served.url.startswith("https://127.0.0.1:")


async def test_the_service_address_of_another_network_is_in_the_certificate_and_the_service(tmp_path):
    async with serving(Settings(tmp_path, in_memory=True, service_cidr="10.7.0.0/24")) as served:
        service = await served.cluster.client().get("/api/v1/namespaces/default/services/kubernetes")
        assert service["spec"]["clusterIP"] == "10.7.0.1"
        port = int(served.url.rpartition(":")[2])
        assert service["spec"]["ports"][0]["targetPort"] == port
        certificate = x509.load_pem_x509_certificate((tmp_path / "pki" / "server.crt").read_bytes())
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert "10.7.0.1" in map(str, found.get_values_for_type(x509.IPAddress))


async def test_a_start_that_fails_leaves_the_directory_free(tmp_path, monkeypatch):
    async def fail(*_arguments):
        raise RuntimeError("no luck")

    with monkeypatch.context() as patched:
        patched.setattr("kubereef.cluster.bootstrap", fail)
        with pytest.raises(RuntimeError, match="no luck"):
            async with serving(Settings(tmp_path)):
                pass
    async with serving(Settings(tmp_path)) as served:
        assert served.kubeconfig == Path(tmp_path / "admin.kubeconfig")
