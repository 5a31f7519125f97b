"""The dashboard as an object, against scripted heads."""

import asyncio
from datetime import UTC, datetime

import pytest

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import (
    AlreadyThere,
    DashboardError,
    Malformed,
    NotThere,
    Refused,
    Unauthorised,
    Unreachable,
)
from eagleray.dashboard.requests import Submission
from eagleray.dashboard.tokens import Token
from eagleray.dashboard.words import Application, Deployment, ServeDetails, Version
from tests.eagleray.dashboard.places import place
from tests.eagleray.dashboard.scripted import (
    ANSWER_HANGS,
    ANSWER_LOST,
    CONNECT_HANGS,
    HANGS,
    NO_SUCH_PAGE,
    REFUSES,
    SERVER_ERROR,
    WRONG_JSON,
    WRONG_SHAPE,
    late,
    says,
    slow,
)

HOST = place().host
JOB = Submission("python job.py", "job-1", {"pip": ["x"]}, {"team": "a"})


class Tokens:
    """Tokens from a list; each refusal moves on to the next."""

    def __init__(self, *texts):
        self.texts = list(texts)
        self.pause = 0.0

    async def current(self, address):
        await asyncio.sleep(self.pause)
        return Token(self.texts[0])

    def refused(self, address, token):
        if len(self.texts) > 1:
            self.texts.pop(0)
        return True


@pytest.fixture
def head(heads):
    return heads.start(HOST)


@pytest.fixture
def dashboard(heads):
    return Dashboard(place(), heads)


# --- what it is for


async def test_a_job_is_submitted_asked_for_and_listed(heads, head, dashboard):
    assert await dashboard.submit(JOB) == "job-1"
    info = await dashboard.info("job-1")
    assert (info.status, info.entrypoint) == ("RUNNING", "python job.py")
    assert info.started_at is not None
    assert info.started_at.replace(microsecond=0) == datetime(2030, 1, 1, tzinfo=UTC)
    assert await dashboard.list() == (info,)
    assert head.jobs["job-1"]["runtime_env"] == {"pip": ["x"]}
    assert head.jobs["job-1"]["metadata"] == {"team": "a"}
    assert heads.ledger.executions("job-1") == 1


async def test_a_running_job_is_stopped_and_then_forgotten(head, dashboard):
    head.submit("job-1")
    await dashboard.stop("job-1")
    assert (await dashboard.info("job-1")).status == "STOPPED"
    assert await dashboard.delete("job-1") is True
    with pytest.raises(NotThere):
        await dashboard.info("job-1")


async def test_stopping_a_job_that_has_ended_is_fine(head, dashboard):
    head.submit("job-1")
    head.set_status("job-1", "SUCCEEDED")
    await dashboard.stop("job-1")


async def test_a_job_that_ray_does_not_stop_although_it_runs_is_an_error(heads, head, dashboard):
    head.submit("job-1")
    heads.fault(HOST, says(200, b'{"stopped": false}'), times=1)
    with pytest.raises(Refused, match="job-1 is RUNNING"):
        await dashboard.stop("job-1")


async def test_logs_are_given_whole(head, dashboard):
    head.submit("job-1", logs="hello\nworld\n")
    assert await dashboard.logs("job-1") == "hello\nworld\n"


async def test_the_session_tells_one_head_from_the_next(heads, head, dashboard):
    assert await dashboard.version() == Version("2.52.0", "session_1")
    heads.restart(HOST)
    assert (await dashboard.version()).session_name == "session_2"


async def test_serve_applications_are_put_and_asked_for(head, dashboard):
    await dashboard.put_serve(
        {"applications": [{"name": "app", "import_path": "a:b"}], "target_capacity": 20}
    )
    assert await dashboard.serve_details() == ServeDetails(
        (Application("app", "DEPLOYING"),), 20.0, b'{"applications":[{"name":"app","import_path":"a:b"}]}'
    )
    head.set_application("app", "RUNNING", web="HEALTHY")
    details = await dashboard.serve_details()
    assert details.is_ready
    assert details.applications[0].deployments == (Deployment("web", "HEALTHY"),)
    assert head.serve_configurations[0]["applications"][0]["import_path"] == "a:b"


