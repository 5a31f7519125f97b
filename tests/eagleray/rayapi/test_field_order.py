"""The facts about encoding that the hash of a cluster's spec needs: order, pointers, what is written empty."""

import json

import pytest

from eagleray.rayapi.declarations import raycluster
from eagleray.rayapi.declare import structs_below

SPEC = raycluster.SPEC


def declared_facts(struct):
    return [
        ("*" if field.pointer else "") + field.name + ("!" if field.always or field.required else "")
        for field in struct.fields
    ]


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
    ours = {struct.name: declared_facts(struct) for struct in structs_below(SPEC)}
    assert ours == {name: theirs[name] for name in ours}
