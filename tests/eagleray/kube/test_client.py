"""The client against a whole API server in process: verbs, errors, repeats, limits, deadlines."""

from contextlib import aclosing
from datetime import UTC, datetime

import msgspec
import pytest

from eagleray.kube import client as client_module
from eagleray.kube import requests
from eagleray.kube.client import Client
from eagleray.kube.requests import Selection
from eagleray.kube.resources import CONFIG_MAPS, NODES, PODS, Ref
from eagleray.kube.retries import Backoff, Patience, asked_pause
from eagleray.kube.throttle import TokenBucket
from eagleray.kube.transport import Answer, AnswerLost, NotSent
from kubewire import errors
from kubewire.sources import ManualClock, SeededEntropy
from tests.eagleray.kube.local import aiter_of, status

BUSY = status(errors.too_many_requests("later"))
BROKEN = status(errors.internal_error("etcd"))
UNAVAILABLE = status(errors.service_unavailable("not ready"))


def config_map(name, **data):
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def names(world):
    listed = await world.client.list(CONFIG_MAPS, Selection("default"))
    return [obj["metadata"]["name"] for obj in listed]


async def test_an_object_lives_through_every_verb(world):
    client = world.client
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), manager="me")
    made["data"]["x"] = "2"
    replaced = await client.replace(CONFIG_MAPS, made)
    merged = await client.patch(CONFIG_MAPS, Ref.of(replaced), {"data": {"y": "3"}})
    changed = await client.patch(
        CONFIG_MAPS, Ref.of(merged), [{"op": "add", "path": "/data/z", "value": "4"}], "json"
    )
    strategic = await client.patch(CONFIG_MAPS, Ref.of(changed), {"data": {"x": None}}, "strategic")
    assert (await client.get(CONFIG_MAPS, "default", "a"))["data"] == {"y": "3", "z": "4"}
    assert Ref.of(strategic).uid == Ref.of(made).uid
    await client.delete(CONFIG_MAPS, Ref("default", "a", Ref.of(made).uid))
    with pytest.raises(errors.NotFound):
        await client.get(CONFIG_MAPS, "default", "a")


async def test_a_status_is_patched_alone(world):
    node = await world.client.create(NODES, {"metadata": {"name": "n"}})
    patched = await world.client.patch_status(NODES, Ref.of(node), {"nodeInfo": {"kubeletVersion": "v1"}})
    assert patched["status"]["nodeInfo"]["kubeletVersion"] == "v1"


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("merge", {"data": {"x": "3"}}),
        ("strategic", {"data": {"x": "3"}}),
        ("json", [{"op": "add", "path": "/data/x", "value": "3"}]),
    ],
)
async def test_a_patch_of_an_older_version_is_a_conflict(world, kind, change):
    made = await world.client.create(CONFIG_MAPS, config_map("a", x="1"))
    await world.client.patch(CONFIG_MAPS, Ref.of(made), {"data": {"x": "2"}})
    with pytest.raises(errors.Conflict):
        await world.client.patch(CONFIG_MAPS, Ref.of(made), change, kind)
    assert (await world.client.get(CONFIG_MAPS, "default", "a"))["data"] == {"x": "2"}


async def test_a_deletion_spares_a_successor_of_the_same_name(world):
    first = await world.client.create(CONFIG_MAPS, config_map("a"))
    await world.client.delete(CONFIG_MAPS, Ref.of(first))
    await world.client.create(CONFIG_MAPS, config_map("a"))
    with pytest.raises(errors.Conflict):
        await world.client.delete(CONFIG_MAPS, Ref.of(first))


async def test_a_selection_is_deleted_at_once(world):
    for name in "abc":
        await world.client.create(CONFIG_MAPS, config_map(name))
    await world.client.delete_collection(CONFIG_MAPS, Selection("default", fields="metadata.name=b"))
    assert "b" not in await names(world)
    assert {"a", "c"} <= set(await names(world))


async def test_a_list_is_read_page_by_page(world):
    for number in range(7):
        await world.client.create(CONFIG_MAPS, config_map(f"m{number}"))
    listing = await world.client.listing(CONFIG_MAPS, Selection("default"), page=3)
    found = [msgspec.json.decode(item)["metadata"]["name"] for item in listing.items]
    assert [name for name in found if name[0] == "m"] == [f"m{number}" for number in range(7)]
    assert world.faults.verbs().count("list") >= 3


async def test_a_list_whose_pages_expired_is_read_at_once(world):
    for number in range(5):
        await world.client.create(CONFIG_MAPS, config_map(f"m{number}"))
    first = await world.faults.inner.send(requests.list_page(CONFIG_MAPS, Selection("default"), limit=2))
    world.faults.next = [first, status(errors.expired("too old"))]
    listing = await world.client.listing(CONFIG_MAPS, Selection("default"), page=2)
    found = [msgspec.json.decode(item)["metadata"]["name"] for item in listing.items]
    assert sorted(set(found)) == sorted(found)
    assert {f"m{number}" for number in range(5)} <= set(found)


