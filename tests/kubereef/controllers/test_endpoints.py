"""Endpoints and EndpointSlices: the Pods behind a Service, where they are and whether they serve."""

import pytest

from kubereef.controllers import backends, endpoints, endpointslices
from kubereef.controllers.endpoints import EndpointsController
from kubereef.controllers.endpointslices import MOST_ENDPOINTS, EndpointSliceController
from kubereef.controllers.garbage import GarbageCollector
from kubereef.controllers.serviceaccounts import ServiceAccountController
from tests.kubereef.controllers.making import CORE, PODS, at, items, node, register
from tests.kubereef.controllers.making import pod as bare_pod

SERVICES = f"{CORE}/services"
ENDPOINTS = f"{CORE}/endpoints"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
TRIGGER = "endpoints.kubernetes.io/last-change-trigger-time"


def service(**spec):
    ports = [{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}]
    meta = {
        "name": "s",
        "namespace": "default",
        "uid": "s",
        "creationTimestamp": at(0),
        "labels": {"team": "x"},
    }
    return {
        "metadata": meta,
        "spec": {"selector": {"app": "a"}, "clusterIP": "10.96.0.9", "ports": ports, **spec},
    }


def pod(name, ip="10.1.0.1", *, port=8080, ready=0, going=False, **more):
    made = bare_pod(name, phase=more.pop("phase", "Running"), ready=ready, node="n", **more)
    made["status"] |= {"podIP": ip, "podIPs": [{"ip": ip}]} if ip else {}
    made["spec"]["containers"][0]["ports"] = [{"name": "http", "containerPort": port, "protocol": "TCP"}]
    if going:
        made["metadata"]["deletionTimestamp"] = at(50)
    return made


# --- plans


@pytest.mark.parametrize(
    ("target", "want"),
    [
        pytest.param("http", 8080, id="a name is looked up in the Pod"),
        pytest.param(9090, 9090, id="a number is taken as it is"),
        pytest.param("grpc", None, id="a name that the Pod does not have is left out"),
    ],
)
def test_where_a_port_leads(target, want):
    found = backends.ports(service(ports=[{"port": 80, "targetPort": target}]), pod("p"))
    assert found == ([{"name": "", "port": want, "protocol": "TCP"}] if want else [])


def test_a_sidecar_offers_ports_too_and_the_protocol_has_to_agree():
    made = pod("p")
    made["spec"]["initContainers"] = [
        {"name": "s", "restartPolicy": "Always", "ports": [{"name": "metrics", "containerPort": 9}]},
        {"name": "i", "ports": [{"name": "other", "containerPort": 7}]},
    ]
    ports = [
        {"name": "m", "port": 1, "targetPort": "metrics", "appProtocol": "http"},
        {"name": "o", "port": 2, "targetPort": "other"},
        {"name": "u", "port": 3, "targetPort": "http", "protocol": "UDP"},
    ]
    want = [{"name": "m", "port": 9, "protocol": "TCP", "appProtocol": "http"}]
    assert backends.ports(service(ports=ports), made) == want


@pytest.mark.parametrize(
    ("made", "publish", "want"),
    [
        pytest.param(pod("p"), False, (True, True, False), id="a ready Pod"),
        pytest.param(pod("p", ready=None), False, (False, False, False), id="an unready Pod"),
        pytest.param(pod("p", ready=None), True, (True, False, False), id="an unready Pod that is published"),
        pytest.param(
            pod("p", going=True), False, (False, True, True), id="a Pod that is going, and still serves"
        ),
        pytest.param(pod("p", phase="Succeeded"), False, None, id="a Pod that has ended"),
        pytest.param(pod("p", ip=""), False, None, id="a Pod without an address"),
    ],
)
def test_what_a_slice_says_of_a_pod(made, publish, want):
    asked = service(publishNotReadyAddresses=publish)
    groups = endpointslices.endpoints_by_ports(asked, [made], "IPv4", {"n": "z1"})
    found = [
        tuple(one["conditions"][name] for name in ("ready", "serving", "terminating"))
        for group in groups
        for one in group.endpoints
    ]
    assert found == ([want] if want else [])


@pytest.mark.parametrize(
    ("made", "publish", "want"),
    [
        pytest.param(pod("p"), False, "addresses", id="a ready Pod"),
        pytest.param(pod("p", ready=None), False, "notReadyAddresses", id="an unready Pod"),
        pytest.param(pod("p", ready=None), True, "addresses", id="an unready Pod that is published"),
        pytest.param(pod("p", going=True), False, None, id="a Pod that is going"),
        pytest.param(pod("p", going=True), True, "addresses", id="a Pod that is going and is published"),
    ],
)
def test_where_endpoints_list_a_pod(made, publish, want):
    shown, _left_out = endpoints.subsets(service(publishNotReadyAddresses=publish), [made])
    assert [next(iter(one)) for one in shown] == ([want] if want else [])


