"""Services get addresses and node ports that nobody else has, and give them back."""

import asyncio

import pytest

from kubereef.store.errors import WriteFailed
from kubereef.store.store import Store
from kubewire import errors

SERVICES = "/api/v1/namespaces/default/services"


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}


def address(obj):
    return obj["spec"]["clusterIP"]


def node_ports(obj):
    return [port["nodePort"] for port in obj["spec"]["ports"]]


async def test_every_service_has_an_address_of_its_own_until_the_range_is_full(reef):
    client = reef("10.0.0.0/29")
    made = [address(await client.create(SERVICES, service(f"s{number}"))) for number in range(6)]
    assert sorted(made) == [f"10.0.0.{number}" for number in range(1, 7)]
    with pytest.raises(errors.InternalError, match=r"range 10\.0\.0\.0/29 is full"):
        await client.create(SERVICES, service("late"))


async def test_an_address_is_free_again_when_its_service_is_gone(reef):
    client = reef("10.0.0.0/30")
    await client.create(SERVICES, service("a"))
    last = address(await client.create(SERVICES, service("b")))
    await client.delete(f"{SERVICES}/b")
    assert address(await client.create(SERVICES, service("c"))) == last


async def test_an_address_is_free_again_when_its_service_becomes_an_external_name(client):
    made = await client.create(SERVICES, service("a"))
    await client.patch(f"{SERVICES}/a", {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    other = await client.create(SERVICES, service("b", clusterIP=address(made)))
    assert address(other) == address(made)


async def test_an_address_that_somebody_has_is_refused(client):
    taken = address(await client.create(SERVICES, service("a")))
    with pytest.raises(errors.Invalid) as refusal:
        await client.create(SERVICES, service("b", clusterIP=taken))
    assert refusal.value.causes[0].field == "spec.clusterIPs"
    assert f"failed to allocate IP {taken}: provided IP is already allocated" in refusal.value.message


@pytest.mark.parametrize("given", ["192.168.77.1", "10.96.0.0", "10.96.255.255", "fd00::1"])
async def test_an_address_outside_of_the_range_is_refused(client, given):
    with pytest.raises(errors.Invalid, match="not in the valid range"):
        await client.create(SERVICES, service("a", clusterIP=given))


async def test_a_dry_run_takes_no_address(reef):
    client = reef("10.0.0.0/30")
    for _ in range(5):
        await client.create(f"{SERVICES}?dryRun=All", service("a"))
    await client.create(SERVICES, service("a"))
    await client.create(SERVICES, service("b"))


async def test_a_refused_service_takes_no_address(reef):
    client = reef("10.0.0.0/30")
    await client.create(SERVICES, service("a"))
    for _ in range(3):
        with pytest.raises(errors.AlreadyExists):
            await client.create(SERVICES, service("a"))
    await client.create(SERVICES, service("b"))


async def test_a_new_process_knows_the_addresses_of_the_old_one(reef):
    store = Store()
    taken = address(await reef(store=store).create(SERVICES, service("a")))
    with pytest.raises(errors.Invalid, match="already allocated"):
        await reef(store=store).create(SERVICES, service("b", clusterIP=taken))


class SlowJournal:
    """A journal that fails while it is told to."""

    def __init__(self):
        self.fails = False

    def load(self):
        return 1, []

    def commit(self, _entries):
        if self.fails:
            raise WriteFailed("the disk is full")

    def close(self):
        pass


async def test_services_that_are_still_being_written_have_different_addresses(reef):
    store = Store(SlowJournal())
    client = reef("10.0.0.0/28", store=store)
    made = await asyncio.gather(*(client.create(SERVICES, service(f"s{number}")) for number in range(14)))
    assert len({address(one) for one in made}) == 14
    await store.close()


async def test_an_address_is_free_again_when_its_service_could_not_be_written(reef):
    journal = SlowJournal()
    store = Store(journal)
    client = reef("10.0.0.0/30", store=store)
    journal.fails = True
    for name in "abc":
        with pytest.raises(errors.InternalError):
            await client.create(SERVICES, service(name))
    journal.fails = False
    await client.create(SERVICES, service("a"))
    await client.create(SERVICES, service("b"))
    await store.close()


async def test_node_ports_are_given_and_kept(client):
    made = await client.create(SERVICES, service("a", type="NodePort"))
    [given] = node_ports(made)
    assert given in range(30000, 32768)
    replaced = await client.replace(f"{SERVICES}/a", service("a", type="NodePort"))
    assert node_ports(replaced) == [given]
    assert address(replaced) == address(made)


async def test_a_node_port_is_free_again_when_its_service_needs_none(reef):
    client = reef(node_ports=range(30000, 30001))
    await client.create(SERVICES, service("a", type="NodePort"))
    with pytest.raises(errors.InternalError, match="range is full"):
        await client.create(SERVICES, service("b", type="NodePort"))
    changed = await client.patch(f"{SERVICES}/a", {"spec": {"type": "ClusterIP"}})
    assert "nodePort" not in changed["spec"]["ports"][0]
    assert node_ports(await client.create(SERVICES, service("b", type="NodePort"))) == [30000]


async def test_a_node_port_that_somebody_has_is_refused(client):
    ports = [{"port": 80, "nodePort": 30123}]
    await client.create(SERVICES, service("a", type="NodePort", ports=ports))
    with pytest.raises(errors.Invalid, match=r"spec.ports\[0\].nodePort.*provided port is already allocated"):
        await client.create(SERVICES, service("b", type="NodePort", ports=ports))


async def test_one_port_with_two_protocols_has_one_node_port(client):
    ports = [{"name": "a", "port": 53, "protocol": "UDP"}, {"name": "b", "port": 53, "protocol": "TCP"}]
    first, second = node_ports(await client.create(SERVICES, service("dns", type="NodePort", ports=ports)))
    assert first == second


async def test_a_load_balancer_that_asks_nodes_gets_a_port_for_it(client):
    made = await client.create(SERVICES, service("a", type="LoadBalancer", externalTrafficPolicy="Local"))
    assert made["spec"]["healthCheckNodePort"] in range(30000, 32768)
    assert made["spec"]["healthCheckNodePort"] not in node_ports(made)


async def test_a_load_balancer_may_do_without_node_ports(client):
    made = await client.create(
        SERVICES, service("a", type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    )
    assert "nodePort" not in made["spec"]["ports"][0]


@pytest.mark.parametrize(
    ("spec", "families", "policy"),
    [
        pytest.param({}, ["IPv4"], "SingleStack", id="the cluster's own family"),
        pytest.param({"ipFamilyPolicy": "PreferDualStack"}, ["IPv4"], "PreferDualStack", id="a wish"),
        pytest.param(
            {"clusterIP": "None", "selector": None},
            ["IPv4", "IPv6"],
            "RequireDualStack",
            id="both where others write the endpoints",
        ),
    ],
)
async def test_families_are_filled_in(client, spec, families, policy):
    made = await client.create(SERVICES, service("a", **spec))
    assert (made["spec"]["ipFamilies"], made["spec"]["ipFamilyPolicy"]) == (families, policy)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ipFamilyPolicy": "RequireDualStack"}, "spec.ipFamilyPolicy"),
        ({"ipFamilies": ["IPv6"]}, "spec.ipFamilies[0]"),
    ],
)
async def test_a_family_that_the_cluster_lacks_is_refused(client, spec, field):
    with pytest.raises(errors.Invalid) as refusal:
        await client.create(SERVICES, service("a", **spec))
    assert [cause.field for cause in refusal.value.causes] == [field]


async def test_an_address_cannot_be_changed_or_taken_away(client):
    made = await client.create(SERVICES, service("a"))
    for wanted in ("None", "10.96.7.7"):
        with pytest.raises(errors.Invalid, match="may not change once set"):
            await client.patch(f"{SERVICES}/a", {"spec": {"clusterIP": wanted}})
    kept = await client.patch(f"{SERVICES}/a", {"spec": {"clusterIP": None, "clusterIPs": None}})
    assert kept["spec"]["clusterIPs"] == made["spec"]["clusterIPs"]


async def test_a_service_becomes_an_external_name_and_comes_back(client):
    await client.create(SERVICES, service("a", type="NodePort"))
    url = f"{SERVICES}/a"
    outside = await client.patch(url, {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert sorted(outside["spec"]) == ["externalName", "ports", "selector", "sessionAffinity", "type"]
    assert "nodePort" not in outside["spec"]["ports"][0]
    back = await client.patch(url, {"spec": {"type": "ClusterIP", "externalName": None}})
    assert address(back).startswith("10.96.")
