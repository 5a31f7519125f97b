"""What Ray says, and what is made of answers that Ray would never give."""

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eagleray.dashboard import words
from eagleray.dashboard.errors import Malformed
from eagleray.dashboard.words import Application, Deployment, JobInfo, ServeDetails, Version

# As Ray 2.52 answers; unread fields included.
JOB = {
    "type": "SUBMISSION",
    "job_id": "02000000",
    "submission_id": "demo-x7k2p",
    "driver_info": {"id": "02000000", "node_ip_address": "10.0.0.7", "pid": "77"},
    "status": "SUCCEEDED",
    "entrypoint": "python job.py",
    "message": "Job finished successfully.",
    "error_type": None,
    "start_time": 1893456000000,
    "end_time": 1893456001500,
    "metadata": {"team": "a"},
    "runtime_env": {"env_vars": {"A": "1"}},
    "driver_agent_http_address": "http://10.0.0.7:52365",
    "driver_node_id": "f00d",
    "driver_exit_code": 0,
}


def encoded(value):
    return msgspec.json.encode(value)


def test_a_job_is_read_with_its_times():
    assert words.read_job(encoded(JOB)) == JobInfo(
        status="SUCCEEDED",
        message="Job finished successfully.",
        started_at=datetime(2030, 1, 1, tzinfo=UTC),
        ended_at=datetime(2030, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
        submission_id="demo-x7k2p",
        job_id="02000000",
        type="SUBMISSION",
        entrypoint="python job.py",
        exit_code=0,
    )


def test_a_job_of_which_only_the_status_is_told_is_enough():
    assert words.read_job(b'{"status": "PENDING"}') == JobInfo("PENDING")


@pytest.mark.parametrize(
    ("status", "is_terminal"),
    [
        ("PENDING", False),
        ("RUNNING", False),
        ("STOPPED", True),
        ("SUCCEEDED", True),
        ("FAILED", True),
        pytest.param("HIBERNATING", False, id="a word of a later Ray is kept and is no end"),
        pytest.param("succeeded", False, id="case counts"),
    ],
)
def test_status_words(status, is_terminal):
    job = words.read_job(encoded({"status": status}))
    assert job.status == status
    assert job.is_terminal is is_terminal


@pytest.mark.parametrize(
    "milliseconds",
    [0, None, -5, 10**30, 1e300, 253_402_300_800_000],
    ids=["zero", "null", "negative", "huge", "a huge float", "the year 10000"],
)
def test_a_time_that_is_none_is_left_out(milliseconds):
    assert words.read_job(encoded({"status": "RUNNING", "start_time": milliseconds})).started_at is None


def test_long_texts_are_cut_so_that_a_cache_of_them_stays_small():
    job = words.read_job(encoded({"status": "F" * 10_000, "message": "m" * 10**6, "entrypoint": "e" * 10**6}))
    assert len(job.status) <= 256
    assert len(job.message) <= 20_000
    assert len(job.entrypoint) <= 20_000


def test_in_a_list_one_job_that_cannot_be_read_hides_no_other():
    listed = words.read_jobs(encoded([{"status": 7}, JOB, {"type": "DRIVER"}, None, {"status": "RUNNING"}]))
    assert [job.status for job in listed] == ["SUCCEEDED", "RUNNING"]


def test_serve_applications_come_in_the_order_of_their_names_and_the_nameless_one_is_called_default():
    details = words.read_serve(
        encoded(
            {
                "controller_info": {"node_id": "x"},
                "proxies": {},
                "target_capacity": 50,
                "applications": {
                    "zoo": {"status": "RUNNING", "message": "", "deployments": {}},
                    "": {
                        "status": "DEPLOYING",
                        "message": "wait",
                        "deployments": {
                            "b": {"status": "HEALTHY", "message": "", "replicas": []},
                            "a": {"status": "UPDATING", "message": "1 of 2"},
                        },
                    },
                },
            }
        )
    )
    assert details == ServeDetails(
        (
            Application(
                "default",
                "DEPLOYING",
                "wait",
                (Deployment("a", "UPDATING", "1 of 2"), Deployment("b", "HEALTHY")),
            ),
            Application("zoo", "RUNNING"),
        ),
        50.0,
    )


@pytest.mark.parametrize(
    ("statuses", "is_ready"),
    [
        pytest.param([], False, id="no application"),
        pytest.param(["RUNNING", "RUNNING"], True, id="all run"),
        pytest.param(["RUNNING", "UNHEALTHY"], False, id="one does not"),
        pytest.param(["RUNNING", "FLYING"], False, id="one is in a state nobody knows"),
    ],
)
def test_serve_is_ready_when_there_are_applications_and_all_run(statuses, is_ready):
    applications = {f"app{i}": {"status": status} for i, status in enumerate(statuses)}
    assert words.read_serve(encoded({"applications": applications})).is_ready is is_ready


DEPLOYED = {"status": "RUNNING", "deployed_app_config": {"name": "a", "args": [1]}}


@pytest.mark.parametrize(
    ("applications", "configuration"),
    [
        pytest.param({"a": DEPLOYED}, b'{"applications":[{"name":"a","args":[1]}]}', id="what it says"),
        pytest.param({}, b"", id="nothing where nothing runs"),
        pytest.param({"a": DEPLOYED, "b": {"status": "RUNNING"}}, b"", id="nothing if one does not say"),
        pytest.param({"a": {**DEPLOYED, "deployed_app_config": None}}, b"", id="nothing if one says null"),
        pytest.param(
            {"a": {**DEPLOYED, "deployed_app_config": {"args": "x" * 2_000_000}}},
            b"",
            id="nothing if it is longer than a RayService",
        ),
    ],
)
def test_the_configuration_that_applications_were_deployed_from(applications, configuration):
    found = words.read_serve(msgspec.json.encode({"applications": applications})).configuration
    assert found == configuration


def test_the_version_has_the_session_and_an_older_ray_has_none():
    told = {"version": "4", "ray_version": "2.52.0", "ray_commit": "abc", "session_name": "session_1"}
    assert words.read_version(encoded(told)) == Version("2.52.0", "session_1")
    assert words.read_version(b'{"version": "1"}') == Version()


def test_a_submission_is_answered_with_its_id_in_old_words_and_in_new_ones():
    assert words.read_submitted(b'{"job_id": "a"}') == "a"
    assert words.read_submitted(b'{"job_id": "01", "submission_id": "a"}') == "a"
    with pytest.raises(Malformed, match="names no job"):
        words.read_submitted(b"{}")


READERS = [
    words.read_job,
    words.read_jobs,
    words.read_version,
    words.read_submitted,
    words.read_stopped,
    words.read_deleted,
    words.read_logs,
    words.read_serve,
]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"status": "RUNN', id="cut off"),
        pytest.param(b"<html>502 Bad Gateway</html>", id="a page of a proxy"),
        pytest.param(b"null", id="null"),
        pytest.param(b"7", id="a number"),
        pytest.param(b'"\xff"', id="no UTF-8"),
        pytest.param(b"[" * 100_000, id="lists without end"),
        pytest.param(b'{"a":' * 100_000, id="objects without end"),
    ],
)
def test_what_is_no_answer_is_malformed(read, body):
    with pytest.raises(Malformed):
        read(body)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@given(body=st.binary(max_size=200))