async def test_a_watch_yields_events_until_it_is_closed(world):
    start = (await world.client.listing(CONFIG_MAPS, Selection("default"))).version
    await world.client.create(CONFIG_MAPS, config_map("a"))
    async with aclosing(world.client.watch(CONFIG_MAPS, Selection("default"), version=start)) as batches:
        assert await anext(batches) == ()
        (event,) = await anext(batches)
        assert event.type == "ADDED"
        assert msgspec.json.decode(event.object)["metadata"]["name"] == "a"
        assert world.faults.open == 1
    assert world.faults.open == 0


async def test_a_watch_from_too_long_ago_says_so(world):
    with pytest.raises(errors.Expired):
        async for _ in world.client.watch(CONFIG_MAPS, version="999999"):
            pass


async def test_events_are_read_however_the_stream_is_cut_into_chunks():
    lines = b'{"a":1}\n{"b":2}\n\n{"c":3}\n{"cut":'
    for size in range(1, len(lines) + 1):
        chunks = aiter_of(lines[start : start + size] for start in range(0, len(lines), size))
        found = [line for batch in [batch async for batch in client_module._lines(chunks)] for line in batch]
        assert found == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


async def test_a_line_without_end_is_not_kept(monkeypatch):
    monkeypatch.setattr(client_module, "_LONGEST_LINE", 100)
    with pytest.raises(AnswerLost, match="no API server"):
        async for _ in client_module._lines(aiter_of([b"x" * 60, b"x" * 60])):
            pass


# --- repeats


@pytest.mark.parametrize("fault", ["not sent", BUSY, UNAVAILABLE._replace(headers={"retry-after": "1"})])
async def test_what_was_certainly_not_done_is_repeated(world, fault):
    world.faults.next = [fault, fault]
    generated = {"metadata": {"generateName": "g-", "namespace": "default"}}
    await world.client.create(CONFIG_MAPS, generated)
    assert world.faults.verbs() == ["create"] * 3
    assert len([name for name in await names(world) if name.startswith("g-")]) == 1


@pytest.mark.parametrize("fault", ["answer lost", "hangs", BROKEN, UNAVAILABLE])
async def test_a_creation_of_unknown_outcome_is_repeated_only_under_a_chosen_name(world, fault):
    world.faults.next = [fault]
    with pytest.raises((errors.ApiError, AnswerLost)):
        await world.client.create(CONFIG_MAPS, {"metadata": {"generateName": "g-", "namespace": "default"}})
    assert world.faults.verbs() == ["create"]
    world.faults.next = [fault]
    if fault == "answer lost":
        with pytest.raises(errors.AlreadyExists):
            await world.client.create(CONFIG_MAPS, config_map("a"))
    else:
        await world.client.create(CONFIG_MAPS, config_map("a"))
    assert world.faults.verbs() == ["create"] * 3
    assert (await names(world)).count("a") == 1


async def test_a_change_of_unknown_outcome_is_repeated_only_with_a_precondition(world):
    made = Ref.of(await world.client.create(CONFIG_MAPS, config_map("a")))
    world.faults.next = ["answer lost"]
    with pytest.raises(AnswerLost):
        await world.client.patch(CONFIG_MAPS, Ref("default", "a"), {"data": {"x": "1"}})
    world.faults.next = ["answer lost"]
    with pytest.raises(AnswerLost):
        await world.client.delete(CONFIG_MAPS, Ref("default", "a"))
    again = Ref.of(await world.client.create(CONFIG_MAPS, config_map("a")))
    assert again.uid != made.uid
    world.faults.next = ["answer lost"]
    with pytest.raises(errors.NotFound):
        await world.client.delete(CONFIG_MAPS, Ref("default", "a", again.uid))


@pytest.mark.parametrize("error", [errors.NotFound, errors.Forbidden, errors.Conflict, errors.Invalid])
async def test_a_refusal_is_raised_by_its_reason_and_not_repeated(world, error):
    world.faults.next = [status(error("no"))]
    with pytest.raises(error, match="no"):
        await world.client.get(CONFIG_MAPS, "default", "a")
    assert len(world.faults.sent) == 1


async def test_a_page_of_html_is_an_error_by_its_code(world):
    world.faults.next = [Answer(403, b"<html>")]
    with pytest.raises(errors.Forbidden):
        await world.client.get(CONFIG_MAPS, "default", "a")


async def test_an_answer_that_is_no_json_counts_as_lost(world):
    world.faults.next = [Answer(200, b"<html>")]
    with pytest.raises(AnswerLost, match="cannot be read"):
        await world.client.get(CONFIG_MAPS, "default", "a")


