"""Pod plans as actions, and the words of their events."""

import pytest

from eagleray.manifests.pods import Place
from eagleray.manifests.settings import Settings
from eagleray.raycluster.podactions import PodActions
from eagleray.raycluster.podplan import Deletion, NewWorker, PodPlan
from eagleray.runtime.actions import described
from eagleray.schedulers.interface import NoScheduler
from kubewire.sources import SeededEntropy
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.raycluster.pods import head, pod


def stages(plan, hosts=1):
    built = cluster(workers=[{"groupName": "small", "numOfHosts": hosts}])
    actions = PodActions(built, Settings(), NoScheduler(), SeededEntropy(1), indexing=True)
    return [stage for stage in actions.stages(plan) if stage.actions]


def only_action(plan, **around):
    (stage,) = stages(plan, **around)
    (action,) = stage.actions
    return action


def test_what_goes_and_comes_is_in_order():
    plan = PodPlan(delete=(Deletion(pod("a"), "scale-down"),), create_head=True, create=(NewWorker("small"),))
    assert [stage.name for stage in stages(plan)] == ["head-pod", "delete-workers", "worker-pods"]


@pytest.mark.parametrize(
    ("one", "cause", "hosts", "note"),
    [
        pytest.param(pod("a"), "workersToDelete", 1, "Deleted pod ns/a", id="named"),
        pytest.param(pod("a"), "scale-down", 1, "Deleted Pod ns/a", id="surplus"),
        pytest.param(
            pod("a"),
            "Pod status: Failed; x",
            1,
            "Deleted worker Pod ns/a; Pod status: Failed; x",
            id="unhealthy",
        ),
        pytest.param(
            head("h"), "Pod status: Failed; x", 1, "Deleted head Pod ns/h; Pod status: Failed; x", id="head"
        ),
        pytest.param(
            pod("a"),
            "Pod status: Failed; x",
            2,
            "Deleted worker Pod ns/a for group small: Pod status: Failed; x",
            id="unhealthy host",
        ),
        pytest.param(
            pod("a"), "scaling down", 2, "Deleted worker Pod ns/a for group small: scaling down", id="replica"
        ),
    ],
)
def test_a_deletion_is_told_in_its_words(one, cause, hosts, note):
    action = only_action(PodPlan(delete=(Deletion(one, cause),)), hosts=hosts)
    part = "Head" if one.is_head else "Worker"
    assert action.said.done == (f"Deleted{part}Pod", "Delete", note, "Normal")
    assert action.said.failed[:2] == (f"FailedToDelete{part}Pod", "Delete")
    assert action.said.failed.note.startswith("Failed deleting ")
    assert action.said.mark == f"FailedDelete{part}Pod"
    assert action.ref.uid == f"uid-{one.name}"


def test_the_pods_of_a_suspended_group_are_told_of_once():
    plan = PodPlan(delete=tuple(Deletion(pod(name), "the group is suspended") for name in "abc"))
    (stage,) = stages(plan)
    assert [bool(one.said.done) for one in stage.actions] == [True, False, False]


@pytest.mark.parametrize("why", ["suspension", "spec change"])
def test_all_pods_go_by_one_request_and_nothing_else_happens(why):
    plan = PodPlan(delete_all=why, create_head=True)
    (line,) = described(stages(plan))
    assert line.startswith("delete-pods: delete all pods in ns with ray.io/cluster=c,")
    assert only_action(plan).said.mark == "FailedDeleteAllPods"


def test_surplus_heads_stop_the_plan_and_are_named():
    action = only_action(PodPlan(surplus_heads=(head("one"), head("two"))))
    note = "RayCluster ns/c has more than one head Pod: one, two; delete all but one"
    assert action.say == ("MultipleHeadPods", "Reconcile", note, "Warning")


def test_a_stamp_is_renewed_for_this_very_head():
    action = only_action(PodPlan(restamp=head("h")))
    assert action.change["metadata"]["uid"] == "uid-h"
    assert set(action.change["metadata"]["annotations"]) == {
        "ray.io/upgrade-strategy-recreate-hash",
        "ray.io/kuberay-version",
    }


def test_the_hosts_of_a_replica_share_its_name_and_have_names_of_their_own():
    new = tuple(NewWorker("small", Place(index, host=host), index) for index in (0, 1) for host in (0, 1))
    (stage,) = stages(PodPlan(create=new), hosts=2)
    metadata = [one.obj["metadata"] for one in stage.actions]
    assert len({one["name"] for one in metadata}) == 4
    replicas = [one["labels"]["ray.io/worker-group-replica-name"] for one in metadata]
    assert replicas[0] == replicas[1] != replicas[2] == replicas[3]
    assert all(one["generateName"] == "c-small-worker-" for one in metadata)
