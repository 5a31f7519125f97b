"""Plans of Deployments: sizes of ReplicaSets step by step, names, annotations, and what the status says."""

from datetime import timedelta

import pytest

from kubereef.controllers import deploymentplan as plan
from kubereef.controllers import rollouts
from kubereef.controllers.rollouts import DESIRED_REPLICAS, MAX_REPLICAS, REVISION, REVISION_HISTORY, Family
from tests.kubereef.controllers.making import START, at, template, workload


def deployment(replicas=10, surge=None, unavailable=None, *, status=None, kind="RollingUpdate", **spec):
    made = workload("d", replicas, **spec)
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    rolling = {field: value for field, value in rolling.items() if value is not None}
    made["spec"]["strategy"] = {"type": kind, **({"rollingUpdate": rolling} if rolling else {})}
    made["metadata"] |= {"namespace": "default", "uid": "d", "generation": 1}
    made["status"] = status or {}
    return made


def replica_set(name, size, available=None, *, age=0, annotations=None, image="i:1", replicas=None, **status):
    counts = {
        "replicas": size if replicas is None else replicas,
        "availableReplicas": size if available is None else available,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": at(age),
            "annotations": annotations or {},
            "generation": 1,
        },
        "spec": {"replicas": size, "template": template(image, {"app": "a", plan.HASH_LABEL: name})},
        "status": {**counts, "observedGeneration": 1, **status},
    }


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "want"),
    [
        pytest.param(10, None, None, (3, 2), id="a quarter each, the surge rounded up and the missing down"),
        pytest.param(10, 0, 0, (0, 1), id="nothing of either would stand still, so one may be missing"),
        pytest.param(1, "25%", "25%", (1, 0), id="one replica is replaced by adding one"),
        pytest.param(2, 1, 5, (1, 2), id="no more can be missing than there are"),
        pytest.param(0, "25%", "25%", (0, 0), id="of none, none"),
        pytest.param(3, "100%", "0%", (3, 0), id="all at once"),
    ],
)
def test_how_much_may_be_too_much_or_missing(replicas, surge, unavailable, want):
    made = deployment(replicas, surge, unavailable)
    assert (rollouts.max_surge(made), rollouts.max_unavailable(made)) == want


def test_a_recreating_deployment_has_no_surge():
    assert rollouts.max_surge(deployment(10, kind="Recreate")) == 0


@pytest.mark.parametrize(
    ("new", "old", "want"),
    [
        pytest.param(replica_set("n", 0), [replica_set("o", 10)], {"n": 3}, id="the surge comes first"),
        pytest.param(replica_set("n", 3, 0), [replica_set("o", 10)], {}, id="then it waits"),
        pytest.param(
            replica_set("n", 3, 0), [replica_set("o", 8)], {"n": 5}, id="and grows as the old shrinks"
        ),
        pytest.param(replica_set("n", 8), [replica_set("o", 0)], {"n": 10}, id="to what is wanted"),
        pytest.param(replica_set("n", 12), [], {"n": 10}, id="or shrinks to it"),
    ],
)
def test_how_the_new_replica_set_grows(new, old, want):
    assert rollouts.grow_new(deployment(10), Family(new, old)) == want


@pytest.mark.parametrize(
    ("new", "old", "want"),
    [
        pytest.param(
            replica_set("n", 3, 0), [replica_set("o", 10)], {"o": 8}, id="what may be missing goes at once"
        ),
        pytest.param(
            replica_set("n", 3, 0), [replica_set("o", 8)], {}, id="no more while the new is not available"
        ),
        pytest.param(
            replica_set("n", 5, 3), [replica_set("o", 8)], {"o": 5}, id="as much as the new makes up for"
        ),
        pytest.param(
            replica_set("n", 3, 0),
            [replica_set("old", 6, 6), replica_set("broken", 4, 0, age=5)],
            {"broken": 2},
            id="first what is of no use, even if younger",
        ),
        pytest.param(
            replica_set("n", 8, 8),
            [replica_set("younger", 3, age=5), replica_set("older", 2, age=1)],
            {"older": 0, "younger": 0},
            id="everything once the new is enough",
        ),
        pytest.param(
            replica_set("n", 5, 5),
            [replica_set("younger", 4, age=5), replica_set("older", 4, age=1)],
            {"older": 0, "younger": 3},
            id="the oldest first",
        ),
        pytest.param(replica_set("n", 10), [replica_set("o", 0)], {}, id="nothing once the old are empty"),
    ],
)
def test_how_the_old_replica_sets_shrink(new, old, want):
    assert rollouts.shrink_old(deployment(10), Family(new, old)) == want