def test_pods_with_other_ports_are_apart():
    shown, _left_out = endpoints.subsets(service(), [pod("a"), pod("b", "10.1.0.2", port=9090)])
    assert [one["ports"][0]["port"] for one in shown] == [8080, 9090]
    groups = endpointslices.endpoints_by_ports(service(), [pod("a"), pod("b", port=9090)], "IPv4", {})
    assert len(groups) == 2


def test_a_pod_of_the_subdomain_has_its_hostname():
    made = pod("p", hostname="first", subdomain="s")
    shown, _left_out = endpoints.subsets(service(clusterIP="None"), [made])
    assert shown[0]["addresses"][0]["hostname"] == "first"
    groups = endpointslices.endpoints_by_ports(service(), [made], "IPv4", {})
    assert groups[0].endpoints[0]["hostname"] == "first"


def test_a_headless_service_needs_no_ports():
    shown, _left_out = endpoints.subsets(service(clusterIP="None", ports=[]), [pod("p")])
    assert [one["ip"] for one in shown[0]["addresses"]] == ["10.1.0.1"]


def test_endpoints_beyond_what_fits_are_left_out_and_the_unready_first():
    crowd = [pod(f"p{n}", f"10.1.{n >> 8}.{n & 255}", ready=None if n < 5 else 0) for n in range(1003)]
    made = endpoints.endpoints_of(service(), crowd, None, "")
    listed = made["subsets"][0]
    assert (len(listed["addresses"]), len(listed["notReadyAddresses"])) == (998, 2)
    assert made["metadata"]["annotations"] == {"endpoints.kubernetes.io/over-capacity": "truncated"}


def test_both_families_are_told_apart():
    made = pod("p")
    made["status"]["podIPs"] = [{"ip": "10.1.0.1"}, {"ip": "fd00::1"}]
    asked = service(ipFamilies=["IPv4", "IPv6"])
    for family, ip in (("IPv4", "10.1.0.1"), ("IPv6", "fd00::1")):
        groups = endpointslices.endpoints_by_ports(asked, [made], family, {})
        assert groups[0].endpoints[0]["addresses"] == [ip]


def planned(asked, chosen, present=(), trigger=""):
    wanted = {"IPv4": endpointslices.endpoints_by_ports(asked, chosen, "IPv4", {})}
    return endpointslices.plan(asked, wanted, list(present), trigger)


def stored(made, name):
    return {**made, "metadata": {**made["metadata"], "name": name}}


def test_slices_hold_at_most_a_hundred_endpoints():
    crowd = [pod(f"p{n}", f"10.1.{n >> 8}.{n & 255}") for n in range(250)]
    made = planned(service(), crowd).create
    assert [len(one["endpoints"]) for one in made] == [MOST_ENDPOINTS, MOST_ENDPOINTS, 50]


def test_one_more_pod_changes_one_slice_only():
    crowd = [pod(f"p{n}", f"10.1.{n >> 8}.{n & 255}") for n in range(150)]
    present = [stored(one, f"s-{n}") for n, one in enumerate(planned(service(), crowd).create)]
    changes = planned(service(), [*crowd, pod("new", "10.2.0.1")], present)
    assert (changes.create, changes.delete) == ([], [])
    assert [one["metadata"]["name"] for one in changes.update] == ["s-1"]
    assert planned(service(), crowd, present) == endpointslices.Changes([], [], [])


def test_a_slice_that_nobody_needs_becomes_the_one_that_is_missing():
    present = [stored(one, "s-0") for one in planned(service(), [pod("p")]).create]
    changes = planned(service(), [pod("p", port=9090)], present)
    assert (changes.create, changes.delete) == ([], [])
    assert changes.update[0]["metadata"]["name"] == "s-0"
    assert changes.update[0]["ports"][0]["port"] == 9090


def test_without_pods_one_empty_slice_is_left():
    crowd = [pod(f"p{n}", f"10.1.{n >> 8}.{n & 255}") for n in range(150)]
    present = [stored(one, f"s-{n}") for n, one in enumerate(planned(service(), crowd).create)]
    changes = planned(service(), [], present)
    assert changes.create == []
    assert [(one["endpoints"], one["ports"]) for one in changes.update] == [(None, None)]
    assert len(changes.delete) == 1


# --- in a cluster


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(
        ServiceAccountController, GarbageCollector, EndpointsController, EndpointSliceController
    )
    return simulated_cluster.client


async def create_service(client, **spec):
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    await client.create(
        SERVICES, {"metadata": {"name": "s"}, "spec": {"selector": {"app": "a"}, "ports": ports, **spec}}
    )


