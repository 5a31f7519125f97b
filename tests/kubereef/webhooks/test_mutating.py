"""Webhooks that change what is written."""

import base64

import pytest

from tests.kubereef.webhooks.asked import CORE, MAPS, REGISTRATION, Api, a_map, rules, webhook
from tests.kubereef.webhooks.outsider import Answer, Json, Outsider, deny, patching

DEFINITION = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer"},
                                    "mood": {"type": "string", "default": "fine"},
                                },
                            }
                        },
                    }
                },
            }
            for name in ("v1", "v1alpha1")
        ],
    },
}
THINGS = "/apis/example.com/v1/namespaces/default/things"


def adding(key: str, value: str = "1") -> Answer:
    return patching({"op": "add", "path": f"/data/{key}", "value": value})


def counting(key: str) -> Answer:
    """Return an answer that counts in the object how often it was given."""
    return lambda request: adding(key, str(int(request["object"]["data"].get(key, "0")) + 1))(request)


async def test_each_webhook_gets_what_the_one_before_left(api: Api, outsider: Outsider) -> None:
    outsider.answers["/first"] = adding("x")
    outsider.answers["/second"] = patching({"op": "copy", "from": "/data/x", "path": "/data/y"})
    await api.ask("mutating", "/first", "/second")
    assert (await api.create(a_map()))["data"] == {"a": "b", "x": "1", "y": "1"}
    assert (await api.send("GET", f"{MAPS}/m"))["data"] == {"a": "b", "x": "1", "y": "1"}
    assert outsider.paths() == ["/first", "/second"]


async def test_webhooks_are_asked_by_the_names_of_their_configurations(api: Api, outsider: Outsider) -> None:
    for name in ("zebra", "ant"):
        for_one = [webhook(f"{path}.{name}", outsider.client(f"/{name}/{path}")) for path in ("z", "a")]
        await api.configure("mutating", *for_one, name=name)
    await api.create(a_map())
    assert outsider.paths() == ["/ant/z", "/ant/a", "/zebra/z", "/zebra/a"]


async def test_a_webhook_that_wants_to_is_asked_again_after_somebody_else_changed_the_object(
    api: Api, outsider: Outsider
) -> None:
    outsider.answers |= {
        "/a": counting("a1"),
        "/b": counting("b1"),
        "/c": counting("c1"),
        "/d": counting("d1"),
    }
    again = {"reinvocationPolicy": "IfNeeded"}
    await api.configure(
        "mutating",
        webhook("a", outsider.client("/a"), **again),
        webhook("b", outsider.client("/b")),
        webhook("c", outsider.client("/c"), **again),
    )
    made = await api.create(a_map())
    # Nobody changed anything after c but c itself; what is asked again is not asked a third time.
    assert outsider.paths() == ["/a", "/b", "/c", "/a"]
    assert made["data"] == {"a": "b", "a1": "2", "b1": "1", "c1": "1"}


async def test_a_webhook_is_asked_again_after_the_server_changed_what_others_had_left(
    api: Api, outsider: Outsider
) -> None:
    outsider.answers["/change"] = patching({"op": "replace", "path": "/spec/tolerations", "value": []})
    await api.configure(
        "mutating",
        webhook("change", outsider.client("/change"), rules=rules("pods")),
        webhook("see", outsider.client("/see"), rules=rules("pods"), reinvocationPolicy="IfNeeded"),
    )
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await api.create(pod, f"{CORE}/pods")
    assert outsider.paths() == ["/change", "/see", "/see"]
    seen = [len(request["object"]["spec"].get("tolerations", ())) for request in outsider.requests("/see")]
    assert seen == [0, 2]


async def test_nobody_is_asked_again_if_nothing_has_changed(api: Api, outsider: Outsider) -> None:
    await api.ask("mutating", "/a", "/b", reinvocationPolicy="IfNeeded")
    await api.create(a_map())
    assert outsider.paths() == ["/a", "/b"]


