"""What the names of a cluster stand for."""

from ipaddress import ip_network

import pytest

from kubereef.node.network.dns.records import Alias, Answer, Host, Location, Pointer, Records, Text, name_of
from tests.kubereef.node.network.manifests import endpoint, endpoint_slice, headless, service

NETWORKS = [ip_network("10.1.0.0/16"), ip_network("10.96.0.0/16")]
PORTS = [{"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
OFFERED = [{"name": "http", "port": 8080}]
WEB = name_of("web.default.svc.cluster.local")
PEERS = name_of("peers.default.svc.cluster.local")


def records(*services, slices=()):
    known = Records(networks=NETWORKS)
    known.replace(services, slices)
    return known


def found(known, name):
    return set(known.lookup(name_of(name)).records)


PLAIN = records(service(ports=PORTS), service("dual", clusterIPs=["10.96.0.11", "fd00::11"]))
GROUP = records(
    headless(),
    slices=[
        endpoint_slice(
            "peers",
            endpoint("10.1.0.5", hostname="peer-0"),
            endpoint("10.1.0.6"),
            endpoint("10.1.0.7", ready=False),
            ports=OFFERED,
        )
    ],
)


@pytest.mark.parametrize(
    ("known", "name", "want"),
    [
        pytest.param(PLAIN, "web.default.svc.cluster.local", {Host("10.96.0.10")}, id="a Service's address"),
        pytest.param(
            PLAIN,
            "dual.default.svc.cluster.local",
            {Host("10.96.0.11"), Host("fd00::11")},
            id="an address of each family",
        ),
        pytest.param(
            PLAIN, "_http._tcp.web.default.svc.cluster.local", {Location(80, WEB, 100)}, id="a port by name"
        ),
        pytest.param(
            PLAIN, "_dns._udp.web.default.svc.cluster.local", {Location(53, WEB, 100)}, id="a port of UDP"
        ),
        pytest.param(PLAIN, "10.0.96.10.in-addr.arpa", {Pointer(WEB)}, id="the name of a Service's address"),
        pytest.param(
            GROUP,
            "peers.default.svc.cluster.local",
            {Host("10.1.0.5"), Host("10.1.0.6")},
            id="the ready endpoints of a headless Service",
        ),
        pytest.param(
            GROUP, "peer-0.peers.default.svc.cluster.local", {Host("10.1.0.5")}, id="a Pod by its hostname"
        ),
        pytest.param(
            GROUP,
            "10-1-0-6.peers.default.svc.cluster.local",
            {Host("10.1.0.6")},
            id="a Pod without one by address",
        ),
        pytest.param(
            GROUP,
            "_http._tcp.peers.default.svc.cluster.local",
            {Location(8080, ("peer-0", *PEERS), 50), Location(8080, ("10-1-0-6", *PEERS), 50)},
            id="a port of a headless Service, at each endpoint",
        ),
        pytest.param(
            GROUP, "5.0.1.10.in-addr.arpa", {Pointer(("peer-0", *PEERS))}, id="the name of a Pod's address"
        ),
        pytest.param(
            records(
                headless(publishNotReadyAddresses=True),
                slices=[endpoint_slice("peers", endpoint("10.1.0.7", ready=False))],
            ),
            "peers.default.svc.cluster.local",
            {Host("10.1.0.7")},
            id="unready endpoints if the Service wants them published",
        ),
        pytest.param(
            records(service("db", type="ExternalName", externalName="DB.example.com.")),
            "db.default.svc.cluster.local",
            {Alias(("db", "example", "com"))},
            id="another name",
        ),
        pytest.param(
            PLAIN, "10-1-2-3.default.pod.cluster.local", {Host("10.1.2.3")}, id="a Pod by its address"
        ),
        pytest.param(
            PLAIN, "fd00--5.default.pod.cluster.local", {Host("fd00::5")}, id="a Pod by a long address"
        ),
        pytest.param(
            PLAIN, "dns-version.cluster.local", {Text("1.1.0")}, id="the version of the specification"
        ),
    ],
)
def test_name_stands_for(known, name, want):
    assert found(known, name) == want


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param(
            "nobody.default.svc.cluster.local", Answer(True), id="an unknown Service does not exist"
        ),
        pytest.param("x.web.default.svc.cluster.local", Answer(True), id="nor does a name below one"),
        pytest.param(
            "web.nowhere.svc.cluster.local", Answer(True), id="nor does one in an unknown namespace"
        ),
        pytest.param("cluster.local", Answer(True, exists=True), id="the domain exists"),
        pytest.param("svc.cluster.local", Answer(True, exists=True), id="the Services' part exists"),
        pytest.param(
            "default.svc.cluster.local", Answer(True, exists=True), id="a namespace with Services exists"
        ),
        pytest.param(
            "_tcp.web.default.svc.cluster.local",
            Answer(True, exists=True),
            id="a name with others below it exists",
        ),
        pytest.param(
            "256-1-2-3.default.pod.cluster.local", Answer(True), id="a Pod without an address does not exist"
        ),
        pytest.param(
            "9.9.96.10.in-addr.arpa", Answer(True), id="an unknown address of the cluster has no name"
        ),
        pytest.param(
            "9.9.9.9.in-addr.arpa", Answer(False), id="another address is not the cluster's business"
        ),
        pytest.param("packages.example", Answer(False), id="another name is not the cluster's business"),
        pytest.param("mycluster.local", Answer(False), id="a name that merely ends alike is not either"),
        pytest.param("x.in-addr.arpa", Answer(False), id="nor is a reverse name that is no address"),
    ],
)
def test_name_without_records(name, want):
    assert PLAIN.lookup(name_of(name)) == want


