"""Objects of a custom kind: what their schema, status, scale and columns make of them."""

from typing import Any

import pytest

from kubewire import errors
from tests.kubereef.custom.examples import BOXES, DEFINITIONS, box, definition, version


async def test_a_new_object_is_pruned_and_filled_in(boxes):
    response = await boxes.send("POST", BOXES, box(spec={"odd": 1, "color": "red"}, extra=1))
    assert [value for name, value in response.headers if name == "Warning"] == [
        '299 - "unknown field \\"extra\\""',
        '299 - "unknown field \\"spec.odd\\""',
    ]
    made = await boxes.get(f"{BOXES}/b")
    assert made["spec"] == {"color": "red", "size": 5}
    assert "extra" not in made
    assert made["metadata"]["generation"] == 1


async def test_a_list_says_of_each_object_what_it_is_and_that_it_is_whole(boxes):
    await boxes.create(BOXES, box())
    found = await boxes.get(BOXES)
    assert (found["kind"], found["metadata"]["continue"]) == ("BoxList", "")
    assert [(item["apiVersion"], item["kind"]) for item in found["items"]] == [("example.com/v1", "Box")]


async def test_strict_validation_refuses_unknown_fields(boxes):
    with pytest.raises(errors.BadRequest, match=r'strict decoding error: unknown field "spec\.odd"'):
        await boxes.create(f"{BOXES}?fieldValidation=Strict", box(spec={"odd": 1}))


async def test_metadata_is_read_as_everywhere(boxes):
    named = box()
    named["metadata"].update(labels={}, creationTimestamp=None, odd=1)
    made = await boxes.create(BOXES, named)
    assert "labels" not in made["metadata"]
    assert "odd" not in made["metadata"]
    bad = box("bad")
    bad["metadata"]["labels"] = {"a": 1}
    with pytest.raises(
        errors.BadRequest, match=r"cannot unmarshal number into Go struct field ObjectMeta\.labels"
    ):
        await boxes.create(BOXES, bad)


async def test_rules_compare_with_the_old_object(boxes):
    await boxes.create(BOXES, box(spec={"color": "red"}))
    with pytest.raises(errors.Invalid, match="color is immutable"):
        await boxes.patch(f"{BOXES}/b", {"spec": {"color": "blue"}})


async def test_another_kind_is_refused(boxes):
    with pytest.raises(errors.Invalid) as refused:
        await boxes.create(BOXES, {**box(), "kind": "Crate"})
    assert refused.value.causes[0].message == 'Invalid value: "Crate": must be Box'


async def test_an_object_must_say_its_kind(boxes):
    nameless = box()
    del nameless["kind"]
    with pytest.raises(errors.BadRequest, match="cannot be handled as a Box: Object 'Kind' is missing in "):
        await boxes.create(BOXES, nameless)


async def test_strategic_patches_are_for_built_in_kinds(boxes):
    await boxes.create(BOXES, box())
    with pytest.raises(
        errors.UnsupportedMediaType, match="accepted media types include: application/json-patch"
    ):
        await boxes.patch(f"{BOXES}/b", {"spec": {"size": 1}}, "strategic")


async def test_an_update_must_name_the_version_it_replaces(boxes):
    await boxes.create(BOXES, box())
    with pytest.raises(errors.Invalid) as refused:
        await boxes.replace(f"{BOXES}/b", box(spec={"size": 1}))
    assert refused.value.message == (
        'boxes.example.com "b" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update'
    )


async def test_a_finalizer_without_a_domain_is_warned_of_when_it_is_new(boxes):
    held = box()
    held["metadata"]["finalizers"] = ["hold", "example.com/ok"]
    response = await boxes.send("POST", BOXES, held)
    (warning,) = [value for name, value in response.headers if name == "Warning"]
    assert "prefer a domain-qualified finalizer name to avoid accidental conflicts" in warning
    headers = {"content-type": "application/merge-patch+json"}
    again = await boxes.send("PATCH", f"{BOXES}/b", {"metadata": {"labels": {"a": "b"}}}, headers)
    assert "Warning" not in dict(again.headers)


class TestWithAStatus:
    async def test_it_is_written_apart(self, boxes):
        made = await boxes.create(BOXES, box(status={"replicas": 1}))
        assert "status" not in made
        await boxes.patch(f"{BOXES}/b/status", {"status": {"replicas": 2}, "spec": {"size": 9}})
        changed = await boxes.patch(f"{BOXES}/b", {"status": {"replicas": 3}, "spec": {"size": 7}})
        assert (changed["status"], changed["spec"]["size"]) == ({"replicas": 2}, 7)
        assert changed["metadata"]["generation"] == 2

    async def test_only_the_status_is_judged(self, boxes):
        await boxes.create(BOXES, box())
        with pytest.raises(errors.Invalid) as refused:
            await boxes.patch(f"{BOXES}/b/status", {"status": {"replicas": "many"}})
        messages = {cause.field: cause.message for cause in refused.value.causes}
        assert messages["status.replicas"] == (
            'Invalid value: "string": replicas in body must be of type integer: "string"'
        )