async def test_a_serve_proxy_takes_traffic_or_does_not(head, dashboard):
    assert await dashboard.serve_health() is True
    head.takes_traffic = False
    assert await dashboard.serve_health() is False


# --- how it fails


@pytest.mark.parametrize("call", ["info", "stop", "delete", "logs"])
async def test_a_job_that_ray_does_not_have_is_not_there(head, dashboard, call):
    with pytest.raises(NotThere, match="nothing does not exist") as caught:
        await getattr(dashboard, call)("nothing")
    assert caught.value.certainly_not_done


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        pytest.param(NO_SUCH_PAGE, 404, id="a page that is not there says nothing about a job"),
        pytest.param(says(404, b"<html>nginx</html>"), 404, id="nor does a gateway"),
        pytest.param(SERVER_ERROR, 500, id="an error of the server"),
        pytest.param(says(302), 302, id="being sent elsewhere"),
        pytest.param(says(429, b"slow down"), 429, id="too many requests"),
    ],
)
async def test_other_answers_are_refusals_with_their_code(heads, head, dashboard, fault, code):
    head.submit("job-1")
    heads.fault(HOST, fault)
    with pytest.raises(Refused) as caught:
        await dashboard.info("job-1")
    assert caught.value.code == code
    assert caught.value.sort == ("Refused", code)


async def test_of_a_traceback_the_last_line_is_told(heads, head, dashboard):
    heads.fault(HOST, SERVER_ERROR)
    with pytest.raises(Refused, match=r"GET demo-head-svc\S+/api/jobs/a: 500: RuntimeError: GCS is away"):
        await dashboard.info("a")


async def test_a_ray_without_the_jobs_api_lists_none(heads, head, dashboard):
    heads.fault(HOST, NO_SUCH_PAGE)
    assert await dashboard.list() == ()


@pytest.mark.parametrize(
    "fault", [WRONG_JSON, WRONG_SHAPE, says(200, b"x" * (5 * 2**20))], ids=["json", "shape", "size"]
)
async def test_answers_of_the_wrong_kind_or_size_are_malformed(heads, head, dashboard, fault):
    heads.fault(HOST, fault)
    with pytest.raises(Malformed):
        await dashboard.info("job-1")


@pytest.mark.parametrize(
    ("fault", "timed_out", "after"),
    [
        pytest.param(REFUSES, False, 0, id="nobody listens"),
        pytest.param(CONNECT_HANGS, True, 1.5, id="the connection is never made"),
        pytest.param(HANGS, True, 2, id="no answer comes"),
        pytest.param(ANSWER_LOST, False, 0, id="the line breaks"),
        pytest.param(slow(60), True, 2, id="the answer would come too late"),
    ],
)
async def test_every_question_ends_by_its_deadline(
    heads, head, dashboard, virtual_time, fault, timed_out, after
):
    heads.fault(HOST, fault)
    before = virtual_time.monotonic()
    with pytest.raises(Unreachable) as caught:
        await dashboard.info("job-1")
    assert virtual_time.monotonic() - before == pytest.approx(after, abs=0.01)
    assert caught.value.timed_out is timed_out
    assert caught.value.certainly_not_done  # a question changes nothing


# --- whether a submission has happened


