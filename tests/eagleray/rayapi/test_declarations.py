"""Promises about the declared fields themselves: described, never with a new default, additions optional."""

import re

import pytest

from eagleray.rayapi.declare import structs_below
from eagleray.rayapi.kinds import KINDS

STRUCTS = {
    struct.definition: struct
    for kind in KINDS
    for version in kind.versions
    for struct in structs_below(version.spec, version.status)
}

FIELDS = [(struct, field) for struct in STRUCTS.values() for field in struct.fields]


def words(text):
    return set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()))


def test_every_field_has_a_description_that_says_more_than_its_name():
    for struct, field in FIELDS:
        where = f"{struct.definition}.{field.name}"
        assert len(field.doc) >= 40, where
        assert len(words(field.doc) - words(field.name)) >= 4, where


def test_descriptions_are_sentences():
    for struct, field in FIELDS:
        where = f"{struct.definition}.{field.name}"
        assert field.doc[0].isupper() or field.doc[0] == "`", where
        assert field.doc.endswith("."), where
        assert "  " not in field.doc, where
        assert field.doc.count("`") % 2 == 0, where
    assert all(struct.doc[0].isupper() and struct.doc.endswith(".") for struct in STRUCTS.values())


def test_no_struct_declares_a_field_twice():
    for struct in STRUCTS.values():
        names = [field.name for field in struct.fields]
        assert len(set(names)) == len(names), struct.definition


def test_structs_of_one_name_are_one_struct():
    for kind in KINDS:
        for version in kind.versions:
            for struct in structs_below(version.spec, version.status):
                assert STRUCTS[struct.definition] == struct


def test_only_these_fields_have_defaults_since_a_new_one_would_change_the_hash_of_running_clusters():
    defaults = {
        f"{struct.name}.{field.name}": field.default
        for struct, field in FIELDS
        if field.default is not None and struct.version == "v1"
    }
    assert defaults == {
        "ClusterUpgradeOptions.maxSurgePercent": 100,
        "DeletionCondition.ttlSeconds": 0,
        "NetworkPolicyConfig.mode": "DenyAll",
        "RayJobSpec.backoffLimit": 0,
        "RayJobSpec.submissionMode": "K8sJobMode",
        "RayJobSpec.ttlSecondsAfterFinished": 0,
        "RayJobStatus.failed": 0,
        "RayJobStatus.succeeded": 0,
        "WorkerGroupSpec.maxReplicas": 2147483647,
        "WorkerGroupSpec.minReplicas": 0,
        "WorkerGroupSpec.numOfHosts": 1,
        "WorkerGroupSpec.priority": 0,
        "WorkerGroupSpec.replicas": 0,
    }


@pytest.mark.parametrize(
    "path",
    [
        "RayCronJobSpec.concurrencyPolicy",
        "RayCronJobSpec.startingDeadlineSeconds",
        "RayCronJobSpec.successfulJobsHistoryLimit",
        "RayCronJobSpec.failedJobsHistoryLimit",
        "RayCronJobStatus.active",
        "RayCronJobStatus.conditions",
        "RayJobStatus.conditions",
        "RayJobStatus.submission",
        "RayJobSubmission.attempt",
        "RayJobSubmission.submissionId",
        "RayJobSubmission.headSession",
        "RayJobSubmission.requestedAt",
    ],
)
def test_an_addition_to_the_api_is_optional_and_has_no_default(path):
    struct, _, name = path.partition(".")
    field = STRUCTS[f"io.ray.v1.{struct}"].field(name)
    assert not field.required
    assert field.default is None


def test_v1alpha1_is_a_subset_of_v1_but_for_times_that_nobody_writes_any_more():
    for struct in STRUCTS.values():
        if struct.version == "v1alpha1":
            newer = {field.name for field in STRUCTS[f"io.ray.v1.{struct.name}"].fields}
            extra = {field.name for field in struct.fields} - newer
            assert extra <= {"healthLastUpdateTime"}, struct.name
