"""Objects of the built-in kinds are filled in, refused and shown as Kubernetes' own code does it; `oracle` asked it."""

import copy
import json
import re
from pathlib import Path

import pytest

from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import TableMoment
from kubereef.server.admission import Admission
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.inprocess import LocalClient
from kubereef.server.open import OpenGate
from kubereef.store.records import Key, decode
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SeededEntropy

RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text("utf-8").splitlines()
]
# What differs from run to run, or is told by the address.
UNSTABLE = ("uid", "creationTimestamp", "resourceVersion", "managedFields")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
NOW = TableMoment(2e9)


@pytest.fixture(scope="module")
def registry():
    return Registry(builtin_types())


@pytest.fixture
def server(registry):
    return Server(Surroundings(Store(), registry, ManualClock(), SeededEntropy(1), Admission()), OpenGate())


@pytest.mark.parametrize("question", [pytest.param(one, id=one["name"]) for one in RECORDED])
async def test_an_object_is_taken_or_refused_and_shown_as_by_kubernetes(question, server):
    resource_type = type_of(question["obj"], server)
    client = LocalClient(server)
    if question["op"] == "create":
        response = await client.send("POST", address(resource_type), question["obj"])
    else:
        present = await keep(server, resource_type, question["old"])
        wanted = copy.deepcopy(question["obj"])
        wanted["metadata"]["resourceVersion"] = present["metadata"]["resourceVersion"]
        part = "/status" if question["op"] == "status" else ""
        url = f"{address(resource_type)}/{present['metadata']['name']}{part}"
        response = await client.send("PUT", url, wanted)
    answer = question["answer"]
    body = decode(response.body)
    if "causes" in answer:
        causes = (body.get("details") or {}).get("causes") or []
        assert in_order(causes) == in_order(answer["causes"]), body.get("message")
        return
    assert response.status < 300, body
    assert comparable(body) == comparable(answer["obj"])
    assert warnings(response) == {escaped(text) for text in answer.get("warnings") or ()}
    columns = resource_type.behaviour.columns
    shown = [f"{one.name}|{one.type}|{one.format}|{one.priority}" for one in columns]
    assert shown == answer["table"]["columns"]
    body["metadata"].pop("creationTimestamp")
    cells = without_uids([one.cell(body, NOW) for one in columns])
    # Oracle and test look at different times.
    assert ageless(shown, cells) == ageless(shown, without_uids(answer["table"]["cells"]))


def type_of(obj, server):
    group, _, version = obj["apiVersion"].rpartition("/")
    return server.around.registry.of_kind(group, version, obj["kind"])


def address(resource_type):
    start = f"/apis/{resource_type.api_version}" if resource_type.group else "/api/v1"
    place = "/namespaces/default" if resource_type.namespaced else ""
    return f"{start}{place}/{resource_type.plural}"


async def keep(server, resource_type, obj):
    """Put an object into the store as it is."""
    present = copy.deepcopy(obj)
    for field in ("apiVersion", "kind"):
        present.pop(field)
    resource_type.behaviour.read(present)
    resource_type.behaviour.defaults(present)
    namespace = "default" if resource_type.namespaced else ""
    key = Key(resource_type.storage, namespace, present["metadata"]["name"])
    stored = resource_type.to_stored(present)
    await server.around.store.put(key, stored, None).done()
    return stored


def comparable(obj):
    obj = without_uids(obj)
    for field in UNSTABLE:
        obj["metadata"].pop(field, None)
    (obj.get("status") or {}).pop("lastPhaseTransitionTime", None)
    return obj


def in_order(causes):
    found = without_uids(causes)
    return sorted((one.get("field", ""), one.get("reason", ""), one.get("message", "")) for one in found)


def without_uids(value):
    """Return a copy in which what the server makes up is not told apart."""
    return json.loads(UID.sub("<uid>", json.dumps(value)))


def warnings(response):
    # That a whole version is old is not for the kind to say.
    given = (text for name, text in response.headers if name == "Warning" and "in v1.33+" not in text)
    return {text.removeprefix('299 - "').removesuffix('"') for text in given}


def escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


def ageless(columns, cells):
    ages = ("Last Seen", "First Seen", "Duration", "Created At")
    return [
        "<age>" if column.split("|")[0] in ages and cell not in ("", "<unknown>") else cell
        for column, cell in zip(columns, cells, strict=True)
    ]
