"""Acting as somebody else."""

import pytest

from kubereef.server.requests import Request, User
from kubewire import errors

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ROOT = User("root", ("system:masters",))
BOB = {"kind": "User", "name": "bob", "apiGroup": "rbac.authorization.k8s.io"}


async def effective(cluster, asker, /, **headers):
    """Return who the server takes a request for, given its Impersonate headers."""
    fields = {f"impersonate-{name.replace('_', '-')}": value for name, value in headers.items()}
    repeated = {name: value for name, value in fields.items() if isinstance(value, list)}
    single = {name: value[0] if isinstance(value, list) else value for name, value in fields.items()}
    request = Request("GET", "/api", {}, single, user=asker, repeated=repeated)
    return cluster.server.gatekeeper.authenticate(request)


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        pytest.param({"user": "alice"}, User("alice", ("system:authenticated",)), id="a user"),
        pytest.param(
            {"user": "alice", "group": ["devs", "a,b"]},
            User("alice", ("devs", "a,b", "system:authenticated")),
            id="with groups, whole even with a comma",
        ),
        pytest.param(
            {"user": "alice", "group": "system:authenticated"},
            User("alice", ("system:authenticated",)),
            id="who says to be authenticated",
        ),
        pytest.param(
            {"user": "alice", "group": "system:unauthenticated"},
            User("alice", ("system:unauthenticated",)),
            id="who says not to be",
        ),
        pytest.param(
            {"user": "system:anonymous"},
            User("system:anonymous", ("system:unauthenticated",)),
            id="nobody",
        ),
        pytest.param(
            {"user": "system:serviceaccount:ns:robot"},
            User(
                "system:serviceaccount:ns:robot",
                ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            ),
            id="an account, with its groups",
        ),
        pytest.param(
            {"user": "alice", "uid": "7", "extra_acme.com%2fscope": ["view", "edit"]},
            User("alice", ("system:authenticated",), "7", {"acme.com/scope": ("view", "edit")}),
            id="with uid and more",
        ),
    ],
)
async def test_the_headers_say_whom_to_act_as(cluster, headers, user):
    assert await effective(cluster, ROOT, **headers) == user


async def test_without_headers_everybody_is_themselves(cluster):
    assert (await effective(cluster, User("eve"))).name == "eve"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        pytest.param(
            {"group": "devs"},
            'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)}'
            " without impersonating a user name",
            id="only a group",
        ),
        pytest.param(
            {"uid": "7", "extra_a": "b"},
            'requested &user.DefaultInfo{Name:"", UID:"7", Groups:[]string(nil),'
            ' Extra:map[string][]string{"a":[]string{"b"}}} without impersonating a user name',
            id="only uid and more",
        ),
    ],
)
async def test_somebody_must_be_named(cluster, headers, message):
    with pytest.raises(errors.BadRequest) as refused:
        await effective(cluster, ROOT, **headers)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("headers", "mode"),
    [
        pytest.param({"user": "alice"}, "user-info", id="a user"),
        pytest.param({"user": "system:serviceaccount:ns:robot"}, "serviceaccount", id="an account"),
        pytest.param({"user": "system:node:n1"}, "arbitrary-node", id="a node"),
        pytest.param({"user": "carol", "group": "ops"}, "user-info", id="a group"),
        pytest.param({"user": "carol", "uid": "7"}, "user-info", id="a uid"),
        pytest.param({"user": "carol", "extra_scope": "all"}, "user-info", id="more"),
    ],
)
async def test_only_those_who_may_act_as_others(cluster, grant, headers, mode):
    await grant(
        [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["carol"], "verbs": ["impersonate"]}],
        BOB,
    )
    with pytest.raises(errors.Forbidden) as refused:
        await effective(cluster, User("bob"), **headers)
    because = f'forbidden: User "bob" cannot impersonate-on:{mode}:get path "/api"'
    assert refused.value.message == because


async def test_an_account_with_groups_can_be_impersonated_in_the_old_way_alone(cluster, grant):
    await grant([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}], BOB)
    with pytest.raises(errors.Forbidden, match='cannot impersonate resource "serviceaccounts"'):
        await effective(cluster, User("bob"), user="system:serviceaccount:ns:robot", group="ops")


THE_USER = {
    "apiGroups": ["authentication.k8s.io"],
    "resources": ["users"],
    "resourceNames": ["alice"],
    "verbs": ["impersonate:user-info"],
}
THE_ACTION = {"nonResourceURLs": ["/api"], "verbs": ["impersonate-on:user-info:get"]}


async def test_one_may_act_as_another_for_single_actions(cluster, grant):
    await grant([THE_USER, THE_ACTION], BOB)
    assert (await effective(cluster, User("bob"), user="alice")).name == "alice"
    with pytest.raises(errors.Forbidden):
        await effective(cluster, User("bob"), user="carol")


@pytest.mark.parametrize(
    "rule", [pytest.param(THE_USER, id="the action"), pytest.param(THE_ACTION, id="the user")]
)
async def test_for_single_actions_one_may_not_lack(cluster, grant, rule):
    await grant([rule], BOB)
    with pytest.raises(errors.Forbidden):
        await effective(cluster, User("bob"), user="alice")


async def test_those_who_may_act_as_one_are_that_one_from_then_on(cluster, grant):
    await grant(
        [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["carol"], "verbs": ["impersonate"]}],
        BOB,
    )
    assert await effective(cluster, User("bob", ("system:masters-not",)), user="carol") == User(
        "carol", ("system:authenticated",)
    )


async def test_nobody_gets_masters_by_asking(cluster, someone):
    with pytest.raises(errors.Forbidden):
        await someone(impersonate_user="root", impersonate_group="system:masters").get("/api/v1/nodes")
