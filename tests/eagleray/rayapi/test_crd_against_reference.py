"""Our CRDs accept what the reference's accept: they differ only where tests/data/crd-differences.yaml says so."""

import json
from functools import cache
from pathlib import Path

import pytest
import yaml

from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from tests.eagleray.rayapi.crd_comparison import Difference, differences

LISTED = Path(__file__).parents[2] / "data" / "crd-differences.yaml"

RAY_CLUSTER = KINDS[0]
ids = [kind.plural for kind in KINDS]


@cache
def listed():
    return yaml.safe_load(LISTED.read_text())


def listed_for(kind):
    entries = [entry for entry in listed() if entry["crd"] == f"{kind.plural}.ray.io"]
    return {Difference(entry["version"], entry["path"], entry["difference"]) for entry in entries}


@pytest.mark.parametrize("kind", KINDS, ids=ids)
def test_every_difference_from_the_reference_is_listed_and_every_listed_one_applies(kind, reference):
    text = (reference / "crds" / f"ray.io_{kind.plural}.yaml").read_text()
    found = set(differences(crd(kind), yaml.load(text, yaml.CSafeLoader)))
    assert found - listed_for(kind) == set(), "not in the list"
    assert listed_for(kind) - found == set(), "in the list, but no longer different"


def test_every_listed_difference_names_a_crd_of_ours_and_a_reason():
    names = {f"{kind.plural}.ray.io" for kind in KINDS}
    for entry in listed():
        assert set(entry) == {"crd", "version", "path", "difference", "reason"}
        assert entry["crd"] in names
        assert len(entry["reason"]) > 30


def own_copy():
    """Return RayCluster's CRD without the parts that it shares with itself, so that it can be changed."""
    return json.loads(json.dumps(crd(RAY_CLUSTER)))


def changed(*steps, to):
    """Return RayCluster's CRD with one value in its v1 schema changed, added or (None) removed."""
    result = own_copy()
    node = result["spec"]["versions"][0]
    for step in steps[:-1]:
        node = node[step]
    if to is None:
        del node[steps[-1]]
    else:
        node[steps[-1]] = to
    return result


SPEC = ("schema", "openAPIV3Schema", "properties", "spec", "properties")
STATUS = ("schema", "openAPIV3Schema", "properties", "status", "properties")
GROUP = (*SPEC, "workerGroupSpecs", "items")


@pytest.mark.parametrize(
    ("steps", "to", "path", "difference"),
    [
        pytest.param((*SPEC, "suspend"), None, "spec.suspend", "added", id="a field that only we have"),
        pytest.param((*SPEC, "news"), {"type": "string"}, "spec.news", "missing", id="a field that we lack"),
        pytest.param(
            (*SPEC, "rayVersion", "type"),
            "integer",
            "spec.rayVersion",
            "type: 'string' instead of 'integer'",
            id="a type",
        ),
        pytest.param(
            (*GROUP, "properties", "replicas", "format"),
            "int64",
            "spec.workerGroupSpecs[].replicas",
            "format: 'int32' instead of 'int64'",
            id="a format",
        ),
        pytest.param(
            (*GROUP, "properties", "replicas", "default"),
            None,
            "spec.workerGroupSpecs[].replicas",
            "default: 0 added",
            id="a default",
        ),
        pytest.param(
            (*GROUP, "required"),
            ["groupName"],
            "spec.workerGroupSpecs[]",
            "required: ['groupName', 'maxReplicas', 'minReplicas', 'template'] instead of ['groupName']",
            id="a required list",
        ),
        pytest.param(
            (*SPEC, "upgradeStrategy", "properties", "type", "enum"),
            ["None"],
            "spec.upgradeStrategy.type",
            "enum: ['Recreate', 'None'] instead of ['None']",
            id="an enum",
        ),
        pytest.param(
            (*STATUS, "conditions", "items", "properties", "message", "maxLength"),
            1,
            "status.conditions[].message",
            "maxLength: 32768 instead of 1",
            id="a bound",
        ),
        pytest.param(
            (*STATUS, "conditions", "x-kubernetes-list-map-keys"),
            ["reason"],
            "status.conditions",
            "x-kubernetes-list-map-keys: ['type'] instead of ['reason']",
            id="the keys of a list-map",
        ),
        pytest.param(
            (*STATUS, "stateTransitionTimes", "additionalProperties", "format"),
            None,
            "status.stateTransitionTimes{}",
            "format: 'date-time' added",
            id="the values of a map",
        ),
        pytest.param(
            (*SPEC, "gcsFaultToleranceOptions", "properties", "backend", "x-kubernetes-validations"),
            [],
            "spec.gcsFaultToleranceOptions.backend",
            "x-kubernetes-validations: [{'message': 'gcsFaultToleranceOptions.backend is immutable', "
            "'rule': 'self == oldSelf'}] instead of []",
            id="a rule",
        ),
        pytest.param(
            (*SPEC, "headGroupSpec", "x-kubernetes-preserve-unknown-fields"),
            True,
            "spec.headGroupSpec",
            "x-kubernetes-preserve-unknown-fields: True missing",
            id="unknown fields kept",
        ),
        pytest.param(
            (*STATUS, "desiredCPU", "x-kubernetes-int-or-string"),
            None,
            "status.desiredCPU",
            "x-kubernetes-int-or-string: True added",
            id="int or string",
        ),
        pytest.param(
            ("served",), False, "", "served: True instead of False", id="a version that is not served"
        ),
        pytest.param(("subresources",), None, "", "subresources: {'status': {}} added", id="a subresource"),
    ],
)
def test_the_comparison_sees(steps, to, path, difference):
    found = differences(crd(RAY_CLUSTER), changed(*steps, to=to))
    assert found == [Difference("v1", path, difference)]


@pytest.mark.parametrize(
    ("key", "value"),
    [("scope", "Cluster"), ("names", {}), ("group", "example.com")],
    ids=["the scope", "names and categories", "the group"],
)
def test_the_comparison_sees_of_the_whole_kind(key, value):
    other = own_copy()
    other["spec"][key] = value
    assert [found.path for found in differences(crd(RAY_CLUSTER), other)] == ["spec"]


def test_the_comparison_sees_a_version_that_one_side_lacks():
    other = own_copy()
    del other["spec"]["versions"][1]
    assert differences(crd(RAY_CLUSTER), other) == [Difference("v1alpha1", "", "added")]


def test_the_comparison_passes_over_descriptions():
    steps = (*SPEC, "rayVersion", "description")
    assert differences(crd(RAY_CLUSTER), changed(*steps, to="Other words.")) == []