async def test_retry_after_is_honoured(world):
    world.faults.next = [BUSY._replace(headers={"retry-after": "17"})]
    start = world.clock.monotonic()
    await world.client.list(CONFIG_MAPS)
    assert 17 <= world.clock.monotonic() - start < 18


async def test_a_server_that_asks_for_too_much_is_not_waited_for(world):
    world.faults.next = [BUSY._replace(headers={"retry-after": "3600"})]
    with pytest.raises(errors.TooManyRequests) as refused:
        await world.client.list(CONFIG_MAPS)
    assert refused.value.retry_after_seconds == 3600
    assert world.clock.monotonic() < 1


async def test_tries_end_with_the_last_refusal(world):
    world.faults.next = [BROKEN] * 100
    with pytest.raises(errors.InternalError):
        await world.client.list(CONFIG_MAPS)
    assert len(world.faults.sent) == Patience().tries


async def test_a_server_that_hangs_holds_nobody_longer_than_the_deadline(world):
    client = Client(world.faults, world.clock, world.entropy, patience=Patience(attempt=4, total=10))
    world.faults.next = ["hangs"] * 100
    start = world.clock.monotonic()
    with pytest.raises(AnswerLost, match="no answer in"):
        await client.list(CONFIG_MAPS)
    assert world.clock.monotonic() - start <= 10
    assert len(world.faults.sent) == 3


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5),
        ("", 0),
        ("soon", 0),
        ("-1", 0),
        ("Tue, 01 Jan 2030 00:00:30 GMT", 30),
        ("Tue, 01 Jan 2019 00:00:30 GMT", 0),
    ],
)
def test_retry_after_is_a_number_or_a_date(value, seconds):
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert asked_pause(Answer(429, headers={"retry-after": value}), now) == seconds


def test_pauses_grow_with_jitter_up_to_a_bound():
    backoff = Backoff(SeededEntropy(1), 1.0, 8.0)
    pauses = [backoff.pause() for _ in range(6)]
    for pause, most in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True):
        assert most / 2 <= pause <= most
    assert len(set(pauses[3:])) == 3
    backoff.reset()
    assert backoff.pause() <= 1


# --- who asks, how often, and who counts


async def test_requests_say_who_sends_them(world):
    await world.client.list(PODS)
    assert dict(world.faults.sent[0].headers)["user-agent"].startswith("eagleray-")


async def test_requests_beyond_the_burst_wait_for_their_turn(world):
    client = Client(world.faults, world.clock, world.entropy, qps=2, burst=3)
    start = world.clock.monotonic()
    took = []
    for _ in range(5):
        await client.list(PODS)
        took.append(world.clock.monotonic() - start)
    assert took == pytest.approx([0, 0, 0, 0.5, 1.0])
    await client.list(CONFIG_MAPS)
    assert world.clock.monotonic() - start == pytest.approx(1.0), "another resource has its own bucket"


async def test_a_request_that_would_wait_past_its_deadline_is_not_sent(world):
    client = Client(world.faults, world.clock, world.entropy, qps=0.01, burst=1)
    await client.list(PODS)
    with pytest.raises(NotSent, match="raise qps"):
        await client.list(PODS)
    assert len(world.faults.sent) == 1
    await world.clock.sleep(100)
    await client.list(PODS)
    assert len(world.faults.sent) == 2, "the request that was not sent has used nothing up"


async def test_no_limit_holds_nobody_back(world):
    client = Client(world.faults, world.clock, world.entropy, qps=0)
    for _ in range(500):
        await client.list(PODS)
    assert world.clock.monotonic() == 0


def test_a_bucket_fills_up_to_its_burst_only():
    clock = ManualClock()
    tokens = TokenBucket(clock, qps=1, burst=2)
    clock.advance(1000)
    assert [tokens.reserve() for _ in range(4)] == [0, 0, 1, 2]
    tokens.give_back()
    assert tokens.reserve() == 2


async def test_an_observer_counts_tries_waits_and_repeats(world):
    seen: list[tuple[object, ...]] = []

    class Counting:
        def answered(self, request, host, code, seconds, size):
            seen.append(("answered", request.verb, host, code))

        def held_back(self, request, host, seconds):
            seen.append(("held back", seconds))

        def repeated(self, request, host, code):
            seen.append(("repeated", code))

    client = Client(world.faults, world.clock, world.entropy, qps=1, burst=2, observer=Counting())
    world.faults.next = ["not sent", BUSY]
    await client.list(PODS)
    assert [what for what in seen if what[0] != "held back"] == [
        ("answered", "list", "local", 0),
        ("repeated", 0),
        ("answered", "list", "local", 429),
        ("repeated", 429),
        ("answered", "list", "local", 200),
    ]
    assert [what for what in seen if what[0] == "held back"]
