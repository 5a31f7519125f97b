"""Suspending and resuming, row by row; and the end of a service."""

import pytest

from eagleray.manifests.gateway import service_gateway, service_route
from eagleray.manifests.rayservice import RayService, service_cluster
from eagleray.rayservice.deletion import FINALIZER, add_finalizer, plan_end
from eagleray.rayservice.look import Look
from eagleray.rayservice.suspension import TABLE, suspend
from eagleray.runtime.actions import Delete
from kubewire.sources import SeededEntropy
from kubewire.times import format_time
from tests.eagleray.rayservice.scene import NOW, incremental, service

SUSPENDING = {"type": "Suspending", "status": "True", "reason": "SuspendRequested", "message": ""}
SUSPENDED = {"type": "Suspended", "status": "True", "reason": "SuspendComplete", "message": ""}


def cluster(name="s-a", **metadata):
    found = service_cluster(RayService(service()), name, "v")
    found["metadata"] |= {"uid": f"uid of {name}", **metadata}
    return found


GOING = cluster(deletionTimestamp=format_time(NOW))


def look(*conditions, obj=None, suspended=False, **parts):
    obj = obj or service()
    known = [{**one, "lastTransitionTime": "2030-01-01T00:00:00Z"} for one in conditions]
    obj = {**obj, "spec": {**obj["spec"], "suspend": suspended}, "status": {"conditions": known}}
    return Look(RayService(obj), NOW, SeededEntropy("suspension"), **parts)


ROWS = [
    ("not suspended, and suspend is set", look(suspended=True, clusters=[cluster()])),
    ("suspending, and something is left", look(SUSPENDING, suspended=True, clusters=[cluster()])),
    ("suspending, and something is left", look(SUSPENDING, suspended=False, clusters=[GOING])),
    ("suspending, and nothing is left", look(SUSPENDING, suspended=False)),
    ("suspended, and suspend is set", look(SUSPENDED, suspended=True)),
    ("suspended, and suspend is not set", look(SUSPENDED, suspended=False)),
]


@pytest.mark.parametrize(("when", "seen"), ROWS, ids=[when for when, _ in ROWS])
def test_a_row_applies(when, seen):
    row = next(row for row in TABLE if row.applies(seen))
    assert row.when == when
    assert suspend(seen) == row.decide(seen)


def test_every_row_is_shown():
    assert {row.when for row in TABLE} == {when for when, _ in ROWS}


def test_a_service_that_is_not_suspended_goes_its_way():
    assert suspend(look()) is None


def decided(seen):
    """Return what is decided about a service that is not to go its way."""
    return suspend(seen)


def states(decision):
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in decision.status["conditions"]}


def test_nothing_is_deleted_before_it_is_on_record():
    decision = decided(look(suspended=True, clusters=[cluster()]))
    assert decision.stages == ()
    assert states(decision) == {
        "Suspending": ("True", "SuspendRequested"),
        "Ready": ("False", "SuspendInProgress"),
        "UpgradeInProgress": ("False", "SuspendInProgress"),
        "RollbackInProgress": ("False", "SuspendInProgress"),
    }
    assert decision.status["activeServiceStatus"].keys() == {"rayClusterStatus"}
    assert decision.status["observedGeneration"] == 1


def owned(obj):
    """Return what a suspended service has to delete, by the names of its Services."""
    owner = RayService(obj)
    parent = [{"uid": "su", "controller": True}]
    services = {
        name: {"metadata": {"name": name, "namespace": "ns", "ownerReferences": parent}}
        for name in ("s-head-svc", "s-serve-svc")
    }
    foreign = {"metadata": {"name": "s-a-serve-svc", "namespace": "ns", "ownerReferences": [{"uid": "c"}]}}
    return {
        "clusters": [cluster(), cluster("s-old")],
        "services": {**services, "s-a-serve-svc": foreign},
        "gateway": service_gateway(owner),
        "route": service_route(owner, ()),
    }


@pytest.mark.parametrize(
    ("obj", "kinds"),
    [
        pytest.param(
            service(), ["RayCluster", "RayCluster", "Service", "Service"], id="clusters and Services"
        ),
        pytest.param(
            incremental(),
            ["RayCluster", "RayCluster", "Service", "Service", "Gateway", "HTTPRoute"],
            id="and the way in",
        ),
    ],
)
def test_what_belongs_to_the_service_is_deleted(obj, kinds):
    decision = decided(look(SUSPENDING, obj=obj, suspended=True, **owned(obj)))
    (stage,) = decision.stages
    assert [action.resource.kind for action in stage.actions] == kinds
    assert stage.actions[0].said.done.note == "Deleted the RayCluster ns/s-a during suspend"
    assert [action.said.done.reason for action in stage.actions] == [f"Deleted{kind}" for kind in kinds]
    assert states(decision)["Suspending"] == ("True", "SuspendInProgress")


def test_what_is_going_already_is_waited_for():
    decision = decided(look(SUSPENDING, clusters=[GOING]))
    assert decision.stages == ()
    assert states(decision)["Suspending"] == ("True", "SuspendInProgress")


def test_resuming_begins_to_initialize_anew():
    ready = {"type": "Ready", "status": "False", "reason": "SuspendComplete", "message": ""}
    decision = decided(look(SUSPENDED, ready))
    assert states(decision) == {
        "Suspended": ("False", "RayServiceResumed"),
        "Ready": ("False", "Initializing"),
        "UpgradeInProgress": ("False", "Initializing"),
    }
    by_kind = {entry["type"]: entry for entry in decision.status["conditions"]}
    assert by_kind["Ready"]["lastTransitionTime"] == format_time(NOW)
    assert by_kind["Ready"]["message"] == "RayService is initializing after resuming from suspend."


# --- the end


def actions(stages):
    return [action for stage in stages for action in stage.actions]


def ending(**parts):
    return actions(plan_end(look(**parts)).stages)


def test_a_service_is_held_until_its_clusters_are_gone():
    held = service(metadata={"finalizers": ["other", FINALIZER]})
    assert [type(one) for one in ending(obj=held, clusters=[cluster(), cluster("s-b")])] == [Delete, Delete]
    assert ending(obj=held, clusters=[GOING]) == []
    (patch,) = ending(obj=held)
    assert patch.change == {"metadata": {"finalizers": ["other"]}}
    assert ending() == []


def test_the_finalizer_is_added_once():
    (patch,) = actions(add_finalizer(look()))
    assert patch.change == {"metadata": {"finalizers": [FINALIZER]}}
    assert add_finalizer(look(obj=service(metadata={"finalizers": [FINALIZER]}))) == ()
