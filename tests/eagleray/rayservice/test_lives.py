"""Services over their lives: plans carried out one after the other, as a controller would."""

import pytest

from eagleray.rayservice.planning import plan
from tests.eagleray.rayservice.scene import Scene, incremental, running, service


def test_a_new_service_names_a_cluster_before_it_makes_it():
    scene = Scene(service())
    scene.step()
    name = scene.pending
    assert scene.clusters == []
    assert "ray.io/rayservice-finalizer" in scene.obj["metadata"]["finalizers"]
    assert scene.condition("Ready") == ("False", "Initializing")
    assert scene.condition("UpgradeInProgress") == ("False", "Initializing")
    scene.settle()
    assert scene.clusters == [name]


def test_a_cluster_that_serves_becomes_the_active_one():
    scene = running(service())
    assert (scene.active, scene.pending) == (scene.clusters[0], "")
    assert scene.selected("s-head-svc") == scene.selected("s-serve-svc") == scene.active
    assert scene.condition("Ready") == ("True", "NonZeroServeEndpoints")
    assert scene.condition("UpgradeInProgress") == ("False", "NoPendingCluster")
    assert scene.status["numServeEndpoints"] == 1
    assert scene.status["serviceStatus"] == "Running"
    assert scene.puts == [(scene.active, {"applications": [{"name": "app"}]}, None)]


@pytest.mark.parametrize("obj", [service(), incremental()], ids=["switched", "incremental"])
def test_a_service_at_rest_decides_nothing(obj):
    scene = running(obj)
    for _ in range(10):
        scene.advance(60)
        assert scene.step() is False


def test_another_spec_makes_another_cluster_which_takes_over_when_it_serves():
    scene = running(service())
    old = scene.active
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    new = scene.pending
    assert scene.condition("UpgradeInProgress") == ("True", "BothActivePendingClustersExist")
    assert scene.selected("s-serve-svc") == old
    scene.serve(new)
    scene.settle()
    assert (scene.active, scene.pending) == (new, "")
    assert scene.selected("s-head-svc") == scene.selected("s-serve-svc") == new
    assert scene.clusters == sorted([old, new])
    scene.advance(59)
    scene.settle()
    assert old in scene.clusters
    scene.advance(1)
    scene.settle()
    assert scene.clusters == [new]


def test_a_change_of_both_configures_the_new_cluster_alone():
    scene = running(service())
    old = scene.active
    scene.puts.clear()
    scene.edit(serveConfigV2="applications: [{name: other}]\n")
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    assert scene.puts == []
    scene.serve(scene.pending)
    scene.settle()
    assert {name for name, _, _ in scene.puts} == {scene.active} != {old}


def test_a_change_of_the_configuration_alone_reaches_the_cluster_that_serves():
    scene = running(service())
    scene.puts.clear()
    scene.edit(serveConfigV2="applications: [{name: other}]\n")
    scene.settle()
    assert scene.puts == [(scene.active, {"applications": [{"name": "other"}]}, None)]
    assert scene.pending == ""
    assert scene.events[-1] == "UpdatedServeApplications"


def test_without_upgrades_a_changed_cluster_is_ignored_and_the_configuration_applied():
    scene = running(service(upgradeStrategy={"type": "None"}))
    before = scene.children[("RayCluster", scene.active)]
    scene.puts.clear()
    scene.edit(serveConfigV2="applications: [{name: other}]\n")
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    assert (len(scene.puts), scene.pending) == (1, "")
    assert scene.children[("RayCluster", scene.active)] == before


def test_a_second_change_replaces_a_new_cluster_that_does_not_serve_yet():
    scene = running(service())
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    first = scene.pending
    scene.describe(rayVersion="2.54.0")
    scene.settle()
    assert scene.pending not in ("", first)
    scene.advance(60)
    scene.settle()
    assert first not in scene.clusters
    assert scene.active in scene.clusters


def test_a_lost_head_is_configured_again():
    scene = running(service())
    scene.lose_head(scene.active)
    scene.settle()
    assert scene.condition("Ready") == ("False", "ZeroServeEndpoints")
    scene.puts.clear()
    scene.rays[scene.active].head = True
    scene.advance(1)
    scene.step()
    assert scene.puts == [(scene.active, {"applications": [{"name": "app"}]}, None)]
    scene.serve(scene.active)
    scene.settle()
    assert scene.condition("Ready") == ("True", "NonZeroServeEndpoints")


@pytest.mark.parametrize("text", ["", "applications: []\n"], ids=["an empty text", "no applications"])
def test_a_configuration_without_applications_is_handed_over_once(text):
    scene = Scene(service(serveConfigV2=text))
    scene.settle()
    scene.rays[scene.pending].head = True
    for _ in range(5):
        scene.settle()
        scene.advance(60)
    assert len(scene.puts) == 1


