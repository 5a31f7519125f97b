"""What roles allow, and the words of a refusal."""

import pytest

from kubereef.server.rbac import RoleBook
from kubereef.server.requests import User
from kubereef.server.routing import Target
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors

ALICE = {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
DEVS = {"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}
ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
RBAC = "rbac.authorization.k8s.io"


def rule(groups, resources, verbs, names=()):
    made = {"apiGroups": groups, "resources": resources, "verbs": verbs}
    return {**made, "resourceNames": list(names)} if names else made


def urls(paths, verbs=("get",)):
    return {"nonResourceURLs": paths, "verbs": list(verbs)}


def asks(verb, resource, name="", namespace="ns"):
    """`get apps/deployments/scale` as a target: group, plural and subresource in one text."""
    group, _, rest = resource.rpartition(":")
    plural, _, part = rest.partition("/")
    return Target(verb, "", group, "v1", namespace, plural, name, part, is_resource=True)


class Book:
    """A role book over a store that a test fills."""

    def __init__(self):
        self.store = Store()
        self.book = RoleBook(self.store)

    def put(self, resource, namespace, name, **fields):
        key = Key(f"{resource}.{RBAC}", namespace, name)
        obj = {"metadata": {"name": name}, **fields}
        self.store.put(key, obj, self.store.get(key))

    def remove(self, resource, namespace, name):
        record = self.store.get(Key(f"{resource}.{RBAC}", namespace, name))
        assert record is not None
        self.store.remove(record.key, record.object(), record)

    def bind(self, rules, *subjects, namespace="", name="r"):
        role, binding = ("roles", "rolebindings") if namespace else ("clusterroles", "clusterrolebindings")
        self.put(role, namespace, name, rules=list(rules))
        reference = {"kind": "Role" if namespace else "ClusterRole", "name": name}
        self.put(binding, namespace, name, roleRef=reference, subjects=list(subjects))

    def allows(self, target, user="alice", *groups):
        return self.book.decide(User(user, groups), target).allowed


@pytest.fixture
def book():
    return Book()


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        pytest.param(rule([""], ["pods"], ["get"]), asks("get", "pods"), True, id="as written"),
        pytest.param(rule([""], ["pods"], ["get"]), asks("list", "pods"), False, id="another verb"),
        pytest.param(rule([""], ["pods"], ["get"]), asks("get", "secrets"), False, id="another resource"),
        pytest.param(rule([""], ["pods"], ["get"]), asks("get", "x:pods"), False, id="another group"),
        pytest.param(rule([""], ["pods"], ["*"]), asks("escalate", "pods"), True, id="every verb"),
        pytest.param(rule(["*"], ["pods"], ["get"]), asks("get", "x:pods"), True, id="every group"),
        pytest.param(rule([""], ["*"], ["get"]), asks("get", "secrets"), True, id="every resource"),
        pytest.param(rule([""], ["*"], ["get"]), asks("get", "pods/log"), True, id="every resource and part"),
        pytest.param(
            rule([""], ["pods"], ["get"]), asks("get", "pods/log"), False, id="a part is not the whole"
        ),
        pytest.param(rule([""], ["pods/log"], ["get"]), asks("get", "pods/log"), True, id="a part"),
        pytest.param(
            rule([""], ["pods/log"], ["get"]), asks("get", "pods"), False, id="the whole is not a part"
        ),
        pytest.param(
            rule(["*"], ["*/scale"], ["get"]), asks("get", "apps:deployments/scale"), True, id="a part of all"
        ),
        pytest.param(
            rule(["*"], ["*/scale"], ["get"]),
            asks("get", "apps:deployments"),
            False,
            id="a part of all, not all",
        ),
        pytest.param(rule([""], ["pods/*"], ["get"]), asks("get", "pods/log"), False, id="no such pattern"),
        pytest.param(rule([""], ["pods"], ["get"], ["a"]), asks("get", "pods", "a"), True, id="a name"),
        pytest.param(
            rule([""], ["pods"], ["get"], ["a"]), asks("get", "pods", "b"), False, id="another name"
        ),
        pytest.param(
            rule([""], ["pods"], ["list"], ["a"]), asks("list", "pods"), False, id="names, but none asked"
        ),
        pytest.param(rule([], [], ["*"]), asks("get", "pods"), False, id="an empty rule"),
        pytest.param({"verbs": None}, asks("get", "pods"), False, id="a rule of nothing"),
        pytest.param(urls(["/metrics"]), Target("get", "/metrics"), True, id="a path"),
        pytest.param(urls(["/metrics"]), Target("post", "/metrics"), False, id="a path, another verb"),
        pytest.param(urls(["/metrics"]), Target("get", "/metrics/x"), False, id="a longer path"),
        pytest.param(urls(["/x/*"]), Target("get", "/x/y/z"), True, id="paths below"),
        pytest.param(urls(["/x/*"]), Target("get", "/x"), False, id="paths below are not the path"),
        pytest.param(urls(["*"]), Target("get", "/anything"), True, id="every path"),
        pytest.param(urls(["*"], ["*"]), asks("get", "pods"), False, id="paths are no resources"),
        pytest.param(
            rule(["*"], ["*"], ["*"]), Target("get", "/metrics"), False, id="resources are no paths"
        ),
    ],
)
def test_a_rule_allows_what_it_says(book, given, asked, allowed):
    book.bind([given], ALICE)
    assert book.allows(asked) is allowed


