"""Tokens from Secrets."""

import base64

import pytest

from eagleray.dashboard.errors import DashboardError, Unauthorised, Unreachable
from eagleray.dashboard.tokens import NoTokens, SecretTokens, Token
from eagleray.kube.transport import NotSent
from kubewire.errors import NotFound
from tests.eagleray.dashboard.places import place


class Secrets:
    """A client that knows Secrets."""

    def __init__(self, **secrets):
        self.secrets = secrets
        self.reads = 0
        self.failure = None

    async def get(self, resource, namespace, name):
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        if name not in self.secrets:
            raise NotFound("not found")
        return {"data": self.secrets[name]}


def secret(text):
    return {"auth_token": base64.b64encode(text.encode()).decode()}


async def test_a_token_is_read_once_and_shown_in_rays_own_header():
    client = Secrets(demo=secret("abc\n"))
    tokens = SecretTokens(client)
    token = await tokens.current(place(secret="demo"))
    assert token is not None
    assert token.header == ("x-ray-authorization", "Bearer abc")
    assert await tokens.current(place(secret="demo")) is token
    assert client.reads == 1


async def test_where_no_secret_is_named_nothing_is_read():
    client = Secrets()
    assert await SecretTokens(client).current(place()) is None
    assert client.reads == 0


async def test_a_refused_token_is_read_anew():
    client = Secrets(demo=secret("old"))
    tokens = SecretTokens(client)
    old = await tokens.current(place(secret="demo"))
    client.secrets["demo"] = secret("new")
    assert tokens.refused(place(secret="demo"), old)
    assert await tokens.current(place(secret="demo")) == Token("new")


async def test_a_token_that_was_replaced_meanwhile_is_not_thrown_away_with_the_refused_one():
    client = Secrets(demo=secret("new"))
    tokens = SecretTokens(client)
    await tokens.current(place(secret="demo"))
    assert tokens.refused(place(secret="demo"), Token("old"))
    await tokens.current(place(secret="demo"))
    assert client.reads == 1


async def test_only_so_many_tokens_are_remembered():
    client = Secrets(a=secret("a"), b=secret("b"), c=secret("c"))
    tokens = SecretTokens(client, most=2)
    for name in ("a", "b", "a", "c", "a"):
        await tokens.current(place(secret=name))
    assert client.reads == 3
    await tokens.current(place(secret="b"))
    assert client.reads == 4


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({}, id="no key"),
        pytest.param({"auth_token": "not base64!"}, id="no base64"),
        pytest.param({"auth_token": 7}, id="a number"),
        pytest.param(secret(""), id="empty"),
        pytest.param(secret("sesame\r\nx-admin: yes"), id="a second header"),
        pytest.param(secret("sésame"), id="letters that no header takes"),
        pytest.param(secret("x" * 9000), id="too long"),
        pytest.param(None, id="no data"),
    ],
)
async def test_a_secret_without_a_usable_token_is_named_and_not_shown(data):
    with pytest.raises(Unauthorised, match="Secret default/demo") as caught:
        await SecretTokens(Secrets(demo=data)).current(place(secret="demo"))
    assert caught.value.certainly_not_done
    assert "sesame" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_missing_secret_and_one_that_cannot_be_read_are_told_apart():
    client = Secrets()
    with pytest.raises(Unauthorised, match="default/demo with the token is missing"):
        await SecretTokens(client).current(place(secret="demo"))
    client.failure = NotSent("the API server is away")
    with pytest.raises(Unreachable, match="API server is away") as caught:
        await SecretTokens(client).current(place(secret="demo"))
    assert caught.value.certainly_not_done


async def test_without_a_way_to_secrets_only_dashboards_that_ask_for_none_are_asked():
    assert await NoTokens().current(place()) is None
    with pytest.raises(DashboardError, match="Secret default/demo"):
        await NoTokens().current(place(secret="demo"))


def test_a_token_keeps_itself_out_of_messages():
    token = Token("open-sesame")
    assert "sesame" not in f"{token} {token!r} {[token]}"
    assert token == Token("open-sesame")
    assert token != Token("other")
    assert len({token, Token("open-sesame")}) == 1
