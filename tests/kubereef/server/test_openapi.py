"""OpenAPI documents describe what is served, well enough for kubectl."""

import re

import pytest

from kubereef.cluster import Cluster
from kubereef.store.records import decode
from kubereef.store.store import Store
from kubewire.sources import ManualClock, SeededEntropy
from tests.kubereef.custom.examples import DEFINITIONS, definition, version

SPEC = {
    "type": "object",
    "description": "What the box should be.",
    "properties": {"size": {"type": "integer", "nullable": True, "description": "How large it is."}},
}
BOXES = "/apis/example.com/v1/namespaces/{namespace}/boxes"


@pytest.fixture
async def client():
    cluster = Cluster(Store(), clock=ManualClock(), entropy=SeededEntropy(1))
    await cluster.client().create(DEFINITIONS, definition(version(spec=SPEC, subresources={"status": {}})))
    yield cluster.client()
    await cluster.stop()


def _references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for below in value.values():
            yield from _references(below)
    elif isinstance(value, list):
        for below in value:
            yield from _references(below)


async def test_the_index_leads_to_every_group_and_version(client):
    paths = (await client.get("/openapi/v3"))["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= paths.keys()
    for entry in paths.values():
        document = await client.get(entry["serverRelativeURL"])
        assert document["openapi"] == "3.0.0"
        known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(_references(document)) <= known, "every reference leads somewhere"


async def test_a_custom_kind_is_described_as_its_definition_says(client):
    schemas = (await client.get("/openapi/v3/apis/example.com/v1"))["components"]["schemas"]
    box = schemas["com.example.v1.Box"]
    assert box["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "kind": "Box", "version": "v1"}
    ]
    assert box["properties"]["spec"] == SPEC
    metadata = box["properties"]["metadata"]
    assert metadata["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]
    assert schemas["com.example.v1.BoxList"]["properties"]["items"]["items"] == {
        "$ref": "#/components/schemas/com.example.v1.Box"
    }


async def test_a_patch_says_that_it_takes_field_validation(client):
    paths = (await client.get("/openapi/v3/apis/example.com/v1"))["paths"]
    patch = paths[f"{BOXES}/{{name}}"]["patch"]
    assert {"dryRun", "fieldValidation"} <= {parameter["name"] for parameter in patch["parameters"]}
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "example.com",
        "kind": "Box",
        "version": "v1",
    }
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]
    assert set(paths[f"{BOXES}/{{name}}/status"]) == {"get", "put", "patch", "parameters"}


async def test_operations_have_names_of_their_own(client):
    for name in (await client.get("/openapi/v3"))["paths"]:
        paths = (await client.get(f"/openapi/v3/{name}"))["paths"]
        names = [
            operation["operationId"]
            for path in paths.values()
            for method, operation in path.items()
            if method != "parameters"
        ]
        assert len(names) == len(set(names)), name


async def test_a_hash_changes_with_its_document_and_only_then(client):
    before = (await client.get("/openapi/v3"))["paths"]
    change = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": "A box."}]
    await client.patch(f"{DEFINITIONS}/boxes.example.com", change, "json")
    after = (await client.get("/openapi/v3"))["paths"]
    assert {name for name in after if after[name] != before[name]} == {"apis/example.com/v1"}
    schemas = (await client.get("/openapi/v3/apis/example.com/v1"))["components"]["schemas"]
    assert schemas["com.example.v1.Box"]["description"] == "A box."


async def test_a_client_that_knows_a_document_is_told_that_nothing_changed(client):
    response = await client.send("GET", "/openapi/v3/apis/apps/v1")
    tag = dict(response.headers)["ETag"]
    again = await client.send("GET", "/openapi/v3/apis/apps/v1", None, {"if-none-match": tag})
    assert (again.status, again.body) == (304, b"")


async def test_the_older_document_holds_every_kind_in_simpler_words(client):
    document = decode((await client.send("GET", "/openapi/v2")).body)
    assert document["swagger"] == "2.0"
    assert {"com.example.v1.Box", "io.k8s.api.core.v1.Pod"} <= document["definitions"].keys()
    size = document["definitions"]["com.example.v1.Box"]["properties"]["spec"]["properties"]["size"]
    assert size == {"type": "integer", "description": "How large it is."}
    known = {f"#/definitions/{name}" for name in document["definitions"]}
    assert set(_references(document)) <= known


