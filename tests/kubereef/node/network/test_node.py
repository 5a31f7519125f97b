"""The network of a node as a whole: Pods in namespaces of their own on the bridge of another."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from ipaddress import ip_interface, ip_network
from pathlib import Path

import pytest
from dnslib import DNSRecord

from kubereef.node.network import (
    Answers,
    DnsServer,
    Gate,
    LinkFailed,
    Links,
    Namespace,
    NamespaceThreads,
    NotForwarded,
    Outbound,
    Places,
    PodLink,
    Records,
    Relay,
    ServiceProxy,
    ServiceSpace,
    SocketsHere,
    SocketsThere,
    Way,
    best_way,
    connect_unix,
    listen_tcp,
    listen_unix,
    open_through,
    probe,
)
from kubereef.node.network.abilities import NetworkAbilities
from kubereef.node.network.links import hardware_address, link_name
from kubewire.sources import SeededEntropy, SystemClock
from tests.kubereef.node.network.inside import in_namespace
from tests.kubereef.node.network.manifests import endpoint_slice, headless, service
from tests.kubereef.node.network.peers import Server, asked, connected

PODS = ip_network("10.1.0.0/24")
SERVICES = ip_network("10.96.0.0/16")
SERVICE = ("10.96.0.10", 80)


class Pod:
    """A namespace on the bridge, and a way to have sockets in it."""

    def __init__(self, address, namespace, threads):
        self.address = address
        self.namespace = namespace
        self.sockets = SocketsThere(threads, namespace)

    async def listening(self, port=8080):
        made = await self.sockets.make(socket.AF_INET, socket.SOCK_STREAM)
        made.bind((self.address, port))
        made.listen()
        return made

    def run(self, *command):
        """The output of a program that runs in the Pod's network."""
        enter = ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.namespace.fd}"]
        return subprocess.run([*enter, *command], capture_output=True, text=True, timeout=20, check=False)


class Node:
    """A bridge, some Pods, a proxy and DNS."""

    def __init__(self):
        self.stack = contextlib.AsyncExitStack()

    async def __aenter__(self):
        self.links = await Links.start([ip_interface("10.1.0.1/24")])
        self.stack.callback(self.links.close)
        self.threads = self.stack.enter_context(NamespaceThreads("test"))
        return self

    async def __aexit__(self, *_):
        await self.stack.aclose()

    async def pod(self, number, *, routes=()):
        pod = Pod(f"10.1.0.{number}", self.stack.enter_context(Namespace.new()), self.threads)
        link = PodLink(f"pod-{number}", (ip_interface(f"{pod.address}/24"),), tuple(routes))
        await self.links.attach(link, pod.namespace.fd)
        return pod

    async def serve(self, *servers):
        """Start the proxy and DNS; the Service `web` is served by the given servers."""
        self.space = await ServiceSpace.start(self.links, ip_interface("10.1.0.2/24"), [SERVICES])
        self.stack.callback(self.space.close)
        there = SocketsThere(self.threads, self.space.namespace)
        places = Places(there, self.space, SocketsHere(), ("10.1.0.1",))
        self.proxy = ServiceProxy(places, SystemClock(), SeededEntropy(1))
        self.proxy.start()
        self.stack.push_async_callback(self.proxy.close)
        self.records = Records(networks=[PODS, SERVICES])
        answers = Answers(self.records)
        dns = await DnsServer.start(answers, there, ["10.96.0.53"])
        self.stack.push_async_callback(dns.close)
        self.behind(*servers)
        await self.proxy.settled()

    def behind(self, *servers, **spec):
        services = [service(ports=[{"port": 80, "nodePort": 30080}], **spec), headless()]
        addresses = [one.address[0] for one in servers]
        slices = [endpoint_slice("web", *addresses), endpoint_slice("peers", *addresses)]
        self.proxy.replace(services, slices)
        self.records.replace(services, slices)


