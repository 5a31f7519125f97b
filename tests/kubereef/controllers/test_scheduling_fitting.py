"""Whether a Pod fits a node, which of several it gets, and how it is said that there is none."""

import pytest

from kubereef.controllers.scheduling import affinity, taints
from kubereef.controllers.scheduling.fitting import Candidate, Obstacle, best, explanation, obstacle
from kubereef.controllers.scheduling.loads import Loads, demand
from tests.kubereef.controllers.making import START, at, node, pod

GIB = 2**30 * 10**9


def asking(name="p", **requests):
    """Return a Pod that asks for resources; `_` stands for the characters that Python's names cannot have."""
    made = pod(name)
    asked = {key.replace("__", "/").replace("_", "."): value for key, value in requests.items()}
    made["spec"]["containers"][0]["resources"] = {"requests": asked}
    return made


def with_spec(**spec):
    return pod("p", **spec)


def candidate(obj, *others):
    loads = Loads()
    for other in others:
        loads.place(other, obj["metadata"]["name"])
    return Candidate.of(obj, loads.on(obj["metadata"]["name"]))


def reasons(made, place, volume_affinities=()):
    found = obstacle(made, demand(made), place, volume_affinities)
    return found.reasons if found else ()


TAINT = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("made", "place", "want"),
    [
        pytest.param(asking(cpu="4", memory="8Gi"), candidate(node()), (), id="all of an empty node fits"),
        pytest.param(
            asking(cpu="4001m"), candidate(node()), ("Insufficient cpu",), id="a little too much does not"
        ),
        pytest.param(
            asking(cpu="2"),
            candidate(node(), asking("q", cpu="2500m")),
            ("Insufficient cpu",),
            id="what others take is missing",
        ),
        pytest.param(
            asking(cpu="9", memory="9Gi", nvidia_com__gpu="1"),
            candidate(node()),
            ("Insufficient cpu", "Insufficient memory", "Insufficient nvidia.com/gpu"),
            id="all that is missing is named",
        ),
        pytest.param(
            asking(nvidia_com__gpu="2"),
            candidate(node(**{"nvidia.com/gpu": "2"})),
            (),
            id="extended resources count",
        ),
        pytest.param(pod(), candidate(node(pods="1"), pod("q")), ("Too many pods",), id="Pods are counted"),
        pytest.param(
            pod(),
            candidate(node(taints=[TAINT])),
            ("node(s) had untolerated taint(s)",),
            id="a taint keeps away",
        ),
        pytest.param(
            with_spec(tolerations=[{"key": "gpu", "operator": "Exists"}]),
            candidate(node(taints=[TAINT])),
            (),
            id="unless it is tolerated",
        ),
        pytest.param(
            with_spec(nodeSelector={"disk": "ssd"}),
            candidate(node(labels={"disk": "hdd"})),
            ("node(s) didn't match Pod's node affinity/selector",),
            id="a label that is not there",
        ),
        pytest.param(
            pod(),
            candidate({**node(), "spec": {"unschedulable": True}}),
            ("node(s) were unschedulable",),
            id="a cordoned node",
        ),
        pytest.param(
            with_spec(tolerations=[{"operator": "Exists"}]),
            candidate({**node(), "spec": {"unschedulable": True}}),
            (),
            id="a cordoned node that is tolerated",
        ),
    ],
)
def test_what_keeps_a_pod_off_a_node(made, place, want):
    assert reasons(made, place) == want


def test_a_port_of_the_node_is_given_once():
    def listening(name, protocol="TCP", ip=""):
        made = pod(name)
        port = {"containerPort": 80, "hostPort": 80, "protocol": protocol, **({"hostIP": ip} if ip else {})}
        made["spec"]["containers"][0]["ports"] = [port]
        return made

    taken = candidate(node(), listening("q", ip="10.0.0.1"))
    want = ("node(s) didn't have free ports for the requested pod ports",)
    assert reasons(listening("p"), taken) == want
    assert reasons(listening("p", ip="10.0.0.1"), taken) == want
    assert reasons(listening("p", ip="10.0.0.2"), taken) == ()
    assert reasons(listening("p", protocol="UDP"), taken) == ()


def test_a_volume_is_reached_from_some_nodes_only():
    required = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    }
    assert reasons(pod(), candidate(node("n")), [required]) == ()
    assert reasons(pod(), candidate(node("m")), [required]) == (
        "node(s) didn't match PersistentVolume's node affinity",
    )


def test_what_a_pod_takes_up_is_its_peak_with_sidecars_and_overhead():
    made = asking(cpu="1", memory="1Gi")
    made["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
        {"name": "init", "resources": {"requests": {"memory": "3Gi"}}},
    ]
    made["spec"]["overhead"] = {"cpu": "100m"}
    assert demand(made).requests == {"cpu": 1_600_000_000, "memory": 3 * GIB}
    made["spec"]["resources"] = {"requests": {"cpu": "5"}}
    assert demand(made).requests["cpu"] == 5_100_000_000


def test_loads_follow_a_pod_and_forget_it():
    loads = Loads()
    loads.place(asking("u", cpu="1"), "n")
    loads.place(asking("u", cpu="2"), "m")
    assert not loads.on("n").pods
    assert loads.on("m").requested["cpu"] == 2 * 10**9
    loads.remove("uid of u")
    loads.remove("uid of u")
    assert not loads.on("m").pods


