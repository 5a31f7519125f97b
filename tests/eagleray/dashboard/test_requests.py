"""Requests to dashboards as values."""

import msgspec
import pytest

from eagleray.dashboard import requests
from eagleray.dashboard.errors import Refused
from eagleray.dashboard.requests import Submission


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (requests.version(), "GET /api/version"),
        (requests.info("a"), "GET /api/jobs/a"),
        (requests.list_jobs(), "GET /api/jobs/"),
        (requests.logs("a"), "GET /api/jobs/a/logs"),
        (requests.logs_tail("a"), "GET /api/jobs/a/logs/tail"),
        (requests.submit(Submission("x", "a")), "POST /api/jobs/"),
        (requests.stop("a"), "POST /api/jobs/a/stop"),
        (requests.delete("a"), "DELETE /api/jobs/a"),
        (requests.serve_details(), "GET /api/serve/applications/?api_type=declarative"),
        (requests.put_serve({}), "PUT /api/serve/applications/"),
        (requests.serve_health(), "GET /-/healthz"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_method_and_path(request_, line):
    assert f"{request_.method} {request_.target}" == line
    assert (request_.repeatable == "read") is (request_.method == "GET")


def test_of_a_submission_only_what_is_given_is_sent():
    assert msgspec.json.decode(requests.submit(Submission("python a.py", "a")).body) == {
        "entrypoint": "python a.py",
        "submission_id": "a",
    }


def test_a_submission_with_everything():
    submission = Submission("e", "a", {"pip": ["x"]}, {"team": "t"}, 0.5, 1, {"TPU": 2.0})
    assert msgspec.json.decode(requests.submit(submission).body) == {
        "entrypoint": "e",
        "submission_id": "a",
        "runtime_env": {"pip": ["x"]},
        "metadata": {"team": "t"},
        "entrypoint_num_cpus": 0.5,
        "entrypoint_num_gpus": 1,
        "entrypoint_resources": {"TPU": 2.0},
    }


def test_an_id_stays_one_step_of_the_path():
    assert requests.info("a/../b?c").path == "/api/jobs/a%2F..%2Fb%3Fc"


@pytest.mark.parametrize("job_id", ["", ".", "..", "x" * 1025], ids=["empty", "dot", "dots", "too long"])
def test_an_id_that_would_name_another_path_is_refused_before_anything_is_sent(job_id):
    with pytest.raises(Refused) as caught:
        requests.info(job_id)
    assert caught.value.certainly_not_done


def _without_end():
    inside: dict[str, object] = {}
    inside["again"] = inside
    return inside


@pytest.mark.parametrize(
    "runtime_env",
    [{"a": object()}, {"a": "\ud800"}, _without_end()],
    ids=["an object", "half a character", "without end"],
)
def test_what_cannot_be_json_is_refused_before_anything_is_sent(runtime_env):
    with pytest.raises(Refused, match="cannot be sent as JSON") as caught:
        requests.submit(Submission("x", "a", runtime_env))
    assert caught.value.certainly_not_done