async def test_what_a_webhook_adds_gets_the_defaults_of_its_kind_and_of_the_cluster(
    api: Api, outsider: Outsider
) -> None:
    outsider.answers["/hook"] = patching(
        {"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "x"}},
        {"op": "replace", "path": "/spec/tolerations", "value": []},
    )
    await api.ask("mutating", "/hook", rules=rules("pods"))
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = await api.create(pod, f"{CORE}/pods")
    side = made["spec"]["containers"][1]
    assert (side["name"], side["imagePullPolicy"]) == ("side", "Always")
    assert [mount["mountPath"] for mount in side["volumeMounts"]] == [
        "/var/run/secrets/kubernetes.io/serviceaccount"
    ]
    assert [one["key"] for one in made["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


async def test_what_a_webhook_leaves_is_validated(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = patching({"op": "add", "path": "/data/bad key", "value": "v"})
    await api.ask("mutating", "/hook")
    refused = await api.refusal("POST", MAPS, a_map())
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, "data[bad key]")


async def test_a_custom_resource_is_pruned_and_gets_its_defaults_again(api: Api, outsider: Outsider) -> None:
    await api.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    outsider.answers["/hook"] = patching(
        {"op": "add", "path": "/spec/unknown", "value": 1}, {"op": "remove", "path": "/spec/mood"}
    )
    await api.ask("mutating", "/hook", rules=rules("things", group="example.com"))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
    assert (await api.create(thing, THINGS))["spec"] == {"size": 1, "mood": "fine"}


async def test_a_webhook_that_knows_another_version_changes_the_object_in_that(
    api: Api, outsider: Outsider
) -> None:
    await api.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    outsider.answers["/hook"] = patching({"op": "replace", "path": "/spec/size", "value": 5})
    await api.ask("mutating", "/hook", rules=rules("things", group="example.com"))
    thing = {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Thing",
        "metadata": {"name": "t"},
        "spec": {"size": 1},
    }
    made = await api.create(thing, THINGS.replace("/v1/", "/v1alpha1/"))
    assert (made["apiVersion"], made["spec"]["size"]) == ("example.com/v1alpha1", 5)
    ((_, request),) = outsider.asked
    assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v1", "v1alpha1")
    assert request["object"]["apiVersion"] == "example.com/v1"


async def test_the_fields_that_the_server_fills_in_stay_its_own(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = patching(
        {"op": "add", "path": "/metadata/uid", "value": "mine"},
        {"op": "add", "path": "/metadata/deletionTimestamp", "value": "2020-01-01T00:00:00Z"},
        {"op": "add", "path": "/metadata/managedFields", "value": []},
    )
    await api.ask("mutating", "/hook", rules=rules("configmaps", operations="CREATE"))
    made = await api.create(a_map())
    assert made["metadata"]["uid"] != "mine"
    assert "deletionTimestamp" not in made["metadata"]
    assert made["metadata"]["managedFields"][0]["manager"] == "kubereef"
    assert not {"uid", "creationTimestamp"} & outsider.asked[0][1]["object"]["metadata"].keys()


async def test_a_webhook_may_choose_the_name_that_the_server_would_make(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = patching({"op": "add", "path": "/metadata/name", "value": "chosen"})
    await api.ask("mutating", "/hook")
    made = await api.create({"metadata": {"generateName": "made-"}})
    assert made["metadata"]["name"] == "chosen"
    ((_, request),) = outsider.asked
    assert "name" not in request
    assert "name" not in request["object"]["metadata"]


async def test_updates_and_patches_are_changed_too(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = counting("n")
    await api.ask("mutating", "/hook", rules=rules("configmaps", operations="UPDATE"))
    await api.create(a_map())
    assert (await api.merge(f"{MAPS}/m", {"data": {"x": "y"}}))["data"] == {"a": "b", "x": "y", "n": "1"}
    assert (await api.send("PUT", f"{MAPS}/m", a_map()))["data"] == {"a": "b", "n": "1"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"z": "1"}}
    applied = await api.send("PATCH", f"{MAPS}/m?fieldManager=me", body, "application/apply-patch+yaml")
    assert applied["data"] == {"a": "b", "n": "2", "z": "1"}


async def test_a_scale_is_changed_as_a_scale(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = patching({"op": "replace", "path": "/spec/replicas", "value": 7})
    await api.ask("mutating", "/hook", rules=rules("deployments/scale", group="apps"))
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    url = "/apis/apps/v1/namespaces/default/deployments"
    await api.create({"metadata": {"name": "d"}, "spec": spec}, url)
    assert (await api.merge(f"{url}/d/scale", {"spec": {"replicas": 3}}))["spec"] == {"replicas": 7}
    assert (await api.send("GET", f"{url}/d"))["spec"]["replicas"] == 7
    (request,) = outsider.requests("/hook")
    assert (request["kind"]["kind"], request["oldObject"]["kind"], request["subResource"]) == (
        "Scale",
        "Scale",
        "scale",
    )


async def test_a_refusal_ends_it(api: Api, outsider: Outsider) -> None:
    outsider.answers["/first"] = deny(message="no")
    await api.ask("mutating", "/first", "/second")
    refused = await api.refusal("POST", MAPS, a_map())
    assert refused.message == 'admission webhook "first.example.com" denied the request: no'
    assert outsider.paths() == ["/first"]


def given(**response: object) -> Answer:
    return lambda _request: {"allowed": True, **response}


FAILED = 'failed calling webhook "hook.example.com": '


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(
            given(patch=base64.b64encode(b"[]").decode()),
            f"{FAILED}received invalid webhook response: webhook returned response.patch but not response.patchType",
            id="that does not say what it is",
        ),
        pytest.param(
            given(patchType="JSONPatch"),
            f"{FAILED}received invalid webhook response: webhook returned response.patchType but not response.patch",
            id="that is not there",
        ),
        pytest.param(
            given(patchType="Other", patch=base64.b64encode(b'[{"op": "remove", "path": "/data"}]').decode()),
            f'{FAILED}unsupported patch type "Other"',
            id="in another language",
        ),
        pytest.param(
            given(patchType="JSONPatch", patch="!!!"),
            f"{FAILED}failed to call webhook: illegal base64 data at input byte 0",
            id="that is no base64",
        ),
        pytest.param(
            given(patchType="JSONPatch", patch=base64.b64encode(b"hello").decode()),
            f"{FAILED}received undecodable patch in webhook response: invalid character 'h' looking for beginning of"
            " value",
            id="that is no JSON",
        ),
        pytest.param(
            given(patchType="JSONPatch", patch=base64.b64encode(b"{}").decode()),
            f"{FAILED}received undecodable patch in webhook response: json: cannot unmarshal object into Go value of"
            " type jsonpatch.Patch",
            id="that is no list",
        ),
        pytest.param(
            patching({"op": "test", "path": "/data/a", "value": "c"}),
            "operation 0 (test /data/a): the value is another one",
            id="whose test fails",
        ),
        pytest.param(
            patching({"op": "replace", "path": "/data", "value": "text"}),
            "json: cannot unmarshal string into Go struct field ConfigMap.data of type map[string]string",
            id="that leaves no object of the kind",
        ),
        pytest.param(
            patching({"op": "replace", "path": "", "value": [1]}),
            "the patch leaves no object",
            id="that leaves no object",
        ),
    ],
)
async def test_a_patch_fails_the_request(api: Api, outsider: Outsider, answer: Answer, problem: str) -> None:
    outsider.answers["/hook"] = answer
    await api.ask("mutating", "/hook")
    refused = await api.refusal("POST", MAPS, a_map())
    assert (refused.status, refused.message) == (500, f"Internal error occurred: {problem}")


async def test_a_patch_that_changes_nothing_is_fine(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = given(patchType="JSONPatch", patch=base64.b64encode(b"[]").decode())
    await api.ask("mutating", "/hook")
    assert (await api.create(a_map()))["data"] == {"a": "b"}


async def test_what_is_deleted_cannot_be_changed(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = patching({"op": "add", "path": "/data/x", "value": "1"})
    await api.ask("mutating", "/hook", rules=rules("configmaps", operations="DELETE"))
    await api.create(a_map())
    refused = await api.refusal("DELETE", f"{MAPS}/m")
    because = "attempted to modify the object, which is not supported for this operation"
    assert refused.message == f'Internal error occurred: admission webhook "hook.example.com" {because}'


async def test_objects_that_lose_their_kind_are_nobody_s_concern(api: Api, outsider: Outsider) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.send("POST", definitions, DEFINITION)
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
    await api.create(thing, THINGS)
    outsider.answers["/hook"] = deny(message="never")
    await api.ask("mutating", "/hook", rules=rules("things", group="example.com"))
    await api.send("DELETE", f"{definitions}/things.example.com")
    assert not list(api.cluster.store.records("things.example.com"))
    assert not outsider.asked


async def test_webhooks_are_not_asked_about_webhooks(api: Api, outsider: Outsider) -> None:
    outsider.answers["/hook"] = deny(message="never")
    everything: list[Json] = [
        {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    ]
    await api.ask("mutating", "/hook", rules=everything)
    assert (await api.refusal("POST", MAPS, a_map())).status == 400
    await api.send("DELETE", f"{REGISTRATION}/mutatingwebhookconfigurations/ours")
    await api.create(a_map())