def term(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("expressions", "want"),
    [
        pytest.param([term("cores", "In", "8", "16")], True, id="In"),
        pytest.param([term("cores", "NotIn", "8")], False, id="NotIn"),
        pytest.param([term("other", "NotIn", "8")], True, id="NotIn of a missing label"),
        pytest.param([term("cores", "Exists")], True, id="Exists"),
        pytest.param([term("other", "DoesNotExist")], True, id="DoesNotExist"),
        pytest.param([term("cores", "Gt", "4")], True, id="Gt"),
        pytest.param([term("cores", "Lt", "4")], False, id="Lt"),
        pytest.param([term("cores", "Gt")], False, id="Gt of nothing"),
        pytest.param([term("cores", "Resembles", "8")], False, id="an unknown operator"),
        pytest.param([term("cores", "Exists"), term("other", "Exists")], False, id="all have to hold"),
        pytest.param([], False, id="an empty term is met by none"),
    ],
)
def test_required_affinity(expressions, want):
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    rule = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert affinity.is_chosen({"affinity": rule}, node(labels={"cores": "8"})) is want


def test_one_of_several_terms_is_enough():
    terms = [{"matchExpressions": [term("a", "Exists")]}, {"matchExpressions": [term("b", "Exists")]}]
    assert affinity.matches_any({"nodeSelectorTerms": terms}, node(labels={"b": ""}))


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        pytest.param({"key": "gpu", "value": "a100"}, True, id="equal by default"),
        pytest.param({"key": "gpu", "value": "h100"}, False, id="another value"),
        pytest.param({"key": "gpu", "operator": "Exists"}, True, id="any value"),
        pytest.param({"operator": "Exists"}, True, id="any taint"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
        pytest.param({"key": "cpu", "operator": "Exists"}, False, id="another key"),
        pytest.param({"key": "gpu", "operator": "Resembles"}, False, id="an unknown operator"),
    ],
)
def test_what_a_toleration_tolerates(toleration, want):
    assert taints.is_tolerated(TAINT, [toleration]) is want


def leaving(*tolerations, added=None):
    taint = {"key": "k", "effect": "NoExecute", **({"timeAdded": at(added)} if added is not None else {})}
    moment = taints.leaves_at(pod(tolerations=list(tolerations)), node(taints=[taint]), START)
    return None if moment is None else (moment - START).total_seconds()


def test_how_long_a_pod_may_stay():
    exists = {"key": "k", "operator": "Exists"}
    assert leaving() == 0
    assert leaving(exists) is None
    assert leaving({**exists, "tolerationSeconds": 30}) == 30
    assert leaving({**exists, "tolerationSeconds": 30}, {**exists, "tolerationSeconds": 20}, added=100) == 120
    assert leaving({**exists, "tolerationSeconds": -5}) == 0
    assert leaving({**exists, "tolerationSeconds": 2**62}) > 10**9


# --- choosing


def test_the_node_with_the_most_left_is_taken():
    full = candidate(node("a"), asking("q", cpu="3"))
    assert best(pod(), demand(pod()), [full, candidate(node("b"))]).name == "b"


def test_pods_that_ask_for_nothing_spread_too():
    used = candidate(node("a"), pod("q"))
    assert best(pod(), demand(pod()), [used, candidate(node("b"))]).name == "b"


def test_a_preference_outweighs_room_and_a_shunned_node_comes_last():
    rule = {"weight": 10, "preference": {"matchExpressions": [term("fast", "Exists")]}}
    made = with_spec(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [rule]}})
    fast = candidate(node("a", labels={"fast": ""}), asking("q", cpu="3"))
    assert best(made, demand(made), [candidate(node("b")), fast]).name == "a"
    shunned = candidate(node("a", taints=[{"key": "x", "effect": "PreferNoSchedule"}]))
    used = candidate(node("b"), asking("q", cpu="3"))
    assert best(pod(), demand(pod()), [shunned, used]).name == "b"


# --- explaining

END = " no new claims to deallocate, preemption: "


@pytest.mark.parametrize(
    ("found", "want"),
    [
        pytest.param([], "no nodes available to schedule pods", id="no nodes"),
        pytest.param(
            [Obstacle(("Insufficient cpu",), is_final=False)],
            "0/1 nodes are available: 1 Insufficient cpu."
            + END
            + "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="a full node",
        ),
        pytest.param(
            [
                Obstacle(("Insufficient cpu", "Too many pods"), is_final=False),
                Obstacle(("node(s) were unschedulable",)),
            ],
            "0/2 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) were unschedulable."
            + END
            + "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
            + "1 Preemption is not helpful for scheduling.",
            id="two nodes",
        ),
    ],
)
def test_why_a_pod_fits_nowhere(found, want):
    assert explanation(pod(), found) == want


def test_a_pod_that_may_not_preempt_is_told_so():
    text = explanation(with_spec(preemptionPolicy="Never"), [Obstacle(("Too many pods",))])
    assert text.endswith("preemption: not eligible due to preemptionPolicy=Never.")
