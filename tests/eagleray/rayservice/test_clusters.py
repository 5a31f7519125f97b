"""Comparing a cluster with what its service describes, and what follows from it."""

import copy
from datetime import timedelta

import pytest

from eagleray.gates import parse_gates
from eagleray.manifests.hashing import service_hash
from eagleray.manifests.rayservice import RayService, service_cluster
from eagleray.rayservice.clusters import (
    ABANDONED,
    DELETE_AT,
    Match,
    compare,
    may_upgrade,
    needs_new_cluster,
    plan_clusters,
    plan_dangling,
    plan_stamps,
)
from eagleray.rayservice.look import Config, Look, Seen
from eagleray.rayservice.planning import plan
from eagleray.runtime.actions import Create, Delete, Patch, Replace
from kubewire.sources import SeededEntropy
from kubewire.times import format_time
from tests.eagleray.rayservice.scene import NOW, incremental, service

VERSION = Config().settings.version


def changed(obj, **fields):
    """Return a service that describes its cluster otherwise."""
    obj = copy.deepcopy(obj)
    obj["spec"]["rayClusterConfig"] |= fields
    return obj


def group_of(obj, **fields):
    """Return a service whose first worker group is otherwise."""
    (first, *rest) = obj["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    return changed(obj, workerGroupSpecs=[{**first, **fields}, *rest])


def tolerating(obj):
    (first,) = obj["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    template = copy.deepcopy(first["template"])
    template["spec"] |= {"tolerations": [{"key": "a"}], "schedulingGates": [{"name": "g"}]}
    return group_of(obj, template=template)


def grown(obj, **fields):
    """Return a service with one more group at the end."""
    groups = obj["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    return changed(
        obj, workerGroupSpecs=[{**groups[0], **fields}, *groups[1:], {**groups[0], "groupName": "more"}]
    )


def cluster_of(obj, name="s-one", *, version=VERSION, **annotations):
    """Return the cluster of a service as stored."""
    found = service_cluster(RayService(obj), name, version)
    found["metadata"] |= {
        "uid": f"uid of {name}",
        "resourceVersion": "1",
        "creationTimestamp": format_time(NOW),
    }
    found["metadata"]["annotations"] |= annotations
    return found


def look(obj, *, active=None, pending=None, config=None, clusters=()):
    names = {
        "activeServiceStatus": {"rayClusterName": active["metadata"]["name"]} if active else {},
        "pendingServiceStatus": {"rayClusterName": pending["metadata"]["name"]} if pending else {},
    }
    obj = {**obj, "status": {**names, **obj.get("status", {})}}
    return Look(
        RayService(obj),
        NOW,
        SeededEntropy("clusters"),
        config or Config(),
        active=Seen(active),
        pending=Seen(pending),
        clusters=clusters,
    )


BASE = service()


@pytest.mark.parametrize(
    ("goal", "want"),
    [
        pytest.param(BASE, Match.FULL, id="the same"),
        pytest.param(
            group_of(BASE, replicas=3, minReplicas=2, maxReplicas=9), Match.FULL, id="other numbers"
        ),
        pytest.param(
            group_of(BASE, scaleStrategy={"workersToDelete": ["w"]}), Match.FULL, id="workers to delete"
        ),
        pytest.param(tolerating(BASE), Match.FULL, id="tolerations and gates"),
        pytest.param(changed(BASE, suspend=True), Match.FULL, id="suspended"),
        pytest.param(
            changed(BASE, upgradeStrategy={"type": "Recreate"}), Match.FULL, id="the cluster's own strategy"
        ),
        pytest.param(grown(BASE), Match.PARTIAL, id="one more group"),
        pytest.param(grown(BASE, replicas=4), Match.PARTIAL, id="one more group and other numbers"),
        pytest.param(grown(BASE, groupName="other"), Match.NONE, id="one more group and another one"),
        pytest.param(changed(BASE, rayVersion="2.53.0"), Match.NONE, id="another Ray"),
        pytest.param(group_of(BASE, rayStartParams={"num-cpus": "2"}), Match.NONE, id="another group"),
        pytest.param(changed(BASE, workerGroupSpecs=[]), Match.NONE, id="one group less"),
    ],
)
def test_a_cluster_compared_with(goal, want):
    assert compare(RayService(goal), cluster_of(BASE)) is want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("many", Match.PARTIAL, id="no number"),
        pytest.param("", Match.PARTIAL, id="nothing"),
        pytest.param("-1", Match.NONE, id="less than none"),
        pytest.param("9" * 5000, Match.PARTIAL, id="an endless one"),
    ],
)
def test_a_count_of_groups_that_somebody_has_edited(text, want):
    found = cluster_of(BASE, **{"ray.io/num-worker-groups": text})
    assert compare(RayService(changed(BASE, rayVersion="2.53.0")), found) is want


