"""Clients can ask who they are and what they may do."""

import pytest

from kubewire import errors

AUTHZ = "/apis/authorization.k8s.io/v1"
AUTHN = "/apis/authentication.k8s.io/v1"
FRANK = {"kind": "User", "name": "frank", "apiGroup": "rbac.authorization.k8s.io"}
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
LIST_PODS = {"namespace": "default", "verb": "list", "resource": "pods"}


@pytest.fixture
async def frank(grant, as_user):
    await grant([READ_PODS], FRANK, namespace="default", name="viewer")
    return as_user("frank", "system:authenticated")


async def status_of(client, kind, spec, namespace=""):
    url = f"{AUTHZ}/namespaces/{namespace}/{kind}" if namespace else f"{AUTHZ}/{kind}"
    metadata = {"namespace": namespace} if namespace else {}
    return (await client.create(url, {"metadata": metadata, "spec": spec}))["status"]


async def test_a_user_learns_what_they_may(frank):
    asked = {"resourceAttributes": LIST_PODS}
    answer = await frank.create(f"{AUTHZ}/selfsubjectaccessreviews", {"spec": asked})
    assert answer == {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {},
        "spec": asked,
        "status": {
            "allowed": True,
            "reason": 'RBAC: allowed by RoleBinding "viewer/default" of Role "viewer" to User "frank"',
        },
    }


async def test_and_what_they_may_not(frank):
    spec = {"resourceAttributes": {**LIST_PODS, "resource": "secrets"}}
    assert await status_of(frank, "selfsubjectaccessreviews", spec) == {"allowed": False}


async def test_the_administrator_learns_what_others_may(frank, admin):
    spec = {"user": "frank", "resourceAttributes": LIST_PODS}
    assert (await status_of(admin, "subjectaccessreviews", spec))["allowed"]
    spec = {"user": "frank", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    assert await status_of(admin, "subjectaccessreviews", spec) == {"allowed": False}


async def test_groups_alone_can_be_asked_about(admin):
    spec = {"groups": ["system:masters"], "resourceAttributes": LIST_PODS}
    assert (await status_of(admin, "subjectaccessreviews", spec))["allowed"]


async def test_a_missing_role_is_named(admin, frank):
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "ghost"}
    binding = {"metadata": {"name": "g"}, "roleRef": reference, "subjects": [FRANK]}
    await admin.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    spec = {"user": "frank", "resourceAttributes": {**LIST_PODS, "verb": "delete"}}
    assert await status_of(admin, "subjectaccessreviews", spec) == {
        "allowed": False,
        "reason": 'RBAC: clusterrole.rbac.authorization.k8s.io "ghost" not found',
    }


async def test_a_local_review_stays_in_its_namespace(frank, admin):
    spec = {"user": "frank", "resourceAttributes": LIST_PODS}
    assert (await status_of(admin, "localsubjectaccessreviews", spec, "default"))["allowed"]
    with pytest.raises(errors.Invalid, match=r"must match metadata\.namespace"):
        await status_of(admin, "localsubjectaccessreviews", spec, "kube-system")
    spec = {"user": "frank", "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    with pytest.raises(errors.Invalid, match="disallowed on this kind of request"):
        await status_of(admin, "localsubjectaccessreviews", spec, "default")


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        pytest.param(
            "subjectaccessreviews",
            {"user": "frank"},
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or"
            " resourceAttributes must be specified",
            id="nothing is asked",
        ),
        pytest.param(
            "selfsubjectaccessreviews",
            {"resourceAttributes": LIST_PODS, "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}:'
            " cannot be specified in combination with resourceAttributes",
            id="two things are asked",
        ),
        pytest.param(
            "subjectaccessreviews",
            {"resourceAttributes": LIST_PODS},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
            id="nobody is asked about",
        ),
    ],
)
async def test_a_review_must_make_sense(admin, kind, spec, message):
    with pytest.raises(errors.Invalid) as refused:
        await status_of(admin, kind, spec)
    assert refused.value.message == f'.authorization.k8s.io "" is invalid: {message}'


