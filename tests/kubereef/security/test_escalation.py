"""Nobody writes a role or binding that gives away more than they have."""

import pytest

from kubewire import errors

RBAC = "/apis/rbac.authorization.k8s.io/v1"
INSIDE = f"{RBAC}/namespaces/default"
DAVE = {"kind": "User", "name": "dave", "apiGroup": "rbac.authorization.k8s.io"}
WRITES = ["create", "update", "patch", "get", "delete"]
# What lets dave write roles and bindings at all.
MANAGES = {
    "apiGroups": ["rbac.authorization.k8s.io"],
    "resources": ["roles", "rolebindings", "clusterroles", "clusterrolebindings"],
    "verbs": WRITES,
}


def rule(resources, verbs, groups=("",), names=()):
    made = {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
    return {**made, "resourceNames": list(names)} if names else made


def role(*rules, name="r", **more):
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def binding(to, kind="Role", name="b"):
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": to}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [DAVE]}


def urls(*paths, verbs=("get",)):
    return {"nonResourceURLs": list(paths), "verbs": list(verbs)}


@pytest.fixture
def dave(as_user, grant):
    """Somebody who may write roles, and whatever else a test says."""

    async def with_rights(*rules, namespace="", name="granted"):
        await grant([MANAGES, *rules], DAVE, namespace=namespace, name=name)
        return as_user("dave", "devs", "system:authenticated")

    return with_rights


async def missing(call):
    """Return the rights that a refusal lists."""
    with pytest.raises(errors.Forbidden) as refused:
        await call
    opening, _, listed = refused.value.message.partition(" not currently held:\n")
    assert 'user "dave" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC' in opening
    return listed.split("\n")


@pytest.mark.parametrize(
    ("held", "given", "lacking"),
    [
        pytest.param([rule(["pods"], ["get", "list"])], rule(["pods"], ["get"]), [], id="a part of a rule"),
        pytest.param(
            [rule(["pods"], ["get"]), rule(["secrets"], ["get"])],
            rule(["pods", "secrets"], ["get"]),
            [],
            id="two rules together",
        ),
        pytest.param(
            [rule(["pods"], ["get"])],
            rule(["pods"], ["get", "list", "watch"]),
            ['{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}'],
            id="more verbs",
        ),
        pytest.param(
            [],
            rule(["pods"], ["get"], names=["a", "b"]),
            [
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}',
                '{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}',
            ],
            id="single objects",
        ),
        pytest.param(
            [rule(["pods"], ["get"])], rule(["pods"], ["get"], names=["a"]), [], id="one object of all"
        ),
        pytest.param(
            [rule(["pods"], ["get"], names=["a"])],
            rule(["pods"], ["get"]),
            ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
            id="all objects instead of one",
        ),
        pytest.param([rule(["*"], ["*"], ["*"])], rule(["x/y"], ["z"], ["w"]), [], id="everything"),
        pytest.param(
            [rule(["*/log"], ["get"])], rule(["pods/log"], ["get"]), [], id="a part of all resources"
        ),
        pytest.param(
            [rule(["pods"], ["get"])],
            rule(["pods/log"], ["get"]),
            ['{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}'],
            id="a part is not the whole",
        ),
        pytest.param(
            [rule(["pods"], ["get"])],
            rule(["*"], ["get"]),
            ['{APIGroups:[""], Resources:["*"], Verbs:["get"]}'],
            id="a star is given by a star alone",
        ),
        pytest.param(
            [rule(["jobs"], ["get"], ["batch"])],
            rule(["jobs"], ["get"], ["batch", "apps"]),
            ['{APIGroups:["apps"], Resources:["jobs"], Verbs:["get"]}'],
            id="another group",
        ),
    ],
)
async def test_a_role_holds_no_more_than_its_writer_has(dave, held, given, lacking):
    client = await dave(*held)
    creation = client.create(f"{INSIDE}/roles", role(given))
    assert (await missing(creation) if lacking else bool(await creation) and []) == lacking


async def test_paths_are_compared_with_their_stars(dave):
    client = await dave(urls("/metrics", "/logs/*", verbs=["get", "head"]))
    assert await client.create(f"{RBAC}/clusterroles", role(urls("/metrics", "/logs/a/*")))
    beyond = role(urls("/metrics/x", "/logs", verbs=["get", "head"]), name="beyond")
    assert await missing(client.create(f"{RBAC}/clusterroles", beyond)) == [
        '{NonResourceURLs:["/logs"], Verbs:["get"]}',
        '{NonResourceURLs:["/logs"], Verbs:["head"]}',
        '{NonResourceURLs:["/metrics/x"], Verbs:["get"]}',
        '{NonResourceURLs:["/metrics/x"], Verbs:["head"]}',
    ]