@pytest.mark.parametrize(
    ("kind", "switch", "want"),
    [
        pytest.param(None, True, True, id="no strategy"),
        pytest.param(None, False, False, id="no strategy, switched off"),
        pytest.param("NewCluster", False, True, id="NewCluster, whatever the switch"),
        pytest.param("None", True, False, id="None, whatever the switch"),
        pytest.param("NewClusterWithIncrementalUpgrade", False, True, id="incremental"),
    ],
)
def test_another_spec_means_another_cluster(kind, switch, want):
    obj = service(**({"upgradeStrategy": {"type": kind}} if kind else {}))
    assert may_upgrade(look(obj, config=Config(zero_downtime=switch))) is want


def test_without_its_gate_an_incremental_strategy_upgrades_nothing():
    gates = parse_gates("RayServiceIncrementalUpgrade=false")
    seen = look(incremental(), config=Config(Config().settings._replace(gates=gates)))
    assert seen.is_incremental is False
    assert may_upgrade(seen) is False


OTHER = changed(BASE, rayVersion="2.53.0")


@pytest.mark.parametrize(
    ("seen", "want"),
    [
        pytest.param(look(BASE), True, id="there is none"),
        pytest.param(look(BASE, active=cluster_of(BASE)), False, id="the active one is what is wanted"),
        pytest.param(look(OTHER, active=cluster_of(BASE)), True, id="it is not"),
        pytest.param(look(grown(BASE), active=cluster_of(BASE)), False, id="it only has to grow"),
        pytest.param(
            look(OTHER, active=cluster_of(BASE), pending=cluster_of(OTHER, "s-two")),
            False,
            id="the pending one is what is wanted",
        ),
        pytest.param(
            look(BASE, active=cluster_of(BASE), pending=cluster_of(OTHER, "s-two")),
            True,
            id="the pending one is not, though the active one is",
        ),
        pytest.param(
            look(
                {**OTHER, "status": {"pendingServiceStatus": {"rayClusterName": "s-two"}}},
                active=cluster_of(BASE),
            ),
            False,
            id="one is named and about to be made",
        ),
        pytest.param(
            look(OTHER, active=cluster_of(BASE), config=Config(zero_downtime=False)),
            False,
            id="upgrades are off",
        ),
        pytest.param(
            look(BASE, config=Config(zero_downtime=False)), True, id="the first one is made all the same"
        ),
    ],
)
def test_a_new_cluster_is_prepared(seen, want):
    assert needs_new_cluster(seen, rolling_back=False) is want
    assert needs_new_cluster(seen, rolling_back=True) is False


def test_a_pending_cluster_that_the_services_lead_to_is_not_replaced():
    active, pending = cluster_of(BASE), cluster_of(OTHER, "s-two")
    owner = [{"uid": "su", "controller": True}]
    led = {
        "metadata": {"name": "s-serve-svc", "ownerReferences": owner},
        "spec": {"selector": {"ray.io/cluster": "s-two"}},
    }
    seen = look(changed(BASE, rayVersion="2.54.0"), active=active, pending=pending)
    assert needs_new_cluster(seen, rolling_back=False) is True
    assert needs_new_cluster(seen._replace(services={"s-serve-svc": led}), rolling_back=False) is False


# --- plans


def only_action(seen, *, rolling_back=False):
    (stage,) = plan_clusters(seen, rolling_back=rolling_back)
    (action,) = stage.actions
    return action


NAMED = {"status": {"pendingServiceStatus": {"rayClusterName": "s-two"}}}