async def test_a_review_has_no_name(admin):
    body = {"metadata": {"name": "x"}, "spec": {"resourceAttributes": LIST_PODS}}
    with pytest.raises(errors.Invalid, match=r"metadata: Invalid value: .* must be empty"):
        await admin.create(f"{AUTHZ}/selfsubjectaccessreviews", body)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("authorization.k8s.io/v1/subjectaccessreviews", {"user": 7}),
        ("authorization.k8s.io/v1/subjectaccessreviews", {"groups": "x"}),
        ("authorization.k8s.io/v1/subjectaccessreviews", []),
        ("authorization.k8s.io/v1/selfsubjectrulesreviews", {"namespace": {}}),
        ("authentication.k8s.io/v1/tokenreviews", {"token": ["x"]}),
    ],
)
async def test_a_review_of_wrong_types_is_refused(admin, kind, spec):
    with pytest.raises(errors.BadRequest):
        await admin.create(f"/apis/{kind}", {"spec": spec})


async def test_reviews_leave_nothing_behind(cluster, frank, admin):
    before = cluster.store.revision
    await status_of(frank, "selfsubjectaccessreviews", {"resourceAttributes": LIST_PODS})
    await admin.create(f"{AUTHN}/selfsubjectreviews", {})
    assert cluster.store.revision == before


async def test_all_rules_of_a_user_can_be_listed(frank):
    status = await status_of(frank, "selfsubjectrulesreviews", {"namespace": "default"})
    assert status["incomplete"] is False
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]} in status["resourceRules"]
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    elsewhere = await status_of(frank, "selfsubjectrulesreviews", {"namespace": "kube-system"})
    assert not any("pods" in rule["resources"] for rule in elsewhere["resourceRules"])


async def test_the_administrator_may_do_everything_and_the_rules_say_so(admin):
    status = await status_of(admin, "selfsubjectrulesreviews", {"namespace": "default"})
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in status["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in status["nonResourceRules"]


async def test_rules_are_listed_for_a_namespace(admin):
    with pytest.raises(errors.BadRequest, match="no namespace on request"):
        await status_of(admin, "selfsubjectrulesreviews", {})


async def test_a_user_learns_who_they_are(as_user):
    answer = await as_user("frank", "devs", "system:authenticated").create(f"{AUTHN}/selfsubjectreviews", {})
    assert answer["metadata"] == {"creationTimestamp": "2030-01-01T00:00:00Z"}
    assert answer["status"] == {"userInfo": {"username": "frank", "groups": ["devs", "system:authenticated"]}}


async def reviewed(admin, token, **spec):
    return (await admin.create(f"{AUTHN}/tokenreviews", {"spec": {"token": token, **spec}}))["status"]


async def test_a_good_token_is_told_whose_it_is(admin):
    status = await reviewed(admin, "admin-token")
    assert status["authenticated"] is True
    assert status["user"]["username"] == "kubernetes-admin"
    assert status["audiences"] == ["https://kubernetes.default.svc.cluster.local"]


async def test_a_bad_token_is_nobodys(admin):
    status = await reviewed(admin, "a.b.c")
    assert "authenticated" not in status
    assert status["user"] == {}
    assert "a.b.c" not in status["error"]


async def test_a_token_is_reviewed_for_an_audience(admin):
    url = "/api/v1/namespaces/default/serviceaccounts"
    await admin.create(url, {"metadata": {"name": "robot"}})
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": ["vault"]},
    }
    token = (await admin.create(f"{url}/robot/token", body))["status"]["token"]
    assert "authenticated" not in await reviewed(admin, token)
    status = await reviewed(admin, token, audiences=["vault", "other"])
    assert status["authenticated"] is True
    assert status["audiences"] == ["vault"]
    assert "authenticated" not in await reviewed(admin, "admin-token", audiences=["vault"])


async def test_a_review_needs_a_token(admin):
    with pytest.raises(errors.BadRequest, match="token is required for TokenReview in authentication"):
        await reviewed(admin, "")


async def test_reviews_cannot_be_listed(admin):
    with pytest.raises(errors.MethodNotAllowed):
        await admin.get(f"{AUTHZ}/selfsubjectaccessreviews")
