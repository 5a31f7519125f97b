"""The reference page, and the view of fields that it shares with `eagleray explain`."""

import re

import pytest

from eagleray.rayapi.declarations import raycluster
from eagleray.rayapi.kinds import KINDS
from eagleray.rayapi.reference import (
    UnknownFieldError,
    api_reference,
    entries_inside,
    entries_of_kind,
    find,
)

CLUSTER = raycluster.V1
PAGE = api_reference()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        pytest.param("spec.rayVersion", "string", id="a scalar"),
        pytest.param("spec.workerGroupSpecs", "[]WorkerGroupSpec", id="a list of structs"),
        pytest.param("spec.headServiceAnnotations", "map[string]string", id="a map"),
        pytest.param("status.desiredCPU", "quantity", id="a quantity"),
        pytest.param("status.stateTransitionTimes", "map[string]time", id="a map of times"),
        pytest.param("spec.headGroupSpec.template", "PodTemplateSpec (core/v1)", id="a type of Kubernetes"),
        pytest.param("spec.headGroupSpec.template.spec", "PodSpec", id="a type inside it"),
        pytest.param("spec.workerGroupSpecs.template.spec.volumes", "[]Volume", id="through a list"),
        pytest.param("status.conditions.lastTransitionTime", "time", id="a published time"),
        pytest.param(
            "spec.autoscalerOptions.resources.limits",
            "map[string]quantity",
            id="a published map of quantities",
        ),
        pytest.param(
            "spec.headGroupSpec.headService.spec.ports.targetPort", "int or string", id="a published port"
        ),
        pytest.param("metadata.generation", "int64", id="metadata of a whole object"),
    ],
)
def test_a_field_is_shown_as(path, shown):
    assert find(CLUSTER, path.split(".")).type == shown


def test_a_field_tells_default_and_choices():
    mode = find(CLUSTER, ["spec", "networkPolicy", "mode"])
    assert (mode.shown_default, mode.choices) == ('"DenyAll"', ("DenyAll", "DenyAllIngress", "DenyAllEgress"))


def test_a_field_with_a_default_need_not_be_written():
    assert find(CLUSTER, ["spec", "workerGroupSpecs", "groupName"]).required
    assert not find(CLUSTER, ["spec", "workerGroupSpecs", "minReplicas"]).required


def test_metadata_inside_a_template_has_fewer_fields_than_that_of_the_object():
    whole = entries_inside(find(CLUSTER, ["metadata"]).inside)
    template = entries_inside(find(CLUSTER, ["spec", "headGroupSpec", "template", "metadata"]).inside)
    assert {entry.name for entry in template} < {entry.name for entry in whole}


def test_an_unknown_field_tells_where_it_was_looked_for_and_what_is_there():
    with pytest.raises(UnknownFieldError) as caught:
        find(CLUSTER, ["spec", "headGroupSpec", "templates", "spec"])
    assert caught.value.above == ("spec", "headGroupSpec")
    assert caught.value.name == "templates"
    assert "template" in caught.value.known


def test_a_path_has_a_step():
    with pytest.raises(ValueError, match="at least one step"):
        find(CLUSTER, [])


def every_entry(entries):
    for entry in entries:
        yield entry
        yield from every_entry(entries_inside(entry.inside))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_down_to_the_last_has_a_type(kind):
    for version in kind.versions:
        for entry in every_entry(entries_of_kind(version)):
            assert entry.base, entry.name


def test_every_link_of_the_page_leads_to_one_place():
    links = set(re.findall(r"\]\(#([^)]*)\)", PAGE))
    anchors = re.findall(r'<a id="([^"]*)">', PAGE)
    assert len(anchors) == len(set(anchors))
    assert links <= set(anchors)
    assert len(links) > 40


def test_the_page_has_a_row_for_a_field_with_everything_that_is_known_of_it():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `maxReplicas` |"))
    assert row.startswith("| `maxReplicas` | int32 | `2147483647` |  | The most replicas")


def test_the_page_links_types_and_names_those_of_kubernetes():
    assert r"| `workerGroupSpecs` | \[\][WorkerGroupSpec](#v1-workergroupspec) |" in PAGE
    assert "| `template` | PodTemplateSpec (core/v1) |  | yes |" in PAGE


def test_the_page_lists_the_values_of_an_enum():
    assert "| `concurrencyPolicy` | string: `Allow`, `Forbid`, `Replace` |" in PAGE


def test_the_page_tells_the_rules_of_the_api_server():
    assert "- `backend`: gcsFaultToleranceOptions.backend is immutable" in PAGE
    assert "- the deletion condition requires either the JobStatus or the JobDeploymentStatus field." in PAGE


def test_every_row_has_five_cells():
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {6}, "a description may not contain a vertical bar"


def test_every_struct_of_every_version_has_a_section():
    for anchor in ("v1-rayclusterspec", "v1alpha1-rayclusterspec", "v1-scalestrategy", "v1-raycronjobstatus"):
        assert f'<a id="{anchor}">' in PAGE
