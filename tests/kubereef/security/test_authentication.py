"""Who asks: anonymous without credentials, refused with bad ones, and accounts only while what they depend on lives."""

import pytest

from kubereef.server.accounts import API_AUDIENCES
from kubereef.server.tokens import Claims
from kubewire import errors

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
SECRETS = "/api/v1/namespaces/default/secrets"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}


@pytest.fixture
async def robot(admin):
    return await admin.create(ACCOUNTS, {"metadata": {"name": "robot"}})


@pytest.fixture
def token_for(admin, robot):
    async def make(**spec):
        answer = await admin.create(f"{ACCOUNTS}/robot/token", {**REQUEST, "spec": spec})
        return answer["status"]["token"]

    return make


async def who_is(someone, token):
    return (await someone(token).create(WHO, {}))["status"]["userInfo"]


async def is_refused(someone, token):
    with pytest.raises(errors.Unauthorized, match=r"^Unauthorized$"):
        await who_is(someone, token)
    return True


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("Bearer nope", id="a word"),
        pytest.param("Bearer a.b.c", id="three words"),
        pytest.param("bearer nope", id="in lower case"),
        pytest.param("Bearer nope nope", id="two words"),
    ],
)
async def test_a_bad_token_is_refused_and_not_taken_for_nobody(someone, header):
    with pytest.raises(errors.Unauthorized) as refused:
        await someone(authorization=header).get(ACCOUNTS)
    assert refused.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="no header"),
        pytest.param({"authorization": "Basic YTpi"}, id="another scheme"),
        pytest.param({"authorization": "Bearer"}, id="no token"),
        pytest.param({"authorization": "Bearer  "}, id="blanks for a token"),
    ],
)
async def test_without_a_token_the_caller_is_anonymous(someone, headers):
    with pytest.raises(errors.Forbidden, match='User "system:anonymous" cannot list resource'):
        await someone(**headers).get(ACCOUNTS)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz", "/version"])
async def test_anybody_may_ask_for_health_and_version(someone, path):
    assert (await someone().send("GET", path)).status == 200


@pytest.mark.parametrize("path", ["/", "/api", "/apis", "/metrics", "/openapi/v3", "/livez/ping"])
async def test_anybody_may_ask_for_nothing_else(someone, path):
    with pytest.raises(errors.Forbidden, match=f'User "system:anonymous" cannot get path "{path}"'):
        await someone().get(path)


async def test_a_fixed_token_stands_for_its_user(someone):
    who = await who_is(someone, "admin-token")
    assert who["username"] == "kubernetes-admin"
    assert who["groups"] == ["system:masters", "system:authenticated"]


async def test_an_accounts_token_stands_for_the_account(someone, token_for, robot):
    who = await who_is(someone, await token_for())
    (credential,) = who["extra"].pop("authentication.kubernetes.io/credential-id")
    assert credential.startswith("JTI=")
    assert who == {
        "username": "system:serviceaccount:default:robot",
        "uid": robot["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
        "extra": {},
    }


async def test_a_token_dies_at_its_hour(someone, token_for, clock):
    token = await token_for(expirationSeconds=600)
    clock.advance(599)
    await who_is(someone, token)
    clock.advance(1)
    assert await is_refused(someone, token)


@pytest.mark.parametrize(("ahead", "good"), [(30, True), (90, False)])
async def test_a_token_of_the_future_is_good_only_if_clocks_differ_a_little(
    someone, robot, cluster, clock, ahead, good
):
    now = int(clock.now().timestamp())
    uid = robot["metadata"]["uid"]
    claims = Claims("default", "robot", uid, API_AUDIENCES, now + ahead, now + 3600, "id")
    token = cluster.server.gatekeeper.authenticator._accounts.signer.token(claims)
    if good:
        await who_is(someone, token)
    else:
        assert await is_refused(someone, token)


async def test_a_token_for_another_audience_does_not_open_the_server(someone, token_for):
    assert await is_refused(someone, await token_for(audiences=["vault"]))
    await who_is(someone, await token_for(audiences=["vault", *API_AUDIENCES]))


async def test_a_token_dies_with_its_account_and_a_new_account_does_not_wake_it(someone, token_for, admin):
    token = await token_for()
    await who_is(someone, token)
    await admin.delete(f"{ACCOUNTS}/robot")
    assert await is_refused(someone, token)
    await admin.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert await is_refused(someone, token)


async def test_a_change_of_the_account_leaves_its_token_good(someone, token_for, admin):
    token = await token_for()
    await who_is(someone, token)
    await admin.patch(f"{ACCOUNTS}/robot", {"metadata": {"labels": {"a": "b"}}})
    await who_is(someone, token)


async def test_an_account_that_waits_for_a_finalizer_keeps_its_token_one_minute(
    someone, token_for, admin, clock
):
    await admin.patch(f"{ACCOUNTS}/robot", {"metadata": {"finalizers": ["example.com/wait"]}})
    token = await token_for()
    await admin.delete(f"{ACCOUNTS}/robot")
    clock.advance(59)
    await who_is(someone, token)
    clock.advance(2)
    assert await is_refused(someone, token)


@pytest.fixture
async def pod(admin, robot):
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "x:1"}]}
    return await admin.create(PODS, {"metadata": {"name": "p"}, "spec": spec})


def bound_to(obj, kind):
    metadata = obj["metadata"]
    return {"apiVersion": "v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"]}


async def test_a_token_bound_to_a_pod_tells_of_it_and_dies_with_it(someone, token_for, admin, pod):
    token = await token_for(boundObjectRef=bound_to(pod, "Pod"))
    extra = (await who_is(someone, token))["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]
    await admin.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert await is_refused(someone, token)


async def test_a_token_bound_to_a_secret_dies_with_it(someone, token_for, admin):
    secret = await admin.create(SECRETS, {"metadata": {"name": "s"}})
    token = await token_for(boundObjectRef=bound_to(secret, "Secret"))
    await who_is(someone, token)
    await admin.delete(f"{SECRETS}/s")
    assert await is_refused(someone, token)


async def test_a_token_bound_to_a_node_dies_with_it(someone, token_for, admin):
    node = await admin.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    token = await token_for(boundObjectRef=bound_to(node, "Node"))
    assert (await who_is(someone, token))["extra"]["authentication.kubernetes.io/node-name"] == ["n"]
    await admin.delete("/api/v1/nodes/n")
    assert await is_refused(someone, token)


async def test_the_number_of_remembered_tokens_is_bounded(cluster, token_for, monkeypatch, someone):
    monkeypatch.setattr("kubereef.server.accounts._MAX_KNOWN", 3)
    tokens = [await token_for() for _ in range(6)]
    for token in tokens:
        await who_is(someone, token)
    known = cluster.server.gatekeeper.authenticator._accounts._known
    assert list(known) == tokens[-3:]
    await who_is(someone, tokens[0])
