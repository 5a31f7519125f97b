"""Pods are filled in, refused and shown as Kubernetes' own code does it; `oracle` asked it."""

import copy
import json
import re
from pathlib import Path

import pytest

from kubereef.kinds.behaviours.pod_columns import COLUMNS, row_conditions
from kubereef.kinds.behaviours.podspec_defaults import template_defaults
from kubereef.kinds.behaviours.podspec_validation import template_problems
from kubereef.kinds.behaviours.podspec_validation.warnings import template_warnings
from kubereef.kinds.resource import TableMoment
from kubereef.store.records import Key, decode
from kubewire import gotypes
from tests.kubereef.kinds.pods.manifests import PODS

RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text("utf-8").splitlines()
]
# What differs from run to run, or is told by the address.
UNSTABLE = ("uid", "creationTimestamp", "resourceVersion", "managedFields")
PATHS = {
    "update": "",
    "status": "/status",
    "resize": "/resize",
    "ephemeralcontainers": "/ephemeralcontainers",
}


def questions(*kinds):
    chosen = [question for question in RECORDED if question["op"] in kinds]
    return pytest.mark.parametrize(
        "question", [pytest.param(one, id=f"{one['op']} {number}") for number, one in enumerate(chosen)]
    )


def comparable(obj):
    obj = copy.deepcopy(obj)
    for field in ("apiVersion", "kind"):
        obj.pop(field, None)
    for field in UNSTABLE:
        obj["metadata"].pop(field, None)
    for condition in (obj.get("status") or {}).get("conditions") or ():
        condition.pop("lastTransitionTime", None)
    return obj


def in_order(causes):
    return sorted((one.get("reason", ""), one.get("message", ""), one.get("field", "")) for one in causes)


def check(response, answer):
    body = decode(response.body)
    if "causes" in answer:
        assert in_order((body.get("details") or {}).get("causes") or []) == in_order(answer["causes"])
        return
    assert response.status < 300, body
    assert comparable(body) == comparable(answer["obj"])
    given = {
        text.removeprefix('299 - "').removesuffix('"') for name, text in response.headers if name == "Warning"
    }
    expected = {text.replace("\\", "\\\\").replace('"', '\\"') for text in answer.get("warnings") or ()}
    assert given == expected


@questions("create")
async def test_a_new_pod_is_taken_or_refused_as_by_kubernetes(question, client):
    response = await client.send("POST", PODS, question["obj"])
    check(response, question["answer"])


@questions(*PATHS)
async def test_a_change_of_a_pod_is_taken_or_refused_as_by_kubernetes(question, client, server):
    present = copy.deepcopy(question["old"])
    for field in ("apiVersion", "kind"):
        present.pop(field)
    pods = server.around.registry.find("", "v1", "pods")
    pods.behaviour.read(present)
    name = present["metadata"]["name"]
    await server.around.store.put(Key("pods", "default", name), present, None).done()
    wanted = copy.deepcopy(question["obj"])
    wanted["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"]
    response = await client.send("PUT", f"{PODS}/{name}{PATHS[question['op']]}", wanted)
    check(response, question["answer"])


@questions("template")
def test_a_template_is_taken_or_refused_as_by_kubernetes(question):
    obj = copy.deepcopy(question["obj"])
    gotypes.read("io.k8s.api.core.v1.PodTemplate", obj)
    template = obj["template"]
    template_defaults(template)
    problems = template_problems(template, ("template",))
    answer = question["answer"]
    if "causes" in answer:
        found = [{"reason": one.reason, "message": one.message, "field": one.field} for one in problems]
        assert in_order(found) == in_order(answer["causes"])
    else:
        assert problems == []
        assert template == answer["obj"]["template"]
        assert set(template_warnings(template, ("template",))) == set(answer.get("warnings") or ())


@questions("table")
def test_a_pod_is_shown_as_by_kubernetes(question, registry):
    obj = copy.deepcopy(question["obj"])
    behaviour = registry.find("", "v1", "pods").behaviour
    for field in ("apiVersion", "kind"):
        obj.pop(field)
    behaviour.read(obj)
    behaviour.defaults(obj)
    cells = [column.cell(obj, TableMoment(2e9)) for column in COLUMNS]
    cells[4] = "<age>"
    assert [_ageless(cell) for cell in cells] == [_ageless(cell) for cell in question["answer"]["cells"]]
    assert row_conditions(obj) == (question["answer"]["conditions"] or [])


def _ageless(cell):
    return re.sub(r"\(.* ago\)", "(<age> ago)", cell)