@pytest.mark.parametrize(
    ("subject", "user", "allowed"),
    [
        pytest.param(ALICE, ("alice",), True, id="a user"),
        pytest.param(ALICE, ("bob",), False, id="another user"),
        pytest.param(ALICE, ("bob", "alice"), False, id="a group of the same name"),
        pytest.param(DEVS, ("bob", "ops", "devs"), True, id="a group"),
        pytest.param(DEVS, ("devs",), False, id="a user of the same name"),
        pytest.param(ROBOT, ("system:serviceaccount:default:robot",), True, id="an account"),
        pytest.param(
            ROBOT, ("system:serviceaccount:other:robot",), False, id="an account of another namespace"
        ),
        pytest.param(
            {"kind": "User", "name": "system:serviceaccount:default:robot"},
            ("system:serviceaccount:default:robot",),
            True,
            id="an account by its user name",
        ),
        pytest.param(
            {"kind": "Group", "name": "system:serviceaccounts:default"},
            ("x", "system:serviceaccounts:default"),
            True,
            id="all accounts of a namespace",
        ),
    ],
)
def test_a_binding_is_for_its_subjects(book, subject, user, allowed):
    book.bind([rule([""], ["pods"], ["get"])], subject)
    assert book.allows(asks("get", "pods"), *user) is allowed


def test_a_role_binding_counts_in_its_namespace_only(book):
    book.bind([rule([""], ["pods", "nodes"], ["get"])], ALICE, namespace="ns")
    assert book.allows(asks("get", "pods", namespace="ns"))
    assert not book.allows(asks("get", "pods", namespace="other"))
    assert not book.allows(asks("get", "nodes", namespace=""))


def test_a_role_binding_may_give_a_cluster_role_in_its_namespace(book):
    book.put("clusterroles", "", "viewer", rules=[rule([""], ["pods"], ["get"])])
    book.put("rolebindings", "ns", "b", roleRef={"kind": "ClusterRole", "name": "viewer"}, subjects=[ALICE])
    assert book.allows(asks("get", "pods", namespace="ns"))
    assert not book.allows(asks("get", "pods", namespace="other"))


def test_an_account_without_a_namespace_is_of_the_bindings_own(book):
    book.bind([rule([""], ["pods"], ["get"])], {"kind": "ServiceAccount", "name": "robot"}, namespace="ns")
    assert book.allows(asks("get", "pods"), "system:serviceaccount:ns:robot")


def test_changes_count_from_the_next_question_on(book):
    target = asks("get", "pods")
    book.bind([rule([""], ["pods"], ["get"])], ALICE)
    assert book.allows(target)
    book.put("clusterroles", "", "r", rules=[])
    assert not book.allows(target)
    book.put("clusterroles", "", "r", rules=[rule([""], ["*"], ["*"])])
    assert book.allows(target)
    book.put("clusterrolebindings", "", "r", roleRef={"kind": "ClusterRole", "name": "r"}, subjects=[DEVS])
    assert not book.allows(target)
    assert book.allows(target, "bob", "devs")
    book.remove("clusterrolebindings", "", "r")
    assert not book.allows(target, "bob", "devs")


def test_a_role_that_comes_after_its_binding_counts(book):
    book.put(
        "clusterrolebindings", "", "b", roleRef={"kind": "ClusterRole", "name": "late"}, subjects=[ALICE]
    )
    assert not book.allows(asks("get", "pods"))
    book.put("clusterroles", "", "late", rules=[rule([""], ["pods"], ["get"])])
    assert book.allows(asks("get", "pods"))


def test_a_book_that_was_left_behind_reads_everything_anew(book, monkeypatch):
    monkeypatch.setattr("kubereef.store.watchers.QUEUE_LIMIT", 5)
    fresh = RoleBook(book.store)
    for number in range(20):
        book.bind([rule([""], ["pods"], ["get"])], ALICE, name=f"r{number}")
    assert fresh.decide(User("alice"), asks("get", "pods")).allowed
    book.remove("clusterrolebindings", "", "r0")
    for number in range(1, 20):
        book.remove("clusterrolebindings", "", f"r{number}")
    assert not fresh.decide(User("alice"), asks("get", "pods")).allowed


def test_a_book_goes_on_when_all_watches_are_ended(book):
    book.store.end_watches()
    book.bind([rule([""], ["pods"], ["get"])], ALICE)
    assert book.allows(asks("get", "pods"))


