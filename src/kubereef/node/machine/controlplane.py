"""The control plane that a node belongs to, as far as starting the node takes; and that of Kubereef itself."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kubereef.gateway.objects import DATA_PLANE_ROLE
from kubereef.server.certificates import Certificates, Identity, write_private
from kubewire import errors

DNS_SERVICES = "/api/v1/namespaces/kube-system/services"
DNS_NUMBER = 10
"""The number of the DNS's address among those of Services, as everywhere."""


class Client(Protocol):
    """The part of a client that starting a node takes."""

    async def get(self, url: str) -> dict[str, Any]: ...

    async def create(self, url: str, body: object) -> dict[str, Any]: ...


class ControlPlane(Protocol):
    """Where the API server is, how a node shows itself to it, and what the node asks of it before it starts."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def inner_port(self) -> int:
        """The port of the node's own address at which Pods and the node itself reach the API server."""
        ...

    @property
    def server_name(self) -> str:
        """By which the server's certificate is checked; empty is the node's own address."""
        ...

    @property
    def token_file(self) -> str:
        """The file of the token that the node shows, if it shows one."""
        ...

    @property
    def is_foreign(self) -> bool:
        """Whether the endpoints of the `kubernetes` Service are not the way that this node has to the server."""
        ...

    def write_keys(self, keys: Path, node: str, names: tuple[str, ...]) -> None:
        """Write the files that `keys` describes, for a node whose kubelet has these names and addresses."""
        ...

    async def dns_address(self, services: IPv4Network | IPv6Network) -> str:
        """Return the address at which the node is to serve the cluster's names."""
        ...

    async def has_gateways(self) -> bool:
        """Return whether the node is to serve Gateways."""
        ...


class ApiServer(NamedTuple):
    """Kubereef's own API server: where it listens, who issues its certificates, and an administrator's client."""

    host: str
    port: int
    certificates: Certificates
    client: Client

    @property
    def inner_port(self) -> int:
        return self.port  # that of the `kubernetes` Service's endpoint

    @property
    def server_name(self) -> str:
        return ""

    @property
    def token_file(self) -> str:
        return ""

    @property
    def is_foreign(self) -> bool:
        return False

    def write_keys(self, keys: Path, node: str, names: tuple[str, ...]) -> None:
        authority = self.certificates.pair("ca")
        identity = Identity(f"system:node:{node}", ("system:nodes",))
        client = self.certificates.client(authority, identity)
        serving = self.certificates.serving(authority, identity, names)
        for file, data in {
            "ca.crt": authority.certificate_pem,
            "client-ca.crt": authority.certificate_pem,
            "client.crt": client.certificate_pem,
            "client.key": client.key_pem,
            "serving.crt": serving.certificate_pem,
            "serving.key": serving.key_pem,
        }.items():
            write_private(keys / file, data)

    async def dns_address(self, services: IPv4Network | IPv6Network) -> str:
        """Return the address of the cluster's DNS, which a Service holds so that no other gets it."""
        ports = [
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
        ]
        spec: dict[str, Any] = {"clusterIP": str(services[DNS_NUMBER]), "ports": ports}
        labels = {"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}
        service = {"metadata": {"name": "kube-dns", "labels": labels}, "spec": spec}
        try:
            made = await self.client.create(DNS_SERVICES, service)
        except errors.AlreadyExists:
            made = await self.client.get(f"{DNS_SERVICES}/kube-dns")
        except errors.Invalid:  # somebody has the address already, so another one has to do
            del spec["clusterIP"]
            made = await self.client.create(DNS_SERVICES, service)
        return str(made["spec"]["clusterIP"])

    async def has_gateways(self) -> bool:
        """Return whether the cluster is furnished for Gateways: whether a node has the rights to serve them."""
        try:
            await self.client.get(f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{DATA_PLANE_ROLE}")
        except errors.NotFound:
            return False
        return True