def test_no_bytes_whatsoever_do_anything_but_read_or_be_malformed(read, body):
    _read_or_malformed(read, body)


_FIELDS = st.sampled_from(
    [
        "status",
        "message",
        "start_time",
        "end_time",
        "submission_id",
        "job_id",
        "type",
        "applications",
        "deployments",
        "logs",
        "stopped",
        "deleted",
        "target_capacity",
        "driver_exit_code",
        "session_name",
        "",
    ]
)
_LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
_ANSWERS = st.recursive(
    _LEAVES | st.sampled_from(["RUNNING", "FAILED"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_FIELDS, inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@given(answer=_ANSWERS)
def test_no_json_whatsoever_does_anything_but_read_or_be_malformed(read, answer):
    _read_or_malformed(read, json.dumps(answer).encode())


def _read_or_malformed(read, body):
    try:
        found = read(body)
    except Malformed:
        return
    hash(found)  # every value can be compared with the one before it by a number
    msgspec.json.encode(found)


def test_too_many_applications_are_refused():
    applications = {f"app{i}": {"status": "RUNNING"} for i in range(1_001)}
    with pytest.raises(Malformed, match="more than 1000"):
        words.read_serve(encoded({"applications": applications}))
    deployments = {f"d{i}": {"status": "HEALTHY"} for i in range(1_001)}
    with pytest.raises(Malformed, match="too many deployments"):
        words.read_serve(encoded({"applications": {"a": {"status": "RUNNING", "deployments": deployments}}}))