def test_a_headless_service_without_endpoints_exists_without_records():
    assert records(headless()).lookup(PEERS) == Answer(True, exists=True)


def test_names_come_and_go_with_their_objects():
    known = Records()
    known.apply_slice(endpoint_slice("peers", endpoint("10.1.0.5", hostname="a"), name="one"))
    assert not known.lookup(PEERS).exists
    known.apply_service(headless())
    assert found(known, "a.peers.default.svc.cluster.local") == {Host("10.1.0.5")}
    known.apply_slice(endpoint_slice("peers", endpoint("10.1.0.6", hostname="b"), name="one"))
    assert not known.lookup(("a", *PEERS)).exists
    assert found(known, "peers.default.svc.cluster.local") == {Host("10.1.0.6")}
    known.remove_slice("default", "one")
    assert known.lookup(PEERS) == Answer(True, exists=True)
    known.remove_service("default", "peers")
    assert not known.lookup(name_of("default.svc.cluster.local")).exists
    assert (known._records, known._below, known._zones) == ({}, {}, {})


def test_two_services_may_know_the_same_address():
    slices = [endpoint_slice(name, endpoint("10.1.0.5", hostname="a")) for name in ("peers", "others")]
    known = records(headless(), headless("others"), slices=slices)
    assert len(found(known, "5.0.1.10.in-addr.arpa")) == 2
    known.remove_service("default", "others")
    assert found(known, "5.0.1.10.in-addr.arpa") == {Pointer(("a", *PEERS))}


def test_one_change_at_a_time_ends_where_replacing_everything_does():
    services = [service(), headless(), service("dual", clusterIPs=["10.96.0.11", "fd00::11"])]
    slices = [endpoint_slice("peers", f"10.1.0.{number}", name=f"s{number}") for number in range(1, 9)]
    step_by_step = Records()
    for number, one in enumerate(slices):
        step_by_step.apply_slice(one)
        step_by_step.apply_service(services[number % 3])
    step_by_step.remove_slice("default", "s3")
    at_once = Records()
    at_once.replace(services, [one for one in slices if one["metadata"]["name"] != "s3"])
    assert step_by_step._records == at_once._records
    assert step_by_step._below == at_once._below


def test_another_domain():
    known = Records("k8s.example.org")
    known.apply_service(service())
    assert found(known, "web.default.svc.k8s.example.org") == {Host("10.96.0.10")}
    assert not known.is_ours(name_of("web.default.svc.cluster.local"))
