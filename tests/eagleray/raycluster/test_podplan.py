"""Which Pods go and which come."""

import pytest

from eagleray.manifests.hashing import recreate_hash
from eagleray.manifests.pods import Place
from eagleray.raycluster.podplan import Circumstances, NewWorker, plan_pods
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.raycluster.pods import head, host, pod

AROUND = Circumstances("v1")
FIVE = [pod(f"pod{number}") for number in range(1, 6)]


def group(**spec):
    return {"groupName": "small", "replicas": 3, "minReplicas": 0, "maxReplicas": 10, **spec}


def plan(pods, *groups, around=AROUND, status=None, metadata=None, **spec):
    built = cluster(workers=list(groups), metadata=metadata, **spec)
    if status:
        built.obj["status"] = status
    return plan_pods(built, pods, around)


def deleted(made):
    return [deletion.pod.name for deletion in made.delete]


def doomed(*names):
    return {"scaleStrategy": {"workersToDelete": list(names)}}


RANDOM = AROUND._replace(random_deletion=True)
SCALED = {"enableInTreeAutoscaling": True}


@pytest.mark.parametrize(
    ("around", "spec", "small", "left"),
    [
        pytest.param(RANDOM, SCALED, doomed("pod3", "pod4"), 3, id="named ones go"),
        pytest.param(RANDOM, SCALED, doomed("pod2", "x"), 3, id="and one other"),
        pytest.param(AROUND, SCALED, doomed("pod2", "pod3"), 3, id="only named"),
        pytest.param(AROUND, SCALED, doomed("pod2", "x"), 4, id="one is missing"),
        pytest.param(AROUND, SCALED, doomed("x", "y"), 5, id="none is there"),
        pytest.param(AROUND, {}, {"replicas": 2}, 2, id="without autoscaling"),
        pytest.param(AROUND, SCALED, doomed("pod3"), 4, id="left alone"),
        pytest.param(RANDOM, SCALED, doomed("pod3"), 3, id="or not"),
    ],
)
def test_workers_go(around, spec, small, left):
    made = plan([head(), *FIVE], group(**small), around=around, **spec)
    assert len(FIVE) - len(made.delete) == left
    assert made.create == ()
    assert set(doomed_names(small)) & {p.name for p in FIVE} <= set(deleted(made))


def doomed_names(small):
    return small.get("scaleStrategy", {}).get("workersToDelete", [])


def test_enough_workers_are_left_alone():
    made = plan([head(), *FIVE[:3]], group())
    assert (made.delete, made.create, made.create_head) == ((), (), False)


@pytest.mark.parametrize(
    ("small", "count"),
    [
        pytest.param({"replicas": None, "minReplicas": 1}, 1, id="unset"),
        pytest.param({"replicas": 0, "minReplicas": 1}, 1, id="below"),
        pytest.param({"replicas": 4, "maxReplicas": 3}, 3, id="above"),
        pytest.param(
            {"replicas": 0, "minReplicas": 1, "numOfHosts": 4},
            4,
            id="hosts below",
        ),
        pytest.param(
            {"replicas": 4, "maxReplicas": 3, "numOfHosts": 4},
            12,
            id="hosts above",
        ),
        pytest.param({"replicas": 1, "numOfHosts": 4}, 4, id="hosts"),
        pytest.param({"replicas": 3, "numOfHosts": 0}, 0, id="no hosts"),
    ],
)
def test_the_number_of_workers_is_kept_within_bounds(small, count):
    made = plan([head()], group(**small), around=AROUND._replace(indexing=False))
    assert len(made.create) == count


def test_replicas_of_several_hosts_have_indices():
    made = plan([head()], group(numOfHosts=4))
    assert len(made.create) == 12
    assert {new.replica for new in made.create} == {0, 1, 2}
    assert [(new.place.replica, new.place.host) for new in made.create[:5]] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 0),
    ]


def replica(name, index, hosts=4, **facts):
    return [host(f"{name}-{number}", name, index, number, **facts) for number in range(hosts)]


