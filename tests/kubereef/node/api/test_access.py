"""Who is let in to the kubelet's API."""

import pytest

from kubereef.node.kubelet.api.access import ALLOWED_SECONDS, DENIED_SECONDS, KNOWN_SECONDS, Access, Denied
from kubereef.server.peers import Peer
from kubereef.server.requests import User
from kubewire import errors
from kubewire.sources import ManualClock

ANN = User("ann", ("team",), "7", {"k": ("v",)})
TOKEN = {"Authorization": "Bearer good"}


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def access(reviews, clock):
    return Access(reviews, "n", clock)


def asked_for(reviews, kind):
    return [spec for name, spec in reviews.asked if name == kind]


async def test_a_bearer_token_is_reviewed_by_the_api_server(access, reviews):
    assert await access.check(Peer(), TOKEN, "GET", "/pods") == ANN
    assert asked_for(reviews, "tokenreviews") == [{"token": "good"}]
    (spec,) = asked_for(reviews, "subjectaccessreviews")
    assert spec == {
        "user": "ann",
        "groups": ["team"],
        "uid": "7",
        "extra": {"k": ["v"]},
        "resourceAttributes": {
            "verb": "get",
            "version": "v1",
            "resource": "nodes",
            "subresource": "pods",
            "name": "n",
        },
    }


async def test_a_certificate_that_has_expired_stands_for_nobody(access, clock):
    peer = Peer(User("ann"), clock.now().timestamp() + 10)
    assert (await access.check(peer, {}, "GET", "/pods")).name == "ann"
    clock.advance(11)
    with pytest.raises(Denied, match="Unauthorized"):
        await access.check(peer, {}, "GET", "/pods")


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer bad"}, {"Authorization": "Bearer "}, {"Authorization": "Basic good"}],
    ids=["nobody", "an unknown token", "no token", "another kind of proof"],
)
async def test_who_is_unknown_is_not_let_in(access, headers):
    with pytest.raises(Denied, match="Unauthorized") as refusal:
        await access.check(Peer(), headers, "GET", "/healthz")
    assert refusal.value.status == 401


async def test_who_is_known_but_may_not_is_told_what_it_would_take(access, reviews):
    reviews.allowed.clear()
    with pytest.raises(Denied) as refusal:
        await access.check(Peer(), TOKEN, "POST", "/exec/default/web/app")
    assert refusal.value.status == 403
    assert str(refusal.value) == "Forbidden (user=ann, verb=create, resource=nodes, subresource(s)=[proxy])"


@pytest.mark.parametrize(
    ("method", "path", "verb", "parts"),
    [
        ("GET", "/pods", "get", ["pods", "proxy"]),
        ("GET", "/healthz", "get", ["healthz", "proxy"]),
        ("GET", "/stats/summary", "get", ["stats"]),
        ("GET", "/containerLogs/a/b/c", "get", ["proxy"]),
        ("POST", "/exec/a/b/c", "create", ["proxy"]),
        ("GET", "/podsx", "get", ["proxy"]),
    ],
)
async def test_what_a_request_is_about(access, reviews, method, path, verb, parts):
    reviews.allowed.clear()
    with pytest.raises(Denied):
        await access.check(Peer(), TOKEN, method, path)
    wanted = [spec["resourceAttributes"] for spec in asked_for(reviews, "subjectaccessreviews")]
    assert [(one["verb"], one["subresource"]) for one in wanted] == [(verb, part) for part in parts]


async def test_the_right_to_any_of_the_parts_is_enough(access, reviews):
    reviews.parts = {"proxy"}
    await access.check(Peer(), TOKEN, "GET", "/pods")


async def test_answers_are_remembered_for_a_while(access, reviews, clock):
    for _ in range(3):
        await access.check(Peer(), TOKEN, "GET", "/stats/summary")
    assert len(reviews.asked) == 2
    clock.advance(KNOWN_SECONDS + 1)
    await access.check(Peer(), TOKEN, "GET", "/stats/summary")
    assert len(asked_for(reviews, "tokenreviews")) == 2
    clock.advance(ALLOWED_SECONDS)
    await access.check(Peer(), TOKEN, "GET", "/stats/summary")
    assert len(asked_for(reviews, "subjectaccessreviews")) == 2


async def test_a_refusal_is_remembered_for_a_shorter_while(access, reviews, clock):
    reviews.allowed.clear()
    with pytest.raises(Denied):
        await access.check(Peer(), TOKEN, "GET", "/stats/summary")
    reviews.allowed.add("ann")
    with pytest.raises(Denied):
        await access.check(Peer(), TOKEN, "GET", "/stats/summary")
    clock.advance(DENIED_SECONDS + 1)
    await access.check(Peer(), TOKEN, "GET", "/stats/summary")


async def test_nobody_is_let_in_while_the_api_server_cannot_be_asked(access, reviews):
    reviews.failure = errors.service_unavailable("away")
    with pytest.raises(Denied, match="away") as refusal:
        await access.check(Peer(), TOKEN, "GET", "/healthz")
    assert refusal.value.status == 500
    reviews.failure = None
    await access.check(Peer(), TOKEN, "GET", "/healthz")
