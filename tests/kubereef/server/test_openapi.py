"""OpenAPI documents describe what is served, well enough for kubectl."""

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


async def test_a_group_that_is_gone_has_no_document(client):
    await client.delete(f"{DEFINITIONS}/boxes.example.com")
    assert (await client.send("GET", "/openapi/v3/apis/example.com/v1")).status == 404