@in_namespace()
async def test_pods_reach_each_other_and_the_node():
    async with Node() as node:
        a, b = await node.pod(5), await node.pod(6)
        async with Server("b", await b.listening()) as server:
            assert await asked(server.address, sockets=a.sockets) == "b"
            assert await asked(server.address) == "b"
        shown = a.run("ip", "-o", "addr").stdout
        assert "eth0    inet 10.1.0.5/24" in shown
        assert "127.0.0.1/8" in shown
        assert "default via 10.1.0.1 dev eth0" in a.run("ip", "route").stdout
        assert a.run("cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start").stdout == "0\n"


@in_namespace()
async def test_links_are_found_by_path_replaced_and_removed():
    async with Node() as node:
        pod = await node.pod(5)
        path = Path(f"/proc/{os.getpid()}/fd/{pod.namespace.fd}")
        link = PodLink("pod-5", (ip_interface("10.1.0.5/24"),))
        await node.links.attach(link, path)  # as after a start that was cut short
        names = [name for _, name in socket.if_nameindex()]
        assert names.count(link_name("pod-5")) == 1
        await node.links.detach("pod-5")
        await node.links.detach("pod-5")
        assert link_name("pod-5") not in [name for _, name in socket.if_nameindex()]
        assert "eth0" not in pod.run("ip", "link").stdout


@in_namespace()
async def test_a_link_that_cannot_be_made_says_which():
    async with Node() as node:
        with pytest.raises(LinkFailed, match="link of Pod x: "):
            await node.links.attach(PodLink("x", (ip_interface("10.1.0.5/24"),)), "/proc/self/ns/uts")


@in_namespace()
async def test_a_link_that_fails_half_way_leaves_nothing():
    async with Node() as node:
        before = socket.if_nameindex()
        bad = PodLink("x", (ip_interface("10.1.0.5/24"), ip_interface("10.1.0.5/24")))
        with Namespace.new() as namespace, pytest.raises(LinkFailed, match="link of Pod x: "):
            await node.links.attach(bad, namespace.fd)
        assert socket.if_nameindex() == before


@in_namespace()
async def test_no_thread_stays_in_the_namespace_of_a_pod():
    async with Node() as node:
        pod = await node.pod(5)
        (await pod.sockets.make(socket.AF_INET, socket.SOCK_STREAM)).close()
        with pytest.raises(ZeroDivisionError):
            await node.threads.run(pod.namespace, lambda: 1 / 0)
        assert _name(pod.namespace) not in _namespaces_of_threads()


def _name(namespace):
    return str(Path(f"/proc/self/fd/{namespace.fd}").readlink())


def _namespaces_of_threads():
    return [str((task / "ns/net").readlink()) for task in Path("/proc/self/task").iterdir()]


@in_namespace("ipv6")
async def test_a_pod_may_have_an_address_of_each_family():
    links = await Links.start([ip_interface("10.1.0.1/24"), ip_interface("fd00:1::1/64")])
    with Namespace.new() as namespace, NamespaceThreads("test") as threads:
        own = (ip_interface("10.1.0.5/24"), ip_interface("fd00:1::5/64"))
        await links.attach(PodLink("a", own), namespace.fd)
        pod = Pod("10.1.0.5", namespace, threads)
        client = await pod.sockets.make(socket.AF_INET6, socket.SOCK_STREAM)
        with client, socket.create_server(("fd00:1::1", 8080), family=socket.AF_INET6):
            async with asyncio.timeout(5):
                await asyncio.get_running_loop().sock_connect(client, ("fd00:1::1", 8080))
        assert "default via fd00:1::1" in pod.run("ip", "-6", "route").stdout
    links.close()


@in_namespace()
async def test_pods_reach_an_api_server_that_lives_outside_as_the_kubernetes_service():
    async with Node() as node:
        a = await node.pod(5)
        await node.serve()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "api")
            async with Server("api", listen_unix(path)):
                relay = Relay.to(listen_tcp("10.1.0.1", 6443), lambda: connect_unix(path))
                node.stack.push_async_callback(relay.close)
                node.proxy.apply_service(
                    service("kubernetes", ip="10.96.0.1", ports=[{"name": "https", "port": 443}])
                )
                node.proxy.apply_slice(
                    endpoint_slice("kubernetes", "10.1.0.1", ports=[{"name": "https", "port": 6443}])
                )
                await node.proxy.settled()
                assert await asked(("10.96.0.1", 443), sockets=a.sockets) == "api"


