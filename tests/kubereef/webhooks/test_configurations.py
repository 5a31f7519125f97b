"""The two kinds of webhook configurations: what is filled in, and what is refused in which words."""

from typing import Any

import pytest

from kubereef.kinds.behaviours.match_conditions import problem_of
from kubereef.kinds.behaviours.webhooks import MUTATING_WEBHOOKS
from tests.kubereef.webhooks.asked import REGISTRATION, Api, rules, webhook

SERVICE = {"service": {"name": "a", "namespace": "b"}}


@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_what_a_webhook_does_not_say_is_filled_in(api: Api, kind: str) -> None:
    url = f"{REGISTRATION}/{kind}webhookconfigurations"
    made = await api.send("POST", url, {"metadata": {"name": "w"}, "webhooks": [webhook("w.x", SERVICE)]})
    (found,) = made["webhooks"]
    assert made["metadata"]["generation"] == 1
    assert found.pop("reinvocationPolicy", None) == ("Never" if kind == "mutating" else None)
    assert found["rules"][0].pop("scope") == "*"
    assert found["clientConfig"]["service"] == {"name": "a", "namespace": "b", "port": 443}
    defaults = ("failurePolicy", "matchPolicy", "timeoutSeconds", "namespaceSelector", "objectSelector")
    assert [found[field] for field in defaults] == ["Fail", "Equivalent", 10, {}, {}]


async def test_a_configuration_is_changed_by_strategic_merge_and_counts_its_generations(api: Api) -> None:
    url = f"{REGISTRATION}/mutatingwebhookconfigurations"
    await api.send("POST", url, {"metadata": {"name": "w"}, "webhooks": [webhook("w.x", SERVICE)]})
    patch = {"webhooks": [{"name": "w.x.example.com", "timeoutSeconds": 5}]}
    changed = await api.send("PATCH", f"{url}/w", patch, "application/strategic-merge-patch+json")
    assert changed["metadata"]["generation"] == 2
    assert [(one["name"], one["timeoutSeconds"]) for one in changed["webhooks"]] == [("w.x.example.com", 5)]
    refused = await api.refusal("PUT", f"{url}/w", {"metadata": {"name": "w"}})
    assert "must be specified for an update" in refused.message


async def test_tables_show_how_many_webhooks_there_are(api: Api) -> None:
    url = f"{REGISTRATION}/validatingwebhookconfigurations"
    await api.send(
        "POST",
        url,
        {"metadata": {"name": "w"}, "webhooks": [webhook("a.x", SERVICE), webhook("b.x", SERVICE)]},
    )
    answer = await api.cluster.client().call(
        "GET", url, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    )
    assert [column["name"] for column in answer["columnDefinitions"]] == ["Name", "Webhooks", "Age"]
    assert answer["rows"][0]["cells"][:2] == ["w", 2]


def url(text: str) -> dict[str, Any]:
    return {"clientConfig": {"url": text}}


def service(**fields: object) -> dict[str, Any]:
    return {"clientConfig": {"service": {"name": "a", "namespace": "b", **fields}}}


def condition(expression: str, name: str = "c") -> dict[str, Any]:
    return {"matchConditions": [{"name": name, "expression": expression}]}


