"""Where dashboards are."""

import pytest

from eagleray.dashboard.address import AddressError, head_address, serve_address, status_address
from tests.eagleray.dashboard.places import head_service


def test_a_head_service_gives_name_and_port_without_scheme():
    address = head_address(head_service(), domain="cluster.local")
    assert address.host == "demo-head-svc.default.svc.cluster.local:8265"
    assert str(address) == address.host


def test_the_port_is_found_by_its_name_and_the_domain_is_the_clusters():
    ports = [{"name": "gcs-server", "port": 6379}, {"name": "dashboard", "port": 9000}]
    address = head_address(head_service(ports=ports), domain="corp.example")
    assert address.host == "demo-head-svc.default.svc.corp.example:9000"


def test_through_the_api_server_the_port_goes_by_its_name():
    address = head_address(head_service("odd name", "team"), domain="cluster.local")
    assert address.proxied == "/api/v1/namespaces/team/services/odd%20name:dashboard/proxy"


@pytest.mark.parametrize(
    "ports",
    [
        pytest.param([], id="no port at all"),
        pytest.param([{"name": "serve", "port": 8000}], id="other ports only"),
        pytest.param([{"port": 8265}], id="a port without a name"),
    ],
)
def test_a_service_without_a_dashboard_port_is_an_error_that_says_what_to_do(ports):
    with pytest.raises(AddressError, match=r"Service default/demo-head-svc.*dashboard.*name the"):
        head_address(head_service(ports=ports), domain="cluster.local")


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_status_gives_back_the_address_it_was_written_from(scheme):
    written = head_address(head_service(), domain="cluster.local", secret="token")
    assert status_address("default", f"{scheme}{written.host}", secret="token") == written


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("demo-head-svc.other.svc.cluster.local:8265", id="another namespace"),
        pytest.param("169.254.169.254:80", id="an address of a cloud's metadata"),
        pytest.param("demo-head-svc.default.svc.cluster.local", id="no port"),
        pytest.param("demo-head-svc.default.svc.cluster.local:0", id="port 0"),
        pytest.param("demo-head-svc.default.svc.cluster.local:99999", id="a port too high"),
        pytest.param("demo-head-svc.default.svc.cluster.local:٣", id="a digit of another script"),
        pytest.param("user@demo-head-svc.default.svc.cluster.local:8265", id="a user name"),
        pytest.param("demo-head-svc.default.svc.cluster.local/x?:8265", id="a path"),
        pytest.param("x" * 100_000, id="very long"),
        pytest.param("", id="empty"),
    ],
)
def test_a_status_that_leads_elsewhere_is_refused(url):
    with pytest.raises(AddressError, match=r"status\.dashboardURL"):
        status_address("default", url)


def test_the_serve_proxy_of_a_pod_is_at_its_ip_and_behind_the_api_server():
    address = serve_address("default", "demo-head", "10.0.0.7", 8000)
    assert address.host == "10.0.0.7:8000"
    assert address.proxied == "/api/v1/namespaces/default/pods/demo-head:8000/proxy"
    assert serve_address("default", "demo-head", "fd00::7", 8000).host == "[fd00::7]:8000"
