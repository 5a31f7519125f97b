"""What a kind makes of a request beyond its fields: other names, other verbs, deletions, selectors, tables."""

import asyncio

import pytest

from kubewire import errors

CORE = "/api/v1/namespaces/default"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
POD = {"containers": [{"name": "c", "image": "x:1"}]}


def event(name, **fields):
    about = {"kind": "Pod", "namespace": "default", "name": "web"}
    return {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "type": "Normal", **fields}


def new_event(name, **fields):
    return {
        "metadata": {"name": name},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "web"},
        "reason": "Killing",
        "note": "bye",
        "type": "Warning",
        "eventTime": "2020-01-01T00:00:00.000000Z",
        "action": "Kill",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        **fields,
    }


async def test_both_groups_show_the_same_events_in_their_own_words(client):
    await client.create(f"{CORE}/events", event("old", message="hello", count=2))
    await client.create(NEW_EVENTS, new_event("new"))
    shown = await client.get(f"{NEW_EVENTS}/old")
    assert (shown["apiVersion"], shown["note"], shown["deprecatedCount"]) == ("events.k8s.io/v1", "hello", 2)
    assert "message" not in shown
    assert "reportingController" not in shown
    seen = await client.get(f"{CORE}/events/new")
    assert (seen["apiVersion"], seen["message"], seen["reportingComponent"]) == ("v1", "bye", "example.com/c")
    names = [item["metadata"]["name"] for item in (await client.get(NEW_EVENTS))["items"]]
    assert names == ["new", "old"]


async def test_an_event_is_patched_in_the_words_of_either_group(client):
    await client.create(NEW_EVENTS, new_event("e"))
    series = {"count": 2, "lastObservedTime": "2020-01-01T00:00:05.000000Z"}
    changed = await client.patch(f"{NEW_EVENTS}/e", {"series": series})
    assert (changed["series"], changed["note"]) == (series, "bye")
    again = await client.patch(f"{CORE}/events/e", {"count": 3})
    assert (again["count"], again["message"], again["series"]) == (3, "bye", series)
    assert "note" not in again


async def test_a_dry_run_and_a_watch_speak_the_words_of_the_group_that_is_asked(client):
    dry = await client.create(f"{NEW_EVENTS}?dryRun=All", new_event("dry"))
    assert dry["note"] == "bye"
    await client.create(f"{CORE}/events", event("e", message="hello"))
    async for seen in client.watch(NEW_EVENTS):
        assert seen["object"]["note"] == "hello"
        assert seen["object"]["apiVersion"] == "events.k8s.io/v1"
        break


@pytest.mark.parametrize(
    ("url", "selector", "names"),
    [
        (f"{CORE}/events", "involvedObject.name=web,type=Normal", ["a"]),
        (f"{CORE}/events", "reportingComponent=example.com/c", ["b"]),
        (NEW_EVENTS, "regarding.kind=Pod", ["a", "b"]),
        (NEW_EVENTS, "reportingController=example.com/c", ["b"]),
        (NEW_EVENTS, "reason=R", ["a"]),
    ],
)
async def test_events_are_chosen_by_fields(client, url, selector, names):
    await client.create(f"{CORE}/events", event("a"))
    await client.create(NEW_EVENTS, new_event("b"))
    found = await client.get(f"{url}?fieldSelector={selector}")
    assert [item["metadata"]["name"] for item in found["items"]] == names


@pytest.mark.parametrize(
    ("url", "obj"),
    [
        pytest.param(f"{CORE}/endpoints", {}, id="endpoints"),
        pytest.param(f"{CORE}/limitranges", {"spec": {"limits": []}}, id="limitranges"),
        pytest.param(f"{CORE}/services", {"spec": {"ports": [{"port": 1}]}}, id="services"),
        pytest.param("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {}}, id="leases"),
        pytest.param("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": []}, id="clusterroles"),
    ],
)
async def test_some_kinds_are_created_by_a_put(client, url, obj):
    made = await client.replace(f"{url}/x", {"metadata": {"name": "x"}, **obj})
    assert made == await client.get(f"{url}/x")


@pytest.mark.parametrize("plural", ["configmaps", "secrets", "serviceaccounts"])
async def test_others_are_not(client, plural):
    with pytest.raises(errors.NotFound):
        await client.replace(f"{CORE}/{plural}/x", {"metadata": {"name": "x"}})


