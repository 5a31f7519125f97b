"""What Gateways, their class and their routes are told, and the Service that holds a Gateway's address."""

import pytest

from kubereef.controllers.garbage import GarbageCollector
from kubereef.gateway.controller import GATEWAY_CONTROLLERS
from kubereef.gateway.install import install
from kubereef.simulation import settle
from kubewire import errors
from tests.kubereef.gateway.making import (
    API,
    CLASSES,
    GATEWAYS,
    ROUTES,
    SERVICES,
    SLICES,
    backend,
    gateway,
    listener,
    path,
    route,
    rule,
    service,
)


@pytest.fixture
async def client(simulated_cluster):
    await install(simulated_cluster.client)
    await simulated_cluster.run(GarbageCollector, *GATEWAY_CONTROLLERS)
    return simulated_cluster.client


async def made(client, url, obj):
    await client.create(url, obj)
    await settle()
    return await client.get(f"{url}/{obj['metadata']['name']}")


def said(conditions):
    return {one["type"]: (one["status"], one["reason"]) for one in conditions}


def parent_of(found):
    (parent,) = found["status"]["parents"]
    return said(parent["conditions"])


async def test_the_class_is_accepted_and_other_classes_are_left_alone(client):
    found = await client.get(f"{CLASSES}/kubereef")
    assert said(found["status"]["conditions"])["Accepted"] == ("True", "Accepted")
    other = {
        "apiVersion": API,
        "kind": "GatewayClass",
        "metadata": {"name": "other"},
        "spec": {"controllerName": "example.com/other"},
    }
    assert "status" not in await made(client, CLASSES, other)
    assert "status" not in await made(client, GATEWAYS, gateway(class_name="other"))


async def test_a_gateway_gets_an_address_that_a_service_of_its_own_holds(client):
    found = await made(client, GATEWAYS, gateway(listener(), listener("more", 8080)))
    status = found["status"]
    assert said(status["conditions"]) == {
        "Accepted": ("True", "Accepted"),
        "Programmed": ("True", "Programmed"),
    }
    assert {one["observedGeneration"] for one in status["conditions"]} == {1}
    held = await client.get(f"{SERVICES}/gate-kubereef")
    assert status["addresses"] == [{"type": "IPAddress", "value": held["spec"]["clusterIP"]}]
    assert [port["port"] for port in held["spec"]["ports"]] == [80, 8080]
    assert held["metadata"]["labels"]["service.kubernetes.io/service-proxy-name"] == "kubereef-gateway"
    assert "selector" not in held["spec"]
    leads = await client.get(f"{SLICES}/gate-kubereef")
    assert leads["endpoints"][0]["addresses"] == [held["spec"]["clusterIP"]]


async def test_the_service_follows_the_listeners_and_goes_with_its_gateway(client):
    found = await made(client, GATEWAYS, gateway())
    found["spec"]["listeners"] = [listener(port=81)]
    await client.replace(f"{GATEWAYS}/gate", found)
    await settle()
    held = await client.get(f"{SERVICES}/gate-kubereef")
    assert [port["port"] for port in held["spec"]["ports"]] == [81]
    leads = await client.get(f"{SLICES}/gate-kubereef")
    assert [port["port"] for port in leads["ports"]] == [81]
    status = (await client.get(f"{GATEWAYS}/gate"))["status"]
    assert {one["observedGeneration"] for one in status["conditions"]} == {2}
    await client.delete(f"{GATEWAYS}/gate")
    await settle()
    for url in (f"{SERVICES}/gate-kubereef", f"{SLICES}/gate-kubereef"):
        with pytest.raises(errors.NotFound):
            await client.get(url)


async def test_a_service_that_somebody_removes_is_made_anew(client):
    await made(client, GATEWAYS, gateway())
    await client.delete(f"{SERVICES}/gate-kubereef")
    await settle()
    held = await client.get(f"{SERVICES}/gate-kubereef")
    status = (await client.get(f"{GATEWAYS}/gate"))["status"]
    assert status["addresses"][0]["value"] == held["spec"]["clusterIP"]


