"""The compiled schemas that validation uses."""

import subprocess
import sys

import pytest

from eagleray.rayapi.crd import expanded_openapi
from eagleray.rayapi.kinds import KINDS
from eagleray.rayapi.schemas import definition, openapi_of, schema_for
from kubewire.schema import apply_defaults, prune, validate

VERSIONS = [version for kind in KINDS for version in kind.versions]
version_ids = [f"{version.kind} {version.name}" for version in VERSIONS]


def cluster():
    template = {"spec": {"containers": [{"name": "ray", "ports": [{"containerPort": 6379}]}]}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "small"},
        "spec": {
            "headGroupSpec": {"template": template},
            "workerGroupSpecs": [{"groupName": "workers", "template": template}],
        },
    }


def expanded(node):
    """Return a node with its references written out."""
    if "$ref" in node:
        return expanded(definition(node["$ref"].removeprefix("#/definitions/")))
    result = dict(node)
    for key in ("items", "additionalProperties"):
        if key in node:
            result[key] = expanded(node[key])
    if "properties" in node:
        result["properties"] = {name: expanded(inner) for name, inner in node["properties"].items()}
    return result


def undescribed(node):
    result = {key: value for key, value in node.items() if key != "description"}
    for key in ("items", "additionalProperties"):
        if key in node:
            result[key] = undescribed(node[key])
    if "properties" in node:
        result["properties"] = {name: undescribed(inner) for name, inner in node["properties"].items()}
    return result


@pytest.mark.parametrize("version", VERSIONS, ids=version_ids)
def test_validation_uses_the_schema_that_the_definition_publishes(version):
    assert expanded(openapi_of(version)) == undescribed(expanded_openapi(version))


def test_a_small_cluster_is_valid_and_gets_its_defaults():
    schema = schema_for("ray.io/v1", "RayCluster")
    obj = cluster()
    assert prune(schema, obj) == []
    apply_defaults(schema, obj)
    assert validate(schema, obj) == []
    group = obj["spec"]["workerGroupSpecs"][0]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (0, 0, 2147483647)
    assert group["template"]["spec"]["containers"][0]["ports"][0]["protocol"] == "TCP"


def test_a_wrong_type_deep_in_a_pod_template_is_found():
    obj = cluster()
    obj["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = 2
    schema = schema_for("ray.io/v1", "RayCluster")
    apply_defaults(schema, obj)
    assert "spec.headGroupSpec.template.spec.containers[0].image" in [
        error.field for error in validate(schema, obj)
    ]


def test_the_older_version_drops_newer_fields():
    obj = cluster()
    obj["spec"]["authOptions"] = {"mode": "token"}
    assert prune(schema_for("ray.io/v1alpha1", "RayCluster"), obj) == [("spec", "authOptions")]


def test_a_schema_is_built_once():
    assert schema_for("ray.io/v1", "RayJob") is schema_for("ray.io/v1", "RayJob")


@pytest.mark.parametrize(("api_version", "kind"), [("v1", "Pod"), ("ray.io/v1alpha1", "RayCronJob")])
def test_there_is_no_schema_for_another_kind(api_version, kind):
    with pytest.raises(KeyError, match=f"{api_version} {kind} is not one of Ray's kinds"):
        schema_for(api_version, kind)


def test_the_published_definitions_are_read_only_when_a_field_needs_them():
    program = (
        "from eagleray.rayapi import kubernetes, schemas\n"
        "schemas.schema_for('ray.io/v1', 'RayCluster')\n"
        "schemas.definition('io.ray.v1.RayClusterSpec')\n"
        "from kubewire import builtin\nassert not builtin._loaded\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
