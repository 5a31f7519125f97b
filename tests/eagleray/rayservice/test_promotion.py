"""The switch: where the Services lead to, and who is active because of it."""

import pytest

from eagleray.manifests.rayservice import RayService, service_cluster
from eagleray.rayservice.incremental import Ready
from eagleray.rayservice.look import Look, Seen
from eagleray.rayservice.promotion import is_promoted, plan_cluster_services, plan_services, target_of
from eagleray.runtime.actions import Create, Refuse, Replace
from kubewire.sources import SeededEntropy
from tests.eagleray.rayservice.scene import NOW, incremental, service

UPGRADING = [{"type": "UpgradeInProgress", "status": "True"}]


def cluster(name, obj=None):
    found = service_cluster(RayService(obj or service()), name, "v")
    found["metadata"]["uid"] = f"uid of {name}"
    return found


def look(obj, *, active="", pending="", shares=((), ()), upgrading=False, services=None, lost=()):
    sides = {
        side: {
            "rayClusterName": name,
            **dict(zip(("targetCapacity", "trafficRoutedPercent"), share, strict=False)),
        }
        for side, name, share in (
            ("activeServiceStatus", active, shares[0]),
            ("pendingServiceStatus", pending, shares[1]),
        )
    }
    obj = {**obj, "status": {**sides, "conditions": UPGRADING if upgrading else []}}
    return Look(
        RayService(obj),
        NOW,
        SeededEntropy("promotion"),
        active=Seen(cluster(active, obj)) if active and "active" not in lost else Seen(),
        pending=Seen(cluster(pending, obj)) if pending and "pending" not in lost else Seen(),
        services=services or {},
    )


def leading(name, to, **spec):
    owner = [{"uid": "su", "controller": True}]
    return {
        "metadata": {"name": name, "namespace": "ns", "ownerReferences": owner, "resourceVersion": "1"},
        "spec": {"selector": {"ray.io/cluster": to}, **spec},
    }


def to(head, serve=None, *, serve_name="s-serve-svc"):
    """Return Services that lead to clusters."""
    found = {"s-head-svc": leading("s-head-svc", head)} if head else {}
    if serve or head:
        found[serve_name] = leading(serve_name, serve or head)
    return found


def inc(head):
    return to(head, serve_name=f"{head}-serve-svc")


@pytest.mark.parametrize(
    ("obj", "upgrading", "ready", "want"),
    [
        pytest.param(service(), False, Ready(False, False), None, id="to none while none serves"),
        pytest.param(
            service(), True, Ready(True, False), "s-a", id="to the active one while the other does not"
        ),
        pytest.param(service(), True, Ready(True, True), "s-b", id="to the pending one as soon as it serves"),
        pytest.param(service(), True, Ready(False, True), "s-b", id="be the active one well or not"),
        pytest.param(
            incremental(), True, Ready(True, True), "s-a", id="step by step: to the active one until the end"
        ),
        pytest.param(
            incremental(), False, Ready(False, True), "s-b", id="step by step: to a first one at once"
        ),
    ],
)
def test_the_services_lead(obj, upgrading, ready, want):
    found = target_of(look(obj, active="s-a", pending="s-b", upgrading=upgrading), ready)
    assert (found.cluster.name if found and found.cluster else None) == want


def actions(stages):
    return [action for stage in stages for action in stage.actions]


def test_both_services_are_made_for_a_cluster_that_serves():
    head, serve = actions(plan_services(look(service(), pending="s-b"), Ready(False, True)))
    assert [type(head), type(serve)] == [Create, Create]
    assert head.obj["metadata"]["name"] == "s-head-svc"
    assert serve.obj["spec"]["selector"] == {"ray.io/cluster": "s-b", "ray.io/serve": "true"}
    assert serve.said.done.note == "Created the service ns/s-serve-svc"


def test_services_that_lead_there_are_left_alone():
    seen = look(service(), active="s-a", services=to("s-a"))
    assert actions(plan_services(seen, Ready(True, False))) == []