FORM = "; desired format: https://host[/path]"


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        pytest.param({"name": ""}, "name", "Required value", id="no name"),
        pytest.param(
            {"name": "a.b"},
            "name",
            'Invalid value: "a.b": should be a domain with at least three segments separated by dots',
            id="a name that is not qualified",
        ),
        pytest.param(
            {"rules": [{}]}, "rules[0].operations", "Required value", id="a rule without operations"
        ),
        pytest.param(
            {"rules": rules("pods", operations="GET")},
            "rules[0].operations[0]",
            'Unsupported value: "GET": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
            id="an operation that there is not",
        ),
        pytest.param(
            {"rules": rules("*/*", "pods")},
            "rules[0].resources",
            'Invalid value: ["*/*","pods"]: if \'*/*\' is present, must not specify other resources',
            id="more than everything",
        ),
        pytest.param(
            {"rules": rules("*", "pods")},
            "rules[0].resources",
            'Invalid value: ["*","pods"]: if \'*\' is present, must not specify other resources without subresources',
            id="more than every resource",
        ),
        pytest.param(
            {"rules": rules("pods/*", "pods/status")},
            "rules[0].resources[1]",
            "Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            id="more than every part",
        ),
        pytest.param(
            {"rules": rules("pods", scope="Some")},
            "rules[0].scope",
            'Unsupported value: "Some": supported values: "*", "Cluster", "Namespaced"',
            id="a scope that there is not",
        ),
        pytest.param(
            {"failurePolicy": "Maybe"},
            "failurePolicy",
            'Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
            id="a failure policy that there is not",
        ),
        pytest.param(
            {"matchPolicy": "Maybe"},
            "matchPolicy",
            'Unsupported value: "Maybe": supported values: "Equivalent", "Exact"',
            id="a match policy that there is not",
        ),
        pytest.param(
            {"reinvocationPolicy": "Often"},
            "reinvocationPolicy",
            'Unsupported value: "Often": supported values: "IfNeeded", "Never"',
            id="a reinvocation policy that there is not",
        ),
        pytest.param(
            {"sideEffects": None},
            "sideEffects",
            "Required value: must specify one of None, NoneOnDryRun",
            id="nothing about side effects",
        ),
        pytest.param(
            {"sideEffects": "Some"},
            "sideEffects",
            'Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
            id="side effects",
        ),
        pytest.param(
            {"timeoutSeconds": 31},
            "timeoutSeconds",
            "Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            id="too long a timeout",
        ),
        pytest.param(
            {"timeoutSeconds": 0},
            "timeoutSeconds",
            "Invalid value: 0: the timeout value must be between 1 and 30 seconds",
            id="no time at all",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v2"]},
            "admissionReviewVersions",
            'Invalid value: ["v2"]: must include at least one of v1, v1beta1',
            id="only versions of reviews that nobody knows",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v1", "v1"]},
            "admissionReviewVersions[1]",
            'Invalid value: "v1": duplicate version',
            id="a version twice",
        ),
        pytest.param(
            {"admissionReviewVersions": []},
            "admissionReviewVersions",
            "Required value: must specify one of v1, v1beta1",
            id="no version of reviews",
        ),
        pytest.param(
            {"clientConfig": {}},
            "clientConfig",
            "Required value: exactly one of url or service is required",
            id="nowhere",
        ),
        pytest.param(
            {"clientConfig": {"url": "https://x", **SERVICE}},
            "clientConfig",
            "Required value: exactly one of url or service is required",
            id="two places",
        ),
        pytest.param(
            url("http://x"),
            "clientConfig.url",
            f"Invalid value: \"http\": 'https' is the only allowed URL scheme{FORM}",
            id="a URL without TLS",
        ),
        pytest.param(
            url("https://u@x"),
            "clientConfig.url",
            'Invalid value: "u": user information is not permitted in the URL',
            id="a URL with a user",
        ),
        pytest.param(
            url("https://x?a=b"),
            "clientConfig.url",
            'Invalid value: "a=b": query parameters are not permitted in the URL',
            id="a URL with a query",
        ),
        pytest.param(
            url("https://x:port/"),
            "clientConfig.url",
            f'Required value: url must be a valid URL: parse "https://x:port/": invalid port ":port" after host{FORM}',
            id="a URL with a port that is no number",
        ),
        pytest.param(
            service(name=""), "clientConfig.service.name", "Required value", id="a Service without a name"
        ),
        pytest.param(
            service(port=70000),
            "clientConfig.service.port",
            "Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
            id="a port that there is not",
        ),
        pytest.param(
            service(path="x"),
            "clientConfig.service.path",
            "Invalid value: \"x\": must start with a '/'",
            id="a relative path",
        ),
        pytest.param(
            condition(""),
            "matchConditions[0].expression",
            "Required value",
            id="a condition that says nothing",
        ),
        pytest.param(
            condition("object.spec"),
            "matchConditions[0].expression",
            'Invalid value: "object.spec": must evaluate to bool but got dyn',
            id="a condition that is none",
        ),
        pytest.param(
            condition("request.nope"),
            "matchConditions[0].expression",
            "Invalid value: \"request.nope\": compilation failed: ERROR: <input>:1:8: undefined field 'nope'\n"
            " | request.nope\n | .......^",
            id="a condition about a field that requests do not have",
        ),
        pytest.param(
            {"matchConditions": [{"name": f"c{index}", "expression": "true"} for index in range(65)]},
            "matchConditions",
            "Too many: 65: must have at most 64 items",
            id="too many conditions",
        ),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "x", "operator": "Is"}]}},
            "objectSelector.matchExpressions[0].operator",
            'Invalid value: "Is": not a valid selector operator',
            id="a selector that makes no sense",
        ),
    ],
)
def test_a_webhook_is_refused_with(fields: dict[str, Any], field: str, message: str) -> None:
    configuration = {"webhooks": [{**webhook("w.x", SERVICE), **fields}]}
    MUTATING_WEBHOOKS.defaults(configuration)
    found = [(problem.field, problem.message) for problem in MUTATING_WEBHOOKS.validate(configuration)]
    assert (f"webhooks[0].{field}", message) in found


async def test_two_webhooks_of_one_name_are_refused(api: Api) -> None:
    both = [webhook("w.x", SERVICE), webhook("w.x", SERVICE)]
    refused = await api.refusal(
        "POST",
        f"{REGISTRATION}/validatingwebhookconfigurations",
        {"metadata": {"name": "w"}, "webhooks": both},
    )
    assert 'webhooks[1].name: Duplicate value: "w.x.example.com"' in refused.message


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("!('system:nodes' in request.userInfo.groups)", id="about who asks"),
        pytest.param("request.resource.group != 'coordination.k8s.io'", id="about the resource"),
        pytest.param(
            "has(request.namespace) && request.namespace != 'x'", id="with a reserved word as a field"
        ),
        pytest.param("oldObject == null || object.spec != oldObject.spec", id="about what changes"),
        pytest.param("request.options.kind == 'CreateOptions' && !request.dryRun", id="about the options"),
        pytest.param("namespaceObject == null", id="with what is known and always null"),
    ],
)
def test_a_condition_may_be(expression: str) -> None:
    assert problem_of(expression) == ""