async def test_the_older_document_tells_what_every_operation_takes_and_gives(client):
    paths = (await client.get("/openapi/v2"))["paths"]
    box = {"$ref": "#/definitions/com.example.v1.Box"}
    create = paths[BOXES]["post"]
    assert create["consumes"] == ["*/*"]
    assert create["produces"] == ["application/json", "application/yaml"]
    assert create["parameters"][0] == {"name": "body", "in": "body", "required": True, "schema": box}
    assert {code: answer.get("schema") for code, answer in create["responses"].items()} == {
        **dict.fromkeys(("200", "201", "202"), box),
        "401": None,
    }
    patch = paths[f"{BOXES}/{{name}}"]["patch"]
    assert patch["consumes"] == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]
    force = next(one for one in patch["parameters"] if one["name"] == "force")
    assert (force["in"], force["type"]) == ("query", "boolean")
    assert {one["name"] for one in paths[f"{BOXES}/{{name}}"]["parameters"]} == {"name", "namespace"}


async def test_every_parameter_of_the_older_document_is_of_its_grammar(client):
    for path, item in (await client.get("/openapi/v2"))["paths"].items():
        for operation in (part for method, part in item.items() if method != "parameters"):
            parameters = [*item["parameters"], *operation.get("parameters", ())]
            names = [(one["in"], one["name"]) for one in parameters]
            assert len(names) == len(set(names)), path
            assert {name for place, name in names if place == "path"} == set(re.findall(r"{(\w+)}", path))
            for one in parameters:
                assert ("schema" in one) == (one["in"] == "body"), (
                    "only a body has a schema, all others a type"
                )
                assert ("type" in one) == (one["in"] != "body")


async def test_a_patch_of_a_built_in_kind_can_be_of_four_kinds(client):
    paths = (await client.get("/openapi/v3/apis/apps/v1"))["paths"]
    patch = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert set(patch["requestBody"]["content"]) == {
        f"application/{kind}"
        for kind in ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")
    }


PROTOBUF = {"accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}


@pytest.mark.parametrize("path", ["/openapi/v3", "/openapi/v3/api/v1"])
async def test_protobuf_is_refused_where_clients_take_json_too(client, path):
    assert (await client.send("GET", path, None, PROTOBUF)).status == 406


async def test_the_older_document_comes_in_protobuf_for_kubectl_and_follows_what_is_served(client):
    response = await client.send("GET", "/openapi/v2", None, PROTOBUF)
    assert response.status == 200
    assert response.content_type.endswith("+protobuf")
    assert response.body.startswith(b"\x0a\x032.0")
    assert b"/api/v1/namespaces/{namespace}/pods" in response.body
    assert b"fieldValidation" in response.body
    assert b"/apis/example.com/v1/" in response.body
    known = {**PROTOBUF, "if-none-match": dict(response.headers)["ETag"]}
    assert (await client.send("GET", "/openapi/v2", None, known)).status == 304
    await client.delete(f"{DEFINITIONS}/boxes.example.com")
    after = await client.send("GET", "/openapi/v2", None, PROTOBUF)
    assert b"/apis/example.com/v1/" not in after.body


async def test_the_document_in_protobuf_holds_the_schemas_with_all_that_they_say(client):
    body = (await client.send("GET", "/openapi/v2", None, PROTOBUF)).body
    definitions = dict(_entries(_fields(_fields(body)[9][0])[1]))
    box = _fields(definitions[b"com.example.v1.Box"])
    properties = dict(_entries(_fields(box[25][0])[1]))
    spec = _fields(properties[b"spec"])
    assert spec[4] == [b"What the box should be."]
    size = _fields(dict(_entries(_fields(spec[25][0])[1]))[b"size"])
    assert _fields(size[22][0])[1] == [b"integer"]
    extensions = {name: _fields(value)[2][0] for name, value in _entries(box[31])}
    kind = [{"group": "example.com", "kind": "Box", "version": "v1"}]
    assert decode(extensions[b"x-kubernetes-group-version-kind"]) == kind
    pod = _fields(definitions[b"io.k8s.api.core.v1.PodSpec"])
    assert pod[19] == [b"containers"]


def _fields(message):
    """Return the values of a message of the protobuf format, by the numbers of their fields."""
    found: dict[int, list[bytes]] = {}
    place = 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        tag = varint()
        length = {0: 0, 1: 8}.get(tag & 7)
        if length == 0:
            found.setdefault(tag >> 3, []).append(varint())
            continue
        length = length or varint()
        found.setdefault(tag >> 3, []).append(message[place : place + length])
        place += length
    return found


def _entries(messages):
    """Return the names and values of a map."""
    for one in map(_fields, messages):
        yield one[1][0], one[2][0]


async def test_a_group_that_is_gone_has_no_document(client):
    await client.delete(f"{DEFINITIONS}/boxes.example.com")
    assert (await client.send("GET", "/openapi/v3/apis/example.com/v1")).status == 404