def test_what_is_remembered_is_bounded(book, monkeypatch):
    monkeypatch.setattr("kubereef.server.rbac._MAX_GRANTS", 10)
    book.bind([rule([""], ["pods"], ["get"])], ALICE)
    for number in range(50):
        assert not book.allows(asks("get", f"made-up-{number}"))
    assert len(book.book._grants) <= 10
    assert book.allows(asks("get", "pods"))


def test_a_decision_among_many_bindings_looks_only_at_the_users_own(book):
    for number in range(500):
        subject = {"kind": "User", "name": f"u{number}"}
        book.bind([rule([""], ["pods"], ["get"])], subject, name=f"r{number}", namespace="ns")
    assert book.allows(asks("get", "pods"), "u7", "devs")
    looked_at = list(book.book._of(User("u7", ("devs",)), "ns"))
    assert [binding.key.name for binding, _ in looked_at] == ["r7"]


@pytest.mark.parametrize(
    ("namespace", "subject", "user", "reason"),
    [
        pytest.param(
            "ns",
            ALICE,
            User("alice"),
            'RBAC: allowed by RoleBinding "r/ns" of Role "r" to User "alice"',
            id="in a namespace",
        ),
        pytest.param(
            "",
            DEVS,
            User("bob", ("devs",)),
            'RBAC: allowed by ClusterRoleBinding "r" of ClusterRole "r" to Group "devs"',
            id="in the cluster",
        ),
        pytest.param(
            "",
            ROBOT,
            User("system:serviceaccount:default:robot"),
            'RBAC: allowed by ClusterRoleBinding "r" of ClusterRole "r" to ServiceAccount "robot/default"',
            id="for an account",
        ),
    ],
)
def test_the_reason_names_the_binding(book, namespace, subject, user, reason):
    book.bind([rule([""], ["pods"], ["get"])], subject, namespace=namespace)
    assert book.book.decide(user, asks("get", "pods")).reason == reason


def test_the_reason_names_roles_that_are_missing(book):
    for name, kind in (("a", "ClusterRole"), ("b", "Role")):
        book.put("rolebindings", "ns", name, roleRef={"kind": kind, "name": "ghost"}, subjects=[ALICE])
    reason = book.book.decide(User("alice"), asks("get", "pods")).reason
    assert reason == (f'RBAC: [clusterrole.{RBAC} "ghost" not found, role.{RBAC} "ghost" not found]')


@pytest.mark.parametrize(
    ("method", "url", "message", "details"),
    [
        pytest.param(
            "GET",
            "/api/v1/namespaces/default/pods",
            'pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "default"',
            {"kind": "pods"},
            id="listing",
        ),
        pytest.param(
            "GET",
            "/apis/apps/v1/namespaces/default/deployments/d/scale",
            'deployments.apps "d" is forbidden: User "eve" cannot get resource "deployments/scale"'
            ' in API group "apps" in the namespace "default"',
            {"group": "apps", "kind": "deployments", "name": "d"},
            id="a part",
        ),
        pytest.param(
            "DELETE",
            "/api/v1/nodes/n",
            'nodes "n" is forbidden: User "eve" cannot delete resource "nodes" in API group "" at the cluster scope',
            {"kind": "nodes", "name": "n"},
            id="of no namespace",
        ),
        pytest.param(
            "POST", "/metrics", 'forbidden: User "eve" cannot post path "/metrics"', {}, id="a path"
        ),
        pytest.param(
            "GET",
            "/a<b>&c",
            'forbidden: User "eve" cannot get path "/a&lt;b&gt;&amp;c"',
            {},
            id="a path that a browser might take for more",
        ),
    ],
)
async def test_a_refusal_says_what_is_missing(as_user, method, url, message, details):
    with pytest.raises(errors.Forbidden) as refused:
        await as_user("eve").call(method, url)
    status = refused.value.status()
    assert status["message"] == message
    assert status["details"] == details


async def test_masters_may_do_everything(as_user):
    assert (await as_user("anyone", "system:masters").get("/api/v1/nodes"))["kind"] == "NodeList"


async def test_what_does_not_exist_is_forbidden_first(as_user):
    with pytest.raises(errors.Forbidden):
        await as_user("eve").get("/apis/batch/v1/namespaces/default/nothings")


async def test_a_list_of_one_named_object_needs_only_that_name(as_user, grant):
    await grant([rule([""], ["configmaps"], ["list", "watch"], ["mine"])], ALICE, namespace="default")
    url = "/api/v1/namespaces/default/configmaps"
    alice = as_user("alice")
    assert (await alice.get(f"{url}?fieldSelector=metadata.name%3Dmine"))["items"] == []
    with pytest.raises(errors.Forbidden):
        await alice.get(f"{url}?fieldSelector=metadata.name%3Dother")
