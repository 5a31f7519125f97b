"""Others do not wait while webhooks think: what they did meanwhile is not lost, and nothing is written twice."""

import asyncio

import pytest

from tests.kubereef.webhooks.asked import CORE, MAPS, Api, Refused, a_map, rules
from tests.kubereef.webhooks.outsider import Json, Outsider
from tests.kubereef.webhooks.test_mutating import DEFINITION, THINGS

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"


class Thinking:
    """An answer that takes as long as the test wants: the first question waits, all others do not."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self._is_first = True

    async def __call__(self, _request: Json) -> Json:
        if self._is_first:
            self._is_first = False
            await self.done.wait()
        return {"allowed": True}


async def meanwhile(
    api: Api, outsider: Outsider, thinking: Thinking, request: "asyncio.Task[Json]", change: Json
) -> Json:
    """Change the map `m` while a request of it waits, and return what becomes of the request."""
    await outsider.has_been_asked()
    await api.merge(f"{MAPS}/m", change)
    thinking.done.set()
    return await request


@pytest.fixture
async def thinking(api: Api, outsider: Outsider) -> Thinking:
    """A map `m`, and a webhook that thinks about the first change of it."""
    thinking = Thinking()
    await api.create(a_map())
    outsider.answers["/hook"] = thinking
    await api.ask("mutating", "/hook", timeoutSeconds=10)
    return thinking


@pytest.mark.parametrize(
    ("method", "body", "media_type", "data"),
    [
        pytest.param(
            "PATCH",
            {"data": {"mine": "1"}},
            MERGE_PATCH,
            {"a": "b", "mine": "1", "theirs": "1"},
            id="a merge",
        ),
        pytest.param(
            "PATCH",
            {"data": {"a": "b"}},
            MERGE_PATCH,
            {"a": "b", "theirs": "1"},
            id="a merge that changes nothing",
        ),
        pytest.param(
            "PATCH",
            [{"op": "add", "path": "/data/mine", "value": "1"}],
            JSON_PATCH,
            {"a": "b", "mine": "1", "theirs": "1"},
            id="a JSON patch",
        ),
        pytest.param(
            "PUT",
            a_map(mine="1"),
            "application/json",
            {"a": "b", "mine": "1"},
            id="an update that says not of what",
        ),
    ],
)
async def test_a_write_begins_anew_with_what_others_left(
    api: Api, outsider: Outsider, thinking: Thinking, method: str, body: object, media_type: str, data: Json
) -> None:
    request = asyncio.create_task(api.send(method, f"{MAPS}/m", body, media_type))
    made = await meanwhile(api, outsider, thinking, request, {"data": {"theirs": "1"}})
    assert made["data"] == data
    assert (await api.send("GET", f"{MAPS}/m"))["data"] == data
    assert len(outsider.asked) == 3


async def test_an_update_of_a_version_that_is_gone_is_refused(
    api: Api, outsider: Outsider, thinking: Thinking
) -> None:
    present = await api.send("GET", f"{MAPS}/m")
    request = asyncio.create_task(api.send("PUT", f"{MAPS}/m", {**present, "data": {"mine": "1"}}))
    with pytest.raises(Refused) as refused:
        await meanwhile(api, outsider, thinking, request, {"data": {"theirs": "1"}})
    assert refused.value.status == 409
    assert (await api.send("GET", f"{MAPS}/m"))["data"] == {"a": "b", "theirs": "1"}


async def test_a_patch_whose_test_no_longer_holds_is_refused(
    api: Api, outsider: Outsider, thinking: Thinking
) -> None:
    operations = [
        {"op": "test", "path": "/data/a", "value": "b"},
        {"op": "add", "path": "/data/mine", "value": "1"},
    ]
    request = asyncio.create_task(api.send("PATCH", f"{MAPS}/m", operations, JSON_PATCH))
    with pytest.raises(Refused) as refused:
        await meanwhile(api, outsider, thinking, request, {"data": {"a": "c"}})
    assert refused.value.status == 422


async def test_a_deletion_for_one_version_does_not_take_the_next(
    api: Api, outsider: Outsider, thinking: Thinking
) -> None:
    version = (await api.send("GET", f"{MAPS}/m"))["metadata"]["resourceVersion"]
    body = {"preconditions": {"resourceVersion": version}}
    request = asyncio.create_task(api.send("DELETE", f"{MAPS}/m", body))
    with pytest.raises(Refused) as refused:
        await meanwhile(api, outsider, thinking, request, {"data": {"theirs": "1"}})
    assert refused.value.status == 409
    await api.send("GET", f"{MAPS}/m")


@pytest.mark.parametrize("url", [f"{MAPS}/m", MAPS], ids=["by name", "with its collection"])
async def test_a_deletion_takes_what_others_left(
    api: Api, outsider: Outsider, thinking: Thinking, url: str
) -> None:
    request = asyncio.create_task(api.send("DELETE", url))
    await meanwhile(api, outsider, thinking, request, {"data": {"theirs": "1"}})
    assert (await api.refusal("GET", f"{MAPS}/m")).status == 404


async def test_a_write_that_others_always_overtake_is_given_up(api: Api, outsider: Outsider) -> None:
    await api.create(a_map())
    overtaken = 0

    async def overtake(request: Json) -> Json:
        nonlocal overtaken
        if request["userInfo"]["username"] == "kubernetes-admin" and "mine" in request["object"]["data"]:
            overtaken += 1
            await api.merge(f"{MAPS}/m", {"data": {"theirs": str(overtaken)}})
        return {"allowed": True}

    outsider.answers["/hook"] = overtake
    await api.ask(
        "validating", "/hook", matchConditions=[{"name": "mine", "expression": "'mine' in object.data"}]
    )
    refused = await api.refusal("PATCH", f"{MAPS}/m", {"data": {"mine": "1"}}, MERGE_PATCH)
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert overtaken == 6
    assert (await api.send("GET", f"{MAPS}/m"))["data"] == {"a": "b", "theirs": "6"}


async def test_many_writers_of_one_object_all_get_their_word_in(api: Api, outsider: Outsider) -> None:
    await api.create(a_map())
    await api.ask("validating", "/hook")
    keys = [f"k{index}" for index in range(4)]
    await asyncio.gather(*(api.merge(f"{MAPS}/m", {"data": {key: "1"}}) for key in keys))
    assert set((await api.send("GET", f"{MAPS}/m"))["data"]) == {"a", *keys}


async def test_of_two_creations_of_one_name_one_is_refused(api: Api, outsider: Outsider) -> None:
    everybody = asyncio.Barrier(2)

    async def meet(_request: Json) -> Json:
        await everybody.wait()
        return {"allowed": True}

    outsider.answers["/hook"] = meet
    await api.ask("validating", "/hook")
    both = await asyncio.gather(api.create(a_map()), api.create(a_map()), return_exceptions=True)
    (refused,) = [one for one in both if isinstance(one, Refused)]
    assert (refused.status, refused.body["reason"]) == (409, "AlreadyExists")


async def test_a_namespace_that_went_while_they_thought_takes_nothing_new(
    api: Api, outsider: Outsider
) -> None:
    await api.send("POST", "/api/v1/namespaces", {"metadata": {"name": "gone"}})
    url = "/api/v1/namespaces/gone"

    async def meanwhile_it_goes(_request: Json) -> Json:
        await api.send("DELETE", url)
        return {"allowed": True}

    outsider.answers["/hook"] = meanwhile_it_goes
    await api.ask("validating", "/hook")
    refused = await api.refusal("POST", f"{url}/configmaps", a_map())
    assert (refused.status, "because it is being terminated" in refused.message) == (403, True)


async def test_a_resource_whose_definition_changes_while_they_think_is_judged_by_the_new_one(
    api: Api, outsider: Outsider
) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await api.send("POST", definitions, DEFINITION)
    name = f"{definitions}/things.example.com"
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum"

    async def meanwhile_it_changes(_request: Json) -> Json:
        if len(outsider.asked) == 1:
            await api.send("PATCH", name, [{"op": "add", "path": path, "value": 3}], JSON_PATCH)
        return {"allowed": True}

    outsider.answers["/hook"] = meanwhile_it_changes
    await api.ask("validating", "/hook", rules=rules("things", group="example.com"))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 5}}
    refused = await api.refusal("POST", THINGS, thing)
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, "spec.size")


async def test_what_is_refused_is_not_charged_to_a_quota(api: Api, outsider: Outsider) -> None:
    await api.create(
        {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "5"}}}, f"{CORE}/resourcequotas"
    )
    status = {"status": {"hard": {"count/configmaps": "5"}, "used": {"count/configmaps": "0"}}}
    await api.merge(f"{CORE}/resourcequotas/q/status", status)
    outsider.answers["/hook"] = lambda request: {"allowed": request["name"] == "good"}
    await api.ask("validating", "/hook", rules=rules("configmaps"))
    await api.refusal("POST", MAPS, a_map("bad"))
    await api.create(a_map("good"))
    used = (await api.send("GET", f"{CORE}/resourcequotas/q"))["status"]["used"]
    assert used == {"count/configmaps": "1"}
