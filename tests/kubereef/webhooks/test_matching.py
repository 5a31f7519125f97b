"""About what a webhook wants to be asked."""

from typing import Any

import pytest

from kubereef.kinds.behaviours.webhooks import MUTATING_WEBHOOKS
from kubereef.kinds.builtin import builtin_types
from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import Object
from kubereef.server.requests import User
from kubereef.server.webhooks.configurations import MUTATING, Hook, Hooks
from kubereef.server.webhooks.matching import invocation_of, is_exempt
from kubereef.server.webhooks.subjects import Subject
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors
from tests.kubereef.webhooks.asked import rules, webhook

REGISTRY = Registry(builtin_types())
CLIENT = {"url": "https://x"}


async def a_store(*namespaces: Object) -> Store:
    store = Store()
    for obj in namespaces:
        await store.put(Key("namespaces", "", obj["metadata"]["name"]), obj, None).done()
    return store


async def a_hook(store: Store, **fields: Any) -> Hook:
    configuration: Object = {"metadata": {"name": "w"}, "webhooks": [webhook("w", CLIENT, **fields)]}
    MUTATING_WEBHOOKS.defaults(configuration)
    await store.put(Key(MUTATING, "", "w"), configuration, None).done()
    (hook,) = Hooks(MUTATING).of(store)
    return hook


def subject(
    operation: str = "CREATE",
    resource: str = "pods",
    part: str = "",
    *,
    namespace: str = "default",
    group: str = "",
    obj: Object | None = None,
    old: Object | None = None,
    user: str = "somebody",
) -> Subject:
    found = REGISTRY.find(group, "v1", resource)
    assert found is not None
    if obj is None and operation in ("CREATE", "UPDATE"):
        obj = {"metadata": {"name": "x"}}
    return Subject(
        operation, found, found, part, namespace, "x", obj, old, {"kind": "O"}, User(user, ("g",)), False, 0.0
    )


DEFAULT: Object = {"metadata": {"name": "default", "labels": {"team": "a"}}}


def named(**labels: str) -> Object:
    return {"metadata": {"name": "x", "labels": labels}}


@pytest.mark.parametrize(
    ("rule", "asked", "not_asked"),
    [
        pytest.param(
            rules("pods"), [subject()], [subject("CREATE", "pods", "status")], id="a whole resource"
        ),
        pytest.param(
            rules("pods/status"),
            [subject("UPDATE", "pods", "status")],
            [subject("UPDATE")],
            id="one part of it",
        ),
        pytest.param(
            rules("pods/*"),
            [subject("UPDATE", "pods", "status"), subject("CONNECT", "pods", "exec"), subject()],
            [subject("UPDATE", "services", "status")],
            id="it and all its parts",
        ),
        pytest.param(
            rules("*/status"),
            [subject("UPDATE", "pods", "status"), subject("UPDATE", "services", "status")],
            [subject("UPDATE")],
            id="one part of everything",
        ),
        pytest.param(
            rules("*"),
            [subject(), subject(resource="secrets")],
            [subject(part="status")],
            id="all that is whole",
        ),
        pytest.param(
            rules("*/*"),
            [subject(), subject("CONNECT", "pods", "exec")],
            [subject(resource="jobs", group="batch")],
            id="all of a group",
        ),
        pytest.param(
            rules("pods", operations="CREATE DELETE"),
            [subject(), subject("DELETE")],
            [subject("UPDATE")],
            id="operations",
        ),
        pytest.param(rules("pods", version="v2"), [], [subject()], id="a version that there is not"),
        pytest.param(
            rules("*", group="*", version="*"),
            [subject(), subject(resource="jobs", group="batch")],
            [],
            id="any group",
        ),
        pytest.param(
            rules("*", scope="Namespaced"),
            [subject()],
            [subject(resource="nodes", namespace=""), subject(resource="namespaces", namespace="x")],
            id="what is in namespaces",
        ),
        pytest.param(
            rules("*", scope="Cluster"),
            [subject(resource="nodes", namespace=""), subject(resource="namespaces", namespace="x")],
            [subject()],
            id="what is in none, namespaces included",
        ),
    ],
)
async def test_a_rule_is_about(rule: list[Object], asked: list[Subject], not_asked: list[Subject]) -> None:
    store = await a_store()
    hook = await a_hook(store, rules=rule)
    for one in asked:
        assert invocation_of(hook, one, store, REGISTRY) is not None, one
    for one in not_asked:
        assert invocation_of(hook, one, store, REGISTRY) is None, one


TEAM_A = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
TEAM_B = {"namespaceSelector": {"matchLabels": {"team": "b"}}}
NOT_SYSTEM = {
    "namespaceSelector": {
        "matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
        ]
    }
}
CHOSEN = {"objectSelector": {"matchLabels": {"case": "x"}}}


def condition(*expressions: str, policy: str = "Fail") -> Object:
    conditions = [{"name": f"c{index}", "expression": text} for index, text in enumerate(expressions)]
    return {"matchConditions": conditions, "failurePolicy": policy}


EVERYTHING = rules("*", "*/status", group="*", version="*")