async def test_a_service_of_somebody_else_is_not_taken_over(client):
    await client.create(SERVICES, service("gate-kubereef", address=""))
    found = await made(client, GATEWAYS, gateway())
    conditions = said(found["status"]["conditions"])
    assert conditions["Programmed"] == ("False", "AddressNotAssigned")


async def test_a_gateway_with_a_long_name_gets_a_service_all_the_same(client):
    name = "a-gateway.with.dots.and-a-name-that-is-longer-than-names-of-services-may-be"
    found = await made(client, GATEWAYS, gateway(name=name))
    assert said(found["status"]["conditions"])["Programmed"] == ("True", "Programmed")


@pytest.mark.parametrize(
    ("made_gateway", "accepted", "of_listener"),
    [
        pytest.param(
            gateway(listener(protocol="TCP")),
            ("False", "ListenersNotValid"),
            {"Accepted": ("False", "UnsupportedProtocol"), "Programmed": ("False", "Invalid")},
            id="a protocol that is not served",
        ),
        pytest.param(
            gateway(listener(protocol="TCP"), listener("good", 81)),
            ("True", "ListenersNotValid"),
            {"Accepted": ("False", "UnsupportedProtocol")},
            id="one bad listener does not stop another",
        ),
        pytest.param(
            gateway(listener(allowedRoutes={"kinds": [{"kind": "TCPRoute"}]})),
            ("False", "ListenersNotValid"),
            {"ResolvedRefs": ("False", "InvalidRouteKinds")},
            id="routes of a kind that is not served",
        ),
        pytest.param(
            gateway(addresses=[{"value": "10.0.0.1"}]),
            ("False", "UnsupportedAddress"),
            {"Accepted": ("True", "Accepted")},
            id="an address of its own choice",
        ),
    ],
)
async def test_what_is_wrong_with_a_gateway_is_said(client, made_gateway, accepted, of_listener):
    found = await made(client, GATEWAYS, made_gateway)
    assert said(found["status"]["conditions"])["Accepted"] == accepted
    conditions = said(found["status"]["listeners"][0]["conditions"])
    assert of_listener.items() <= conditions.items()


async def test_two_listeners_for_the_same_host_and_port_are_refused_by_the_schema(client):
    with pytest.raises(errors.Invalid, match="unique"):
        await client.create(GATEWAYS, gateway(listener("one"), listener("two")))