def test_a_replica_goes_and_comes_as_a_whole():
    pods = [head(), *replica("a", 0), *replica("b", 1), *replica("c", 2)]
    gone = plan(pods, group(numOfHosts=4, replicas=2, **doomed("b-2")), **SCALED)
    assert deleted(gone) == ["b-0", "b-1", "b-2", "b-3"]
    grown = plan([head(), *replica("a", 0), *replica("c", 2)], group(numOfHosts=4, replicas=4), **SCALED)
    assert sorted({new.place.replica for new in grown.create}) == [1, 3]
    assert len(grown.create) == 8


def test_a_replica_that_lost_a_host_is_replaced_whole():
    rest = replica("b", 1)[1:]
    made = plan([head(), *replica("a", 0), *rest], group(numOfHosts=4, replicas=2))
    assert deleted(made) == ["b-1", "b-2", "b-3"]
    assert made.create == ()
    after = plan([head(), *replica("a", 0)], group(numOfHosts=4, replicas=2))
    assert [new.place.replica for new in after.create] == [1, 1, 1, 1]


def test_replicas_from_before_they_had_names_are_kept():
    old = [pod(f"old{number}") for number in range(8)]
    made = plan([head(), *old], group(numOfHosts=4, replicas=2))
    assert (made.delete, made.create) == ((), ())


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_an_ended_worker_is_deleted_and_then_replaced(phase):
    other = {"groupName": "other", "replicas": 1, "minReplicas": 0, "maxReplicas": 1}
    ended = pod("bad", phase=phase)
    made = plan([head(), pod("a"), pod("b"), ended], group(), other)
    assert deleted(made) == ["bad"]
    assert [new.group for new in made.create] == ["other"]
    dying = plan([head(), pod("a"), pod("b"), pod("bad", phase=phase, terminating=True)], group())
    assert (dying.delete, dying.create) == ((), ())
    gone = plan([head(), pod("a"), pod("b")], group())
    assert gone.create == (NewWorker("small", Place(0)),)


def test_a_suspended_group_has_no_pods_and_the_head_stays():
    made = plan([head(), *FIVE], group(suspend=True))
    assert deleted(made) == [p.name for p in FIVE]
    assert not made.create_head


@pytest.mark.parametrize("restart", ["Always", "OnFailure"])
def test_a_failed_head_goes_and_a_new_one_waits_until_it_is_gone(restart):
    bad = head(phase="Failed", restart=restart)
    made = plan([bad, *FIVE[:3]], group())
    assert deleted(made) == ["head"]
    assert not made.create_head
    dying = plan([head(phase="Failed", restart=restart, terminating=True), *FIVE[:3]], group())
    assert (dying.delete, dying.create_head) == ((), False)
    assert plan(FIVE[:3], group()).create_head


def test_a_head_whose_ray_ended_goes_only_if_nothing_restarts_it():
    assert deleted(plan([head(ray_ended=True, restart="Never")])) == ["head"]
    assert plan([head(ray_ended=True, restart="Always")]).delete == ()


def test_deleting_all_is_one_request_while_any_pod_lives():
    suspending = {"conditions": [{"type": "RayClusterSuspending", "status": "True"}]}
    made = plan([head(), pod("a", terminating=True)], group(), status=suspending, suspend=True)
    assert made.delete_all == "suspension"
    again = plan([head(terminating=True)], group(), status=suspending, suspend=True)
    assert again.delete_all == ""


RECREATE = {"upgradeStrategy": {"type": "Recreate"}}


def stamped(stamp, version="v1"):
    annotations = {"ray.io/upgrade-strategy-recreate-hash": stamp, "ray.io/kuberay-version": version}
    return head(annotations=annotations)


@pytest.mark.parametrize("strategy", [None, {}, {"type": "None"}])
def test_without_recreate_a_change_leaves_the_pods(strategy):
    spec = {} if strategy is None else {"upgradeStrategy": strategy}
    assert plan([stamped("OLD")], **spec).delete_all == ""


def test_without_pods_there_is_nothing_to_recreate():
    made = plan([], **RECREATE)
    assert (made.delete_all, made.create_head) == ("", True)


