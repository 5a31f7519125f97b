"""The kinds of Gateway API in a cluster."""

from kubereef.gateway.definitions import definitions
from kubereef.gateway.install import install
from tests.kubereef.gateway.making import CLASSES, GATEWAYS, ROUTES, gateway, route, rule

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kubereef:gateway-data-plane"


async def test_all_is_there_and_a_second_time_changes_nothing(simulated_cluster):
    client = simulated_cluster.client
    await install(client)
    revision = simulated_cluster.store.revision
    await install(client)
    assert simulated_cluster.store.revision == revision
    assert (await client.get(f"{CLASSES}/kubereef"))["spec"][
        "controllerName"
    ] == "kubereef.io/gateway-controller"
    assert {"gateways", "httproutes"} <= set((await client.get(ROLE))["rules"][0]["resources"])


async def test_definitions_of_somebody_else_are_left_alone(simulated_cluster):
    client = simulated_cluster.client
    foreign = definitions()[1]
    foreign["metadata"]["labels"] = {}
    foreign["spec"]["names"]["shortNames"] = ["mine"]
    await client.create(DEFINITIONS, foreign)
    await install(client)
    found = await client.get(f"{DEFINITIONS}/gateways.gateway.networking.k8s.io")
    assert found["spec"]["names"]["shortNames"] == ["mine"]
    assert await client.get(ROUTES)


async def test_definitions_of_an_earlier_release_are_brought_up_to_date(simulated_cluster):
    client = simulated_cluster.client
    old = definitions()[2]
    del old["spec"]["versions"][1]
    await client.create(DEFINITIONS, old)
    await install(client)
    assert await client.get(ROUTES.replace("/v1/", "/v1beta1/"))


async def test_tables_show_class_address_and_state(simulated_cluster):
    client = simulated_cluster.client
    await install(client)
    made = await client.create(GATEWAYS, gateway())
    condition = {
        "type": "Programmed",
        "status": "True",
        "reason": "Programmed",
        "message": "",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    status = {"addresses": [{"type": "IPAddress", "value": "10.96.0.7"}], "conditions": [condition]}
    await client.replace(f"{GATEWAYS}/gate/status", {**made, "status": status})
    accept = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = await client.call("GET", GATEWAYS, headers=accept)
    names = [column["name"] for column in table["columnDefinitions"]]
    (row,) = table["rows"]
    shown = dict(zip(names, row["cells"], strict=True))
    assert (shown["Class"], shown["Address"], shown["Programmed"]) == ("kubereef", "10.96.0.7", "True")


async def test_what_users_leave_out_is_filled_in_as_everywhere(simulated_cluster):
    client = simulated_cluster.client
    await install(client)
    made = await client.create(GATEWAYS, gateway())
    assert made["spec"]["listeners"][0]["allowedRoutes"] == {"namespaces": {"from": "Same"}}
    made = await client.create(ROUTES, route(rule()))
    assert made["spec"]["parentRefs"] == [
        {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gate"}
    ]
    (one,) = made["spec"]["rules"]
    assert one["matches"] == [{"path": {"type": "PathPrefix", "value": "/"}}]
    assert one["backendRefs"][0] == {"group": "", "kind": "Service", "name": "web", "port": 80, "weight": 1}
    older = await client.get(f"{ROUTES.replace('/v1/', '/v1beta1/')}/route")
    assert older["spec"] == made["spec"]
