"""What the webhooks answer to admission's questions."""

import json

import pytest

from eagleray.rayapi.rules import RULES
from eagleray.webhooks.reviews import WEBHOOKS, NotAReview, answer
from tests.eagleray.world import raycluster, rayjob, rayservice

CLUSTERS, JOBS, SERVICES = WEBHOOKS
TIMEOUT = "ray.io/initializing-timeout"
TWINS = [{"groupName": "small"}, {"groupName": "big"}, {"groupName": "small"}]


def review(obj, *, operation="CREATE", old=None, kind=None, **fields):
    request = {
        "uid": "u-1",
        "operation": operation,
        "kind": {"group": "ray.io", "version": "v1", "kind": kind or (obj or old)["kind"]},
        "object": obj,
        "oldObject": old,
        **fields,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def asked(webhook, question):
    answered = json.loads(answer(webhook, json.dumps(question).encode()))
    assert (answered["apiVersion"], answered["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = answered["response"]
    assert response["uid"] == "u-1"
    return response


def annotated(value):
    return rayservice(metadata={"annotations": {TIMEOUT: value}})


REFUSED = [
    pytest.param(
        CLUSTERS,
        raycluster("c" * 54),
        "metadata.name",
        "RayCluster name should be no more than 53 characters",
        id="a RayCluster with a name of 54 characters",
        marks=pytest.mark.case("OP-107"),
    ),
    pytest.param(
        CLUSTERS,
        raycluster("1c"),
        "metadata.name",
        "not a DNS-1035 label",
        id="a RayCluster whose name begins with a digit",
        marks=pytest.mark.case("OP-107"),
    ),
    pytest.param(
        CLUSTERS,
        raycluster(workers=TWINS),
        "spec.workerGroupSpecs[2]",
        '"small" is also the name of workerGroupSpecs[0]',
        id="a RayCluster with two groups of one name",
        marks=pytest.mark.case("OP-107"),
    ),
    pytest.param(
        JOBS,
        rayjob("j" * 48),
        "metadata.name",
        "RayJob name should be no more than 47 characters",
        id="a RayJob with a name of 48 characters",
        marks=pytest.mark.case("OP-108"),
    ),
    pytest.param(
        JOBS,
        rayjob("my.job"),
        "metadata.name",
        "not a DNS-1035 label",
        id="a RayJob with a dot in its name",
        marks=pytest.mark.case("OP-108"),
    ),
    pytest.param(
        SERVICES,
        rayservice("s" * 48),
        "metadata.name",
        "RayService name should be no more than 47 characters",
        id="a RayService with a name of 48 characters",
        marks=pytest.mark.case("OP-109"),
    ),
    pytest.param(
        SERVICES,
        rayservice("9s"),
        "metadata.name",
        "not a DNS-1035 label",
        id="a RayService whose name begins with a digit",
        marks=pytest.mark.case("OP-109"),
    ),
    pytest.param(
        SERVICES,
        annotated("soon"),
        "metadata.annotations[ray.io/initializing-timeout]",
        "use a duration such as 30m",
        id="a RayService with a timeout that is none",
        marks=pytest.mark.case("OP-109"),
    ),
]


@pytest.mark.parametrize(("webhook", "obj", "field", "text"), REFUSED)
def test_what_is_refused_is_invalid_and_names_its_field(webhook, obj, field, text):
    response = asked(webhook, review(obj))
    assert not response["allowed"]
    status = response["status"]
    assert (status["status"], status["code"], status["reason"]) == ("Failure", 422, "Invalid")
    name = obj["metadata"]["name"]
    assert status["message"].startswith(f'{obj["kind"]}.ray.io "{name}" is invalid: {field}: Invalid value: ')
    details = status["details"]
    assert (details["name"], details["group"], details["kind"]) == (name, "ray.io", obj["kind"])
    (cause,) = details["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueInvalid", field)
    assert text in cause["message"]


@pytest.mark.parametrize(
    ("webhook", "obj"),
    [
        pytest.param(CLUSTERS, raycluster("c" * 53), id="a RayCluster with a name of 53 characters"),
        pytest.param(JOBS, rayjob("j" * 47), id="a RayJob with a name of 47 characters"),
        pytest.param(SERVICES, annotated("30m"), id="a RayService with a timeout"),
        pytest.param(
            CLUSTERS,
            raycluster(workers=[{"minReplicas": 5, "maxReplicas": 2}]),
            id="a RayCluster that the controller will find fault with",
        ),
        pytest.param(
            JOBS, rayjob(cluster={"workers": TWINS}), id="a RayJob whose cluster has groups of one name"
        ),
        pytest.param(
            SERVICES, rayservice(cluster={"workers": TWINS}), id="a RayService whose cluster has them"
        ),
    ],
)
def test_what_no_webhook_checks_is_allowed(webhook, obj):
    assert asked(webhook, review(obj)) == {"uid": "u-1", "allowed": True}


@pytest.mark.case("OP-110")
@pytest.mark.parametrize(("webhook", "obj", "field", "text"), REFUSED)
def test_a_delete_is_always_allowed(webhook, obj, field, text):
    assert asked(webhook, review(None, operation="DELETE", old=obj))["allowed"]


def test_an_update_that_breaks_a_rule_is_refused():
    response = asked(CLUSTERS, review(raycluster(workers=TWINS), operation="UPDATE", old=raycluster()))
    assert response["status"]["code"] == 422


def test_what_was_wrong_before_an_update_is_a_warning():
    old = raycluster("c" * 54)
    new = raycluster("c" * 54, metadata={"labels": {"a": "b"}})
    response = asked(CLUSTERS, review(new, operation="UPDATE", old=old))
    assert response["allowed"]
    (warning,) = response["warnings"]
    assert warning.startswith("metadata.name: RayCluster name should be no more than 53 characters")


def test_an_update_that_makes_something_else_wrong_is_refused_for_that_alone():
    old, new = raycluster("c" * 54), raycluster("c" * 54, workers=TWINS)
    response = asked(CLUSTERS, review(new, operation="UPDATE", old=old))
    (cause,) = response["status"]["details"]["causes"]
    assert cause["field"] == "spec.workerGroupSpecs[2]"


@pytest.mark.case("OP-110")
def test_a_finalizer_can_be_taken_off_whatever_the_object_is_like():
    going = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    old = raycluster(metadata={**going, "finalizers": ["a/b"]})
    new = raycluster(metadata=going, workers=TWINS)
    assert asked(CLUSTERS, review(new, operation="UPDATE", old=old))["allowed"]


def test_a_name_that_the_server_is_yet_to_make_is_judged_as_it_will_be():
    named = raycluster(metadata={"generateName": "c" * 60})
    del named["metadata"]["name"]
    (cause,) = asked(CLUSTERS, review(named))["status"]["details"]["causes"]
    assert cause["field"] == "metadata.generateName"


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(review(rayjob()), id="an object of another kind"),
        pytest.param(review(None, kind="RayCluster"), id="no object"),
    ],
)
def test_a_question_that_is_asked_in_the_wrong_place_is_refused(question):
    response = asked(CLUSTERS, question)
    assert (response["allowed"], response["status"]["code"]) == (False, 400)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="a list"),
        pytest.param(b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}', id="no request"),
        pytest.param(
            json.dumps({**review(raycluster()), "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
            id="another version",
        ),
        pytest.param(
            b'{"request": {"uid": "", "operation": "", "kind": {}, "object": ' + b'{"a": ' * 100_000,
            id="without end",
        ),
        pytest.param(json.dumps(review(raycluster(), uid=7)).encode(), id="a uid that is a number"),
    ],
)
def test_what_is_no_question_gets_no_answer(body):
    with pytest.raises(NotAReview):
        answer(CLUSTERS, body)


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({"kind": "RayCluster"}, id="without anything"),
        pytest.param({"kind": "RayCluster", "metadata": [], "spec": "x"}, id="of wrong types"),
        pytest.param(
            {"kind": "RayCluster", "metadata": {"name": 7}, "spec": {"workerGroupSpecs": [None, 7]}},
            id="with wrong types inside",
        ),
    ],
)
def test_an_object_that_no_schema_would_let_through_does_no_harm(obj):
    assert isinstance(asked(CLUSTERS, review(obj))["allowed"], bool)


def test_a_refusal_stays_short_whatever_it_is_about():
    many = raycluster(workers=[{"groupName": "g" * 1000}] * 500)
    response = asked(CLUSTERS, review(many))
    assert len(response["status"]["details"]["causes"]) == 20
    assert len(json.dumps(response)) < 50_000


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda webhook: webhook.name)
def test_every_rule_of_a_webhook_exists(webhook):
    assert webhook.rules <= {rule.id for rule in RULES[webhook.kind]}
