"""A node that joins a cluster whose control plane is somebody else's: the way there and the ways in.

    async with joining(membership, options, ways) as node:       # NodeFailed if it does not come up
        await node.wait()

Inside, nothing differs from a node of Kubereef's own. What differs is where its credentials come from, that the
`kubernetes` Service leads over the node's own way to the server, and how the server reaches the kubelet.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from kubereef.node.machine.client import HttpsClient, TokenFile
from kubereef.node.machine.controlplane import DNS_NUMBER, DNS_SERVICES
from kubereef.node.machine.keys import client_tls
from kubereef.node.machine.kubeconfig import Membership
from kubereef.node.machine.launch import Node, NodeFailed, NodeOptions
from kubereef.node.network import HttpProxy, NotReached, connect_tcp, listen_unix
from kubereef.server.certificates import write_private
from kubereef.server.lines import Passage
from kubewire import errors
from kubewire.certificates import Identity, Issuer
from kubewire.sources import SystemClock, SystemEntropy

INNER_PORT = 6443
"""Where the API server is found at the node's own address; Pods find it by its Service."""

_SERVICE_CIDRS = "/apis/networking.k8s.io/v1/servicecidrs"
_SLICES = "/apis/discovery.k8s.io/v1/endpointslices?limit=1"
_MAY_PROXY = (
    "the node serves Services from EndpointSlices, which its user may not list; let nodes do so with:"
    " kubectl create clusterrolebinding kubereef-nodes --clusterrole=system:node-proxier --group=system:nodes"
)


class Ways(NamedTuple):
    """How a node is reached and known; what is empty is found out.

    `client_authority` vouches for callers of the kubelet, and is the API server's own unless given. `serving` is a
    certificate and its key for the kubelet, which makes one that nobody vouches for unless given. `egress` is a unix
    socket that a kube-apiserver can use as the proxy of its egress selector; by it the kubelet is reached at the node's
    own address, so that no port of the host is needed.
    """

    service_cidr: str = ""
    dns: str = ""
    client_authority: Path | None = None
    serving: tuple[Path, Path] | None = None
    egress: Path | None = None


class Reader(Protocol):
    """The part of a client that asking takes."""

    async def get(self, url: str) -> dict[str, Any]: ...


class ForeignServer:
    """The API server of another make that a kubeconfig leads to; a `controlplane.ControlPlane`."""

    inner_port = INNER_PORT
    is_foreign = True

    def __init__(self, membership: Membership, ways: Ways, keys: Path, client: Reader) -> None:
        self.host = membership.host
        self.port = membership.port
        self.server_name = membership.server_name
        self.token_file = token_file(membership, keys)
        self._ways = ways
        self._client = client

    def write_keys(self, keys: Path, node: str, names: tuple[str, ...]) -> None:
        """Write what concerns the kubelet; how the node shows itself was written before the server could be asked."""
        if self._ways.client_authority is not None:
            write_private(keys / "client-ca.crt", self._ways.client_authority.read_bytes())
        elif (keys / "ca.crt").exists():
            write_private(keys / "client-ca.crt", (keys / "ca.crt").read_bytes())
        else:
            (keys / "client-ca.crt").unlink(missing_ok=True)
        if self._ways.serving is not None:
            certificate, key = (path.read_bytes() for path in self._ways.serving)
        else:
            issuer = Issuer(SystemClock(), SystemEntropy())
            authority = issuer.authority(f"{node}-ca")
            pair = issuer.serving(authority, Identity(node), names)
            certificate, key = pair.certificate_pem + authority.certificate_pem, pair.key_pem
        write_private(keys / "serving.key", key)
        write_private(keys / "serving.crt", certificate)

    async def dns_address(self, services: IPv4Network | IPv6Network) -> str:
        """Return the address that the cluster's DNS has, or would have."""
        if self._ways.dns:
            return self._ways.dns
        try:
            found = await self._client.get(f"{DNS_SERVICES}/kube-dns")
        except errors.NotFound:
            return str(services[DNS_NUMBER])
        return str(found["spec"]["clusterIP"])

    async def has_gateways(self) -> bool:
        return False  # they are another implementation's there


