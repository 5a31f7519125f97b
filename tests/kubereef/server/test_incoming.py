"""Bodies become objects of their kind as on a real API server, or are refused in its words."""

import json

import pytest

from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.server.admission import Admission
from kubereef.server.calls import Surroundings
from kubereef.server.core import Server
from kubereef.server.open import OpenGate
from kubereef.server.requests import Request
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SeededEntropy

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/api/v1/namespaces/default/services"
UNRECOGNIZED = "the object provided is unrecognized (must be of type ConfigMap): "
NO_KIND = f"{UNRECOGNIZED}couldn't get version/kind; json parse error: "
IDENTITY = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)

DEPLOYMENT = {
    "metadata": {"name": "d"},
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


@pytest.fixture
def server():
    types = Registry(builtin_types())
    around = Surroundings(Store(), types, ManualClock(), SeededEntropy(1), Admission((), ()))
    return Server(around, OpenGate())


async def send(server, method, path, body, media_type="application/json", query=None):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(method, path, query or {}, {"content-type": media_type}, raw)
    response = await server.handle(request)
    return response.status, json.loads(response.body)


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        pytest.param(b"", f"{NO_KIND}unexpected end of JSON input (<empty>)", id="nothing"),
        pytest.param(
            b"{not json",
            f"{NO_KIND}invalid character 'n' looking for beginning of object key string ({{not json)",
            id="no JSON",
        ),
        pytest.param(
            b'{"metadata":{"name":"a-long-name-of-an-object"}',
            NO_KIND + 'unexpected end of JSON input ({"metadata":{"name":"a-long-na ...)',
            id="only the beginning of a long text is shown",
        ),
        pytest.param(
            b"[1]",
            f"{NO_KIND}json: cannot unmarshal array into Go value of type {IDENTITY} (5b315d)",
            id="a list",
        ),
        pytest.param(
            b"true",
            f"{NO_KIND}json: cannot unmarshal bool into Go value of type {IDENTITY} (74727565)",
            id="a bool",
        ),
        pytest.param(
            b'{"kind":5}',
            f'{NO_KIND}json: cannot unmarshal number into Go struct field .kind of type string ({{"kind":5}})',
            id="a kind that is a number",
        ),
        pytest.param(
            b'{"apiVersion":"a/b/c"}',
            f'{UNRECOGNIZED}unexpected GroupVersion string: a/b/c ({{"apiVersion":"a/b/c"}})',
            id="a version of three parts",
        ),
        pytest.param(
            b'{"apiVersion":"apps/v1","kind":"Deployment"}',
            'Deployment in version "v1" cannot be handled as a ConfigMap: '
            "converting (v1.Deployment) to (core.ConfigMap): unknown conversion",
            id="another kind",
        ),
        pytest.param(
            b'{"apiVersion":"v1","kind":"Gadget"}',
            'Gadget in version "v1" cannot be handled as a ConfigMap: no kind "Gadget" is registered for version "v1" '
            'in scheme "pkg/runtime/scheme.go:111"',
            id="a kind that does not exist",
        ),
        pytest.param(
            b'{"metadata":"x"}',
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
            id="metadata that is text",
        ),
        pytest.param(
            b'{"metadata":{"name":"c"},"data":{"a":1}}',
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            id="a number for text",
        ),
    ],
)
async def test_a_body_that_makes_no_object_is_refused(server, raw, want):
    status, answer = await send(server, "POST", CONFIG_MAPS, raw)
    assert (status, answer["reason"], answer["message"]) == (400, "BadRequest", want)


async def test_null_is_read_as_the_empty_object(server):
    status, answer = await send(server, "POST", CONFIG_MAPS, b"null")
    assert status == 422
    assert "name or generateName is required" in answer["message"]


async def test_strict_validation_names_unknown_and_repeated_fields(server):
    raw = b'{"metadata":{"name":"c","lables":{}},"data":{"a":"1","a":"2"}}'
    status, answer = await send(server, "POST", CONFIG_MAPS, raw, query={"fieldValidation": ["Strict"]})
    assert status == 400
    assert answer["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data.a", unknown field "metadata.lables"'
    )


async def test_what_is_stored_is_what_go_would_write(server):
    body = {
        "metadata": {"name": "c", "labels": {}, "annotations": None, "bogus": 1},
        "data": {"a": None},
        "binaryData": {},
        "bogus": {},
    }
    status, answer = await send(server, "POST", CONFIG_MAPS, body)
    assert status == 201
    assert answer["data"] == {"a": ""}
    assert answer.keys() == {"apiVersion", "kind", "metadata", "data"}
    assert not {"labels", "annotations", "bogus"} & answer["metadata"].keys()


