"""Custom resources and their definitions are judged as a real API server judged them."""

from functools import cache
from pathlib import Path

import pytest

from kubewire.schema import compile_schema, structural_problems
from tests.kubewire.schema.scenarios import Replay, at, exchanges

DATA = Path(__file__).parent / "data"


def openapi_of(exchange):
    return exchange.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def custom_resources(*, accepted=False):
    """Name each request about a custom resource; the first of a scenario creates the definition."""
    return [
        pytest.param(name, number, id=exchange.name)
        for name in ("crd-schema", "crd-cel")
        for number, exchange in enumerate(exchanges(DATA / f"{name}.yaml"))
        if number and (exchange.answer["status"] < 300 or not accepted)
    ]


@cache
def replayed(name):
    """Replay a scenario and return each exchange with its verdict."""
    definition, *others = exchanges(DATA / f"{name}.yaml")
    replay = Replay(compile_schema(openapi_of(definition)))
    return [None, *((exchange, replay.send(exchange)) for exchange in others)]


@pytest.mark.parametrize(("scenario", "number"), custom_resources())
def test_causes_of_a_refusal_are_those_of_a_real_server(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    assert verdict.causes == exchange.causes
    assert bool(verdict.causes) == (exchange.answer["status"] == 422)


@pytest.mark.parametrize(("scenario", "number"), custom_resources())
def test_unknown_fields_are_those_a_real_server_warns_of(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    assert verdict.unknown_fields == exchange.unknown_fields


@pytest.mark.parametrize(("scenario", "number"), custom_resources(accepted=True))
def test_accepted_objects_are_stored_as_a_real_server_stores_them(scenario, number):
    exchange, verdict = replayed(scenario)[number]
    answer = exchange.answer
    expected = answer["fields"] if "fields" in answer else {"spec": answer["body"]["spec"]}
    for path, value in expected.items():
        assert at(verdict.obj, path) == value, path


# Refused for what stands around the schema, not for the schema.
NOT_ABOUT_THE_SCHEMA = {"a schema is required", "two storage versions", "the same version twice"}


def refused_definitions():
    return [
        pytest.param(exchange, id=exchange.name)
        for name in ("crd-invalid", "crd-invalid-more")
        for exchange in exchanges(DATA / f"{name}.yaml")
        if exchange.answer["status"] == 422
        and "openAPIV3Schema" in str(exchange.answer)
        and exchange.name not in NOT_ABOUT_THE_SCHEMA
    ]


@pytest.mark.parametrize("exchange", refused_definitions())
def test_definitions_are_refused_with_the_causes_of_a_real_server(exchange):
    problems = structural_problems(openapi_of(exchange), "spec.validation.openAPIV3Schema")
    fields = exchange.answer.get("fields")
    if fields:
        places = fields["details.causes[*].field"], fields["details.causes[*].reason"]
        assert sorted((problem.field, problem.reason) for problem in problems) == sorted(
            zip(*places, strict=True)
        )
    else:
        assert (
            sorted((problem.field, problem.message, problem.reason) for problem in problems)
            == exchange.causes
        )


@pytest.mark.parametrize("name", ["crd-schema", "crd-cel"])
def test_definitions_that_a_real_server_accepts_have_no_problems(name):
    assert structural_problems(openapi_of(exchanges(DATA / f"{name}.yaml")[0])) == []