@in_namespace()
async def test_a_port_of_a_pod_is_reached_from_another_namespace_over_a_unix_socket():
    async with Node() as node:
        pod = await node.pod(5)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "gate")
            async with Server("a", await pod.listening()) as server:
                gate = Gate(listen_unix(path), lambda address, port: (address, port) == server.address)
                node.stack.push_async_callback(gate.close)
                with await open_through(path, *server.address) as connection:
                    assert await asyncio.get_running_loop().sock_recv(connection, 1) == b"a"
                with pytest.raises(NotForwarded):
                    await open_through(path, "10.1.0.1", 22)


@in_namespace()
async def test_fifty_links_are_made_within_seconds():
    async with Node() as node:
        began = SystemClock().monotonic()
        await asyncio.gather(*(node.pod(number) for number in range(10, 60)))
        took = SystemClock().monotonic() - began
        print(f"50 links: {took:.3f} s")
        assert len(socket.if_nameindex()) == 52
        assert took < 10


@in_namespace()
async def test_pods_reach_services_by_address_port_and_name():
    async with Node() as node:
        a, b, c = await node.pod(5), await node.pod(6), await node.pod(7)
        async with Server("b", await b.listening()) as b_server, Server("c", await c.listening()) as c_server:
            await node.serve(b_server, c_server)
            assert {await asked(SERVICE, sockets=a.sockets) for _ in range(4)} == {"b", "c"}
            assert (
                await asked(SERVICE, sockets=b.sockets) in "bc"
            )  # also one that is behind the Service itself
            assert await asked(SERVICE) in "bc"  # and the node
            assert await asked(("10.1.0.1", 30080), sockets=a.sockets) in "bc"
            for unserved in [("10.96.0.10", 81), ("10.96.7.7", 80)]:
                with pytest.raises(ConnectionRefusedError):
                    await asked(unserved, sockets=a.sockets)
            node.behind()
            await node.proxy.settled()
            with pytest.raises(ConnectionRefusedError):
                await asked(SERVICE, sockets=a.sockets)


@in_namespace()
async def test_a_program_of_the_hosts_network_may_have_the_port_of_a_service():
    async with Node() as node:
        a, b = await node.pod(5), await node.pod(6)
        async with Server("b", await b.listening()) as server:
            await node.serve(server)
            own = socket.create_server(("0.0.0.0", 80))
            own.setblocking(False)
            async with Server("host", own):
                assert await asked(SERVICE, sockets=a.sockets) == "b"
                assert await asked(("10.1.0.1", 80), sockets=a.sockets) == "host"


@in_namespace()
async def test_an_external_address_is_served_while_its_service_is_there():
    async with Node() as node:
        a, b = await node.pod(5), await node.pod(6)
        async with Server("b", await b.listening()) as server:
            await node.serve(server)
            node.behind(server, externalIPs=["203.0.113.9"])
            await node.proxy.settled()
            assert await asked(("203.0.113.9", 80), sockets=a.sockets) == "b"
            node.behind(server)
            await node.proxy.settled()
            with pytest.raises(OSError, match="Errno 101"):
                await asked(("203.0.113.9", 80), sockets=a.sockets)


@in_namespace()
async def test_endpoints_that_change_under_load_cost_no_connection_of_pods():
    async with Node() as node:
        a, b, c = await node.pod(5), await node.pod(6), await node.pod(7)
        async with Server("b", await b.listening()) as b_server, Server("c", await c.listening()) as c_server:
            await node.serve(b_server)
            reader, writer = await connected(SERVICE, sockets=a.sockets)
            answers = []

            async def client():
                answers.extend([await asked(SERVICE, sockets=a.sockets) for _ in range(40)])

            clients = [asyncio.create_task(client()) for _ in range(4)]
            while not all(task.done() for task in clients):
                for chosen in [(c_server,), (b_server, c_server), (b_server,)]:
                    node.behind(*chosen)
                    await asyncio.sleep(0.005)
            await asyncio.gather(*clients)
            assert (len(answers), set(answers)) == (160, {"b", "c"})
            node.behind(c_server)
            writer.write(b"still there")
            assert await reader.readexactly(12) == b"bstill there"
            writer.close()


