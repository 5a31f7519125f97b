"""Webhooks that judge what is written."""

import asyncio

import pytest

from kubereef.server.bootstrap import BOOTSTRAP_USER
from kubereef.server.webhooks import configurations
from tests.kubereef.webhooks.asked import MAPS, Api, a_map, rules, webhook
from tests.kubereef.webhooks.outsider import Json, Outsider, deny, patching

OPENING = 'admission webhook "hook.example.com" denied the request'


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        pytest.param({"message": "no way"}, 400, None, f"{OPENING}: no way", id="with its message"),
        pytest.param(
            {"reason": "Because"},
            400,
            "Because",
            f"{OPENING}: Because",
            id="with its reason if it says no more",
        ),
        pytest.param({}, 400, None, f"{OPENING} without explanation", id="without explanation"),
        pytest.param(
            {"message": "tea", "code": 418, "reason": "Tea"},
            418,
            "Tea",
            f"{OPENING}: tea",
            id="with its own code",
        ),
        pytest.param(
            {"message": "fine", "code": 200, "status": "Success"},
            400,
            None,
            f"{OPENING}: fine",
            id="and never as a success",
        ),
    ],
)
async def test_a_denial_is_told(
    api: Api, outsider: Outsider, status: Json, code: int, reason: str | None, message: str
) -> None:
    outsider.answers["/hook"] = deny(**status)
    await api.ask("validating", "/hook")
    refused = await api.refusal("POST", MAPS, a_map())
    assert (refused.status, refused.body["code"], refused.body["status"]) == (code, code, "Failure")
    assert (refused.body.get("reason"), refused.message) == (reason, message)
    assert (await api.refusal("GET", f"{MAPS}/m")).status == 404


async def test_the_details_of_a_denial_are_passed_on(api: Api, outsider: Outsider) -> None:
    causes = [{"field": "spec", "message": "m", "reason": "FieldValueInvalid"}]
    outsider.answers["/hook"] = deny(
        code=422, reason="Invalid", message="bad", details={"kind": "K", "causes": causes}
    )
    await api.ask("validating", "/hook")
    assert (await api.refusal("POST", MAPS, a_map())).body["details"] == {"kind": "K", "causes": causes}


@pytest.mark.parametrize("allowed", [True, False])
async def test_warnings_reach_the_client_whatever_the_verdict(
    api: Api, outsider: Outsider, allowed: bool
) -> None:
    said = ["mind\x07the bell", 'mind the "gap"', "mind the step"]
    outsider.answers["/hook"] = lambda _request: {"allowed": allowed, "warnings": said}
    await api.ask("validating", "/hook")
    if allowed:
        await api.create(a_map())
        found = api.warnings
    else:
        found = (await api.refusal("POST", MAPS, a_map())).warnings
    assert found == ['299 - "mind the \\"gap\\""', '299 - "mind the step"']


async def test_all_are_asked_at_once(api: Api, outsider: Outsider) -> None:
    everybody = asyncio.Barrier(3)

    async def meet(_request: Json) -> Json:
        async with asyncio.timeout(5):
            await everybody.wait()
        return {"allowed": True}

    outsider.answers |= {"/a": meet, "/b": meet, "/c": meet}
    await api.ask("validating", "/a", "/b", "/c")
    await api.create(a_map())
    assert sorted(outsider.paths()) == ["/a", "/b", "/c"]


async def test_of_several_refusals_the_first_webhook_s_is_told(api: Api, outsider: Outsider) -> None:
    async def late(_request: Json) -> Json:
        await asyncio.sleep(0.05)
        return {"allowed": False, "status": {"message": "late"}}

    outsider.answers |= {"/a": late, "/b": deny(message="early")}
    await api.ask("validating", "/a", "/b")
    assert (await api.refusal("POST", MAPS, a_map())).message.endswith(": late")


