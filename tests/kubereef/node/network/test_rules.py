"""What the proxy shall do, as a function of a Service and its endpoints."""

import pytest

from kubereef.node.network.proxy.rules import Backend, Listener, Target, service_rules
from kubereef.node.network.services import ServiceKey, Services
from tests.kubereef.node.network.manifests import endpoint, endpoint_slice, headless, service

NODE = ["192.168.0.2"]
LEAVING = endpoint("10.1.0.6", ready=False, serving=True, terminating=True)


def rules(one, *slices):
    services = Services()
    services.replace([one], slices)
    key = ServiceKey(one["metadata"]["namespace"], one["metadata"]["name"])
    known = services.get(key)
    assert known is not None
    return service_rules(known, services.endpoints(key), NODE)


WEB = Listener("10.96.0.10", 80, "TCP")


@pytest.mark.parametrize(
    ("endpoints", "want"),
    [
        pytest.param(
            ["10.1.0.5", "10.1.0.4"],
            {WEB: Target((Backend("10.1.0.4", 8080), Backend("10.1.0.5", 8080)))},
            id="all that are ready",
        ),
        pytest.param(
            [endpoint("10.1.0.5"), endpoint("10.1.0.6", ready=False)],
            {WEB: Target((Backend("10.1.0.5", 8080),))},
            id="not those that are not",
        ),
        pytest.param(
            [endpoint("10.1.0.5"), LEAVING],
            {WEB: Target((Backend("10.1.0.5", 8080),))},
            id="nobody who leaves while somebody is ready",
        ),
        pytest.param(
            [LEAVING, endpoint("10.1.0.7", ready=False)],
            {WEB: Target((Backend("10.1.0.6", 8080),))},
            id="those who leave but still serve if nobody is ready",
        ),
        pytest.param([], {}, id="no listener without endpoints"),
        pytest.param([endpoint("10.1.0.5", ready=False)], {}, id="no listener without a ready endpoint"),
    ],
)
def test_who_serves(endpoints, want):
    assert rules(service(), endpoint_slice("web", *endpoints)) == want


def test_each_port_is_found_by_name_and_protocol():
    ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "web", "port": 80}]
    offered = [
        {"name": "web", "port": 8080},
        {"name": "dns", "port": 5353, "protocol": "UDP"},
        {"name": "x", "port": 1},
    ]
    assert rules(service(ports=ports), endpoint_slice("web", "10.1.0.5", ports=offered)) == {
        Listener("10.96.0.10", 53, "UDP"): Target((Backend("10.1.0.5", 5353),)),
        Listener("10.96.0.10", 80, "TCP"): Target((Backend("10.1.0.5", 8080),)),
    }


def test_endpoints_may_have_different_ports():
    slices = [
        endpoint_slice("web", "10.1.0.5", name="a"),
        endpoint_slice("web", "10.1.0.6", name="b", ports=[{"port": 9090}]),
    ]
    assert rules(service(), *slices)[WEB].backends == (Backend("10.1.0.5", 8080), Backend("10.1.0.6", 9090))


def test_a_node_port_listens_at_the_nodes_addresses():
    ports = [{"port": 80, "nodePort": 30080}]
    found = rules(service(type="NodePort", ports=ports), endpoint_slice("web", "10.1.0.5"))
    target = Target((Backend("10.1.0.5", 8080),))
    assert found == {WEB: target, Listener("192.168.0.2", 30080, "TCP", is_node_port=True): target}


def test_external_addresses_are_served_like_the_services_own():
    found = rules(service(externalIPs=["203.0.113.9"]), endpoint_slice("web", "10.1.0.5"))
    assert Listener("203.0.113.9", 80, "TCP") in found


def test_an_address_is_served_by_endpoints_of_its_own_family():
    found = rules(
        service(clusterIPs=["10.96.0.10", "fd00::10"]),
        endpoint_slice("web", "10.1.0.5", name="four"),
        endpoint_slice("web", "fd01::5", name="six", kind="IPv6"),
    )
    assert found == {
        WEB: Target((Backend("10.1.0.5", 8080),)),
        Listener("fd00::10", 80, "TCP"): Target((Backend("fd01::5", 8080),)),
    }


def test_affinity_goes_with_the_target():
    found = rules(service(sessionAffinity="ClientIP"), endpoint_slice("web", "10.1.0.5"))
    assert found[WEB].affinity_seconds == 10800


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(headless("web"), id="a headless Service"),
        pytest.param(service(type="ExternalName", externalName="db.example.com"), id="another name"),
        pytest.param(service(ports=[{"port": 80, "protocol": "SCTP"}]), id="a protocol that is not proxied"),
    ],
)
def test_no_listener_for(one):
    assert (
        rules(one, endpoint_slice("web", "10.1.0.5", ports=[{"port": 80, "protocol": "SCTP"}, {"port": 80}]))
        == {}
    )