PROGRAM = """
import ctypes, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.unshare(0x20000) == 0 and libc.mount(b"none", b"/", None, 0x44000, None) == 0  # own mounts, kept private
assert libc.mount(sys.argv[1].encode(), b"/etc/resolv.conf", None, 0x1000, None) == 0
for name in sys.argv[2:]:
    print(name, subprocess.run(["getent", "ahostsv4", name], capture_output=True, text=True).stdout.split()[:1])
"""


@in_namespace()
async def test_programs_in_a_pod_find_services_by_name():
    async with Node() as node:
        a, b = await node.pod(5), await node.pod(6)
        with tempfile.NamedTemporaryFile("w", suffix=".conf") as resolv:
            resolv.write(
                "search default.svc.cluster.local svc.cluster.local\nnameserver 10.96.0.53\noptions ndots:5\n"
            )
            resolv.flush()
            async with Server("b", await b.listening()) as server:
                await node.serve(server)
                names = ["web", "web.default", "peers.default.svc.cluster.local", "nobody"]
                arguments = [sys.executable, "-c", PROGRAM, resolv.name, *names]
                ended = await asyncio.to_thread(a.run, *arguments)
                assert ended.stdout.splitlines() == [
                    "web ['10.96.0.10']",
                    "web.default ['10.96.0.10']",
                    "peers.default.svc.cluster.local ['10.1.0.6']",
                    "nobody []",
                ], ended.stderr


@in_namespace()
async def test_a_pod_asks_dns_by_udp():
    async with Node() as node:
        a = await node.pod(5)
        await node.serve()
        loop = asyncio.get_running_loop()
        with await a.sockets.make(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("10.96.0.53", 53))
            await loop.sock_sendall(client, DNSRecord.question("web.default.svc.cluster.local").pack())
            async with asyncio.timeout(5):
                answer = DNSRecord.parse(await loop.sock_recv(client, 4096))
            assert str(answer.a.rdata) == "10.96.0.10"


async def world(node):
    """A namespace that stands for the host, with an address outside and a server there."""
    host = Pod("203.0.113.5", node.stack.enter_context(Namespace.new()), node.threads)
    await node.links.serve_network(ip_network("203.0.113.0/24"), host.namespace)
    host.run("ip", "link", "set", "lo", "up")
    return host


@in_namespace("redirect")
async def test_pods_get_out_without_noticing_how():
    async with Node() as node:
        a, host = await node.pod(5), await world(node)
        async with Server("outside", await host.listening(443)) as server:
            with pytest.raises(OSError, match="Errno 101"):
                await asked(server.address, sockets=a.sockets)
            way = await Outbound.start(Way.REDIRECT, node.links, host.namespace, networks=[PODS, SERVICES])
            node.stack.push_async_callback(way.close)
            assert await asked(server.address, sockets=a.sockets) == "outside"
            assert way.environment == {}
            with pytest.raises(ConnectionResetError):
                await asked(("203.0.113.5", 444), sockets=a.sockets)
            with pytest.raises(ConnectionResetError):  # loopback of the host stays closed, by whatever name
                await asked(("169.254.1.1", 443), sockets=a.sockets)


@in_namespace("redirect")
async def test_the_port_that_pods_are_redirected_to_leads_nowhere_by_itself():
    async with Node() as node:
        a, host = await node.pod(5), await world(node)
        way = await Outbound.start(Way.REDIRECT, node.links, host.namespace, networks=[PODS, SERVICES])
        node.stack.push_async_callback(way.close)
        await node.links.serve_network(PODS, host.namespace)  # the host happens to use the same addresses
        assert isinstance(way._serving, Relay)
        own = way._serving._listening.getsockname()
        same = await host.sockets.make(socket.AF_INET, socket.SOCK_STREAM)
        same.bind(own)
        same.listen()
        async with Server("host", same):
            with pytest.raises(ConnectionResetError):
                await asked(own, sockets=a.sockets)


