"""Pods that would rather be near some others, away from others, or where it is less crowded."""

import pytest

from kubereef.controllers.scheduling.fitting import Candidate, best
from kubereef.controllers.scheduling.leanings import leanings
from kubereef.controllers.scheduling.loads import Load, demand
from kubereef.controllers.scheduling.neighbours import Placed
from kubereef.controllers.scheduling.scheduler import Scheduler
from kubereef.controllers.serviceaccounts import ServiceAccountController
from tests.kubereef.controllers.making import PODS, node, pod, register

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES = {
    "a1": node("a1", labels={ZONE: "a"}),
    "a2": node("a2", labels={ZONE: "a"}),
    "b1": node("b1", labels={ZONE: "b"}),
    "bare": node("bare"),
}


def term(app="web", key=ZONE, **more):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **more}


def leaning(kind, *wishes, app="web", name="p"):
    """Return a Pod with preferences: pairs of a weight and a term."""
    listed = [{"weight": weight, "podAffinityTerm": wanted} for weight, wanted in wishes]
    return pod(name, labels={"app": app}, affinity={kind: {PREFERRED: listed}})


def insisting(kind, wanted, app="web", name="p"):
    return pod(name, labels={"app": app}, affinity={kind: {REQUIRED: [wanted]}})


def spreading(*keys, skew=1, **more):
    rules = [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
            **more,
        }
        for key in keys
    ]
    return pod("p", labels={"app": "web"}, topologySpreadConstraints=rules)


def web(name, **more):
    return pod(name, labels={"app": "web"}, **more)


def found(made, *placed, nodes=tuple(NODES)):
    others = [Placed(other, NODES[name]) for other, name in placed]
    spaces = {"default": {"team": "x"}, "other": {"team": "y"}}
    return leanings(made, others, [NODES[name] for name in nodes], lambda name: spaces[name])


def attraction(made, *placed):
    every = found(made, *placed)
    return {name: points for name, one in NODES.items() if (points := every.attraction(one))}


@pytest.mark.parametrize(
    ("made", "placed", "want"),
    [
        pytest.param(
            leaning("podAffinity", (5, term()), app="db"),
            [(web("w"), "a1")],
            {"a1": 5, "a2": 5},
            id="near those that it likes",
        ),
        pytest.param(
            leaning("podAntiAffinity", (5, term(key=HOST)), app="db"),
            [(web("w"), "a1"), (web("v"), "a1")],
            {"a1": -10},
            id="away from each of those that it dislikes",
        ),
        pytest.param(
            leaning("podAffinity", (5, term()), (3, term("db", HOST)), app="x"),
            [(web("w"), "a1"), (pod("d", labels={"app": "db"}), "a2")],
            {"a1": 5, "a2": 8},
            id="several preferences add up",
        ),
        pytest.param(
            web("p"),
            [(leaning("podAntiAffinity", (7, term()), app="db", name="d"), "b1")],
            {"b1": -7},
            id="where those are that dislike it",
        ),
        pytest.param(
            web("p"),
            [(insisting("podAffinity", term(), app="db", name="d"), "b1")],
            {"b1": 1},
            id="where those are that insist on having it near",
        ),
        pytest.param(
            leaning("podAffinity", (5, term(namespaces=["other"])), app="db"),
            [(web("w"), "a1")],
            {},
            id="in another namespace",
        ),
        pytest.param(
            leaning("podAffinity", (5, term()), app="db"), [(web("w"), "bare")], {}, id="in no zone"
        ),
    ],
)
def test_preferences_for_other_pods_are_points_for_their_surroundings(made, placed, want):
    assert attraction(made, *placed) == want


def test_it_is_crowded_where_many_are_alike():
    every = found(spreading(ZONE), (web("v"), "a1"), (web("w"), "a2"), (web("x"), "b1"))
    crowding = {name: every.crowding(one) for name, one in NODES.items()}
    assert crowding["a1"] == crowding["a2"] == 2 * crowding["b1"] > 0
    assert crowding["bare"] is None


def test_those_that_go_or_are_of_another_kind_are_no_crowd():
    going = web("w")
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    every = found(spreading(HOST), (going, "a1"), (pod("d", labels={"app": "db"}), "a1"))
    assert every.crowding(NODES["a1"]) == 0


def chosen(made, *placed, nodes=("a1", "a2", "b1", "bare")):
    candidates = [Candidate.of(NODES[name], Load()) for name in nodes]
    return best(made, demand(made), candidates, found(made, *placed, nodes=nodes)).name


def test_the_choice_follows_attraction_and_flees_crowds():
    assert chosen(leaning("podAffinity", (1, term("db"))), (pod("d", labels={"app": "db"}), "b1")) == "b1"
    assert chosen(leaning("podAntiAffinity", (1, term(key=HOST))), (web("w"), "a1")) == "a2"
    assert chosen(spreading(ZONE), (web("w"), "a1")) == "b1"
    assert chosen(spreading(ZONE, HOST), (web("v"), "a1"), (web("w"), "b1")) == "a2"


async def test_pods_that_dislike_each_other_spread_until_they_have_to_share(simulated_cluster):
    cluster = simulated_cluster
    await cluster.run(Scheduler, ServiceAccountController)
    for name in ("a1", "a2"):
        await register(cluster.client, NODES[name])
        await cluster.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    wish = leaning("podAntiAffinity", (1, term(key=HOST)))
    wish["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "10m"}}
    places = []
    for number in range(3):
        meta = {"name": f"p{number}", "labels": {"app": "web"}}
        await cluster.client.create(PODS, {"metadata": meta, "spec": wish["spec"]})
        await cluster.pass_time(1)
        places.append((await cluster.client.get(f"{PODS}/p{number}"))["spec"].get("nodeName"))
    assert set(places[:2]) == {"a1", "a2"}
    assert places[2] in ("a1", "a2")


async def test_an_unwilling_neighbour_weighs_more_than_a_little_room(simulated_cluster):
    """A Pod that has no preference itself heeds that of one which is placed."""
    cluster = simulated_cluster
    await cluster.run(Scheduler, ServiceAccountController)
    for name in ("a1", "a2"):
        await register(cluster.client, NODES[name])
        await cluster.client.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    hermit = leaning("podAntiAffinity", (1, term(key=HOST)), app="db")["spec"] | {"nodeName": "a1"}
    await cluster.client.create(
        PODS, {"metadata": {"name": "hermit", "labels": {"app": "db"}}, "spec": hermit}
    )
    heavy = web("heavy")["spec"] | {"nodeName": "a2"}
    heavy["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    await cluster.client.create(PODS, {"metadata": {"name": "heavy"}, "spec": heavy})
    await cluster.client.create(
        PODS, {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": web("p")["spec"]}
    )
    await cluster.pass_time(1)
    assert (await cluster.client.get(f"{PODS}/p"))["spec"]["nodeName"] == "a2"