@pytest.mark.parametrize(
    ("obj", "active", "small"),
    [
        pytest.param(BASE, cluster_of(BASE), False, id="as many workers as are asked for"),
        pytest.param(
            incremental(), cluster_of(incremental()), True, id="the fewest where capacity comes in steps"
        ),
        pytest.param(incremental(), None, False, id="all where there is nothing to take over from"),
    ],
)
def test_a_named_cluster_is_made(obj, active, small):
    action = only_action(look({**obj, **NAMED}, active=active))
    assert isinstance(action, Create)
    assert action.obj["metadata"]["name"] == "s-two"
    assert ("replicas" not in action.obj["spec"]["workerGroupSpecs"][0]) is small


def test_while_rolling_back_no_cluster_is_made_or_changed():
    assert [*plan_clusters(look({**BASE, **NAMED}, active=cluster_of(BASE)), rolling_back=True)] == []


def test_an_update_in_place_keeps_what_others_have_written():
    obj = changed(BASE, enableInTreeAutoscaling=True)
    found = cluster_of(obj, **{"kueue.x-k8s.io/note": "kept"})
    found["spec"]["suspend"] = True
    found["spec"]["workerGroupSpecs"][0] |= {"replicas": 5, "scaleStrategy": {"workersToDelete": ["w"]}}
    goal = grown(obj)
    goal["metadata"]["labels"] = {"team": "a"}
    action = only_action(look(goal, active=found))
    assert [type(action)] == [Replace]
    assert action.said.done.note == "Updated the active RayCluster ns/s-one"
    assert action.obj["spec"]["suspend"] is True
    first, second = action.obj["spec"]["workerGroupSpecs"]
    assert (first["replicas"], first["scaleStrategy"]) == (5, {"workersToDelete": ["w"]})
    assert second["groupName"] == "more"
    assert action.obj["metadata"]["annotations"]["kueue.x-k8s.io/note"] == "kept"
    assert action.obj["metadata"]["labels"]["team"] == "a"
    assert compare(RayService(goal), action.obj) is Match.FULL


def test_without_an_autoscaler_the_services_numbers_count_in_an_update():
    found = cluster_of(BASE)
    found["spec"]["workerGroupSpecs"][0]["replicas"] = 5
    action = only_action(look(grown(BASE, replicas=2), active=found))
    assert action.obj["spec"]["workerGroupSpecs"][0]["replicas"] == 2


def test_a_service_that_is_not_suspended_leaves_a_clusters_suspension_alone():
    action = only_action(look(grown(changed(BASE, suspend=True)), active=cluster_of(BASE)))
    assert "suspend" not in action.obj["spec"]


def test_a_pending_cluster_grows_in_an_upgrade_and_the_active_one_does_not():
    goal = grown(OTHER)
    action = only_action(look(goal, active=cluster_of(BASE), pending=cluster_of(OTHER, "s-two")))
    assert action.obj["metadata"]["name"] == "s-two"
    assert action.said.done.note == "Updated the pending RayCluster ns/s-two"


def stamping(look):
    """Return the patches that stamp clusters of another operator."""
    stage = plan_stamps(look)
    assert stage is not None
    actions = [action for action in stage.actions if isinstance(action, Patch)]
    assert len(actions) == len(stage.actions)
    return actions


@pytest.mark.parametrize(
    ("goal", "generation", "want"),
    [
        pytest.param(BASE, 0, Match.FULL, id="its spec is what is wanted"),
        pytest.param(OTHER, 0, Match.NONE, id="the service has changed meanwhile"),
        pytest.param(OTHER, 1, Match.FULL, id="the other operator has seen the change and done nothing"),
    ],
)
def test_a_restamped_cluster_compares_with_its_service_as(goal, generation, want):
    found = cluster_of(
        BASE, version="v1", **{"ray.io/hash-without-replicas-and-workers-to-delete": "of another kind"}
    )
    (action,) = stamping(look({**goal, "status": {"observedGeneration": generation}}, active=found))
    assert action.change.keys() == {"metadata"}
    stamps = action.change["metadata"]["annotations"]
    assert stamps["ray.io/kuberay-version"] == VERSION
    found["metadata"]["annotations"] |= stamps
    assert compare(RayService(goal), found) is want


