"""The CustomResourceDefinitions, looked at without the reference."""

import json

import pytest

from eagleray.rayapi.crd import crd, expanded_openapi
from eagleray.rayapi.declare import Struct
from eagleray.rayapi.kinds import KINDS, kind_for
from eagleray.rayapi.reference import entries_inside
from kubewire.schema import structural_problems

RAY_CLUSTER, RAY_JOB, RAY_SERVICE, RAY_CRON_JOB = KINDS
VERSIONS = [version for kind in KINDS for version in kind.versions]
version_ids = [f"{version.kind} {version.name}" for version in VERSIONS]

# What etcd stores as one object, with room for metadata.
LARGEST = 1_400_000


def node_at(version, path):
    """Return the schema node at a path such as `spec.groups[].labels{}`."""
    node = expanded_openapi(version)
    for step in path.replace("[]", ".[]").replace("{}", ".{}").split("."):
        if step == "[]":
            node = node["items"]
        elif step == "{}":
            node = node["additionalProperties"]
        else:
            node = node["properties"][step]
    return node


def without_descriptions(node):
    if isinstance(node, dict):
        return {
            key: {name: without_descriptions(inner) for name, inner in value.items()}
            if key == "properties"
            else without_descriptions(value)
            for key, value in node.items()
            if key != "description"
        }
    return node


def nodes_below(node):
    yield node
    for inner in node.get("properties", {}).values():
        yield from nodes_below(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from nodes_below(node[key])


@pytest.mark.parametrize(
    ("kind", "path", "facts"),
    [
        pytest.param(
            "RayCluster",
            "spec.workerGroupSpecs[].maxReplicas",
            {"type": "integer", "format": "int32", "default": 2147483647},
            id="a group is unbounded by default",
        ),
        pytest.param(
            "RayCluster",
            "spec.workerGroupSpecs[].rayStartParams",
            {"type": "object", "additionalProperties": {"type": "string"}},
            id="start parameters are strings",
        ),
        pytest.param(
            "RayCluster",
            "spec.upgradeStrategy.type",
            {"type": "string", "enum": ["Recreate", "None"]},
            id="upgrade strategies are an enum",
        ),
        pytest.param(
            "RayCluster",
            "spec.managedBy",
            {
                "type": "string",
                "x-kubernetes-validations": [
                    {"rule": "self == oldSelf", "message": "the managedBy field is immutable"},
                    {
                        "rule": "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']",
                        "message": "the managedBy field value must be either 'ray.io/kuberay-operator' "
                        "or 'kueue.x-k8s.io/multikueue'",
                    },
                ],
            },
            id="the manager is one of two and stays",
        ),
        pytest.param(
            "RayCluster",
            "spec.headGroupSpec.template.spec.containers[].ports[].protocol",
            {"type": "string", "default": "TCP"},
            id="a port of a Pod template has a protocol",
        ),
        pytest.param(
            "RayCluster",
            "status.lastUpdateTime",
            {"type": "string", "format": "date-time", "nullable": True},
            id="the time of the last update may be null",
        ),
        pytest.param(
            "RayJob",
            "spec.submissionMode",
            {"type": "string", "default": "K8sJobMode"},
            id="a Kubernetes Job submits by default, and unknown modes pass the schema",
        ),
        pytest.param(
            "RayJob",
            "spec.preRunningDeadlineSeconds",
            {"type": "integer", "format": "int32", "minimum": 1},
            id="a deadline is positive",
        ),
        pytest.param("RayJob", "spec.entrypointNumCpus", {"type": "number"}, id="half a CPU may be reserved"),
        pytest.param(
            "RayJob",
            "status.submission",
            {
                "type": "object",
                "properties": {
                    "attempt": {"type": "integer", "format": "int32"},
                    "submissionId": {"type": "string"},
                    "headSession": {"type": "string"},
                    "requestedAt": {"type": "string", "format": "date-time"},
                },
            },
            id="a submission is recorded",
        ),
        pytest.param(
            "RayService",
            "spec.rayClusterDeletionDelaySeconds",
            {"type": "integer", "format": "int32", "minimum": 0},
            id="a delay is not negative",
        ),
        pytest.param(
            "RayService",
            "status.activeServiceStatus.applicationStatuses{}.status",
            {"type": "string"},
            id="applications are told by name",
        ),
        pytest.param(
            "RayCronJob",
            "spec.timeZone",
            {"type": "string", "minLength": 1},
            id="a time zone is not empty",
        ),
        pytest.param(
            "RayCronJob",
            "spec.concurrencyPolicy",
            {"type": "string", "enum": ["Allow", "Forbid", "Replace"]},
            id="what overlapping runs do has no default in the schema",
        ),
        pytest.param(
            "RayCronJob",
            "spec.startingDeadlineSeconds",
            {"type": "integer", "format": "int64"},
            id="how late a run may start",
        ),
        pytest.param(
            "RayCronJob",
            "spec.failedJobsHistoryLimit",
            {"type": "integer", "format": "int32"},
            id="how many failed runs are kept",
        ),
    ],
)
def test_the_schema_says_that(kind, path, facts):
    assert without_descriptions(node_at(kind_for("ray.io/v1", kind), path)) == facts


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "required"),
    [
        ("ray.io/v1", "RayCluster", "spec", ["headGroupSpec"]),
        ("ray.io/v1", "RayCluster", "spec.headGroupSpec", ["template"]),
        ("ray.io/v1alpha1", "RayCluster", "spec.headGroupSpec", ["rayStartParams", "template"]),
        (
            "ray.io/v1",
            "RayCluster",
            "spec.workerGroupSpecs[]",
            ["groupName", "maxReplicas", "minReplicas", "template"],
        ),
        ("ray.io/v1alpha1", "RayJob", "spec", ["entrypoint"]),
        ("ray.io/v1", "RayService", "spec", ["rayClusterConfig"]),
        ("ray.io/v1", "RayCronJob", "spec", ["jobTemplate", "schedule"]),
    ],
)
def test_these_fields_are_required(api_version, kind, path, required):
    assert node_at(kind_for(api_version, kind), path)["required"] == required


