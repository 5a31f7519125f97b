"""The kubelet's API on loopback, with Pods that need no node."""

import ssl
from typing import Any, NamedTuple

import aiohttp
import pytest

from kubereef.node.kubelet.api.access import Access
from kubereef.node.kubelet.api.server import KubeletApi
from kubereef.node.network import listen_tcp
from kubereef.server.certificates import Certificates, Identity, write_private
from kubewire.sources import SystemClock, SystemEntropy
from tests.kubereef.node.api.standins import Container, LocalSockets, Pod, Pods, Reviews


class Keys(NamedTuple):
    """Where certificates are, and the authority's."""

    directory: Any
    certificates: Certificates

    def server(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.directory / "serving.crt", self.directory / "serving.key")
        context.load_verify_locations(self.certificates.authority_path)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def client(self, name=""):
        context = ssl.create_default_context(cafile=self.certificates.authority_path)
        if name:
            context.load_cert_chain(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        return context


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    """Certificates of one cluster: of its kubelet, and of a client named ann."""
    directory = tmp_path_factory.mktemp("keys")
    certificates = Certificates(directory / "pki", (), SystemClock(), SystemEntropy())
    certificates.refresh()
    authority = certificates.pair("ca")
    pairs = {
        "serving": certificates.serving(authority, Identity("system:node:n"), ("127.0.0.1", "n")),
        "ann": certificates.client(authority, Identity("ann", ("team",))),
    }
    for name, pair in pairs.items():
        write_private(directory / f"{name}.crt", pair.certificate_pem)
        write_private(directory / f"{name}.key", pair.key_pem)
    return Keys(directory, certificates)


@pytest.fixture
async def container(tmp_path):
    made = Container(log=tmp_path / "0.log")
    made.log.touch()
    yield made
    for program in made.programs:
        program.end()


@pytest.fixture
async def pods(container):
    return Pods(Pod(container))


@pytest.fixture
def reviews():
    return Reviews()


@pytest.fixture
async def url(pods, reviews, keys):
    """Where the API is served."""
    clock = SystemClock()
    api = KubeletApi("n", pods, Access(reviews, "n", clock), LocalSockets(), clock)
    listening = listen_tcp("127.0.0.1", 0)
    port = listening.getsockname()[1]
    await api.start(listening, keys.server())
    yield f"https://127.0.0.1:{port}"
    await api.stop()


@pytest.fixture
async def client(url, keys):
    """Who speaks to the API as ann, by her certificate."""
    connector = aiohttp.TCPConnector(ssl=keys.client("ann"))
    async with aiohttp.ClientSession(url, connector=connector) as session:
        yield session
