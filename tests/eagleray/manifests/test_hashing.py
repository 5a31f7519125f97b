"""The hash of a cluster's spec: what counts in it, what does not, and that its bytes are the reference's."""

import copy
from typing import Any

import pytest
import yaml

from eagleray.manifests.hashing import is_current, recreate_hash, service_hash
from eagleray.rayapi.schemas import schema_for
from kubewire.schema import apply_defaults, prune
from kubewire.yamltext import load_all

SPEC: dict[str, Any] = {
    "rayVersion": "2.52.0",
    "headGroupSpec": {
        "rayStartParams": {"dashboard-host": "0.0.0.0"},
        "template": {"spec": {"containers": [{"name": "head", "image": "ray", "args": ["a < b && c"]}]}},
    },
    "workerGroupSpecs": [
        {
            "groupName": "small",
            "replicas": 1,
            "minReplicas": 0,
            "maxReplicas": 3,
            "numOfHosts": 1,
            "priority": 0,
            "template": {
                "spec": {
                    "containers": [{"name": "w", "resources": {"limits": {"cpu": "1000m", "memory": "1Gi"}}}]
                }
            },
        }
    ],
}


def changed(path, value):
    spec = copy.deepcopy(SPEC)
    *way, last = path.split(".")
    holder: Any = spec
    for step in way:
        holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
    holder[last] = value
    return spec


def test_the_hash_of_a_spec_of_ours_stays_what_it_is():
    assert recreate_hash(SPEC) == "236H4LNOH0HA674U47MJE1BPT5L0AQ9D"
    assert service_hash(SPEC) == "GAEFH3GK7GEGTKKHJ68A4NVDRFL15AC5"


@pytest.mark.case("RC-27")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("workerGroupSpecs.0.replicas", 7, id="replicas"),
        pytest.param("workerGroupSpecs.0.minReplicas", 1, id="minReplicas"),
        pytest.param("workerGroupSpecs.0.maxReplicas", 9, id="maxReplicas"),
        pytest.param("workerGroupSpecs.0.scaleStrategy.workersToDelete", ["w-1"], id="workersToDelete"),
        pytest.param(
            "workerGroupSpecs.0.template.spec.tolerations", [{"key": "a"}], id="a worker's tolerations"
        ),
        pytest.param(
            "workerGroupSpecs.0.template.spec.schedulingGates", [{"name": "g"}], id="a worker's gates"
        ),
        pytest.param("headGroupSpec.template.spec.tolerations", [{"key": "a"}], id="the head's tolerations"),
        pytest.param("headGroupSpec.template.spec.schedulingGates", [{"name": "g"}], id="the head's gates"),
        pytest.param("upgradeStrategy.type", "Recreate", id="the upgrade strategy"),
        pytest.param(
            "workerGroupSpecs.0.template.spec.containers.0.resources.limits.cpu",
            1,
            id="another spelling of a quantity",
        ),
        pytest.param(
            "workerGroupSpecs.0.template.spec.hostNetwork", False, id="an empty value that Go leaves out"
        ),
    ],
)
def test_it_stays_the_same_when_this_changes(path, value):
    assert recreate_hash(changed(path, value)) == recreate_hash(SPEC)


@pytest.mark.case("RC-27")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("rayVersion", "2.53.0", id="the version of Ray"),
        pytest.param("headGroupSpec.template.spec.containers.0.image", "other", id="an image"),
        pytest.param("headGroupSpec.rayStartParams.port", "6380", id="a start parameter"),
        pytest.param("workerGroupSpecs.0.numOfHosts", 2, id="the number of hosts"),
        pytest.param("workerGroupSpecs.0.priority", None, id="an explicit zero of a pointer"),
        pytest.param("suspend", False, id="suspend, as in the reference"),
    ],
)
def test_it_changes_with_this(path, value):
    assert recreate_hash(changed(path, value)) != recreate_hash(SPEC)


@pytest.mark.case("RC-27")
@pytest.mark.parametrize("suspend", [None, False, True])
def test_a_stamp_stays_current_when_suspend_is_set_or_taken_away(suspend):
    stamp = recreate_hash(changed("suspend", suspend))
    for now in (None, False, True):
        assert is_current(stamp, changed("suspend", now))
    assert not is_current(stamp, changed("rayVersion", "2.53.0"))


def test_suspend_does_not_count_for_a_service():
    assert service_hash(changed("suspend", True)) == service_hash(SPEC)


def test_the_spec_itself_is_not_changed():
    before = copy.deepcopy(SPEC)
    recreate_hash(SPEC)
    assert before == SPEC


def stored_cluster_specs(path):
    for document in load_all(path.read_text()):
        obj: Any = document.value
        if obj and str(obj.get("apiVersion")).startswith("ray.io/"):
            schema = schema_for(obj["apiVersion"], obj["kind"])
            prune(schema, obj)
            apply_defaults(schema, obj)
            spec = obj["spec"].get("jobTemplate") or obj["spec"]
            yield spec.get("rayClusterSpec") or spec.get("rayClusterConfig") or spec


def test_every_hash_that_the_reference_recorded_is_reproduced(reference):
    compared = 0
    for recorded in sorted((reference / "golden").rglob("*.yaml")):
        created = yaml.load(recorded.read_text(), Loader=yaml.CSafeLoader)["created"]
        annotations = [obj["metadata"].get("annotations") or {} for obj in created]
        specs = list(stored_cluster_specs(reference / "samples" / recorded.name))
        for key, hashed in (
            ("ray.io/upgrade-strategy-recreate-hash", recreate_hash),
            ("ray.io/hash-without-replicas-and-workers-to-delete", service_hash),
        ):
            for wanted in {entry[key] for entry in annotations if key in entry} - {"<hash of random text>"}:
                assert wanted in [hashed(spec) for spec in specs], recorded.name
                compared += 1
    assert compared > 50
