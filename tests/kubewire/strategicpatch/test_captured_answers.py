"""What a real API server answered to strategic merge patches, replayed without a server.

Validation, defaulting and storage are not replayed: objects start out with the defaults that matter to a
patch, and an answer may have further defaults, each of which is named here.
"""

import copy
import json
from pathlib import Path

import pytest
import yaml

from kubewire.strategicpatch import (
    MalformedPatch,
    PatchError,
    PatchFailed,
    PatchNotApplicable,
    apply,
    shape_of,
)

SCENARIOS = Path(__file__).parents[2] / "data" / "conformance" / "server"
CODES = {MalformedPatch: 400, PatchFailed: 422, PatchNotApplicable: 500}
TYPES = {
    "Deployment": "io.k8s.api.apps.v1.Deployment",
    "Pod": "io.k8s.api.core.v1.Pod",
    "Service": "io.k8s.api.core.v1.Service",
}
ROLLING_UPDATE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
# What the server adds to what it is given, by field.
DEFAULTS = {
    "dnsPolicy": "ClusterFirst",
    "imagePullPolicy": "IfNotPresent",
    "progressDeadlineSeconds": 600,
    "protocol": "TCP",
    "replicas": 1,
    "resources": {},
    "restartPolicy": "Always",
    "revisionHistoryLimit": 10,
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "strategy": ROLLING_UPDATE,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "type": "",
}


@pytest.mark.parametrize(
    ("name", "patches"),
    [
        pytest.param("strategic-merge-patch", 17, id="on Deployments"),
        pytest.param("strategic-merge-patch-pods", 5, id="on Pods and Services"),
    ],
)
def test_the_server_answered_the_same(name, patches):
    scenario = yaml.safe_load((SCENARIOS / f"{name}.yaml").read_text())
    answers = json.loads((SCENARIOS / f"{name}.answers.json").read_text())["steps"]
    live = {}
    replayed = 0
    for step, answer in zip(scenario["steps"], answers, strict=True):
        method, _, path = step["request"].partition(" ")
        # `${core}/pods/p/status` is about the Pods, `${dep}/d` about the one collection that it names.
        collection = path.split("/")[1 if path.startswith("${core}") else 0]
        if method == "POST":
            live[collection] = stored(scenario["objects"][step["use"]])
        # Custom resources take no strategic merge patch, which is the caller's business.
        elif (kind := live[collection]["kind"]) in TYPES:
            live[collection] = replayed_step(live[collection], step["body"], shape_of(TYPES[kind]), answer)
            replayed += 1
    assert replayed == patches


def stored(manifest):
    """The object as the server keeps it, with those defaults that a later patch removes."""
    document = copy.deepcopy(manifest)
    if document["kind"] == "Deployment":
        document["spec"]["strategy"] = ROLLING_UPDATE
    return document


def replayed_step(document, patch, shape, answer):
    """The document after one step, compared with what the server showed of it."""
    if answer["status"] != 200:
        with pytest.raises(PatchError) as refused:
            apply(document, patch, shape)
        assert CODES[type(refused.value)] == answer["body"]["code"]
        assert str(refused.value) == answer["body"]["message"]
        return document
    patched = apply(document, patch, shape)
    for path, want in answer["fields"].items():
        if path != "metadata.generation":
            assert_shown(at(patched, path), None if want == "<absent>" else want, f"{answer['step']}: {path}")
    return patched


def at(value, path):
    """The value at a path such as `spec.containers[*].name`; None if there is none."""
    step, _, rest = path.partition(".")
    name, _, index = step.partition("[")
    value = value.get(name)
    if index == "*]":
        return [found for item in value if (found := at(item, rest) if rest else item) is not None]
    if index and value is not None:
        value = value[int(index.removesuffix("]"))]
    return at(value, rest) if rest and value is not None else value


def assert_shown(value, want, where):
    """The server leaves out what is empty and adds defaults; all else is the same."""
    if isinstance(want, list):
        assert isinstance(value, list), where
        assert len(value) == len(want), where
        for index, (item, wanted) in enumerate(zip(value, want, strict=True)):
            assert_shown(item, wanted, f"{where}[{index}]")
    elif isinstance(want, dict):
        assert isinstance(value, dict), where
        assert value.keys() <= want.keys(), where
        for key, wanted in want.items():
            if key in value:
                assert_shown(value[key], wanted, f"{where}.{key}")
            else:
                assert DEFAULTS.get(key) == wanted, f"{where}.{key}"
    else:
        assert (value or None) == want, where
