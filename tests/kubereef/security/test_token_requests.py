"""POST serviceaccounts/token."""

import pytest

from kubereef.server.accounts import API_AUDIENCES
from kubewire import errors

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PODS = "/api/v1/namespaces/default/pods"
CONTAINER = {"name": "c", "image": "x:1"}
REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}


@pytest.fixture
async def robot(admin):
    return await admin.create(ACCOUNTS, {"metadata": {"name": "robot"}})


@pytest.fixture
def ask(admin, robot):
    async def request(metadata=None, **spec):
        body = {**REQUEST, "metadata": metadata or {}, "spec": spec}
        return await admin.create(f"{ACCOUNTS}/robot/token", body)

    return request


@pytest.fixture
def claims(cluster):
    return lambda answer: cluster.server.gatekeeper.authenticator._accounts.signer.claims(
        answer["status"]["token"]
    )


async def test_the_answer_is_the_request_with_a_token(ask, robot, claims):
    answer = await ask()
    token = answer["status"].pop("token")
    assert answer == {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": "robot",
            "namespace": "default",
            "uid": robot["metadata"]["uid"],
            "creationTimestamp": "2030-01-01T00:00:00Z",
        },
        "spec": {"audiences": list(API_AUDIENCES), "expirationSeconds": 3600, "boundObjectRef": None},
        "status": {"expirationTimestamp": "2030-01-01T01:00:00Z"},
    }
    assert claims({"status": {"token": token}}).account_uid == robot["metadata"]["uid"]


@pytest.mark.parametrize(
    ("seconds", "detail"),
    [
        (599, "may not specify a duration less than 10 minutes"),
        (-1, "may not specify a duration less than 10 minutes"),
        (2**32 + 1, "may not specify a duration larger than 2^32 seconds"),
    ],
)
async def test_too_short_or_long_a_life_is_refused(ask, seconds, detail):
    with pytest.raises(errors.Invalid) as refused:
        await ask(expirationSeconds=seconds)
    assert refused.value.message == (
        'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
        f"Invalid value: {seconds}: {detail}"
    )


async def test_ten_minutes_are_enough(ask, claims):
    made = claims(await ask(expirationSeconds=600))
    assert made.expires - made.issued == 600


async def test_a_mounted_token_is_let_in_for_a_year_and_says_from_when_on_it_is_late(ask, claims):
    answer = await ask(expirationSeconds=3607)
    made = claims(answer)
    assert made.expires - made.issued == 365 * 24 * 3600
    assert made.warn_after - made.issued == 3607
    assert answer["status"]["expirationTimestamp"] == "2030-01-01T01:00:07Z"


async def test_a_token_for_others_is_never_let_in_longer_than_asked(ask, claims):
    made = claims(await ask(expirationSeconds=3607, audiences=["vault"]))
    assert made.expires - made.issued == 3607
    assert made.warn_after == 0


async def test_no_token_for_an_account_that_does_not_exist(admin):
    with pytest.raises(errors.NotFound, match='serviceaccounts "ghost" not found'):
        await admin.create(f"{ACCOUNTS}/ghost/token", REQUEST)


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ({"name": "other"}, errors.Invalid, "must match the service account name if specified"),
        ({"namespace": "other"}, errors.BadRequest, "must specify matching namespace"),
        ({"uid": "1"}, errors.Conflict, r"the UID in the token request \(1\) does not match"),
    ],
)
async def test_the_request_must_be_about_the_account_in_the_path(ask, metadata, error, message):
    with pytest.raises(error, match=message):
        await ask(metadata)


async def test_a_token_request_of_another_kind_is_refused(admin, robot):
    with pytest.raises(errors.BadRequest):
        await admin.create(f"{ACCOUNTS}/robot/token", {"apiVersion": "v1", "kind": "ServiceAccount"})


@pytest.fixture
async def pod(admin, robot):
    spec = {"serviceAccountName": "robot", "containers": [CONTAINER]}
    return await admin.create(PODS, {"metadata": {"name": "p"}, "spec": spec})


async def test_a_token_can_be_bound_to_a_pod(ask, pod, claims):
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    answer = await ask(boundObjectRef=reference)
    assert answer["spec"]["boundObjectRef"] == reference
    assert claims(answer).bound == {"pod": ("p", pod["metadata"]["uid"])}


async def test_and_then_it_says_where_the_pod_runs(ask, admin, claims):
    node = await admin.create("/api/v1/nodes", {"metadata": {"name": "n"}})
    for name, node_name in (("q", "n"), ("r", "gone")):
        spec = {"serviceAccountName": "robot", "nodeName": node_name, "containers": [CONTAINER]}
        await admin.create(PODS, {"metadata": {"name": name}, "spec": spec})
    answer = await ask(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "q"})
    assert claims(answer).bound["node"] == ("n", node["metadata"]["uid"])
    answer = await ask(boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "r"})
    assert claims(answer).bound["node"] == ("gone", "")


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "name": "ghost"},
            errors.NotFound,
            'pods "ghost" not found',
            id="it is not there",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"},
            errors.Conflict,
            r"the UID in the bound object reference \(1\) does not match the UID in record",
            id="it is another",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            errors.BadRequest,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
            id="it is of the wrong kind",
        ),
    ],
)
async def test_the_bound_object_must_be_the_one_that_is_meant(ask, pod, reference, error, message):
    with pytest.raises(error, match=message):
        await ask(boundObjectRef=reference)


async def test_a_pod_of_another_account_gets_no_token(admin, pod):
    await admin.create(ACCOUNTS, {"metadata": {"name": "other"}})
    body = {**REQUEST, "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}}
    with pytest.raises(errors.BadRequest, match="to pod running with different serviceaccount name"):
        await admin.create(f"{ACCOUNTS}/other/token", body)


@pytest.mark.parametrize(
    "spec", [{"audiences": "x"}, {"expirationSeconds": "long"}, {"boundObjectRef": 7}, 7]
)
async def test_a_request_of_wrong_types_is_refused(admin, robot, spec):
    with pytest.raises(errors.BadRequest):
        await admin.create(f"{ACCOUNTS}/robot/token", {**REQUEST, "spec": spec})