@asynccontextmanager
async def joining(membership: Membership, options: NodeOptions, ways: Ways) -> AsyncIterator[Node]:
    """Have a node of a cluster until the block ends; NodeFailed if it does not come up."""
    keys = options.directory / "pki"
    async with AsyncExitStack() as opened:
        try:
            keys.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_credentials(membership, keys)
            client = _client(membership, keys)
            opened.push_async_callback(client.close)
            if not ways.service_cidr:
                ways = ways._replace(service_cidr=await service_cidr(client))
            await check_rights(client)
            kubelet = options.kubelet
            if kubelet is None and ways.egress is None:
                kubelet = (await asyncio.to_thread(_own_address, membership), 0)
            options = msgspec.structs.replace(options, service_cidr=ways.service_cidr, kubelet=kubelet)
            node = Node(options, ForeignServer(membership, ways, keys, client))
            await node.start()
            opened.push_async_callback(node.stop)
            if ways.egress is not None:
                proxy = HttpProxy(listen_unix(ways.egress), Inwards(node))
                opened.callback(ways.egress.unlink, missing_ok=True)
                opened.push_async_callback(proxy.close)
        except (OSError, errors.ApiError) as problem:
            raise NodeFailed(str(problem)) from problem
        yield node


class Inwards:
    """Where an API server goes by the egress socket: into the node, or wherever this machine's network leads."""

    def __init__(self, node: Passage) -> None:
        self._node = node

    async def connect(self, host: str, port: int) -> socket.socket:
        try:
            if self._node.covers(host):
                return await self._node.dial(host, port)
            return await connect_tcp(host, port)
        except OSError as problem:
            raise NotReached(f"{host}:{port} cannot be reached: {problem}") from problem


def token_file(membership: Membership, keys: Path) -> str:
    """Return the file of the token that a node shows, if it shows one."""
    return membership.token_file or (str(keys.resolve() / "token") if membership.token else "")


def _write_credentials(membership: Membership, keys: Path) -> None:
    """Write how the node shows itself; what it showed at an earlier start goes."""
    for file, data in {
        "ca.crt": membership.authority,
        "client.key": membership.key,
        "client.crt": membership.certificate,
        "token": membership.token.encode(),
    }.items():
        if data:
            write_private(keys / file, data)
        else:
            (keys / file).unlink(missing_ok=True)


def _client(membership: Membership, keys: Path) -> HttpsClient:
    host = f"[{membership.host}]" if ":" in membership.host else membership.host
    path = token_file(membership, keys)
    return HttpsClient(
        f"https://{host}:{membership.port}",
        client_tls(keys),
        server_name=membership.server_name,
        token=TokenFile(Path(path), SystemClock()) if path else None,
    )


async def service_cidr(client: Reader) -> str:
    """Return the network of Services, which newer clusters tell."""
    try:
        listed = (await client.get(_SERVICE_CIDRS))["items"]
    except errors.Forbidden as refusal:
        raise NodeFailed(_MAY_PROXY) from refusal
    except errors.NotFound:
        listed = []
    found = [cidr for one in listed for cidr in one["spec"]["cidrs"] if ip_network(cidr).version == 4]
    if not found:
        raise NodeFailed(
            "the cluster does not tell which addresses Services have: say so with --service-cidr"
        )
    return str(found[0])


async def check_rights(client: Reader) -> None:
    """Raise NodeFailed, with the way out, if the node could not serve Services."""
    try:
        await client.get(_SLICES)
    except errors.Forbidden as refusal:
        raise NodeFailed(_MAY_PROXY) from refusal


def _own_address(membership: Membership) -> str:
    """Return this machine's address on the way to the API server, at which the server is likely to reach it."""
    family, *_, address = socket.getaddrinfo(membership.host, membership.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)  # only chooses the address; nothing is sent
        return str(probe.getsockname()[0])
