"""The published definitions, by name."""

import pytest

from kubewire import builtin


def test_a_definition_is_found_by_its_full_name():
    pod = builtin.definition("io.k8s.api.core.v1.Pod")
    assert pod["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"


def test_the_definitions_are_read_once():
    assert builtin.definitions() is builtin.definitions()
    assert builtin.definition("io.k8s.api.core.v1.Pod") is builtin.definitions()["io.k8s.api.core.v1.Pod"]


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError, match=r"io\.k8s\.api\.core\.v1\.Nothing"):
        builtin.definition("io.k8s.api.core.v1.Nothing")


def test_every_reference_leads_to_a_definition():
    references = set()
    pending: list[object] = [dict(builtin.definitions())]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str):
                references.add(reference.removeprefix("#/definitions/"))
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    assert references <= builtin.definitions().keys()