def test_a_ray_job_requires_nothing_since_a_selector_may_replace_the_cluster():
    assert "required" not in node_at(kind_for("ray.io/v1", "RayJob"), "spec")


@pytest.mark.parametrize("version", VERSIONS, ids=version_ids)
def test_an_api_server_takes_the_schema(version):
    assert structural_problems(expanded_openapi(version)) == []


@pytest.mark.parametrize("version", VERSIONS, ids=version_ids)
def test_no_reference_is_left(version):
    assert not any("$ref" in node for node in nodes_below(expanded_openapi(version)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_definition_fits_into_etcd(kind):
    assert len(json.dumps(crd(kind), separators=(",", ":"))) < LARGEST


def test_our_fields_are_described_and_those_of_kubernetes_are_not():
    spec = expanded_openapi(RAY_CLUSTER.versions[0])["properties"]["spec"]
    template = spec["properties"]["headGroupSpec"]["properties"]["template"]
    assert "Its first container runs Ray" in template["description"]
    assert not any("description" in inner for inner in template["properties"].values())
    assert all("description" in inner for inner in spec["properties"].values())


def test_a_description_does_not_reach_other_uses_of_the_same_type():
    groups = expanded_openapi(RAY_CLUSTER.versions[0])["properties"]["spec"]["properties"]
    head = groups["headGroupSpec"]["properties"]["template"]["description"]
    worker = groups["workerGroupSpecs"]["items"]["properties"]["template"]["description"]
    assert head != worker


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_definition_names_the_kind(kind):
    definition = crd(kind)
    assert definition["metadata"]["name"] == f"{kind.plural}.ray.io"
    assert definition["spec"]["names"] == {
        "categories": ["all"],
        "kind": kind.name,
        "listKind": f"{kind.name}List",
        "plural": f"{kind.name.lower()}s",
        "singular": kind.name.lower(),
    }
    assert definition["spec"]["scope"] == "Namespaced"


def test_the_columns_of_kubectl_get():
    columns = crd(RAY_CRON_JOB)["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [(column["name"], column["type"]) for column in columns] == [
        ("schedule", "string"),
        ("timezone", "string"),
        ("last schedule", "date"),
        ("age", "date"),
        ("suspend", "boolean"),
    ]


def test_wide_columns_have_a_priority():
    columns = crd(RAY_CLUSTER)["spec"]["versions"][0]["additionalPrinterColumns"]
    wide = [column["name"] for column in columns if column.get("priority") == 1]
    assert wide == ["tpus", "head pod IP", "head service IP"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_version_is_served_with_a_status_of_its_own(kind):
    for version in crd(kind)["spec"]["versions"]:
        assert version["served"] is True
        assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_column_shows_a_field_that_exists(kind):
    for version in kind.versions:
        for column in version.columns:
            root, *steps = column.path.removeprefix(".").split(".")
            if root == "metadata":
                continue
            inside: object = version.spec if root == "spec" else version.status
            for step in steps:
                assert isinstance(inside, Struct)
                inside = next(entry for entry in entries_inside(inside) if entry.name == step).inside


def test_a_deprecated_version_warns():
    old = crd(RAY_JOB)["spec"]["versions"][1]
    assert old["deprecated"] is True
    assert old["deprecationWarning"].startswith("ray.io/v1alpha1 RayJob is deprecated; use ray.io/v1 RayJob.")
    assert (old["served"], old["storage"]) == (True, False)