async def test_without_a_status_of_its_own_everything_but_metadata_counts(client):
    await client.create(DEFINITIONS, definition())
    await client.create(BOXES, box(status={"replicas": 1}))
    changed = await client.patch(f"{BOXES}/b", {"status": {"replicas": 2}})
    assert (changed["status"], changed["metadata"]["generation"]) == ({"replicas": 2}, 2)
    labelled = await client.patch(f"{BOXES}/b", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 2
    with pytest.raises(errors.NotFound):
        await client.get(f"{BOXES}/b/status")


class TestWithAScale:
    async def test_it_shows_and_sets_the_size(self, boxes):
        await boxes.create(BOXES, box(spec={"replicas": 2}))
        await boxes.patch(f"{BOXES}/b/status", {"status": {"replicas": 1, "selector": "app=b"}})
        scale = await boxes.get(f"{BOXES}/b/scale")
        assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
        assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "app=b"})
        await boxes.patch(f"{BOXES}/b/scale", {"spec": {"replicas": 4}})
        changed = await boxes.get(f"{BOXES}/b")
        assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (4, 2)

    async def test_no_size_is_an_error(self, boxes):
        await boxes.create(BOXES, box())
        with pytest.raises(
            errors.InternalError, match=r'the spec replicas field ".spec.replicas" does not exist'
        ):
            await boxes.get(f"{BOXES}/b/scale")
        with pytest.raises(errors.BadRequest, match="cannot be empty"):
            await boxes.patch(f"{BOXES}/b/scale", {"metadata": {"labels": {}}})
        assert (await boxes.patch(f"{BOXES}/b/scale", {"spec": {"replicas": 0}}))["spec"] == {}
        assert (await boxes.get(f"{BOXES}/b"))["spec"]["replicas"] == 0

    async def test_a_negative_size_is_refused(self, boxes):
        await boxes.create(BOXES, box(spec={"replicas": 1}))
        with pytest.raises(errors.Invalid) as refused:
            await boxes.patch(f"{BOXES}/b/scale", {"spec": {"replicas": -1}})
        (cause,) = refused.value.causes
        assert (cause.field, cause.message) == (
            ".spec.replicas",
            "Invalid value: -1: should be a non-negative integer",
        )


async def test_columns_show_what_their_paths_find(client, simulated_cluster):
    columns: list[dict[str, Any]] = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Spec", "type": "string", "jsonPath": ".spec", "priority": 1},
        {"name": "Color", "type": "boolean", "jsonPath": ".spec.color"},
        {"name": "Broken", "type": "string", "jsonPath": ".spec[?("},
        {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    await client.create(DEFINITIONS, definition(version(additionalPrinterColumns=columns)))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    await client.create(BOXES, box("a", spec={"size": 3, "color": "red"}, status=ready))
    await client.create(BOXES, box("b"))
    await simulated_cluster.pass_time(200)
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = await client.call("GET", BOXES, None, accept)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        *(column["name"] for column in columns),
    ]
    assert [row["cells"] for row in table["rows"]] == [
        ["a", 3, "True", '{"color":"red","size":3}', None, None, "3m20s"],
        ["b", None, None, None, None, None, "3m20s"],
    ]


async def test_a_kind_without_columns_shows_its_age(boxes):
    await boxes.create(BOXES, box())
    table = await boxes.call("GET", BOXES, None, {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
    assert [(one["name"], one["type"]) for one in table["columnDefinitions"]] == [
        ("Name", "string"),
        ("Age", "date"),
    ]


async def test_selectable_fields_select(client):
    fields = [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]
    await client.create(DEFINITIONS, definition(version(selectableFields=fields)))
    await client.create(BOXES, box("a", spec={"color": "red"}))
    await client.create(BOXES, box("b", spec={"color": "blue", "size": 1}))

    async def names(selector):
        items = (await client.get(f"{BOXES}?fieldSelector={selector}"))["items"]
        return [item["metadata"]["name"] for item in items]

    assert await names("spec.color=red") == ["a"]
    assert await names("spec.size=1") == ["b"]
    with pytest.raises(errors.BadRequest, match=r"field label not supported: spec\.replicas"):
        await names("spec.replicas=1")


async def test_a_field_selects_by_a_default_that_came_after_the_object(client):
    plain = {"type": "object", "properties": {"size": {"type": "integer"}}}
    fields = [{"jsonPath": ".spec.size"}]
    await client.create(DEFINITIONS, definition(version(spec=plain, selectableFields=fields)))
    await client.create(BOXES, box(spec={}))
    await client.patch(
        f"{DEFINITIONS}/boxes.example.com", {"spec": {"versions": [version(selectableFields=fields)]}}
    )
    assert len((await client.get(f"{BOXES}?fieldSelector=spec.size=5"))["items"]) == 1


async def test_cluster_wide_kinds_have_no_namespace(client):
    await client.create(DEFINITIONS, definition(scope="Cluster"))
    made = await client.create("/apis/example.com/v1/boxes", box())
    assert "namespace" not in made["metadata"]
    with pytest.raises(errors.NotFound):
        await client.get(f"{BOXES}/b")


async def test_an_object_nested_too_deep_is_refused(client):
    deep = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await client.create(DEFINITIONS, definition(version(spec=deep)))
    nested = b'{"a":' * 600 + b"1" + b"}" * 600
    body = b'{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"b"},"spec":%s}' % nested
    assert (await client.send("POST", BOXES, body)).status == 400


async def test_a_resource_that_a_custom_group_lacks_is_no_path_at_all(client):
    await client.create(DEFINITIONS, definition())
    answer = await client.send("GET", BOXES.replace("boxes", "crates"))
    assert (answer.status, answer.content_type) == (404, "text/plain; charset=utf-8")
    builtin = await client.send("GET", "/api/v1/namespaces/default/gadgets")
    assert (builtin.status, builtin.content_type) == (404, "application/json")