@pytest.mark.parametrize(
    ("config", "annotations"),
    [
        pytest.param(Config(zero_downtime=False), {}, id="upgrades are off"),
        pytest.param(
            Config(),
            {ABANDONED: service_hash(OTHER["spec"]["rayClusterConfig"])},
            id="the upgrade was given up",
        ),
    ],
)
def test_a_change_that_was_not_followed_is_not_taken_for_done_when_a_cluster_is_restamped(
    config, annotations
):
    found = cluster_of(BASE, version="v1", **annotations)
    seen = look({**OTHER, "status": {"observedGeneration": 1}}, active=found, config=config)
    (action,) = stamping(seen)
    found["metadata"]["annotations"] |= action.change["metadata"]["annotations"]
    assert compare(RayService(OTHER), found) is Match.NONE


def test_clusters_of_another_operator_are_stamped_before_anything_is_done_or_written():
    decision = plan(look(OTHER, active=cluster_of(BASE, version="v1")))
    assert [stage.name for stage in decision.stages] == ["restamp-cluster"]
    assert (decision.status, decision.handovers) == (None, ())


def test_while_one_cluster_replaces_another_they_keep_the_hashes_of_what_they_were_made_from():
    third = changed(BASE, rayVersion="2.54.0")
    active, pending = cluster_of(BASE, version="v1"), cluster_of(OTHER, "s-two", version="v1")
    seen = look({**third, "status": {"observedGeneration": 1}}, active=active, pending=pending)
    stamps = [action.change["metadata"]["annotations"] for action in stamping(seen)]
    assert stamps == [{"ray.io/kuberay-version": VERSION}] * 2


# --- those without use


def actions(farewell):
    return [action for stage in farewell.stages for action in stage.actions]


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        pytest.param({}, 60, id="a minute unless told otherwise"),
        pytest.param({"rayClusterDeletionDelaySeconds": 5}, 5, id="as long as told"),
    ],
)
def test_a_cluster_without_use_is_kept_for(spec, seconds):
    farewell = plan_dangling(look(service(**spec), clusters=[cluster_of(BASE)]))
    (patch,) = actions(farewell)
    assert patch.change == {
        "metadata": {"annotations": {DELETE_AT: format_time(NOW + timedelta(seconds=seconds))}}
    }
    assert farewell.again == seconds


@pytest.mark.parametrize(
    ("stamp", "left"),
    [
        pytest.param(
            format_time(NOW + timedelta(seconds=7)), 7, id="a record counts, whatever the delay is by now"
        ),
        pytest.param(format_time(NOW), None, id="until it is due"),
    ],
)
def test_a_recorded_end(stamp, left):
    seen = look(
        service(rayClusterDeletionDelaySeconds=500), clusters=[cluster_of(BASE, **{DELETE_AT: stamp})]
    )
    farewell = plan_dangling(seen)
    assert farewell.again == left
    assert [type(action) for action in actions(farewell)] == ([] if left else [Delete])


def test_without_a_delay_a_cluster_goes_at_once():
    farewell = plan_dangling(look(service(rayClusterDeletionDelaySeconds=0), clusters=[cluster_of(BASE)]))
    (delete,) = actions(farewell)
    assert [type(delete)] == [Delete]
    assert delete.said.done.note == "Deleted the RayCluster ns/s-one"


def test_a_spoilt_record_is_made_anew():
    farewell = plan_dangling(look(BASE, clusters=[cluster_of(BASE, **{DELETE_AT: "soon"})]))
    assert farewell.again == 60


def test_a_record_in_whole_seconds_never_ends_early():
    seen = look(BASE, clusters=[cluster_of(BASE)])._replace(now=NOW + timedelta(milliseconds=1))
    (patch,) = actions(plan_dangling(seen))
    assert patch.change["metadata"]["annotations"][DELETE_AT] == format_time(NOW + timedelta(seconds=61))


def test_clusters_in_use_or_going_already_are_let_be():
    active, going = cluster_of(BASE), cluster_of(BASE, "s-old")
    going["metadata"]["deletionTimestamp"] = format_time(NOW)
    assert plan_dangling(look(BASE, active=active, clusters=[active, going])) == ((), None)
