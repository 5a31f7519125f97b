"""The status of a service: what is always there, what never is, and what its conditions say."""

from datetime import timedelta

import pytest

from eagleray.dashboard.errors import Unreachable
from eagleray.dashboard.questions import Observation
from eagleray.dashboard.words import Application, Deployment, ServeDetails
from eagleray.manifests.rayservice import RayService, service_cluster
from eagleray.rayservice.look import Look, Seen
from eagleray.rayservice.status import (
    News,
    is_urgent,
    needs_write,
    next_status,
    rejected_status,
    with_routed_traffic,
)
from kubewire.sources import SeededEntropy
from kubewire.times import format_time
from tests.eagleray.rayservice.scene import NOW, incremental, service

EARLIER = format_time(NOW - timedelta(hours=1))
NO_CLUSTER = {"desiredCPU": "0", "desiredGPU": "0", "desiredMemory": "0", "desiredTPU": "0", "head": {}}
ENDPOINT = {
    "metadata": {"labels": {"kubernetes.io/service-name": "s-serve-svc"}},
    "endpoints": [{"conditions": {"ready": True}, "targetRef": {"uid": "p"}}],
}


def condition(kind, status, reason):
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": EARLIER}


def named(active="", pending=""):
    return {
        "activeServiceStatus": {"rayClusterName": active} if active else {},
        "pendingServiceStatus": {"rayClusterName": pending} if pending else {},
    }


def look(*, status=None, obj=None, **parts):
    obj = {**(obj or service()), "status": status or {}}
    return Look(RayService(obj), NOW, SeededEntropy("status"), **parts)


def conditions(status):
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]}


def since(status, kind):
    return next(entry["lastTransitionTime"] for entry in status["conditions"] if entry["type"] == kind)


def test_a_first_status_has_both_sides_and_nothing_that_is_empty():
    assert next_status(look(), News(prepared="s-new")) == {
        "activeServiceStatus": {"rayClusterStatus": NO_CLUSTER},
        "pendingServiceStatus": {"rayClusterName": "s-new", "rayClusterStatus": NO_CLUSTER},
        "observedGeneration": 1,
        "conditions": [
            {
                "type": kind,
                "status": "False",
                "reason": "Initializing",
                "message": "RayService is initializing",
                "observedGeneration": 1,
                "lastTransitionTime": format_time(NOW),
            }
            for kind in ("Ready", "UpgradeInProgress")
        ],
    }


@pytest.mark.parametrize(
    ("status", "capacity"),
    [
        pytest.param({}, 100, id="the first one gets all"),
        pytest.param(named("s-old"), 0, id="one beside another gets nothing at first"),
    ],
)
def test_the_capacity_of_a_new_cluster(status, capacity):
    got = next_status(look(obj=incremental(), status=status), News(prepared="s-new"))
    assert got["pendingServiceStatus"]["targetCapacity"] == capacity


def serving(*apps):
    found = service_cluster(RayService(service()), "s-a", "v")
    found["status"] = {"state": "ready", "conditions": [{"type": "HeadPodReady", "status": "True"}]}
    return Seen(found, serve=Observation(ServeDetails(apps), None, NOW))


def test_applications_and_the_clusters_status_are_copied():
    app = Application(
        "a", "DEPLOYING", "soon", (Deployment("d", "HEALTHY"), Deployment("e", "UPDATING", "slow"))
    )
    side = next_status(look(status=named("s-a"), active=serving(app)), News())["activeServiceStatus"]
    assert side["applicationStatuses"] == {
        "a": {
            "status": "DEPLOYING",
            "message": "soon",
            "serveDeploymentStatuses": {
                "d": {"status": "HEALTHY"},
                "e": {"status": "UPDATING", "message": "slow"},
            },
        }
    }
    assert side["rayClusterStatus"]["state"] == "ready"
    assert side["rayClusterStatus"]["desiredCPU"] == "0"


def test_what_was_known_of_applications_stays_while_nobody_can_say():
    known = {"a": {"status": "RUNNING"}}
    status = named("s-a")
    status["activeServiceStatus"]["applicationStatuses"] = known
    error = Observation(None, Unreachable("x", certainly_not_done=True), NOW)
    for serve in (None, error):
        got = next_status(look(status=status, active=serving()._replace(serve=serve)), News())
        assert got["activeServiceStatus"]["applicationStatuses"] == known
    got = next_status(look(status=status, active=serving()), News())
    assert "applicationStatuses" not in got["activeServiceStatus"]


