"""The facts about encoding that the hash of a cluster's spec needs: order, pointers, what is written empty."""

import json
from pathlib import Path

import pytest

import eagleray.rayapi
from eagleray.rayapi import kubernetes
from eagleray.rayapi.declarations import raycluster
from eagleray.rayapi.declare import KubernetesType, structs_below, unwrapped

ORDER = json.loads((Path(eagleray.rayapi.__path__[0]) / "data" / "field-order.json").read_text())
SPEC = raycluster.SPEC


def references_in(node):
    if isinstance(node, dict):
        if isinstance(target := node.get("$ref"), str):
            yield target.removeprefix("#/definitions/")
        for value in node.values():
            yield from references_in(value)


def kubernetes_types():
    """Return the properties of every Kubernetes type that a RayClusterSpec can contain, by short name."""
    inner = [unwrapped(field.type)[1] for struct in structs_below(SPEC) for field in struct.fields]
    waiting = [found.definition for found in inner if isinstance(found, KubernetesType)]
    types = {}
    while waiting:
        name = waiting.pop()
        schema = kubernetes.definition(name)
        short = name.rpartition(".")[2]
        if short not in types and "properties" in schema:
            types[short] = schema["properties"]
            waiting.extend(references_in(schema))
    return types


def declared_facts(struct):
    return [
        ("*" if field.pointer else "") + field.name + ("!" if field.always or field.required else "")
        for field in struct.fields
    ]


def test_the_order_of_every_type_of_kubernetes_in_a_cluster_is_known():
    assert sorted(ORDER) == sorted(kubernetes_types())


def test_the_order_has_exactly_the_fields_of_each_type():
    for name, properties in kubernetes_types().items():
        assert sorted(field.strip("*!") for field in ORDER[name].split()) == sorted(properties), name


@pytest.mark.parametrize(
    ("name", "start"),
    [
        pytest.param("PodTemplateSpec", "metadata spec", id="a template is never left out"),
        pytest.param("PodSpec", "volumes initContainers containers! ", id="containers are always written"),
        pytest.param("EnvVar", "name! value *valueFrom", id="a source is a pointer"),
        pytest.param(
            "ObjectMeta", "name namespace labels annotations finalizers", id="metadata of a template"
        ),
    ],
)
def test_the_order_of(name, start):
    assert ORDER[name].startswith(start)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        pytest.param("ScaleStrategy", ["workersToDelete"], id="a list is left out when empty"),
        pytest.param("RedisCredential", ["*valueFrom", "value"], id="the source comes before the value"),
        pytest.param(
            "HeadGroupSpec",
            [
                "template!",
                "*headService",
                "*enableIngress",
                "*ingressOptions",
                "resources",
                "labels",
                "rayStartParams!",
                "serviceType",
            ],
            id="start parameters are always written",
        ),
        pytest.param(
            "WorkerGroupSpec",
            [
                "*suspend",
                "groupName!",
                "*replicas",
                "*minReplicas!",
                "*maxReplicas!",
                "*idleTimeoutSeconds",
                "*priority",
                "resources",
                "labels",
                "rayStartParams!",
                "template!",
                "scaleStrategy",
                "numOfHosts",
            ],
            id="numbers of replicas are pointers",
        ),
    ],
)
def test_our_own_structs_carry_the_same_facts(name, facts):
    struct = next(struct for struct in structs_below(SPEC) if struct.name == name)
    assert declared_facts(struct) == facts


def test_all_facts_equal_those_of_the_reference(reference):
    theirs = {
        name: [
            ("*" if kind.startswith("*") else "") + field + ("" if omitted else "!")
            for field, kind, *omitted in fields
        ]
        for name, fields in json.loads((reference / "field-order.json").read_text()).items()
    }
    embedded = {"name", "namespace", "labels", "annotations", "finalizers"}
    theirs["ObjectMeta"] = [field for field in theirs["ObjectMeta"] if field in embedded]
    for unreachable in ("OwnerReference", "ManagedFieldsEntry"):  # pruned with the metadata that holds them
        del theirs[unreachable]
    ours = {name: fields.split() for name, fields in ORDER.items()}
    ours |= {struct.name: declared_facts(struct) for struct in structs_below(SPEC)}
    assert ours == theirs
