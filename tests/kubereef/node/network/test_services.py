"""Services as the network reads them."""

import pytest

from kubereef.node.network.services import (
    Endpoint,
    EndpointPort,
    ServiceKey,
    ServicePort,
    Services,
    read_service,
)
from tests.kubereef.node.network.manifests import endpoint, endpoint_slice, headless, service

WEB = ServiceKey("default", "web")


@pytest.mark.parametrize(
    ("manifest", "field", "want"),
    [
        pytest.param(service(ip="10.96.0.1"), "addresses", ("10.96.0.1",), id="one address"),
        pytest.param(
            service(clusterIPs=["10.96.0.1", "fd00::1"]),
            "addresses",
            ("10.96.0.1", "fd00::1"),
            id="an address of each family",
        ),
        pytest.param(headless(), "addresses", (), id="a headless Service has no address"),
        pytest.param(headless(), "is_headless", True, id="a headless Service is one"),
        pytest.param(
            service(ip=""), "is_headless", False, id="a Service that waits for its address is not headless"
        ),
        pytest.param(
            service(type="ExternalName", externalName="db.example.com"),
            "external_name",
            "db.example.com",
            id="another name",
        ),
        pytest.param(
            service(sessionAffinity="ClientIP"), "affinity_seconds", 10800, id="affinity for three hours"
        ),
        pytest.param(
            service(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 30}}),
            "affinity_seconds",
            30,
            id="affinity for as long as the Service says",
        ),
        pytest.param(
            service(ports=[{"name": "a", "port": 1, "nodePort": 30001}, {"port": 2, "protocol": "UDP"}]),
            "ports",
            (ServicePort("a", "TCP", 1, 30001), ServicePort("", "UDP", 2)),
            id="ports with what they leave out",
        ),
    ],
)
def test_read_service(manifest, field, want):
    assert getattr(read_service(manifest), field) == want


def test_endpoints_are_collected_from_all_slices_of_a_service():
    services = Services()
    services.apply_slice(endpoint_slice("web", "10.1.0.5", name="web-1"))
    services.apply_slice(endpoint_slice("web", "10.1.0.6", name="web-2"))
    services.apply_slice(endpoint_slice("other", "10.1.0.7"))
    assert [one.address for one in services.endpoints(WEB)] == ["10.1.0.5", "10.1.0.6"]


def test_an_endpoint_that_is_in_two_slices_counts_once_and_the_better_news_wins():
    services = Services()
    services.apply_slice(endpoint_slice("web", endpoint("10.1.0.5", ready=False), name="web-1"))
    services.apply_slice(endpoint_slice("web", endpoint("10.1.0.5"), name="web-2"))
    assert services.endpoints(WEB) == [Endpoint("10.1.0.5", ports=(EndpointPort("", "TCP", 8080),))]


@pytest.mark.parametrize(
    ("one", "want"),
    [
        pytest.param({"addresses": ["10.1.0.5"]}, (True, True, False), id="unknown counts as ready"),
        pytest.param(endpoint("10.1.0.5", ready=False), (False, False, False), id="not ready does not serve"),
        pytest.param(
            endpoint("10.1.0.5", ready=False, serving=True, terminating=True),
            (False, True, True),
            id="terminating but still serving",
        ),
    ],
)
def test_conditions_of_an_endpoint(one, want):
    services = Services()
    services.apply_slice(endpoint_slice("web", one))
    (found,) = services.endpoints(WEB)
    assert (found.is_ready, found.is_serving, found.is_terminating) == want


def test_endpoints_that_are_names_are_left_out():
    services = Services()
    services.apply_slice(endpoint_slice("web", "db.example.com", kind="FQDN"))
    assert services.endpoints(WEB) == []


def test_only_what_changed_is_reported():
    services = Services()
    assert services.replace([service()], [endpoint_slice("web", "10.1.0.5")]) == {WEB}
    assert services.apply_service(service()) == set()
    assert services.apply_slice(endpoint_slice("web", "10.1.0.5")) == set()
    assert services.apply_slice(endpoint_slice("web", "10.1.0.6")) == {WEB}
    assert services.remove_slice("default", "web-1") == {WEB}
    assert services.remove_slice("default", "web-1") == set()
    assert services.remove_service("default", "web") == {WEB}
    assert services.get(WEB) is None


def test_a_slice_that_moves_to_another_service_changes_both():
    services = Services()
    services.apply_slice(endpoint_slice("web", "10.1.0.5", name="one"))
    other = ServiceKey("default", "other")
    assert services.apply_slice(endpoint_slice("other", "10.1.0.5", name="one")) == {WEB, other}
    assert services.endpoints(WEB) == []
    assert len(services.endpoints(other)) == 1


def test_replacing_everything_forgets_what_is_not_there_any_more():
    services = Services()
    services.replace([service(), service("old")], [endpoint_slice("old", "10.1.0.5")])
    assert services.replace([service()], []) == {ServiceKey("default", "old")}
    assert list(services) == [WEB]
    assert services.endpoints(ServiceKey("default", "old")) == []