async def test_rights_in_one_namespace_are_none_in_another(dave, as_user, grant):
    await dave(rule(["pods"], ["get"]), namespace="default")
    client = as_user("dave", "devs", "system:authenticated")
    assert await client.create(f"{INSIDE}/roles", role(rule(["pods"], ["get"])))
    await grant([MANAGES], DAVE, namespace="kube-system", name="there")
    elsewhere = f"{RBAC}/namespaces/kube-system/roles"
    assert await missing(client.create(elsewhere, role(rule(["pods"], ["get"]))))


async def test_an_update_that_changes_nothing_about_rights_is_let_by(dave, admin):
    await admin.create(f"{INSIDE}/roles", role(rule(["secrets"], ["get"])))
    client = await dave()
    finalizers = {"metadata": {"finalizers": ["example.com/x"]}}
    assert await client.patch(f"{INSIDE}/roles/r", finalizers)
    assert await missing(client.patch(f"{INSIDE}/roles/r", {"metadata": {"labels": {"a": "b"}}}))


async def test_whoever_may_escalate_a_role_may_write_anything_into_it(dave, admin):
    await admin.create(f"{INSIDE}/roles", role(name="free"))
    await admin.create(f"{INSIDE}/roles", role(name="other"))
    client = await dave(rule(["roles"], ["escalate"], ["rbac.authorization.k8s.io"], ["free"]))
    wider = {"rules": [rule(["secrets"], ["*"])]}
    assert await client.patch(f"{INSIDE}/roles/free", wider)
    assert await missing(client.patch(f"{INSIDE}/roles/other", wider))


@pytest.mark.parametrize("verb", ["bind", "*"])
async def test_whoever_may_bind_a_role_may_give_it_to_anybody(dave, admin, verb):
    await admin.create(f"{INSIDE}/roles", role(rule(["secrets"], ["get"])))
    client = await dave(rule(["roles"], [verb], ["rbac.authorization.k8s.io"], ["r"]))
    assert await client.create(f"{INSIDE}/rolebindings", binding("r"))


async def test_a_binding_gives_no_more_than_its_writer_has(dave, admin):
    await admin.create(f"{RBAC}/clusterroles", role(rule(["secrets"], ["get"]), name="secrets"))
    await admin.create(f"{RBAC}/clusterroles", role(rule(["pods"], ["get"]), name="pods"))
    client = await dave(rule(["pods"], ["get"]))
    for url in (f"{INSIDE}/rolebindings", f"{RBAC}/clusterrolebindings"):
        assert await client.create(url, binding("pods", "ClusterRole"))
        assert await missing(client.create(url, binding("secrets", "ClusterRole", "c")))


async def test_a_binding_of_a_role_that_does_not_exist_is_refused(dave):
    client = await dave()
    with pytest.raises(errors.NotFound) as refused:
        await client.create(f"{INSIDE}/rolebindings", binding("ghost"))
    assert refused.value.message == 'rolebindings.rbac.authorization.k8s.io "ghost" not found'


async def test_whoever_may_do_anything_with_roles_may_gather_them(dave):
    client = await dave(rule(["*"], ["*"], ["*"]))
    gathering = role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    assert await client.create(f"{RBAC}/clusterroles", gathering)


async def test_gathering_roles_is_refused_to_those_who_have_less_and_so_is_the_end_of_it(dave, admin):
    client = await dave(rule(["pods"], ["*"]))
    gathering = role(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    because = "must have cluster-admin privileges to use the aggregationRule"
    with pytest.raises(errors.Forbidden, match=because):
        await client.create(f"{RBAC}/clusterroles", gathering)
    await admin.create(f"{RBAC}/clusterroles", gathering)
    with pytest.raises(errors.Forbidden, match=because):
        await client.patch(f"{RBAC}/clusterroles/r", {"aggregationRule": None})


async def test_roles_that_are_bound_and_missing_are_named(dave, admin):
    client = await dave()
    await admin.create(f"{INSIDE}/rolebindings", binding("ghost"))
    (line,) = await missing(client.create(f"{INSIDE}/roles", role(rule(["pods"], ["get"]))))
    assert line.endswith('; resolution errors: [role.rbac.authorization.k8s.io "ghost" not found]')


async def test_a_rule_of_billions_of_combinations_is_refused_in_no_time(dave):
    many = [f"x{number}" for number in range(300)]
    client = await dave()
    with pytest.raises(errors.Forbidden, match="more than 10000 single permissions"):
        await client.create(f"{INSIDE}/roles", role(rule(many, many, many, many)))


async def test_the_rules_of_a_user_name_the_roles_that_are_missing(dave, admin):
    client = await dave()
    await admin.create(f"{INSIDE}/rolebindings", binding("ghost"))
    review = {"spec": {"namespace": "default"}}
    answer = await client.create("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review)
    assert answer["status"]["evaluationError"] == 'role.rbac.authorization.k8s.io "ghost" not found'