def test_services_are_led_to_another_cluster_under_the_same_address():
    services = to("s-a")
    services["s-serve-svc"]["spec"] |= {
        "clusterIP": "10.1.1.1",
        "clusterIPs": ["10.1.1.1"],
        "sessionAffinity": "None",
    }
    found = actions(
        plan_services(look(service(), active="s-a", pending="s-b", services=services), Ready(True, True))
    )
    assert [type(action) for action in found] == [Replace, Replace]
    spec = found[1].obj["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("10.1.1.1", ["10.1.1.1"])
    assert spec["selector"]["ray.io/cluster"] == "s-b"
    assert found[1].obj["metadata"]["resourceVersion"] == "1"
    assert found[1].said.done.note == "Updated the service ns/s-serve-svc"


def test_a_service_of_somebody_else_is_not_taken():
    services = to("s-a")
    services["s-serve-svc"]["metadata"]["ownerReferences"] = [{"uid": "other", "controller": True}]
    (action,) = actions(plan_services(look(service(), active="s-a", services=services), Ready(True, False)))
    assert isinstance(action, Create), "which the API server refuses, with a word about the owner"


NO_PORT = {"head": {"container": {"ports": [{"name": "gcs", "containerPort": 6379}]}}}


def test_a_head_without_a_port_for_serve_gets_its_head_service_and_a_refusal():
    found = actions(plan_services(look(service(config=NO_PORT), active="s-a"), Ready(True, False)))
    assert [type(action) for action in found] == [Create, Refuse]
    assert found[1].say.reason == "FailedToCreateService"


def test_with_incremental_upgrades_only_the_head_service_is_the_services_own():
    (head,) = actions(plan_services(look(incremental(), active="s-a"), Ready(True, False)))
    assert head.obj["metadata"]["name"] == "s-head-svc"


def test_each_cluster_has_a_serve_service_of_its_own_which_is_never_changed():
    existing = {"s-a-serve-svc": leading("s-a-serve-svc", "elsewhere")}
    seen = look(incremental(), active="s-a", pending="s-b", services=existing)
    (action,) = actions(plan_cluster_services(seen))
    assert action.obj["metadata"]["name"] == "s-b-serve-svc"
    assert action.said.done is None


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param(look(service(), pending="s-b", services=to("s-b")), True, id="the first one"),
        pytest.param(
            look(service(), active="s-a", pending="s-b", services=to("s-b")), True, id="both lead to it"
        ),
        pytest.param(
            look(service(), active="s-a", pending="s-b", services=to("s-a")), False, id="both lead elsewhere"
        ),
        pytest.param(
            look(service(), active="s-a", pending="s-b", services=to("s-b", "s-a")), False, id="one does"
        ),
        pytest.param(
            look(service(), active="s-a", pending="s-b", services=to("s-c")), False, id="both lead astray"
        ),
        pytest.param(look(service(), pending="s-b"), False, id="there are no Services"),
        pytest.param(
            look(service(), pending="s-b", services={"s-head-svc": leading("s-head-svc", "s-b")}),
            False,
            id="only one",
        ),
        pytest.param(look(service(), active="s-a", services=to("s-a")), False, id="nobody is pending"),
        pytest.param(
            look(incremental(), pending="s-b", services=inc("s-b")), True, id="step by step: the first one"
        ),
        pytest.param(look(incremental(), pending="s-b"), False, id="step by step: there are no Services"),
        pytest.param(
            look(incremental(), pending="s-b", services=inc("s-c")),
            False,
            id="step by step: both lead astray",
        ),
        pytest.param(
            look(
                incremental(),
                active="s-a",
                pending="s-b",
                upgrading=True,
                shares=((0, 0), (100, 100)),
                services=inc("s-a"),
            ),
            True,
            id="step by step: all has moved",
        ),
        pytest.param(
            look(
                incremental(),
                active="s-a",
                pending="s-b",
                upgrading=True,
                shares=((50, 0), (100, 100)),
                services=inc("s-a"),
            ),
            False,
            id="step by step: capacity is left",
        ),
        pytest.param(
            look(
                incremental(),
                active="s-a",
                pending="s-b",
                upgrading=True,
                shares=((0, 25), (100, 75)),
                services=inc("s-a"),
            ),
            False,
            id="step by step: traffic is left",
        ),
        pytest.param(
            look(
                incremental(),
                active="s-a",
                pending="s-b",
                upgrading=True,
                shares=((0, 0), (100, 100)),
                services=inc("s-a"),
                lost=("pending",),
            ),
            False,
            id="step by step: the cluster is gone",
        ),
    ],
)
def test_the_pending_cluster_has_taken_over(seen, want):
    assert is_promoted(seen, rolling_back=False) is want


def test_nobody_takes_over_while_rolling_back():
    seen = look(
        incremental(),
        active="s-a",
        pending="s-b",
        upgrading=True,
        shares=((0, 0), (100, 100)),
        services=inc("s-a"),
    )
    assert is_promoted(seen, rolling_back=True) is False
