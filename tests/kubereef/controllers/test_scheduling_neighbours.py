"""Pods that want others near them, keep others away, or want to be spread evenly."""

import pytest

from kubereef.controllers.scheduling.neighbours import Placed, neighbourhood
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import ServiceAccountController
from tests.kubereef.controllers.making import PODS, items, node, pod, register

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
SHUNNED = "node(s) didn't satisfy existing pods anti-affinity rules"
SPREAD = "node(s) didn't match pod topology spread constraints"

NODES = {
    "a1": node("a1", labels={ZONE: "a"}),
    "a2": node("a2", labels={ZONE: "a"}),
    "b1": node("b1", labels={ZONE: "b"}),
    "bare": node("bare"),
}


def term(app="web", key=ZONE, **more):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def wishing(kind, *terms, app="web", name="p"):
    return pod(name, labels={"app": app}, affinity={kind: {REQUIRED: list(terms)}})


def spreading(skew=1, key=ZONE, **more):
    rule = {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **more,
    }
    return pod("p", labels={"app": "web"}, topologySpreadConstraints=[rule])


def web(name, **more):
    return pod(name, labels={"app": "web"}, **more)


def objections(made, *placed):
    """Return what is said against each node, given Pods and the names of their nodes."""
    others = [Placed(other, NODES[name]) for other, name in placed]
    spaces = {"default": {"team": "x"}, "other": {"team": "y"}}
    found = neighbourhood(made, others, NODES.values(), lambda name: spaces[name])
    return {name: told[0] for name, one in NODES.items() if (told := found.objection(one))}


def test_a_pod_goes_where_the_ones_are_that_it_wants_near():
    want = {"b1": NEAR, "bare": NEAR}
    assert objections(wishing("podAffinity", term(), app="db"), (web("w"), "a1")) == want


def test_the_first_of_a_group_that_wants_itself_near_goes_anywhere_with_the_label():
    assert objections(wishing("podAffinity", term())) == {"bare": NEAR}
    assert set(objections(wishing("podAffinity", term(), app="db"))) == set(NODES), "nobody to be near to"


def test_a_pod_keeps_away_from_others():
    want = {"a1": FAR, "a2": FAR}
    assert objections(wishing("podAntiAffinity", term()), (web("w"), "a2")) == want
    assert objections(wishing("podAntiAffinity", term(key=HOST)), (web("w"), "a2")) == {"a2": FAR}


def test_those_who_keep_others_away_are_respected():
    shy = wishing("podAntiAffinity", term(), app="shy", name="shy")
    assert objections(web("p"), (shy, "b1")) == {"b1": SHUNNED}
    assert objections(pod("p", labels={"app": "db"}), (shy, "b1")) == {}


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        pytest.param({}, False, id="the own namespace is meant"),
        pytest.param({"namespaces": ["other"]}, True, id="a namespace by name"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"team": "y"}}}, True, id="a namespace by its labels"
        ),
        pytest.param({"namespaceSelector": {"matchLabels": {"team": "z"}}}, False, id="no such namespace"),
        pytest.param({"namespaceSelector": {}}, True, id="any namespace"),
    ],
)
def test_which_namespaces_a_wish_is_about(more, counts):
    foreign = web("w")
    foreign["metadata"]["namespace"] = "other"
    found = objections(wishing("podAntiAffinity", term(key=HOST, **more)), (foreign, "a1"))
    assert found == ({"a1": FAR} if counts else {})


def test_pods_are_spread_within_the_skew():
    placed = [(web("1"), "a1"), (web("2"), "a2"), (web("3"), "b1")]
    missing = f"{SPREAD} (missing required label)"
    assert objections(spreading(), *placed) == {"a1": SPREAD, "a2": SPREAD, "bare": missing}
    assert objections(spreading(skew=2), *placed) == {"bare": missing}


def test_spreading_counts_only_nodes_that_the_pod_may_use_and_enough_of_them():
    alone = spreading()
    alone["spec"]["nodeSelector"] = {ZONE: "a"}
    assert "a1" not in objections(alone, (web("1"), "a1"), (web("2"), "a2"))
    assert objections(spreading(minDomains=3), (web("1"), "a1"), (web("2"), "b1"))["a2"] == SPREAD


def test_pods_that_are_going_are_not_counted_for_spreading():
    going = web("1")
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert "a1" not in objections(spreading(), (going, "a1"), (going, "a1"))


def test_a_spread_that_is_only_preferred_keeps_nobody_away():
    assert objections(spreading(whenUnsatisfiable="ScheduleAnyway"), (web("1"), "a1")) == {}


# --- in a cluster


@pytest.fixture
async def client(simulated_cluster):
    await simulated_cluster.run(ServiceAccountController, Scheduler)
    for name in ("n1", "n2"):
        await register(simulated_cluster.client, node(name))
        await simulated_cluster.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    return simulated_cluster.client


async def add(client, made):
    meta = {"name": made["metadata"]["name"], "labels": made["metadata"]["labels"]}
    await client.create(PODS, {"metadata": meta, "spec": made["spec"]})


async def places(client):
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await items(client, PODS)}


async def test_of_three_pods_that_shun_each_other_one_waits_until_another_goes(client, simulated_cluster):
    for name in ("p1", "p2", "p3"):
        await add(client, wishing("podAntiAffinity", term(key=HOST), name=name))
    await simulated_cluster.pass_time(1)
    placed = await places(client)
    assert sorted(placed.values()) == ["", "n1", "n2"]
    gone = next(name for name, place in placed.items() if place == "n1")
    await client.delete(f"{PODS}/{gone}?gracePeriodSeconds=0")
    await simulated_cluster.pass_time(1)
    assert sorted((await places(client)).values()) == ["n1", "n2"]


async def test_a_pod_waits_for_its_company(client, simulated_cluster):
    await add(client, wishing("podAffinity", term(key=HOST), app="db"))
    await simulated_cluster.pass_time(1)
    assert await places(client) == {"p": ""}
    await add(client, web("w"))
    await simulated_cluster.pass_time(1)
    placed = await places(client)
    assert placed["p"] == placed["w"] != ""


async def test_a_label_that_changes_may_end_the_waiting(client, simulated_cluster):
    for name in ("n1", "n2"):
        await add(client, web(f"on-{name}", nodeName=name))
    await add(client, wishing("podAntiAffinity", term(key=HOST)))
    await simulated_cluster.pass_time(1)
    assert (await places(client))["p"] == ""
    await client.patch(f"{PODS}/on-n2", {"metadata": {"labels": {"app": "db"}}})
    await simulated_cluster.pass_time(1)
    assert (await places(client))["p"] == "n2"


def test_nodes_that_a_pod_could_not_have_are_spread_over_only_if_it_says_so():
    """A zone without a Pod on it makes every other one too full, if it counts."""
    everywhere = spreading()
    chosen = {"nodeSelector": {ZONE: "a"}}
    everywhere["spec"] |= chosen
    assert "a1" not in objections(everywhere, (web("w"), "a1"))
    ignoring = spreading(nodeAffinityPolicy="Ignore")
    ignoring["spec"] |= chosen
    assert objections(ignoring, (web("w"), "a1"))["a1"] == SPREAD


def test_nodes_with_taints_are_spread_over_unless_a_pod_says_otherwise(monkeypatch):
    tainted = node("b1", labels={ZONE: "b"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    monkeypatch.setitem(NODES, "b1", tainted)
    assert objections(spreading(), (web("w"), "a1"))["a1"] == SPREAD
    assert "a1" not in objections(spreading(nodeTaintsPolicy="Honor"), (web("w"), "a1"))
