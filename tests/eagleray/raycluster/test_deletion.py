"""The steps of a deletion, planned from what is there."""

from datetime import timedelta

import msgspec
import pytest

from eagleray.manifests.settings import Settings
from eagleray.raycluster.deletion import FINALIZER, deletion_timeout, plan_deletion
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.views import JobView
from eagleray.runtime.actions import described
from kubewire.times import format_time, parse_time
from tests.eagleray.manifests.clusters import cluster
from tests.eagleray.raycluster.pods import head, pod

NOW = parse_time("2026-01-01T01:00:00Z")
TOLERANT = {"gcsFaultToleranceOptions": {"redisAddress": "r", "externalStorageNamespace": "mine"}}


def ago(seconds):
    return format_time(NOW - timedelta(seconds=seconds))


def deleted(*, since=10, pods=(), job=None, finalizers=(FINALIZER, "other"), enabled=True, **spec):
    metadata = {"deletionTimestamp": ago(since), "finalizers": list(finalizers)}
    snapshot = Snapshot(cluster(metadata=metadata, **(spec or TOLERANT)), pods, cleanup=job)
    return plan_deletion(snapshot, Settings(), NOW, cleanup_enabled=enabled)


def job(*conditions, age=10, owner="u-1"):
    metadata = {
        "name": "c-redis-cleanup",
        "creationTimestamp": ago(age),
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    status = {"conditions": [{"type": kind, "status": "True", "message": "m"} for kind in conditions]}
    return msgspec.convert({"metadata": metadata, "status": status}, JobView)


def lines(ending):
    return [line.split(" of RayCluster")[0] for line in described(ending.stages)]


LET_GO = "finalizer: patch RayCluster ns/c: {'metadata': {'finalizers': ['other']}}"
CREATE = "redis-cleanup: create Job ns/c-redis-cleanup"


@pytest.mark.parametrize(
    ("facts", "does"),
    [
        pytest.param({"finalizers": ()}, [], id="nothing to hold it"),
        pytest.param({"enabled": False}, [LET_GO], id="cleanup is switched off"),
        pytest.param({"suspend": False}, [LET_GO], id="fault tolerance was dropped"),
        pytest.param({"pods": [head(terminating=True)]}, [], id="the head is going"),
        pytest.param({"pods": [head(terminating=True)], "since": 9999}, [], id="the head is going for ever"),
        pytest.param({"pods": [pod("a", terminating=True)]}, [CREATE], id="only workers are going"),
        pytest.param({}, [CREATE], id="no Pod is left"),
        pytest.param({"since": 9999}, [CREATE], id="no Pod is left, late"),
        pytest.param({"job": job(owner="u-9")}, [CREATE], id="the Job of a namesake"),
        pytest.param({"job": job(), "since": 9999}, [], id="the Job goes on"),
        pytest.param({"job": job("Complete")}, [LET_GO], id="the Job is done"),
    ],
)
def test_the_next_step(facts, does):
    assert lines(deleted(**facts)) == does


def test_living_pods_are_deleted_the_head_first():
    ending = deleted(pods=[pod("a"), head()])
    assert [stage.name for stage in ending.stages] == ["delete-head-pods", "delete-worker-pods"]
    assert ending.look_again is not None


@pytest.mark.parametrize("kind", ["Failed", "FailureTarget"])
def test_a_failed_job_is_told_with_what_is_left(kind):
    ending = deleted(job=job(kind))
    assert lines(ending) == [
        "redis-cleanup: tell Warning RedisCleanupFailed: Redis storage namespace mine",
        LET_GO,
    ]


def test_a_job_that_has_had_its_time_is_given_up():
    assert deleted(job=job(age=299)).look_again == 1
    ending = deleted(job=job(age=300))
    reasons = [action.say.reason for action in ending.stages[0].actions]
    assert reasons == ["ForceDeletedStuckCluster", "RedisCleanupFailed"]
    assert lines(ending)[-1] == LET_GO


def test_a_job_that_cannot_be_made_is_given_up_only_when_the_time_is_up():
    assert deleted(since=299).otherwise == ()
    assert [stage.name for stage in deleted(since=300).otherwise] == ["redis-cleanup", "finalizer"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("", 300),
        ("soon", 300),
        ("0", 300),
        ("-5", 300),
        ("1.5", 300),
        ("9" * 30, 300),
        ("٣", 300),
    ],
)
def test_the_timeout_is_a_positive_number_of_seconds(text, seconds):
    annotations = {"ray.io/gcs-ft-deletion-timeout": text}
    assert deletion_timeout(cluster(metadata={"annotations": annotations})) == seconds