@pytest.mark.parametrize(
    ("plural", "spec", "kind"),
    [
        ("services", {"ports": [{"port": 1}]}, "Service"),
        ("serviceaccounts", None, "ServiceAccount"),
        ("resourcequotas", {}, "ResourceQuota"),
        ("configmaps", None, "Status"),
    ],
)
async def test_a_deletion_answers_with_the_object_where_kubernetes_does(client, plural, spec, kind):
    await client.create(f"{CORE}/{plural}", {"metadata": {"name": "x"}, **({"spec": spec} if spec else {})})
    gone = await client.delete(f"{CORE}/{plural}/x")
    assert gone["kind"] == kind
    assert "deletionTimestamp" not in gone["metadata"]


async def test_a_deleted_job_leaves_its_pods_and_says_so(client):
    template = {"spec": {**POD, "restartPolicy": "Never"}}
    await client.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
    response = await client.send("DELETE", f"{JOBS}/j")
    assert "child pods are preserved by default" in dict(response.headers)["Warning"]
    assert (await client.get(f"{JOBS}/j"))["metadata"]["finalizers"] == ["orphan"]


async def test_a_namespace_goes_when_its_finalizer_is_taken_off_through_finalize(client):
    url = "/api/v1/namespaces/x"
    made = await client.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    await client.replace(url, {**made, "spec": {"finalizers": []}})
    assert (await client.get(url))["spec"]["finalizers"] == ["kubernetes"]
    assert (await client.delete(url))["status"]["phase"] == "Terminating"
    await client.replace(f"{url}/finalize", {"metadata": {"name": "x"}, "spec": {"finalizers": []}})
    with pytest.raises(errors.NotFound):
        await client.get(url)


async def test_a_finalizer_of_a_namespace_says_whose_it_is(client):
    await client.create("/api/v1/namespaces", {"metadata": {"name": "x"}})
    wanted = {"metadata": {"name": "x"}, "spec": {"finalizers": ["kubernetes", "plain", "a.b/c"]}}
    with pytest.raises(errors.Invalid) as refusal:
        await client.replace("/api/v1/namespaces/x/finalize", wanted)
    assert [cause.field for cause in refusal.value.causes] == ["spec.finalizers[1]"]


async def test_a_node_is_chosen_by_whether_it_takes_pods(client):
    await client.create("/api/v1/nodes", {"metadata": {"name": "a"}})
    await client.create("/api/v1/nodes", {"metadata": {"name": "b"}, "spec": {"unschedulable": True}})
    found = await client.get("/api/v1/nodes?fieldSelector=spec.unschedulable=true")
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]


async def test_the_parts_of_a_secret_that_messages_show_are_not_its_contents(client):
    secret = {
        "metadata": {"name": "s"},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "hunter2"},
    }
    response = await client.send("POST", f"{CORE}/secrets", secret)
    assert response.status == 422
    assert b"hunter2" not in response.body


async def test_a_configmap_above_a_mebibyte_is_refused(client):
    with pytest.raises(errors.Invalid, match="Too long"):
        await client.create(
            f"{CORE}/configmaps", {"metadata": {"name": "c"}, "data": {"a": "x" * 2**20, "b": "y"}}
        )


async def test_every_built_in_kind_has_columns_besides_its_name(client):
    registry = client._server.around.registry
    bare = [
        one.resource
        for one in registry
        if "list" in one.verbs and len(one.behaviour.columns) < 2 and not one.custom
    ]
    assert bare == []


@pytest.mark.parametrize(
    ("url", "obj"),
    [
        pytest.param(
            f"{CORE}/services",
            {"spec": {"ports": [{"port": 80}], "ipFamilies": ["IPv4"] * 50_000}},
            id="families",
        ),
        pytest.param(
            f"{CORE}/services", {"spec": {"ports": [{"port": 80, "name": "a"}] * 3_000}}, id="ports"
        ),
        pytest.param(
            "/api/v1/nodes",
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 5_000}},
            id="taints",
        ),
        pytest.param(
            f"{CORE}/resourcequotas",
            {"spec": {"hard": {f"x{n}": "1" for n in range(3_000)}, "scopes": ["Terminating"] * 3_000}},
            id="quotas",
        ),
    ],
)
async def test_long_lists_are_refused_in_time_that_grows_with_them(client, url, obj):
    async with asyncio.timeout(10):
        response = await client.send("POST", url, {"metadata": {"name": "x"}, **obj})
    assert response.status == 422
