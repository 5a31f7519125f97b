"""Server-side apply as clients meet it: what is answered, and what is refused in which words."""

import json

import pytest

from kubewire import errors
from tests.kubereef.apply.conftest import DEPLOYMENTS, MAPS, NAMESPACE, PODS, config_map, deployment

C = f"{MAPS}/c"
D = f"{DEPLOYMENTS}/d"


def told(answer):
    return answer.status, json.loads(answer.body)["message"]


async def test_apply_creates_what_is_not_there(reef):
    answer = await reef.answer(C, config_map(a="1"))
    assert answer.status == 201
    assert await reef.owners(C) == {"alice": {"f:data": {"f:a": {}}}}


async def test_apply_changes_what_is_there(reef):
    await reef.apply(C, config_map(a="1"))
    answer = await reef.answer(C, config_map(a="2"))
    assert answer.status == 200
    assert (await reef.client.get(C))["data"] == {"a": "2"}


async def test_applying_the_same_again_is_no_write(reef):
    made = await reef.apply(C, config_map(a="1"))
    await reef.clock.sleep(60)
    again = await reef.apply(C, config_map(a="1"))
    assert again == made


async def test_yaml_is_read(reef):
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata: {a: '1'}\n"
    assert (await reef.apply(C, body))["data"] == {"a": "1"}


async def test_a_dry_run_creates_nothing(reef):
    assert (await reef.answer(C, config_map(a="1"), dryRun="All")).status == 201
    assert (await reef.client.send("GET", C)).status == 404


async def test_several_conflicts_are_listed_by_owner(reef):
    await reef.apply(C, config_map(a="1", b="1"))
    await reef.apply(C, config_map(c="1"), "carol")
    answer = await reef.answer(C, config_map(a="2", b="2", c="2"), "bob")
    assert told(answer)[0] == 409
    assert told(answer)[1].splitlines() == [
        'Apply failed with 3 conflicts: conflicts with "alice":',
        "- .data.a",
        "- .data.b",
        'conflicts with "carol":',
        "- .data.c",
    ]
    causes = json.loads(answer.body)["details"]["causes"]
    assert causes[2] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "carol"',
        "field": ".data.c",
    }


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(b"a: [", 400, "error decoding YAML: ", id="no YAML"),
        pytest.param(b"- 1", 400, "error decoding YAML: error unmarshaling JSON: ", id="a list"),
        pytest.param(b"", 400, "invalid object type: /, Kind=", id="nothing"),
        pytest.param(
            {**config_map(), "kind": "Secret"},
            400,
            "invalid object type: /v1, Kind=Secret",
            id="another kind",
        ),
        pytest.param(
            {**config_map(), "apiVersion": "x/v1"},
            400,
            "invalid object type: x/v1, Kind=ConfigMap",
            id="a group",
        ),
        pytest.param(
            {**config_map(), "metadata": {"name": "c", "managedFields": []}},
            400,
            "metadata.managedFields must be nil",
            id="managed fields",
        ),
        pytest.param(
            {**config_map(), "dota": {}},
            500,
            "failed to create typed patch object (/c; /v1, Kind=ConfigMap): .dota: field not declared in schema",
            id="an unknown field",
        ),
        pytest.param(
            {**config_map(), "metadata": {"name": "other"}},
            400,
            "the name of the object (other) does not match the name on the URL (c)",
            id="another name",
        ),
        pytest.param(
            {**config_map(), "metadata": {"name": "c", "namespace": "x"}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
            id="another namespace",
        ),
        pytest.param(
            {**config_map(), "metadata": {"name": "c", "uid": "u"}},
            409,
            'Operation cannot be fulfilled on configmaps "c": uid mismatch: the provided object specified uid u, '
            "and no existing object was found",
            id="the uid of an object that is not there",
        ),
        pytest.param({**config_map(), "metadata": "c"}, 500, "failed to create typed", id="no metadata"),
        pytest.param({**config_map(), "immutable": "x"}, 500, "failed to create typed", id="a wrong type"),
    ],
)
async def test_what_cannot_be_applied_is_refused(reef, body, code, message):
    status, said = told(await reef.answer(C, body))
    assert status == code
    assert said.startswith(message)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("", "fieldManager: Required value: is required for apply patch", id="nobody"),
        pytest.param("fieldManager=" + "m" * 129, "Too long: may not be more than 128 bytes", id="too long"),
        pytest.param(
            "fieldManager=a%07b", "invalid character U+0007 (at position 1)", id="what cannot be printed"
        ),
        pytest.param("fieldManager=a&dryRun=Some", 'Unsupported value: ["Some"]', id="another dry run"),
    ],
)
async def test_options_are_checked(reef, query, message):
    answer = await reef.client.send(
        "PATCH", f"{C}?{query}", config_map(), {"content-type": "application/apply-patch+yaml"}
    )
    assert answer.status == 422
    assert message in json.loads(answer.body)["message"]