def test_a_changed_spec_recreates_all_pods():
    assert plan([stamped("OLD")], **RECREATE).delete_all == "spec change"
    current = recreate_hash(cluster(**RECREATE).spec)
    assert plan([stamped(current)], **RECREATE).delete_all == ""


def test_a_stamp_of_another_version_is_only_renewed():
    old = stamped("OLD", version="nightly")
    made = plan([old], **RECREATE)
    assert made.delete_all == ""
    assert made.restamp is old


def test_a_stamped_hash_survives_suspend():
    spec = cluster(**RECREATE).spec
    assert plan([stamped(recreate_hash(spec))], suspend=False, **RECREATE).delete_all == ""


@pytest.mark.parametrize(
    ("gate", "conditions", "suspend", "acts"),
    [
        pytest.param(True, {}, True, False, id="asked for, and the status does not say so yet"),
        pytest.param(
            True, {"RayClusterSuspending": "True"}, False, True, id="under way, whatever is asked for now"
        ),
        pytest.param(True, {"RayClusterSuspended": "True"}, True, False, id="done"),
        pytest.param(False, {}, True, True, id="without conditions"),
    ],
)
def test_suspension(gate, conditions, suspend, acts):
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}
    made = plan(
        [head()], group(), around=AROUND._replace(conditions_gate=gate), status=status, suspend=suspend
    )
    assert bool(made.delete_all) is acts
    assert (made.create_head, made.create) == (False, ())


def test_several_heads_are_shown_and_none_is_deleted():
    made = plan([head("one"), head("two")], group())
    assert [surplus.name for surplus in made.surplus_heads] == ["one", "two"]
    assert (made.delete, made.create, made.create_head) == ((), (), False)


def test_a_lost_head_stays_lost_where_it_was_asked_for():
    provisioned = {"conditions": [{"type": "RayClusterProvisioned", "status": "True"}]}
    keep = {"annotations": {"ray.io/disable-provisioned-head-restart": "true"}}
    assert not plan([], group(), status=provisioned, metadata=keep).create_head
    assert plan([], group(), metadata=keep).create_head
    assert plan([], group(), status=provisioned).create_head


def test_workers_of_a_group_that_is_gone_are_deleted():
    made = plan([head(), pod("stray", group="old")], group(replicas=0))
    assert deleted(made) == ["stray"]


def test_a_name_to_delete_counts_only_in_its_own_group():
    other = {"groupName": "other", "replicas": 1, "minReplicas": 0, "maxReplicas": 1, **doomed("a", "head")}
    made = plan([head(), pod("a"), pod("b", group="other")], group(replicas=1), other)
    assert made.delete == ()


def test_a_terminating_worker_is_neither_deleted_again_nor_replaced_until_its_node_is_lost():
    pods = [head(), pod("a"), pod("b"), pod("dying", terminating=True)]
    waiting = plan(pods, group(**doomed("dying")))
    assert (waiting.delete, waiting.create) == ((), ())
    lost = plan(pods, group(), around=AROUND._replace(lost=frozenset(("uid-dying",))))
    assert len(lost.create) == 1


def test_a_group_that_fails_again_and_again_waits():
    made = plan([head()], group(), around=AROUND._replace(held_back=frozenset(("small",))))
    assert made.create == ()


def test_a_group_named_like_the_heads_does_not_take_the_head_in():
    made = plan([head()], {"groupName": "headgroup", "replicas": 0, "minReplicas": 0, "maxReplicas": 1})
    assert made.delete == ()


def test_a_shrinking_group_gives_up_what_does_not_work_and_then_the_youngest():
    pods = [
        head(),
        pod("old", made="2026-01-01T00:00:00Z"),
        pod("unready", made="2026-01-01T00:00:01Z", ready="False"),
        pod("young", made="2026-01-01T00:00:03Z"),
        pod("pending", made="2026-01-01T00:00:02Z", phase="Pending", ready=None),
    ]
    for replicas, gone in (
        (3, ["pending"]),
        (2, ["pending", "unready"]),
        (1, ["pending", "unready", "young"]),
    ):
        assert deleted(plan(pods, {"replicas": replicas, "minReplicas": 0, "maxReplicas": 9})) == gone