def test_the_cluster_that_takes_over_leaves_nothing_pending():
    status = named("s-a", "s-b")
    status["pendingServiceStatus"] |= {"targetCapacity": 100, "trafficRoutedPercent": 100}
    got = next_status(look(status=status), News(is_promoted=True))
    assert got["activeServiceStatus"]["rayClusterName"] == "s-b"
    assert got["activeServiceStatus"]["targetCapacity"] == 100
    assert got["pendingServiceStatus"] == {"rayClusterStatus": NO_CLUSTER}


@pytest.mark.parametrize(
    ("before", "slices", "active", "want"),
    [
        pytest.param(None, [], "", ("False", "Initializing"), id="nothing yet"),
        pytest.param(
            ("False", "Initializing"), [ENDPOINT], "", ("True", "NonZeroServeEndpoints"), id="the first"
        ),
        pytest.param(
            ("True", "NonZeroServeEndpoints"), [], "s-a", ("False", "ZeroServeEndpoints"), id="the last"
        ),
        pytest.param(
            ("False", "ZeroServeEndpoints"), [], "s-a", ("False", "ZeroServeEndpoints"), id="still none"
        ),
        pytest.param(("False", "Initializing"), [], "", ("False", "Initializing"), id="none as yet"),
        pytest.param(
            ("False", "ValidationFailed"), [], "", ("False", "Initializing"), id="mended, never served"
        ),
        pytest.param(
            ("False", "ValidationFailed"), [], "s-a", ("False", "ZeroServeEndpoints"), id="mended, has served"
        ),
        pytest.param(
            ("False", "ValidationFailed"),
            [ENDPOINT],
            "s-a",
            ("True", "NonZeroServeEndpoints"),
            id="mended, serves",
        ),
    ],
)
def test_ready(before, slices, active, want):
    status = {**named(active), "conditions": [condition("Ready", *before)] if before else []}
    got = next_status(look(status=status, slices=slices), News())
    assert conditions(got)["Ready"] == want
    assert got.get("serviceStatus", "") == ("Running" if want[0] == "True" else "")
    assert got.get("numServeEndpoints") == (1 if slices else None)
    turned = (
        before is None or before[0] != want[0] or (before[1], want[1]) == ("ValidationFailed", "Initializing")
    )
    assert since(got, "Ready") == (format_time(NOW) if turned else EARLIER)


@pytest.mark.parametrize(
    ("names", "before", "want"),
    [
        pytest.param(
            ("a", "b"), ("False", "NoPendingCluster"), ("True", "BothActivePendingClustersExist"), id="both"
        ),
        pytest.param(
            ("a", ""), ("True", "BothActivePendingClustersExist"), ("False", "NoPendingCluster"), id="active"
        ),
        pytest.param(("", "b"), ("False", "Initializing"), ("False", "Initializing"), id="initializing"),
        pytest.param(
            ("", ""), ("False", "InitializingTimeout"), ("False", "InitializingTimeout"), id="timed out"
        ),
        pytest.param(
            ("", "b"), ("False", "NoPendingCluster"), ("Unknown", "NoActiveCluster"), id="no active one"
        ),
        pytest.param(("", ""), None, ("Unknown", "NoActiveCluster"), id="nothing is known"),
    ],
)
def test_upgrade_in_progress(names, before, want):
    known = [condition("Ready", "False", "ZeroServeEndpoints")]
    if before:
        known.append(condition("UpgradeInProgress", *before))
    got = next_status(look(status={**named(*names), "conditions": known}), News())
    assert conditions(got)["UpgradeInProgress"] == want


def test_a_refused_service_that_never_ran_begins_to_initialize_when_it_is_mended():
    rejected = rejected_status(RayService(service()), "no head", NOW)
    assert conditions(rejected) == {"Ready": ("False", "ValidationFailed")}
    got = next_status(look(status=rejected), News(prepared="s-new"))
    assert conditions(got) == {
        "Ready": ("False", "Initializing"),
        "UpgradeInProgress": ("False", "Initializing"),
    }


def test_a_refused_generation_is_told_and_what_runs_is_kept():
    status = {**named("s-a"), "numServeEndpoints": 2, "serviceStatus": "Running", "observedGeneration": 1}
    obj = service(metadata={"generation": 2}, status=status)
    got = rejected_status(RayService(obj), "spec.x: wrong", NOW)
    assert got["observedGeneration"] == 2
    assert got["conditions"][0]["observedGeneration"] == 2
    assert got["conditions"][0]["message"] == "spec.x: wrong"
    assert got["activeServiceStatus"]["rayClusterName"] == "s-a"
    assert got["numServeEndpoints"] == 2
    assert "serviceStatus" not in got