def noted(desired, surge=0):
    return {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + surge)}


def test_a_new_number_goes_to_the_only_replica_set_in_use():
    family = Family(replica_set("n", 4, annotations=noted(4)), [replica_set("o", 0)])
    assert rollouts.is_scaled(deployment(6), family)
    assert rollouts.scaled(deployment(6), family) == {"n": 6}


def test_a_new_number_in_the_middle_of_a_rollout_is_shared_in_proportion():
    """The example of the Kubernetes documentation: from 10 to 15 replicas with 8 old and 5 new Pods."""
    made = deployment(15, surge=3, unavailable=2)
    old = replica_set("o", 8, annotations=noted(10, 3))
    new = replica_set("n", 5, 0, age=5, annotations=noted(10, 3))
    assert rollouts.scaled(made, Family(new, [old])) == {"o": 11, "n": 7}
    assert sum(rollouts.scaled(deployment(5, 3, 2), Family(new, [old])).values()) == 8
    assert rollouts.scaled(deployment(0), Family(new, [old])) == {"o": 0, "n": 0}


def test_what_rounding_leaves_goes_to_the_largest():
    old = [replica_set(f"o{n}", 1, age=n, annotations=noted(3)) for n in range(2)]
    new = replica_set("n", 1, age=5, annotations=noted(3))
    assert rollouts.scaled(deployment(4, 0, 1), Family(new, old)) == {"n": 2, "o1": 1, "o0": 1}
    assert rollouts.scaled(deployment(2, 0, 1), Family(new, old)) == {"o0": 0, "o1": 1, "n": 1}


def test_a_saturated_new_replica_set_ends_the_old_ones():
    new = replica_set("n", 4, annotations=noted(4))
    old = replica_set("o", 2, annotations=noted(6))
    assert rollouts.scaled(deployment(4), Family(new, [old])) == {"o": 0}


def test_a_replica_set_is_recognised_by_its_template():
    ours, other = replica_set("n", 1), replica_set("o", 1, image="i:2")
    assert plan.family_of(deployment(), [other, ours]) == Family(ours, [other])
    assert plan.family_of(deployment(image="i:3"), [other, ours]).new is None


def test_the_hash_of_a_template_is_stable_short_and_its_own():
    assert plan.template_hash(template(), None) == plan.template_hash(template(), None)
    assert plan.template_hash(template(), None) != plan.template_hash(template("i:2"), None)
    assert plan.template_hash(template(), 1) != plan.template_hash(template(), None)
    assert len(plan.template_hash(template(), None)) <= 10
    turned = dict(reversed(template().items()))
    assert plan.template_hash(turned, None) == plan.template_hash(template(), None)


def test_a_new_replica_set_inherits_and_remembers():
    made = deployment(4, minReadySeconds=5)
    made["metadata"]["annotations"] = {
        "mine": "1",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        REVISION: "2",
    }
    new = plan.new_replica_set(made, Family(None, [replica_set("o", 3, annotations={REVISION: "2"})]))
    digest = new["metadata"]["labels"][plan.HASH_LABEL]
    assert new["metadata"]["name"] == f"d-{digest}"
    assert new["spec"]["selector"] == {"matchLabels": {"app": "a", plan.HASH_LABEL: digest}}
    assert new["spec"]["template"]["metadata"]["labels"] == {"app": "a", plan.HASH_LABEL: digest}
    assert new["metadata"]["annotations"] == {"mine": "1", REVISION: "3", **noted(4, 1)}
    assert (new["spec"]["replicas"], new["spec"]["minReadySeconds"]) == (2, 5)


def test_a_revision_that_comes_back_remembers_its_former_numbers():
    again = replica_set("n", 0, annotations={REVISION: "1", REVISION_HISTORY: "0"})
    annotations = plan.inherited_annotations(deployment(), again, 4)
    assert annotations == {REVISION: "4", REVISION_HISTORY: "0,1"}


def test_the_history_keeps_the_youngest_and_what_is_in_use():
    old = [replica_set(str(n), 0, annotations={REVISION: str(n)}) for n in range(1, 6)]
    old[0] = replica_set("1", 1, annotations={REVISION: "1"})
    gone = plan.outlived(deployment(revisionHistoryLimit=2), Family(None, old))
    assert [one["metadata"]["name"] for one in gone] == ["2", "3"]
    assert plan.outlived(deployment(revisionHistoryLimit=5), Family(None, old)) == []


