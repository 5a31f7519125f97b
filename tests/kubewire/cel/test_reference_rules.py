"""All rules of the reference's CRDs compile against the types of the schema nodes they stand at."""

import pytest
import yaml

from kubewire.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    STRING,
    CompileError,
    ListType,
    MapType,
    ObjectType,
    compile_rule,
)

SCALARS = {"string": STRING, "integer": INT, "number": DOUBLE, "boolean": BOOL}


def type_of(node):
    """Return the type of a schema node, without formats."""
    if "properties" in node:
        return ObjectType(
            "object", lambda: {name: type_of(inner) for name, inner in node["properties"].items()}
        )
    if "items" in node:
        return ListType(type_of(node["items"]))
    if isinstance(node.get("additionalProperties"), dict):
        return MapType(STRING, type_of(node["additionalProperties"]))
    return SCALARS.get(node.get("type", ""), DYN)


def rules_in(node):
    """Yield every rule with the type of the node it stands at."""
    for rule in node.get("x-kubernetes-validations", ()):
        yield rule["rule"], type_of(node)
    for inner in node.get("properties", {}).values():
        yield from rules_in(inner)
    for inner in (node.get("items"), node.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from rules_in(inner)


def test_every_rule_of_the_reference_compiles(reference):
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    compiled = set()
    for path in (reference / "crds").glob("*.yaml"):
        crd = yaml.load(path.read_text(), loader)
        for version in crd["spec"]["versions"]:
            for rule, kind in rules_in(version["schema"]["openAPIV3Schema"]):
                compile_rule(rule, kind)
                compiled.add(rule)
    assert len(compiled) >= 6


def test_the_same_rules_do_not_compile_against_other_types():
    with pytest.raises(CompileError, match="undefined field"):
        compile_rule(
            "has(self.jobStatus) || has(self.jobDeploymentStatus)", type_of({"properties": {"a": {}}})
        )