def test_a_configuration_that_is_none_is_told_and_holds_nothing_else_up():
    scene = running(service())
    scene.edit(serveConfigV2="[")
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.rays[scene.pending].head = True
    scene.step()
    assert scene.events[-1] == "FailedToUpdateServeApplications"
    assert "serveConfigV2 is no YAML" in scene.message("UpgradeInProgress")
    assert scene.condition("Ready")[0] == "True"


def test_a_stuck_upgrade_is_kept_and_says_why():
    scene = running(service())
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.advance(86400)
    scene.serve(scene.pending, "DEPLOY_FAILED", "no module named fruit")
    scene.settle()
    assert scene.pending in scene.clusters
    said = scene.message("UpgradeInProgress")
    assert said.startswith("Both active and pending Ray clusters exist; ")
    assert said.endswith("application app is DEPLOY_FAILED: no module named fruit")


@pytest.mark.parametrize("make", [service, incremental], ids=["switched", "incremental"])
def test_an_upgrade_past_its_deadline_is_given_up_until_the_spec_changes(make):
    scene = running(make(metadata={"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}))
    old = scene.active
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    stuck = scene.pending
    assert scene.again == 60
    scene.advance(60)
    scene.settle()
    assert (scene.active, scene.pending) == (old, "")
    assert scene.events.count("UpgradeDeadlineExceeded") == 1
    assert scene.condition("UpgradeInProgress") == ("False", "NoPendingCluster")
    assert scene.condition("RollbackInProgress") is None
    scene.advance(3600)
    scene.settle()
    assert scene.clusters == [old]
    assert scene.pending == ""
    scene.describe(rayVersion="2.54.0")
    scene.settle()
    assert scene.pending not in ("", stuck)


def test_a_spec_that_was_given_up_is_tried_again_after_it_was_reverted():
    scene = running(service(metadata={"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}))
    version = scene.obj["spec"]["rayClusterConfig"].get("rayVersion")
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.advance(60)
    scene.settle()
    scene.describe(rayVersion=version)
    scene.settle()
    assert scene.pending == ""
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    assert scene.pending != ""


def test_a_first_cluster_has_no_upgrade_deadline():
    scene = Scene(service(metadata={"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}))
    scene.settle()
    scene.advance(3600)
    scene.settle()
    assert scene.pending in scene.clusters


def test_a_service_that_takes_too_long_is_given_up_for_good():
    scene = Scene(service(metadata={"annotations": {"ray.io/initializing-timeout": "30m"}}))
    scene.settle()
    assert scene.again == 1800
    scene.advance(600)
    scene.settle()
    assert scene.pending
    scene.advance(1500)
    scene.settle()
    assert (scene.active, scene.pending) == ("", "")
    assert scene.condition("Ready") == ("False", "InitializingTimeout")
    assert scene.message("Ready").startswith(
        "RayService failed to become ready within the configured timeout of 30m0s. Time spent initializing: 35m0s"
    )
    assert scene.events.count("RayServiceInitializingTimeout") == 1
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.advance(60)
    scene.settle()
    assert (scene.clusters, scene.pending) == ([], "")
    assert scene.status["observedGeneration"] == 2
    scene.edit(suspend=True)
    scene.settle()
    scene.edit(suspend=False)
    scene.settle()
    assert scene.pending in scene.clusters


@pytest.mark.parametrize("make", [service, incremental], ids=["switched", "incremental"])
@pytest.mark.parametrize("upgrading", [False, True], ids=["at rest", "in an upgrade"])
def test_suspending_leaves_nothing_and_resuming_begins_anew(make, upgrading):
    scene = running(make())
    old = scene.active
    if upgrading:
        scene.describe(rayVersion="2.53.0")
        scene.settle()
    scene.edit(suspend=True)
    scene.step()
    assert scene.condition("Suspending") == ("True", "SuspendRequested")
    assert scene.clusters, "what is about to be deleted is on record before"
    scene.settle()
    assert [key for key in scene.children if "-serve-svc" not in key[1] or make is service] == []
    assert scene.condition("Suspended") == ("True", "SuspendComplete")
    assert "numServeEndpoints" not in scene.status
    assert (scene.active, scene.pending) == ("", "")
    for kind in ("Ready", "UpgradeInProgress", "RollbackInProgress", "Suspending"):
        assert scene.condition(kind) == ("False", "SuspendComplete")
    scene.children.clear()  # garbage collection
    scene.advance(3600)
    assert scene.settle() == 0
    scene.edit(suspend=False)
    scene.settle()
    assert scene.condition("Suspended") == ("False", "RayServiceResumed")
    assert scene.condition("Ready") == ("False", "Initializing")
    assert scene.pending not in ("", old)
    scene.serve(scene.pending)
    scene.settle()
    assert scene.condition("Ready")[0] == "True"


def test_a_service_made_suspended_has_nothing_ever():
    scene = Scene(service(suspend=True))
    scene.settle()
    assert scene.children == {}
    kinds = [entry["type"] for entry in scene.status["conditions"]]
    assert kinds == ["Suspending", "Ready", "UpgradeInProgress", "RollbackInProgress", "Suspended"]


def test_an_operator_of_another_version_changes_annotations_alone():
    scene = running(service())
    before = scene.children[("RayCluster", scene.active)]
    annotations = dict(before["metadata"]["annotations"])
    annotations["ray.io/kuberay-version"] = "v1.5.0"
    annotations["ray.io/hash-without-replicas-and-workers-to-delete"] = "of another kind"
    scene.children[("RayCluster", scene.active)] = {
        **before,
        "metadata": {**before["metadata"], "annotations": annotations},
    }
    scene.settle()
    after = scene.children[("RayCluster", scene.active)]
    assert after["spec"] == before["spec"]
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert scene.pending == ""


def test_an_upgrade_of_the_service_together_with_the_operator_is_not_missed():
    scene = running(service())
    found = scene.children[("RayCluster", scene.active)]
    found["metadata"]["annotations"]["ray.io/kuberay-version"] = "v1.5.0"
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    assert scene.pending != ""


def test_a_group_that_is_added_at_the_end_is_added_in_place():
    scene = running(service())
    groups = scene.obj["spec"]["rayClusterConfig"]["workerGroupSpecs"]
    scene.describe(workerGroupSpecs=[*groups, {**groups[0], "groupName": "more"}])
    scene.settle()
    found = scene.children[("RayCluster", scene.active)]
    assert [group["groupName"] for group in found["spec"]["workerGroupSpecs"]] == ["small", "more"]
    assert found["metadata"]["annotations"]["ray.io/num-worker-groups"] == "2"
    assert (scene.pending, scene.events[-1]) == ("", "UpdatedRayCluster")


def test_a_cluster_that_is_lost_is_replaced():
    scene = running(service())
    lost = scene.active
    del scene.children[("RayCluster", lost)]
    scene.settle()
    scene.serve(scene.pending)
    scene.settle()
    assert scene.active not in ("", lost)
    assert scene.selected("s-serve-svc") == scene.active


def test_a_service_whose_time_is_up_in_the_moment_it_serves_has_made_it():
    scene = Scene(service(metadata={"annotations": {"ray.io/initializing-timeout": "30m"}}))
    scene.settle()
    scene.advance(1800)
    serves = {
        "metadata": {"labels": {"kubernetes.io/service-name": "s-serve-svc"}},
        "endpoints": [{"conditions": {"ready": True}, "targetRef": {"uid": "p"}}],
    }
    status = plan(scene.look()._replace(slices=[serves])).status
    assert status is not None
    assert status["conditions"][0]["reason"] == "NonZeroServeEndpoints"
    assert status["pendingServiceStatus"]["rayClusterName"] == scene.pending


def test_what_held_back_a_cluster_that_is_replaced_is_not_told_of_the_next():
    scene = running(service())
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    assert "is held back" in scene.message("UpgradeInProgress")
    scene.describe(rayVersion="2.54.0")
    scene.step()
    assert scene.message("UpgradeInProgress") == "Both active and pending Ray clusters exist"


DEADLINE = {"annotations": {"eagleray.io/upgrade-deadline-seconds": "60"}}


def test_an_upgrade_that_gets_requests_has_met_its_deadline():
    scene = running(incremental(metadata=DEADLINE))
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending)
    for _ in range(2):
        scene.settle()
        scene.advance(10)
    scene.settle()
    assert scene.weights[scene.pending] > 0
    scene.fail(scene.pending)
    scene.advance(3600)
    scene.settle()
    assert scene.pending != ""
    assert "UpgradeDeadlineExceeded" not in scene.events


def test_capacity_that_was_given_is_taken_back_before_an_upgrade_is_given_up():
    scene = running(incremental(metadata=DEADLINE))
    old = scene.active
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending, "DEPLOYING")
    scene.settle()
    assert scene.shares[1] == (50, 0)
    stuck = scene.pending
    scene.advance(60)
    scene.step()
    scene.step()
    assert scene.condition("RollbackInProgress") == ("True", "UpgradeDeadlineExceeded")
    scene.settle()
    assert (scene.active, scene.pending) == (old, "")
    assert scene.puts[-1] == (stuck, {"applications": [{"name": "app"}], "target_capacity": 0}, 0)


def test_a_rollback_ends_with_the_strategy_that_knows_it():
    scene = running(incremental())
    scene.describe(rayVersion="2.53.0")
    scene.settle()
    scene.serve(scene.pending)
    for _ in range(15):
        scene.settle()
        scene.advance(1)
    scene.describe(rayVersion="")
    scene.step()
    assert scene.condition("RollbackInProgress")[0] == "True"
    scene.edit(upgradeStrategy={"type": "NewCluster"})
    scene.settle()
    assert scene.condition("RollbackInProgress") is None