async def create_pod(client, name, ip, *, ready=True):
    made = pod(name)
    meta = {"name": name, "labels": {"app": "a"}}
    await client.create(PODS, {"metadata": meta, "spec": made["spec"]})
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": at(7)}
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [condition]}
    await client.patch(f"{PODS}/{name}/status", {"status": status})


async def slices(client):
    return [one for one in await items(client, SLICES) if one["metadata"]["name"] != "kubernetes"]


async def test_a_pod_comes_and_goes_with_its_label(client, simulated_cluster):
    await register(client, node("n", labels={"topology.kubernetes.io/zone": "z1"}))
    await create_service(client)
    await simulated_cluster.pass_time(8)
    assert [one["endpoints"] for one in await slices(client)] == [None]
    await create_pod(client, "p", "10.1.0.1")
    await simulated_cluster.pass_time(1)
    found = (await slices(client))[0]
    assert [(one["addresses"], one["zone"]) for one in found["endpoints"]] == [(["10.1.0.1"], "z1")]
    assert found["metadata"]["annotations"][TRIGGER] == at(7)
    await client.patch("/api/v1/nodes/n", {"metadata": {"labels": {"topology.kubernetes.io/zone": "z2"}}})
    await simulated_cluster.pass_time(1)
    assert [one["zone"] for one in (await slices(client))[0]["endpoints"]] == ["z2"]
    old = await client.get(f"{ENDPOINTS}/s")
    assert old["subsets"][0]["addresses"][0]["ip"] == "10.1.0.1"
    assert old["metadata"]["annotations"][TRIGGER] == at(7)
    await client.patch(f"{PODS}/p", {"metadata": {"labels": {"app": "b"}}})
    await simulated_cluster.pass_time(1)
    assert [one["endpoints"] for one in await slices(client)] == [None]
    assert "subsets" not in await client.get(f"{ENDPOINTS}/s")


async def test_what_is_as_it_should_be_is_not_written_again(client, simulated_cluster):
    await create_service(client)
    await create_pod(client, "p", "10.1.0.1")
    await simulated_cluster.pass_time(1)
    before = simulated_cluster.store.revision
    await client.patch(f"{PODS}/p", {"metadata": {"annotations": {"touch": "1"}}})
    await simulated_cluster.restart_controllers()
    await simulated_cluster.pass_time(5)
    assert simulated_cluster.store.revision == before + 1


async def test_everything_goes_with_the_service(client, simulated_cluster):
    await create_service(client)
    await simulated_cluster.pass_time(1)
    await client.delete(f"{SERVICES}/s")
    await simulated_cluster.pass_time(1)
    assert await slices(client) == []
    assert [one["metadata"]["name"] for one in await items(client, ENDPOINTS)] == ["kubernetes"]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"selector": None}, id="without a selector"),
        pytest.param(
            {"type": "ExternalName", "externalName": "example.com", "ports": None}, id="that is a name"
        ),
    ],
)
async def test_a_service_that_chooses_no_pods_is_left_alone(client, simulated_cluster, spec):
    await create_service(client, **spec)
    await simulated_cluster.pass_time(1)
    assert await slices(client) == []


async def test_endpoints_that_users_write_live_and_go_with_their_service(client, simulated_cluster):
    mine = {"metadata": {"name": "s"}, "subsets": [{"addresses": [{"ip": "10.9.0.1"}]}]}
    await client.create(ENDPOINTS, mine)
    await simulated_cluster.pass_time(1)
    await create_service(client, selector=None)
    await simulated_cluster.restart_controllers()
    await simulated_cluster.pass_time(1)
    assert (await client.get(f"{ENDPOINTS}/s"))["subsets"][0]["addresses"] == [{"ip": "10.9.0.1"}]
    await client.delete(f"{SERVICES}/s")
    await simulated_cluster.pass_time(1)
    assert [one["metadata"]["name"] for one in await items(client, ENDPOINTS)] == ["kubernetes"]


async def test_headless_is_written_on_the_label(client, simulated_cluster):
    await create_service(client, clusterIP="None")
    await simulated_cluster.pass_time(1)
    label = "service.kubernetes.io/headless"
    assert (await slices(client))[0]["metadata"]["labels"][label] == ""
    assert (await client.get(f"{ENDPOINTS}/s"))["metadata"]["labels"][label] == ""


async def test_endpoints_that_somebody_deletes_come_back(client, simulated_cluster):
    await create_service(client)
    await create_pod(client, "p", "10.1.0.1")
    await simulated_cluster.pass_time(1)
    await client.delete(f"{ENDPOINTS}/s")
    await client.delete(f"{SLICES}/{(await slices(client))[0]['metadata']['name']}")
    await simulated_cluster.pass_time(1)
    assert (await client.get(f"{ENDPOINTS}/s"))["subsets"]
    assert (await slices(client))[0]["endpoints"]
