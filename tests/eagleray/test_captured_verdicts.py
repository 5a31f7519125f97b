"""Schema verdicts equal the captured answers of a real API server, request by request."""

from functools import cache
from pathlib import Path

import pytest
import yaml

from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import kind_named
from eagleray.rayapi.schemas import schema_for
from kubewire.schema import structural_problems
from tests.kubewire.schema.scenarios import Replay, at, exchanges

SERVER = Path(__file__).parents[1] / "data" / "conformance" / "server"
KINDS = {
    "raycluster": "RayCluster",
    "rayjob": "RayJob",
    "rayservice": "RayService",
    "raycronjob": "RayCronJob",
}


def requests(select=lambda exchange: True):
    return [
        pytest.param(name, number, id=f"{kind}: {exchange.name}")
        for name, kind in KINDS.items()
        for number, exchange in enumerate(exchanges(SERVER / f"ray-{name}.yaml"))
        if exchange.verb != "DELETE" and select(exchange)
    ]


@cache
def replayed(name):
    """Replay a scenario and return each exchange with its verdict; objects are stored from one to the next."""
    replay = Replay(schema_for("ray.io/v1", KINDS[name]))
    answered = []
    for exchange in exchanges(SERVER / f"ray-{name}.yaml"):
        if exchange.target.startswith("${old}"):
            old_schema = schema_for("ray.io/v1alpha1", KINDS[name])
            answered.append((exchange, replay.send(exchange, "ray.io/v1alpha1", old_schema)))
        else:
            answered.append((exchange, replay.send(exchange)))
    return answered


@pytest.mark.parametrize(("scenario", "number"), requests())
def test_an_object_is_accepted_or_refused_with_the_same_causes(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    assert verdict.causes == exchange.causes
    assert bool(verdict.causes) == (exchange.answer["status"] == 422)


@pytest.mark.parametrize(("scenario", "number"), requests(lambda exchange: exchange.answer["status"] < 300))
def test_unknown_fields_are_warned_of(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    assert verdict.unknown_fields == exchange.unknown_fields


@pytest.mark.parametrize(("scenario", "number"), requests(lambda exchange: exchange.answer["status"] == 400))
def test_strict_validation_names_the_unknown_fields(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    named = ", ".join(f'unknown field "{field}"' for field in verdict.unknown_fields)
    assert exchange.answer["body"]["message"].endswith(f"strict decoding error: {named}")


@pytest.mark.parametrize(("scenario", "number"), requests(lambda exchange: exchange.answer["status"] < 300))
def test_accepted_objects_get_the_same_defaults(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    answer = exchange.answer
    expected = answer["fields"] if "fields" in answer else {"spec": answer["body"]["spec"]}
    for path, value in expected.items():
        if not path.startswith("metadata."):  # which the server fills in, not the schema
            assert at(verdict.obj, path) == value, path


@pytest.mark.parametrize("name", KINDS)
def test_our_definitions_would_be_registered(name):
    kind = kind_named(name)
    assert kind is not None
    for version in crd(kind)["spec"]["versions"]:
        assert structural_problems(version["schema"]["openAPIV3Schema"]) == [], version["name"]


def test_the_definitions_that_a_server_registered_for_the_captures_have_no_problems(reference):
    definitions = [
        yaml.load(path.read_text(), Loader=yaml.CSafeLoader) for path in (reference / "crds").glob("*.yaml")
    ]
    assert len(definitions) == len(KINDS)
    for definition in definitions:
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert structural_problems(schema) == [], definition["metadata"]["name"]


def test_every_kind_has_requests_of_both_outcomes():
    for name in KINDS:
        statuses = {exchange.answer["status"] for exchange in exchanges(SERVER / f"ray-{name}.yaml")}
        assert {201, 422} <= statuses, name