async def test_force_is_for_apply_only(reef):
    await reef.apply(C, config_map(a="1"))
    with pytest.raises(errors.Invalid, match="force: Forbidden"):
        await reef.client.patch(f"{C}?force=true", {"data": {}})


async def test_apply_in_cbor_is_refused(reef):
    answer = await reef.client.send("PATCH", C, b"\xa0", {"content-type": "application/apply-patch+cbor"})
    assert answer.status == 415


@pytest.mark.parametrize(
    ("validation", "code"),
    [
        pytest.param("Strict", 400, id="strict"),
        pytest.param("Warn", 201, id="warn"),
        pytest.param("Ignore", 201, id="ignore"),
    ],
)
async def test_a_key_given_twice_is_met_as_the_validation_asks(reef, validation, code):
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '1', a: '2'}\n"
    answer = await reef.answer(C, body, fieldValidation=validation)
    assert answer.status == code
    assert any(name == "Warning" for name, _ in answer.headers) == (validation == "Warn")


@pytest.mark.parametrize("manager", ["alice", "kubectl"])
async def test_metadata_may_be_null_where_there_is_an_object(reef, manager):
    nameless = {**config_map(a="1"), "metadata": None}
    with pytest.raises(errors.BadRequest, match="name must be provided"):
        await reef.apply(C, nameless, manager)
    await reef.apply(C, config_map(a="1"), manager)
    assert (await reef.apply(C, nameless, manager))["metadata"]["name"] == "c"


async def test_an_old_version_is_a_conflict_of_versions(reef):
    await reef.apply(C, config_map(a="1"))
    stale = {**config_map(a="2"), "metadata": {"name": "c", "resourceVersion": "1"}}
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        await reef.apply(C, stale)


async def test_what_apply_makes_must_be_valid(reef):
    with pytest.raises(errors.Invalid, match=r"spec\.template\.spec\.containers"):
        await reef.apply(D, deployment(template={"metadata": {"labels": {"app": "d"}}}))


async def test_defaults_belong_to_nobody_and_stay(reef):
    await reef.apply(D, deployment(minReadySeconds=1))
    obj = await reef.apply(D, deployment())
    assert obj["spec"]["revisionHistoryLimit"] == 10
    assert "minReadySeconds" not in obj["spec"]
    owned = (await reef.owners(D))["alice"]["f:spec"]
    assert set(owned) == {"f:selector", "f:template"}


async def test_a_key_with_a_default_may_be_left_out(reef):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}]},
    }
    await reef.apply(f"{NAMESPACE}/services/s", service)
    obj = await reef.apply(f"{NAMESPACE}/services/s", service)
    assert [port["protocol"] for port in obj["spec"]["ports"]] == ["TCP"]


async def test_an_apply_to_a_part_of_nothing_creates_nothing(reef):
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}}
    with pytest.raises(errors.NotFound):
        await reef.apply(f"{PODS}/p/status", body)


async def test_an_applier_of_a_status_owns_nothing_else(reef):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await reef.client.create(f"{PODS}?fieldManager=creator", pod)
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }
    obj = await reef.apply(f"{PODS}/p/status", body, "kubelet")
    assert "nodeName" not in obj["spec"]
    assert (await reef.owners(f"{PODS}/p"))["kubelet"] == {"f:status": {"f:phase": {}}}


async def test_creating_by_apply_needs_the_right_to_create(reef):
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "get"]}
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    await reef.client.create(f"{rbac}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    await reef.client.create(f"{rbac}/rolebindings", binding)
    headers = {"content-type": "application/apply-patch+yaml", "impersonate-user": "jane"}
    url = f"{C}?fieldManager=jane"
    refused = await reef.client.send("PATCH", url, config_map(a="1"), headers)
    assert told(refused)[0] == 403
    assert "cannot create resource" in told(refused)[1]
    await reef.apply(C, config_map(a="1"))
    assert (await reef.client.send("PATCH", url, config_map(b="1"), headers)).status == 200


async def test_what_kubectl_applied_by_itself_is_its_own(reef):
    last = json.dumps({**config_map(a="1", b="1")})
    annotated = config_map(a="1", b="changed since")
    annotated["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    await reef.client.create(f"{MAPS}?fieldManager=kubectl-client-side-apply", annotated)
    obj = await reef.apply(C, config_map(a="2"), "kubectl")
    assert obj["data"]["a"] == "2"
    kept = json.loads(obj["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"])
    assert kept["data"] == {"a": "2"}
    with pytest.raises(errors.Conflict, match=r"data\.b"):
        await reef.apply(C, config_map(a="2", b="3"), "kubectl")
    with pytest.raises(errors.Conflict, match=r"data\.a"):
        await reef.apply(C, config_map(a="3"), "another")