async def test_a_new_object_begins_with_the_empty_status_of_its_kind(server):
    status, answer = await send(server, "POST", DEPLOYMENTS, {**DEPLOYMENT, "status": {"replicas": 7}})
    assert status == 201
    assert answer["status"] == {}


@pytest.mark.parametrize(
    ("media_type", "patch", "shown", "because"),
    [
        pytest.param(
            "application/strategic-merge-patch+json",
            {"spec": {"replicas": "3"}},
            '"map[spec:map[replicas:3]]"',
            "unrecognized type: int32",
            id="a strategic merge is converted",
        ),
        pytest.param(
            "application/merge-patch+json",
            {"spec": {"replicas": "3"}},
            r"\"replicas\":\"3\"",
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            id="a merge is decoded",
        ),
        pytest.param(
            "application/json-patch+json",
            [{"op": "add", "path": "/spec/paused", "value": 1}],
            r"\"paused\":1",
            "json: cannot unmarshal number into Go struct field DeploymentSpec.spec.paused of type bool",
            id="a JSON patch is decoded",
        ),
    ],
)
async def test_a_patch_that_leaves_a_wrong_value_is_refused(server, media_type, patch, shown, because):
    await send(server, "POST", DEPLOYMENTS, DEPLOYMENT)
    status, answer = await send(server, "PATCH", f"{DEPLOYMENTS}/d", patch, media_type)
    assert status == 422
    assert answer["message"].startswith(' "" is invalid: patch: Invalid value: ')
    assert shown in answer["message"]
    assert answer["message"].endswith(because)
    assert answer["details"]["causes"][0]["field"] == "patch"


@pytest.mark.parametrize(
    ("media_type", "raw", "want"),
    [
        ("application/merge-patch+json", b"[", "error decoding patch: unexpected end of JSON input"),
        ("application/strategic-merge-patch+json", b"[", "unexpected end of JSON input"),
        (
            "application/strategic-merge-patch+json",
            b'["a"]',
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "application/json-patch+json",
            b"{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
    ],
    ids=["a merge", "a strategic merge", "a strategic merge with a list", "a JSON patch"],
)
async def test_a_patch_that_is_none_is_refused(server, media_type, raw, want):
    await send(server, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    status, answer = await send(server, "PATCH", f"{CONFIG_MAPS}/c", raw, media_type)
    assert (status, answer["message"]) == (400, want)


async def test_a_strategic_merge_with_null_changes_nothing(server):
    _, made = await send(server, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    status, answer = await send(
        server, "PATCH", f"{CONFIG_MAPS}/c", b"null", "application/strategic-merge-patch+json"
    )
    assert (status, answer) == (200, made)


async def test_a_namespace_without_a_name_is_refused_for_that_alone(server):
    status, answer = await send(server, "POST", "/api/v1/namespaces", {})
    assert (status, answer["message"]) == (
        422,
        'Namespace "" is invalid: metadata.name: Required value: name or generateName is required',
    )


async def test_a_field_that_a_patch_gives_twice_is_refused_by_strict_validation(server):
    await send(server, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    strict = {"fieldValidation": ["Strict"]}
    raw = b'{"data":{"a":"1","a":"2"}}'
    status, answer = await send(
        server, "PATCH", f"{CONFIG_MAPS}/c", raw, "application/merge-patch+json", strict
    )
    assert status == 422
    assert answer["message"].endswith('strict decoding error: duplicate field "data.a"')


async def test_a_patch_with_an_unknown_field_is_refused_by_strict_validation(server):
    await send(server, "POST", CONFIG_MAPS, {"metadata": {"name": "c"}})
    status, answer = await send(
        server,
        "PATCH",
        f"{CONFIG_MAPS}/c",
        {"bogus": 1},
        "application/strategic-merge-patch+json",
        {"fieldValidation": ["Strict"]},
    )
    assert status == 422
    assert answer["message"].endswith('strict decoding error: unknown field "bogus"')


@pytest.mark.parametrize("kind", [t for t in builtin_types() if t.definition], ids=lambda kind: kind.resource)
def test_every_built_in_kind_is_read_as_its_go_type(kind):
    obj = {"metadata": {"name": "a", "labels": {}}, "bogus": 1}
    assert kind.behaviour.read(obj) == ["bogus"]
    assert obj["metadata"] == {"name": "a"}