@in_namespace()
async def test_pods_get_out_through_a_proxy_that_they_are_told_of():
    async with Node() as node:
        a, host = await node.pod(5), await world(node)
        async with Server("outside", await host.listening(443)):
            way = await Outbound.start(Way.PROXY, node.links, host.namespace, networks=[PODS, SERVICES])
            node.stack.push_async_callback(way.close)
            address, _, port = way.environment["https_proxy"].removeprefix("http://").partition(":")
            reader, writer = await connected((address, int(port)), sockets=a.sockets)
            writer.write(b"CONNECT 203.0.113.5:443 HTTP/1.1\r\n\r\n")
            assert await reader.readuntil(b"outside")
            writer.close()


@in_namespace("masquerade")
async def test_pods_get_out_over_a_link_under_the_nodes_address():
    async with Node() as node:
        a, host = await node.pod(5), await world(node)
        way = await Outbound.start(Way.LINK, node.links, host.namespace, networks=[PODS, SERVICES])
        assert way.host_link is not None
        assert not way.host_link.host_forwards
        made = await host.sockets.make(socket.AF_INET, socket.SOCK_STREAM)
        made.bind(("203.0.113.5", 443))
        made.listen()
        loop = asyncio.get_running_loop()
        with made:
            _, writer = await connected(("203.0.113.5", 443), sockets=a.sockets)
            client, peer = await loop.sock_accept(made)
            client.close()
            writer.close()
        assert peer[0] == str(way.host_link.node.ip)
        assert "kubereef0" in host.run("ip", "link").stdout


LINKING = """
import asyncio, sys
from ipaddress import ip_interface, ip_network
from kubereef.node.network import Links, Namespace, Outbound, Way

async def main():
    links = await Links.start([ip_interface("10.1.0.1/24")])
    await Outbound.start(Way.LINK, links, Namespace.at(sys.argv[1]), networks=[])
    print("linked", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@in_namespace("masquerade")
async def test_the_link_to_the_host_ends_with_a_node_that_is_killed():
    command = ["unshare", "--net", sys.executable, "-c", LINKING, f"/proc/{os.getpid()}/ns/net"]
    node = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert node.stdout is not None
    assert await node.stdout.readline() == b"linked\n"
    assert "kubereef0" in [name for _, name in socket.if_nameindex()]
    node.kill()
    await node.wait()
    for _ in range(500):  # the kernel tidies namespaces up in its own time
        if "kubereef0" not in [name for _, name in socket.if_nameindex()]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the link is still there after ten seconds")


@in_namespace()
async def test_switched_off_nothing_gets_out():
    async with Node() as node:
        a, host = await node.pod(5), await world(node)
        way = await Outbound.start(Way.OFF, node.links, host.namespace, networks=[PODS, SERVICES])
        with pytest.raises(OSError, match="Errno 101"):
            await asked(("203.0.113.5", 443), sockets=a.sockets)
        await way.close()


@in_namespace()
async def test_probing_leaves_nothing_behind():
    before = socket.if_nameindex()
    probe()
    assert socket.if_nameindex() == before


@pytest.mark.parametrize(
    ("missing", "want"),
    [
        pytest.param(NetworkAbilities(), Way.REDIRECT, id="unnoticed where the kernel has nf_tables"),
        pytest.param(NetworkAbilities(redirect="no nf_tables"), Way.PROXY, id="by proxy where it has not"),
    ],
)
def test_best_way_out(missing, want):
    assert best_way(missing) is want


def test_names_and_hardware_of_links_are_always_the_same():
    assert link_name("default/pod-with-a-long-name") == link_name("default/pod-with-a-long-name")
    assert len(link_name("x" * 300)) == 15
    assert hardware_address(ip_interface("10.1.0.5/24").ip) == "0a:58:0a:01:00:05"


def test_missing_abilities_are_told_with_their_reason():
    assert NetworkAbilities(ipv6="no such thing").missing == {"ipv6": "no such thing"}
    assert not NetworkAbilities(links="no").can_connect_pods