@pytest.mark.parametrize(
    ("fault", "error", "not_done"),
    [
        pytest.param(REFUSES, Unreachable, True, id="nobody listens"),
        pytest.param(CONNECT_HANGS, Unreachable, True, id="the connection is never made"),
        pytest.param(HANGS, Unreachable, False, id="sent and never answered"),
        pytest.param(ANSWER_LOST, Unreachable, False, id="done and the answer lost"),
        pytest.param(ANSWER_HANGS, Unreachable, False, id="done and never answered"),
        pytest.param(late(3600), Unreachable, False, id="done when nobody waits any more"),
        pytest.param(SERVER_ERROR, Refused, False, id="an error of the server leaves open how far it came"),
        pytest.param(says(408), Refused, False, id="a gateway that gave up"),
        pytest.param(says(503, b"busy"), Refused, False, id="a gateway without an answer"),
        pytest.param(says(400, b"bad"), Refused, True, id="a request that was not understood"),
        pytest.param(says(405), Refused, True, id="a page that takes no submissions"),
        pytest.param(says(302), Refused, True, id="being sent elsewhere"),
        pytest.param(says(401), Unauthorised, True, id="a missing token"),
        pytest.param(says(403), Unauthorised, True, id="a wrong token"),
        pytest.param(says(200, b"ok"), Malformed, False, id="a success in words that nobody understands"),
        pytest.param(says(200, b"{}"), Malformed, False, id="a success that names no job"),
        pytest.param(says(200, b"x" * (5 * 2**20)), Malformed, False, id="a success without end"),
    ],
)
async def test_a_failed_submission_says_whether_it_certainly_did_not_happen(
    heads, head, dashboard, virtual_time, fault, error, not_done
):
    heads.fault(HOST, fault, times=1)
    with pytest.raises(DashboardError) as caught:
        await dashboard.submit(JOB)
    assert type(caught.value) is error
    assert caught.value.certainly_not_done is not_done
    await asyncio.sleep(4000)
    # The promise: where it says "certainly not", nothing has run, then or later.
    assert not (not_done and heads.ledger.executions("job-1"))


async def test_a_submission_that_hangs_is_given_up_after_longer_than_ray_waits_for_an_agent(
    heads, head, dashboard, virtual_time
):
    heads.fault(HOST, HANGS)
    with pytest.raises(Unreachable):
        await dashboard.submit(JOB)
    assert 10 < virtual_time.monotonic() <= 20


async def test_a_second_submission_of_an_id_runs_nothing_and_says_so(heads, head, dashboard):
    await dashboard.submit(JOB)
    with pytest.raises(AlreadyThere, match="already exists") as caught:
        await dashboard.submit(JOB)
    assert caught.value.certainly_not_done
    assert heads.ledger.executions("job-1") == 1


# --- tokens


async def test_the_token_is_shown(heads):
    heads.start(HOST, token="open-sesame")
    dashboard = Dashboard(place(secret="demo"), heads, Tokens("open-sesame"))
    assert (await dashboard.version()).session_name == "session_1"


@pytest.mark.parametrize("tokens", [None, Tokens("wrong")], ids=["none", "a wrong one"])
async def test_without_the_right_token_it_is_unauthorised(heads, tokens):
    heads.start(HOST, token="open-sesame")
    with pytest.raises(Unauthorised) as caught:
        await Dashboard(place(), heads, tokens).submit(JOB)
    assert caught.value.certainly_not_done
    assert "wrong" not in str(caught.value)


async def test_a_renewed_token_is_tried_once(heads):
    heads.start(HOST, token="new")
    await Dashboard(place(secret="demo"), heads, Tokens("old", "new")).submit(JOB)
    assert heads.ledger.executions("job-1") == 1
    assert len(heads.requests) == 2


async def test_a_refused_token_that_has_not_changed_is_not_tried_again(heads):
    heads.start(HOST, token="new")
    with pytest.raises(Unauthorised):
        await Dashboard(place(secret="demo"), heads, Tokens("old")).version()
    assert len(heads.requests) == 1


async def test_waiting_for_the_token_counts_against_the_deadline_and_nothing_is_sent(heads, virtual_time):
    heads.start(HOST)
    tokens = Tokens("x")
    tokens.pause = 100
    with pytest.raises(Unreachable) as caught:
        await Dashboard(place(secret="demo"), heads, tokens).submit(JOB)
    assert caught.value.certainly_not_done
    assert heads.requests == []


async def test_logs_cannot_be_followed_where_the_carrier_cannot_listen(heads, dashboard):
    with pytest.raises(Refused, match="through the API server"):
        async with dashboard.tail("job-1"):
            pass