@pytest.mark.parametrize(
    ("fields", "what", "is_asked"),
    [
        pytest.param(TEAM_A, subject(), True, id="in a namespace with its labels"),
        pytest.param(TEAM_B, subject(), False, id="not in a namespace with others"),
        pytest.param(TEAM_B, subject(resource="nodes", namespace=""), True, id="in no namespace at all"),
        pytest.param(
            TEAM_B,
            subject(resource="namespaces", namespace="x", obj=named(team="b")),
            True,
            id="about a namespace by the labels it gets",
        ),
        pytest.param(
            TEAM_B,
            subject("UPDATE", "namespaces", namespace="default", obj=named(team="a"), old=named(team="b")),
            False,
            id="about a namespace by the labels it gets and not by those it had",
        ),
        pytest.param(
            TEAM_A,
            subject("DELETE", "namespaces", namespace="default", old=DEFAULT),
            True,
            id="about the end of a namespace by its labels",
        ),
        pytest.param(CHOSEN, subject(obj=named(case="x")), True, id="about an object with its labels"),
        pytest.param(CHOSEN, subject(obj=named(case="y")), False, id="not about an object with others"),
        pytest.param(
            CHOSEN,
            subject("UPDATE", obj=named(), old=named(case="x")),
            True,
            id="about an object that had its labels",
        ),
        pytest.param(CHOSEN, subject("DELETE", old=named(case="x")), True, id="about the end of an object"),
        pytest.param(condition("request.name == 'x'"), subject(), True, id="where its condition holds"),
        pytest.param(
            condition("true", "request.name == 'y'"), subject(), False, id="not where one does not hold"
        ),
        pytest.param(
            condition("object.nope == 1", "request.operation == 'DELETE'"),
            subject(),
            False,
            id="not where one does not hold, though another fails",
        ),
        pytest.param(
            condition("object.nope == 1", policy="Ignore"),
            subject(),
            False,
            id="not where its condition fails and failures are ignored",
        ),
        pytest.param(
            condition("object == null && oldObject.metadata.name == 'x'"),
            subject("DELETE", old=named()),
            True,
            id="where there is only the old object",
        ),
        pytest.param(
            condition("request.userInfo.username == 'somebody' && 'g' in request.userInfo.groups"),
            subject(),
            True,
            id="by who asks",
        ),
        pytest.param(
            condition("has(request.subResource) && request.subResource == 'status'"),
            subject("UPDATE", part="status"),
            True,
            id="by the part",
        ),
        pytest.param(
            condition("object.kind == 'Pod' && object.apiVersion == 'v1'"), subject(), True, id="by the kind"
        ),
    ],
)
async def test_a_webhook_is_asked(fields: Object, what: Subject, is_asked: bool) -> None:
    store = await a_store(DEFAULT)
    hook = await a_hook(store, rules=EVERYTHING, **fields)
    assert (invocation_of(hook, what, store, REGISTRY) is not None) == is_asked


async def test_a_condition_that_fails_refuses_the_request() -> None:
    store = await a_store(DEFAULT)
    hook = await a_hook(store, rules=EVERYTHING, **condition("object.nope == 1"))
    with pytest.raises(errors.Forbidden) as refused:
        invocation_of(hook, subject(), store, REGISTRY)
    because = "expression 'object.nope == 1' resulted in error: no such key: nope"
    assert refused.value.message == f'pods "x" is forbidden: {because}'


@pytest.mark.parametrize(
    ("count", "is_too_much"),
    [pytest.param(20, False, id="as much as is allowed"), pytest.param(30, True, id="too much")],
)
async def test_the_conditions_of_a_webhook_may_cost_so_much_together(count: int, is_too_much: bool) -> None:
    store = await a_store(DEFAULT)
    costly = [f"!object.text.contains('{index}!')" for index in range(count)]
    hook = await a_hook(store, rules=EVERYTHING, **condition(*costly))
    what = subject(obj={"metadata": {"name": "x"}, "text": "x" * 1_000_000})
    if not is_too_much:
        assert invocation_of(hook, what, store, REGISTRY) is not None
        return
    with pytest.raises(errors.Forbidden, match="running out of cost budget"):
        invocation_of(hook, what, store, REGISTRY)


async def test_the_namespace_has_to_be_there_only_for_what_the_webhook_is_about() -> None:
    store = await a_store()
    hook = await a_hook(store, rules=rules("pods"), **NOT_SYSTEM)
    assert invocation_of(hook, subject(resource="secrets"), store, REGISTRY) is None
    with pytest.raises(errors.NotFound, match='namespaces "default" not found'):
        invocation_of(hook, subject(), store, REGISTRY)


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        pytest.param("Equivalent", "", id="is asked in its own"),
        pytest.param("Exact", None, id="is not if it is exact"),
    ],
)
async def test_a_webhook_that_names_another_form_of_the_resource(policy: str, found: str | None) -> None:
    """Events are one set of objects under two groups."""
    store = await a_store(DEFAULT)
    hook = await a_hook(store, rules=rules("events"), matchPolicy=policy)
    invocation = invocation_of(hook, subject(resource="events", group="events.k8s.io"), store, REGISTRY)
    assert (None if invocation is None else invocation.version.group) == found


async def test_a_changed_configuration_counts_at_once() -> None:
    store = await a_store()
    hooks = Hooks(MUTATING)
    assert hooks.of(store) == ()
    key = Key(MUTATING, "", "w")
    body: Object = {"metadata": {"name": "w"}, "webhooks": [webhook("w", CLIENT, timeoutSeconds=3)]}
    record = await store.put(key, body, None).done()
    assert [hook.timeout for hook in hooks.of(store)] == [3.0]
    assert hooks.of(store)[0] is hooks.of(store)[0], "what was read is kept"
    body["webhooks"][0]["timeoutSeconds"] = 4
    record = await store.put(key, body, record).done()
    assert [hook.timeout for hook in hooks.of(store)] == [4.0]
    await store.remove(key, body, record).done()
    assert hooks.of(store) == ()


def test_configurations_of_webhooks_are_nobody_else_s_concern() -> None:
    own = subject(
        resource="validatingwebhookconfigurations", group="admissionregistration.k8s.io", namespace=""
    )
    assert is_exempt(own)
    assert not is_exempt(subject())