async def test_they_judge_what_the_others_left_and_the_server_filled_in(api: Api, outsider: Outsider) -> None:
    outsider.answers["/change"] = patching({"op": "add", "path": "/data/x", "value": "1"})
    await api.ask("mutating", "/change")
    await api.ask("validating", "/judge")
    await api.create(a_map())
    (request,) = outsider.requests("/judge")
    assert request["object"]["data"] == {"a": "b", "x": "1"}
    assert request["object"]["metadata"]["uid"]


async def test_what_is_invalid_is_not_worth_a_question(api: Api, outsider: Outsider) -> None:
    await api.ask("validating", "/hook")
    assert (
        await api.refusal("POST", MAPS, {"metadata": {"name": "m"}, "data": {"bad key": "x"}})
    ).status == 422
    assert not outsider.asked


async def test_a_dry_run_is_asked_about_and_told_as_such(api: Api, outsider: Outsider) -> None:
    await api.ask("validating", "/hook", sideEffects="NoneOnDryRun")
    await api.create(a_map(), f"{MAPS}?dryRun=All")
    await api.create(a_map())
    assert [request["dryRun"] for request in outsider.requests("/hook")] == [True, False]
    assert outsider.asked[0][1]["options"]["dryRun"] == ["All"]


async def test_a_webhook_with_side_effects_is_not_asked_about_a_dry_run(
    api: Api, outsider: Outsider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No new configuration may have one, but an old store can."""
    real = configurations._hook
    monkeypatch.setattr(configurations, "_hook", lambda *given: real(*given)._replace(allows_dry_run=False))
    await api.ask("validating", "/hook", failurePolicy="Ignore")
    refused = await api.refusal("POST", f"{MAPS}?dryRun=All", a_map())
    message = 'admission webhook "hook.example.com" does not support dry run'
    assert (refused.status, refused.body["reason"], refused.message) == (400, "BadRequest", message)
    assert not outsider.asked
    await api.create(a_map())


async def test_an_older_version_of_reviews_is_spoken_to_who_knows_no_other(
    api: Api, outsider: Outsider
) -> None:
    outsider.answers["/hook"] = lambda request: {
        "uid": "",
        "allowed": False,
        "status": {"message": request["uid"]},
    }
    await api.ask("validating", "/hook", admissionReviewVersions=["v7", "v1beta1"])
    refused = await api.refusal("POST", MAPS, a_map())
    assert refused.message == f"{OPENING}: {outsider.asked[0][1]['uid']}"


async def test_a_collection_is_deleted_one_by_one_until_somebody_refuses(
    api: Api, outsider: Outsider
) -> None:
    def keep_b(request: Json) -> Json:
        return {"allowed": request["oldObject"]["metadata"]["name"] != "b"}

    outsider.answers["/hook"] = keep_b
    await api.ask("validating", "/hook", rules=rules("configmaps", operations="DELETE"))
    for name in "abc":
        await api.create(a_map(name))
    assert (await api.refusal("DELETE", MAPS)).status == 400
    left = (await api.send("GET", MAPS))["items"]
    assert [one["metadata"]["name"] for one in left] == ["b", "c"]


async def test_the_server_s_own_beginning_does_not_depend_on_webhooks(api: Api) -> None:
    """Otherwise one that is out of reach would keep the server from starting, and itself from being removed."""
    everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
    await api.configure("mutating", webhook("gone", {"url": "https://127.0.0.1:1"}, rules=everything))
    namespace = {"metadata": {"name": "n"}}
    assert (await api.refusal("POST", "/api/v1/namespaces", namespace)).status == 500
    await api.cluster.client(BOOTSTRAP_USER).create("/api/v1/namespaces", namespace)


async def test_where_there_are_none_nobody_looks_for_any(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_given: object) -> None:
        raise AssertionError("somebody looked")

    monkeypatch.setattr("kubereef.server.webhooks.configurations.Hooks.of", never)
    monkeypatch.setattr("kubereef.server.webhooks.admitting._subject", never)
    await api.create(a_map())
    await api.merge(f"{MAPS}/m", {"data": {"x": "y"}})
    await api.send("DELETE", f"{MAPS}/m")