# --- status


def conditions(status):
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def progressing(reason, second=0, state="True"):
    times = {"lastUpdateTime": at(second), "lastTransitionTime": at(second)}
    return {"type": "Progressing", "status": state, "reason": reason, "message": "", **times}


def test_a_complete_rollout_says_so_with_the_replica_set():
    new = replica_set("n", 2, readyReplicas=2, terminatingReplicas=0)
    made = deployment(2, progressDeadlineSeconds=600)
    status = plan.rollout_status(made, Family(new, []), START)
    assert conditions(status) == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }
    assert status["conditions"][1]["message"] == 'ReplicaSet "n" has successfully progressed.'
    counts = {field: number for field, number in status.items() if field != "conditions"}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }


@pytest.mark.parametrize(
    ("second", "want"),
    [
        pytest.param(599, ("True", "NewReplicaSetCreated"), id="in time"),
        pytest.param(601, ("False", "ProgressDeadlineExceeded"), id="too late"),
    ],
)
def test_a_rollout_that_stands_still_has_a_deadline(second, want):
    before = {"replicas": 2, "updatedReplicas": 2, "conditions": [progressing("NewReplicaSetCreated")]}
    made = deployment(2, progressDeadlineSeconds=600, status=before)
    status = plan.rollout_status(made, Family(replica_set("n", 2, 0), []), START + timedelta(seconds=second))
    assert conditions(status)["Progressing"] == want
    assert conditions(status)["Available"] == ("False", "MinimumReplicasUnavailable")


def test_progress_starts_the_deadline_anew_and_keeps_the_time_of_transition():
    before = {"replicas": 2, "updatedReplicas": 1, "conditions": [progressing("NewReplicaSetCreated")]}
    made = deployment(2, progressDeadlineSeconds=600, status=before)
    status = plan.rollout_status(made, Family(replica_set("n", 2, 0), []), START + timedelta(seconds=500))
    told = next(one for one in status["conditions"] if one["type"] == "Progressing")
    assert told["reason"] == "ReplicaSetUpdated"
    assert (told["lastUpdateTime"], told["lastTransitionTime"]) == (at(500), at(0))


def test_without_a_deadline_nothing_is_said_about_progress():
    made = deployment(2, status={"conditions": [progressing("NewReplicaSetCreated")]})
    status = plan.rollout_status(made, Family(replica_set("n", 2, 0), []), START)
    assert "Progressing" not in conditions(status)


def test_scaling_a_finished_rollout_is_no_rollout():
    before = {"replicas": 2, "updatedReplicas": 2, "conditions": [progressing("NewReplicaSetAvailable")]}
    made = deployment(5, progressDeadlineSeconds=600, status=before)
    status = plan.rollout_status(made, Family(replica_set("n", 5, 2, replicas=2), []), START)
    assert conditions(status)["Progressing"] == ("True", "NewReplicaSetAvailable")


def test_a_replica_set_that_cannot_make_pods_is_told_of_until_it_can():
    failing = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no room"}
    made = deployment(2, progressDeadlineSeconds=600)
    status = plan.rollout_status(made, Family(replica_set("n", 2, 0, conditions=[failing]), []), START)
    assert conditions(status)["ReplicaFailure"] == ("True", "FailedCreate")
    made["status"] = status
    assert "ReplicaFailure" not in conditions(
        plan.rollout_status(made, Family(replica_set("n", 2), []), START)
    )


@pytest.mark.parametrize(
    ("paused", "reason", "want"),
    [
        pytest.param(True, "ReplicaSetUpdated", "DeploymentPaused", id="a pause is told"),
        pytest.param(False, "DeploymentPaused", "DeploymentResumed", id="its end too"),
        pytest.param(
            True, "ProgressDeadlineExceeded", "ProgressDeadlineExceeded", id="a missed deadline stays"
        ),
        pytest.param(False, "ReplicaSetUpdated", "ReplicaSetUpdated", id="no pause, no word"),
    ],
)
def test_what_is_said_about_a_pause(paused, reason, want):
    made = deployment(2, progressDeadlineSeconds=600, status={"conditions": [progressing(reason)]})
    made["spec"]["paused"] = paused
    assert plan.pause_told(made, START)[0]["reason"] == want