def test_every_condition_is_of_the_generation_that_was_handled():
    known = [condition("Suspended", "False", "RayServiceResumed")]
    obj = service(metadata={"generation": 7})
    got = next_status(look(obj=obj, status={"conditions": known}), News())
    assert {entry["observedGeneration"] for entry in got["conditions"]} == {7}
    assert [entry["type"] for entry in got["conditions"]] == ["Suspended", "Ready", "UpgradeInProgress"]


@pytest.mark.parametrize(
    ("routed", "want"),
    [
        pytest.param({"s-a": 75, "s-b": 25}, (75, 25), id="as the route has it"),
        pytest.param({"s-a": 100}, (100, 0), id="what the route does not say stays"),
        pytest.param(None, (90, 0), id="without a route all stays"),
        pytest.param({}, (90, 0), id="without backends all stays"),
    ],
)
def test_traffic_is_noted(routed, want):
    status = named("s-a", "s-b")
    status["activeServiceStatus"] |= {"trafficRoutedPercent": 90, "lastTrafficMigratedTime": EARLIER}
    status["pendingServiceStatus"] |= {"trafficRoutedPercent": 0, "lastTrafficMigratedTime": EARLIER}
    route = None
    if routed is not None:
        refs = [{"name": f"{name}-serve-svc", "weight": weight} for name, weight in routed.items()]
        route = {
            "metadata": {"name": "r", "ownerReferences": [{"uid": "su", "controller": True}]},
            "spec": {"rules": [{"backendRefs": refs}]},
        }
    noted = with_routed_traffic(look(obj=incremental(), status=status, route=route)).service
    assert (noted.active.traffic, noted.pending.traffic) == want
    for side, before in ((noted.active, 90), (noted.pending, 0)):
        assert side.migrated_at == (NOW if side.traffic != before else NOW - timedelta(hours=1))


def test_traffic_is_noted_in_whole_seconds_that_shorten_no_interval():
    refs = [{"name": "s-a-serve-svc", "weight": 100}]
    route = {
        "metadata": {"name": "r", "ownerReferences": [{"uid": "su", "controller": True}]},
        "spec": {"rules": [{"backendRefs": refs}]},
    }
    seen = look(obj=incremental(), status=named("s-a", "s-b"), route=route)
    noted = with_routed_traffic(seen._replace(now=NOW + timedelta(milliseconds=100))).service
    assert noted.active.migrated_at == NOW + timedelta(seconds=1)


def test_the_time_of_the_last_write_is_no_reason_to_write():
    assert needs_write({"a": 1, "lastUpdateTime": "x"}, {"a": 1}) is False
    assert needs_write({"a": 1, "lastUpdateTime": "x"}, {"a": 2, "lastUpdateTime": "x"}) is True


def running_app(message="", status="RUNNING"):
    return {"applicationStatuses": {"app": {"status": status, "message": message}}}


URGENT = {
    "a first status": ({}, named(pending="s-new")),
    "another cluster": (named("s-old"), named("s-old", "s-new")),
    "a condition that turns": (
        {"conditions": [condition("Ready", "False", "Initializing")]},
        {"conditions": [condition("Ready", "True", "NonZeroServeEndpoints")]},
    ),
    "another reason": (
        {"conditions": [condition("Ready", "False", "Initializing")]},
        {"conditions": [condition("Ready", "False", "InitializingTimeout")]},
    ),
    "an application that runs": (
        {"activeServiceStatus": running_app(status="DEPLOYING")},
        {"activeServiceStatus": running_app()},
    ),
    "traffic": (
        {"activeServiceStatus": {"trafficRoutedPercent": 50}},
        {"activeServiceStatus": {"trafficRoutedPercent": 75}},
    ),
    "endpoints": ({"numServeEndpoints": 1}, {"numServeEndpoints": 2}),
}
CAN_WAIT = {
    "the message of a condition": (
        {"conditions": [condition("Ready", "False", "Initializing") | {"message": "one"}]},
        {"conditions": [condition("Ready", "False", "Initializing") | {"message": "another"}]},
    ),
    "the message of an application": (
        {"activeServiceStatus": running_app("one")},
        {"activeServiceStatus": running_app("another")},
    ),
    "how far a cluster is": (
        {"pendingServiceStatus": {"rayClusterName": "s-new", "rayClusterStatus": {}}},
        {"pendingServiceStatus": {"rayClusterName": "s-new", "rayClusterStatus": {"state": "ready"}}},
    ),
}


@pytest.mark.parametrize(("old", "new"), URGENT.values(), ids=URGENT)
def test_what_is_told_at_once(old, new):
    assert is_urgent(old, new)


@pytest.mark.parametrize(("old", "new"), CAN_WAIT.values(), ids=CAN_WAIT)
def test_what_can_wait_for_more(old, new):
    assert needs_write(old, new)
    assert not is_urgent(old, new)