async def test_a_route_is_told_that_it_is_accepted_and_the_gateway_counts_it(client):
    await client.create(SERVICES, service(address=""))
    await made(client, GATEWAYS, gateway())
    found = await made(client, ROUTES, route())
    assert parent_of(found) == {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
    (parent,) = found["status"]["parents"]
    assert parent["controllerName"] == "kubereef.io/gateway-controller"
    assert parent["parentRef"]["name"] == "gate"
    listeners = (await client.get(f"{GATEWAYS}/gate"))["status"]["listeners"]
    assert listeners[0]["attachedRoutes"] == 1
    assert listeners[0]["supportedKinds"][0]["kind"] == "HTTPRoute"
    await client.delete(f"{ROUTES}/route")
    await settle()
    listeners = (await client.get(f"{GATEWAYS}/gate"))["status"]["listeners"]
    assert listeners[0]["attachedRoutes"] == 0


@pytest.mark.parametrize(
    ("made_route", "accepted"),
    [
        pytest.param(route(hostnames=["b.example"]), "NoMatchingListenerHostname", id="another hostname"),
        pytest.param(
            route(parents=[{"name": "gate", "sectionName": "none"}]),
            "NoMatchingParent",
            id="no such listener",
        ),
        pytest.param(route(parents=[{"name": "gate", "port": 99}]), "NoMatchingParent", id="no such port"),
        pytest.param(
            route(rule(matches=[path("/.*", "RegularExpression")])),
            "UnsupportedValue",
            id="a regular expression",
        ),
        pytest.param(
            route(
                rule(filters=[{"type": "RequestMirror", "requestMirror": {"backendRef": backend()}}]),
            ),
            "UnsupportedValue",
            id="a filter that is not known",
        ),
    ],
)
async def test_a_route_that_is_not_taken_on_is_told_why(client, made_route, accepted):
    await made(client, GATEWAYS, gateway(listener(hostname="a.example")))
    found = await made(client, ROUTES, made_route)
    assert parent_of(found)["Accepted"] == ("False", accepted)


async def test_a_route_of_another_namespace_is_not_allowed_unless_the_listener_says_so(client):
    await client.create("/api/v1/namespaces", {"metadata": {"name": "far"}})
    await made(client, GATEWAYS, gateway())
    url = ROUTES.replace("default", "far")
    foreign = route(namespace="far", parents=[{"name": "gate", "namespace": "default"}])
    assert parent_of(await made(client, url, foreign))["Accepted"] == ("False", "NotAllowedByListeners")
    selector = {"from": "Selector", "selector": {"matchLabels": {"team": "red"}}}
    spec = {"listeners": [listener(allowedRoutes={"namespaces": selector})]}
    await client.patch(f"{GATEWAYS}/gate", {"spec": spec})
    await client.patch("/api/v1/namespaces/far", {"metadata": {"labels": {"team": "red"}}})
    await settle()
    assert parent_of(await client.get(f"{url}/route"))["Accepted"] == ("True", "Accepted")


@pytest.mark.parametrize(
    ("ref", "reason"),
    [
        pytest.param(backend("none"), "BackendNotFound", id="no such Service"),
        pytest.param(backend(port=99), "BackendNotFound", id="no such port"),
        pytest.param(backend(kind="Pod"), "InvalidKind", id="another kind"),
        pytest.param(backend(namespace="far"), "RefNotPermitted", id="another namespace"),
        pytest.param(backend("out"), "BackendNotFound", id="a name outside the cluster"),
    ],
)
async def test_a_backend_that_cannot_be_had_is_said(client, ref, reason):
    await client.create(SERVICES, service(address=""))
    outside = {"type": "ExternalName", "externalName": "example.com"}
    await client.create(SERVICES, {"metadata": {"name": "out"}, "spec": outside})
    await made(client, GATEWAYS, gateway())
    found = await made(client, ROUTES, route(rule(ref)))
    assert parent_of(found)["ResolvedRefs"] == ("False", reason)
    assert parent_of(found)["Accepted"] == ("True", "Accepted")


async def test_a_service_that_comes_later_resolves_a_route(client):
    await made(client, GATEWAYS, gateway())
    assert parent_of(await made(client, ROUTES, route()))["ResolvedRefs"][0] == "False"
    await client.create(SERVICES, service(address=""))
    await settle()
    assert parent_of(await client.get(f"{ROUTES}/route"))["ResolvedRefs"][0] == "True"


async def test_what_another_implementation_says_of_a_route_stays(client):
    await made(client, GATEWAYS, gateway())
    await made(client, ROUTES, route())
    found = await client.get(f"{ROUTES}/route")
    other = {"parentRef": {"name": "else"}, "controllerName": "example.com/other", "conditions": []}
    found["status"]["parents"].insert(0, other)
    await client.replace(f"{ROUTES}/route/status", found)
    await client.create(SERVICES, service(address=""))
    await settle()
    parents = (await client.get(f"{ROUTES}/route"))["status"]["parents"]
    assert [one["controllerName"] for one in parents] == [
        "example.com/other",
        "kubereef.io/gateway-controller",
    ]


async def test_nothing_is_written_once_everything_is_said(client, simulated_cluster):
    await client.create(SERVICES, service(address=""))
    await made(client, GATEWAYS, gateway())
    await made(client, ROUTES, route())
    before = simulated_cluster.store.revision
    await simulated_cluster.restart_controllers()
    await simulated_cluster.pass_time(3600)
    assert simulated_cluster.store.revision == before
