"""API errors: the expected Status objects are what kube-apiserver 1.36 answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire import errors, fielderrors
from kubewire.errors import MAX_PROBLEM_TEXT, MAX_PROBLEMS, ApiError, Cause, Details, from_status
from kubewire.fielderrors import FieldError


def failure(code, reason, message, details=None):
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code}
    optional = {"reason": reason, "message": message, "details": details}
    return {**status, **{field: value for field, value in optional.items() if value is not None}}


REQUIRED = FieldError("FieldValueRequired", ("spec", "ports"), "Required value")
INVALID = FieldError("FieldValueInvalid", ("spec", "x", 0), 'Invalid value: "y": bad')

BUILT = [
    pytest.param(
        errors.not_found("pods", "x"),
        failure(404, "NotFound", 'pods "x" not found', {"kind": "pods", "name": "x"}),
        id="not found in the core group",
    ),
    pytest.param(
        errors.not_found("deployments", "d", group="apps"),
        failure(
            404,
            "NotFound",
            'deployments.apps "d" not found',
            {"group": "apps", "kind": "deployments", "name": "d"},
        ),
        id="not found in another group",
    ),
    pytest.param(
        errors.already_exists("configmaps", "c"),
        failure(409, "AlreadyExists", 'configmaps "c" already exists', {"kind": "configmaps", "name": "c"}),
        id="already exists",
    ),
    pytest.param(
        errors.generated_name_taken("pods", "n"),
        failure(
            409,
            "AlreadyExists",
            'pods "n" already exists, the server was not able to generate a unique name for the object',
            {"kind": "pods", "name": "n", "retryAfterSeconds": 1},
        ),
        id="no free name",
    ),
    pytest.param(
        errors.modified("leases", "leader", group="coordination.k8s.io"),
        failure(
            409,
            "Conflict",
            'Operation cannot be fulfilled on leases.coordination.k8s.io "leader": the object has been modified;'
            " please apply your changes to the latest version and try again",
            {"group": "coordination.k8s.io", "kind": "leases", "name": "leader"},
        ),
        id="an old resource version",
    ),
    pytest.param(
        errors.conflict("pods/binding", "p", 'pod p is already assigned to node "n1"'),
        failure(
            409,
            "Conflict",
            'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
            {"kind": "pods/binding", "name": "p"},
        ),
        id="another conflict",
    ),
    pytest.param(
        errors.apply_conflict(
            'Apply failed with 1 conflict: conflict with "alice": .data.x',
            [Cause("FieldManagerConflict", 'conflict with "alice"', ".data.x")],
        ),
        failure(
            409,
            "Conflict",
            'Apply failed with 1 conflict: conflict with "alice": .data.x',
            {
                "causes": [
                    {"field": ".data.x", "message": 'conflict with "alice"', "reason": "FieldManagerConflict"}
                ]
            },
        ),
        id="an apply conflict",
    ),
    pytest.param(
        errors.forbidden("jobs", "j", 'User "alice" cannot get resource "jobs"', group="batch"),
        failure(
            403,
            "Forbidden",
            'jobs.batch "j" is forbidden: User "alice" cannot get resource "jobs"',
            {"group": "batch", "kind": "jobs", "name": "j"},
        ),
        id="a forbidden object",
    ),
    pytest.param(
        errors.forbidden("pods", "", "because"),
        failure(403, "Forbidden", "pods is forbidden: because", {"kind": "pods"}),
        id="a forbidden resource",
    ),
    pytest.param(
        errors.forbidden("", "", 'User "alice" cannot get path "/metrics"'),
        failure(403, "Forbidden", 'forbidden: User "alice" cannot get path "/metrics"', {}),
        id="a forbidden path",
    ),
    pytest.param(errors.unauthorized(), failure(401, "Unauthorized", "Unauthorized"), id="nobody known"),
    pytest.param(
        errors.invalid("Service", "s", [REQUIRED]),
        failure(
            422,
            "Invalid",
            'Service "s" is invalid: spec.ports: Required value',
            {
                "kind": "Service",
                "name": "s",
                "causes": [
                    {"field": "spec.ports", "message": "Required value", "reason": "FieldValueRequired"}
                ],
            },
        ),
        id="one problem stands without brackets",
    ),
    pytest.param(
        errors.invalid("RayCluster", "c", [REQUIRED, INVALID, REQUIRED], group="ray.io"),
        failure(
            422,
            "Invalid",
            'RayCluster.ray.io "c" is invalid: [spec.ports: Required value, spec.x[0]: Invalid value: "y": bad]',
            {
                "group": "ray.io",
                "kind": "RayCluster",
                "name": "c",
                "causes": [
                    {"field": "spec.ports", "message": "Required value", "reason": "FieldValueRequired"},
                    {
                        "field": "spec.x[0]",
                        "message": 'Invalid value: "y": bad',
                        "reason": "FieldValueInvalid",
                    },
                    {"field": "spec.ports", "message": "Required value", "reason": "FieldValueRequired"},
                ],
            },
        ),
        id="a problem found twice is told once and stays twice among the causes",
    ),
    pytest.param(
        errors.invalid("Pod", "p", [REQUIRED, REQUIRED]),
        failure(
            422,
            "Invalid",
            'Pod "p" is invalid: spec.ports: Required value',
            {
                "kind": "Pod",
                "name": "p",
                "causes": [
                    {"field": "spec.ports", "message": "Required value", "reason": "FieldValueRequired"}
                ]
                * 2,
            },
        ),
        id="twice the same problem stands without brackets",
    ),
    pytest.param(
        errors.invalid("Pod", "", []),
        failure(422, "Invalid", 'Pod "" is invalid', {"kind": "Pod"}),
        id="invalid for no reason",
    ),
    pytest.param(errors.bad_request("m"), failure(400, "BadRequest", "m"), id="a bad request"),
    pytest.param(errors.gone("m"), failure(410, "Gone", "m"), id="gone"),
    pytest.param(errors.expired("m"), failure(410, "Expired", "m"), id="expired"),
    pytest.param(
        errors.method_not_supported("create", "deployments", group="apps"),
        failure(
            405,
            "MethodNotAllowed",
            'create is not supported on resources of kind "deployments.apps"',
            {"group": "apps", "kind": "deployments"},
        ),
        id="an unsupported method",
    ),
    pytest.param(
        errors.not_acceptable(["application/json", "application/yaml"]),
        failure(
            406,
            "NotAcceptable",
            "only the following media types are accepted: application/json, application/yaml",
        ),
        id="no format in common",
    ),
    pytest.param(
        errors.unsupported_media_type(["application/json", "application/yaml"]),
        failure(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json,"
            " application/yaml",
        ),
        id="an unknown format",
    ),
    pytest.param(
        errors.request_entity_too_large("limit is 3145728"),
        failure(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
        id="too large",
    ),
    pytest.param(
        errors.too_many_requests("m", retry_after_seconds=3),
        failure(429, "TooManyRequests", "m", {"retryAfterSeconds": 3}),
        id="too many requests",
    ),
    pytest.param(
        errors.internal_error("because"),
        failure(
            500, "InternalError", "Internal error occurred: because", {"causes": [{"message": "because"}]}
        ),
        id="an internal error",
    ),
    pytest.param(
        errors.service_unavailable("m"), failure(503, "ServiceUnavailable", "m"), id="an unavailable service"
    ),
    pytest.param(
        errors.server_timeout("get", "deployments", group="apps", retry_after_seconds=2),
        failure(
            500,
            "ServerTimeout",
            "The get operation against deployments.apps could not be completed at this time, please try again.",
            {"group": "apps", "kind": "deployments", "name": "get", "retryAfterSeconds": 2},
        ),
        id="a server that could not make it",
    ),
    pytest.param(
        errors.timeout("m", retry_after_seconds=4),
        failure(504, "Timeout", "Timeout: m", {"retryAfterSeconds": 4}),
        id="a timeout",
    ),
    pytest.param(
        errors.unexplained(422),
        failure(422, "Invalid", "the server rejected our request due to an error in our request", {}),
        id="a patch that does not fit",
    ),
    pytest.param(
        errors.unexplained(404),
        failure(404, "NotFound", "the server could not find the requested resource", {}),
        id="an unknown resource",
    ),
    pytest.param(
        errors.unexplained(405),
        failure(
            405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
        ),
        id="an unknown method",
    ),
    pytest.param(ApiError("broken"), failure(500, None, "broken"), id="an error without a reason"),
]


@pytest.mark.parametrize(("error", "status"), BUILT)
def test_built_errors_are_the_servers(error, status):
    assert error.status() == status
    assert str(error) == error.message == status["message"]


@pytest.mark.parametrize(("error", "status"), BUILT)
def test_an_error_survives_the_wire(error, status):
    read = from_status(status, status["code"])

    assert read.status() == status
    if error.reason:
        assert type(read) is type(error)


def test_quotes_names_as_go_does():
    assert errors.not_found("pods", 'a"b').message == r'pods "a\"b" not found'


@pytest.mark.parametrize(
    ("reason", "code", "kind"),
    [
        pytest.param("BadRequest", 400, errors.BadRequest, id="bad request"),
        pytest.param("Unauthorized", 401, errors.Unauthorized, id="unauthorized"),
        pytest.param("Forbidden", 403, errors.Forbidden, id="forbidden"),
        pytest.param("NotFound", 404, errors.NotFound, id="not found"),
        pytest.param("MethodNotAllowed", 405, errors.MethodNotAllowed, id="method not allowed"),
        pytest.param("NotAcceptable", 406, errors.NotAcceptable, id="not acceptable"),
        pytest.param("Conflict", 409, errors.Conflict, id="conflict"),
        pytest.param("AlreadyExists", 409, errors.AlreadyExists, id="already exists"),
        pytest.param("Gone", 410, errors.Gone, id="gone"),
        pytest.param("Expired", 410, errors.Expired, id="expired"),
        pytest.param("RequestEntityTooLarge", 413, errors.RequestEntityTooLarge, id="too large"),
        pytest.param("UnsupportedMediaType", 415, errors.UnsupportedMediaType, id="unsupported media type"),
        pytest.param("Invalid", 422, errors.Invalid, id="invalid"),
        pytest.param("TooManyRequests", 429, errors.TooManyRequests, id="too many requests"),
        pytest.param("InternalError", 500, errors.InternalError, id="internal error"),
        pytest.param("ServerTimeout", 500, errors.ServerTimeout, id="server timeout"),
        pytest.param("ServiceUnavailable", 503, errors.ServiceUnavailable, id="service unavailable"),
        pytest.param("Timeout", 504, errors.Timeout, id="timeout"),
        pytest.param("Novelty", 404, errors.NotFound, id="a reason nobody knows, by its code"),
        pytest.param("Novelty", 418, ApiError, id="a reason and a code that nobody knows"),
        pytest.param("NotFound", 418, errors.NotFound, id="the reason counts more than the code"),
    ],
)
def test_the_reason_decides_the_class(reason, code, kind):
    error = from_status(failure(code, reason, "m"), code)

    assert type(error) is kind
    assert (error.code, error.reason, error.message) == (code, reason, "m")


def test_expired_is_a_kind_of_gone():
    assert issubclass(errors.Expired, errors.Gone)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(400, errors.BadRequest, id="400"),
        pytest.param(401, errors.Unauthorized, id="401"),
        pytest.param(403, errors.Forbidden, id="403"),
        pytest.param(404, errors.NotFound, id="404"),
        pytest.param(409, errors.Conflict, id="409 is a conflict unless it says otherwise"),
        pytest.param(410, errors.Gone, id="410"),
        pytest.param(422, errors.Invalid, id="422"),
        pytest.param(429, errors.TooManyRequests, id="429"),
        pytest.param(500, errors.InternalError, id="500 is an internal error unless it says otherwise"),
        pytest.param(502, errors.InternalError, id="502 from a proxy"),
        pytest.param(503, errors.ServiceUnavailable, id="503"),
        pytest.param(504, errors.Timeout, id="504"),
        pytest.param(418, ApiError, id="418"),
    ],
)
@pytest.mark.parametrize(
    "answer", [pytest.param(None, id="no body"), pytest.param({"kind": "Pod"}, id="a body of another kind")]
)
def test_without_a_status_the_code_decides(answer, code, kind):
    error = from_status(answer, code)

    assert type(error) is kind
    assert error.code == code
    assert error.message != ""


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (400, "the server rejected our request for an unknown reason"),
        (401, "the server has asked for the client to provide credentials"),
        (406, "the server was unable to respond with a content type that the client supports"),
        (409, "the server reported a conflict"),
        (429, "the server has received too many requests and has asked us to try again later"),
        (503, "the server is currently unable to handle the request"),
        (
            504,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        (418, "the server responded with the status code 418 but did not return more information"),
    ],
)
def test_what_is_said_of_an_answer_that_says_nothing(code, message):
    assert from_status(None, code).message == message


@pytest.mark.parametrize(
    "error", [errors.timeout("m"), errors.too_many_requests("m")], ids=["timeout", "too many"]
)
def test_no_time_to_wait_is_named_unless_asked_for(error):
    assert error.status()["details"] == {}


def test_a_status_without_code_or_message_takes_them_from_the_answer():
    error = from_status({"kind": "Status", "status": "Failure"}, 503)

    assert type(error) is errors.ServiceUnavailable
    assert error.code == 503
    assert error.message == "the server is currently unable to handle the request"


def test_details_are_at_hand():
    details = {
        "name": "n",
        "uid": "u",
        "retryAfterSeconds": 7,
        "causes": [{"reason": "FieldValueRequired", "message": "m", "field": "f"}],
    }
    error = from_status(failure(429, "TooManyRequests", "m", details), 429)

    assert error.retry_after_seconds == 7
    assert error.causes == (Cause("FieldValueRequired", "m", "f"),)
    assert error.details == Details(name="n", uid="u", causes=error.causes, retry_after_seconds=7)


def test_missing_details_are_no_trouble():
    error = from_status(failure(404, "NotFound", "m"), 404)

    assert error.details is None
    assert error.causes == ()
    assert error.retry_after_seconds == 0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
fields = ["reason", "message", "code", "details", "causes", "name", "retryAfterSeconds"]


@given(
    st.dictionaries(
        st.sampled_from(fields), json_values | st.dictionaries(st.sampled_from(fields), json_values)
    ),
    st.integers(400, 599),
)
def test_any_answer_gives_an_error(answer, code):
    error = from_status({"kind": "Status", **answer}, code)

    assert isinstance(error, ApiError)
    assert from_status(error.status(), error.code).status() == error.status()


@pytest.mark.parametrize(
    ("count", "length", "told"),
    [
        pytest.param(MAX_PROBLEMS, 1, MAX_PROBLEMS, id="as many as are told"),
        pytest.param(MAX_PROBLEMS * 100, 1, MAX_PROBLEMS, id="very many"),
        pytest.param(3, MAX_PROBLEM_TEXT, 1, id="long ones"),
    ],
)
def test_of_a_great_many_problems_the_first_are_told(count, length, told):
    problems = [fielderrors.invalid(("data", f"k{number}"), "x" * length, "no") for number in range(count)]
    refusal = errors.invalid("ConfigMap", "c", problems)
    assert refusal.details is not None
    assert [cause.field for cause in refusal.details.causes] == [f"data.k{number}" for number in range(told)]
    more = f", and {count - told} more problems]"
    assert refusal.message.endswith(more) == (told < count)
    assert len(refusal.message) < 2 * MAX_PROBLEM_TEXT
