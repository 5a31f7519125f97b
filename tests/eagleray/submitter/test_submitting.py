"""A job is submitted once and followed to its end, whatever happens on the way."""

import asyncio
import json

import pytest

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.client import Patience as CallPatience
from eagleray.dashboard.errors import DashboardError, Refused, Unauthorised, Unreachable
from eagleray.dashboard.http import HttpCarrier
from eagleray.submitter.order import Head, read_order
from eagleray.submitter.submitting import Lost, Patience, Submitting
from eagleray.submitter.tokens import GivenTokens
from kubewire.sources import SystemClock, SystemEntropy
from tests.eagleray.submitter.fake import FakeHead

LINES = [f"line {number}\n" for number in range(6)]


class Hurried(SystemClock):
    """A clock on which pauses take no time, and nothing else takes any."""

    def __init__(self):
        self._elapsed = 0.0

    def monotonic(self):
        return self._elapsed

    async def sleep(self, seconds):
        self._elapsed += seconds
        await asyncio.sleep(0)


class Ended:
    """How a run went."""

    def __init__(self, info, shown):
        self.info = info
        self.shown = "".join(shown)


@pytest.fixture
async def head():
    async with FakeHead(log=LINES) as made:
        yield made


@pytest.fixture
async def submit():
    carrier = HttpCarrier()

    async def run(head, *flags, meant=None, token="", file=None, patience=None):
        variables = {
            "RAY_DASHBOARD_ADDRESS": head.address,
            "RAY_JOB_SUBMISSION_ID": "job-1",
            "RAY_AUTH_TOKEN": token,
        }
        order = read_order([*flags, "--", "python", "job.py"], variables)
        tokens = GivenTokens(variables, *([file] if file else []))
        dashboard = Dashboard(order.address, carrier, tokens, CallPatience(read=2, write=2))
        shown: list[str] = []
        submitting = Submitting(
            dashboard,
            order._replace(head=meant or order.head),
            clock=Hurried(),
            entropy=SystemEntropy(),
            printed=shown.append,
            patience=patience,
        )
        return Ended(await submitting.run(), shown)

    yield run
    await carrier.close()


def steps(head):
    return [step for step, _, _ in head.requests]


async def test_a_job_is_submitted_shown_and_seen_to_its_end(head, submit):
    ended = await submit(head, "--metadata-json", '{"a": "b"}', "--entrypoint-num-cpus=2")
    assert ended.info.status == "SUCCEEDED"
    assert ended.shown == "".join(LINES)
    assert steps(head) == ["version", "submit", "tail", "info"]
    assert json.loads(head.requests[1][2]) == {
        "entrypoint": "python job.py",
        "submission_id": "job-1",
        "metadata": {"a": "b"},
        "entrypoint_num_cpus": 2.0,
    }


async def test_a_job_that_is_there_already_is_followed(head, submit):
    head.head.submit("job-1")
    ended = await submit(head)
    assert ended.shown == "".join(LINES)
    assert head.ledger.executions("job-1") == 1


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        pytest.param(step, fault, id=f"{step} {how}")
        for step in ("version", "submit", "tail", "info")
        for fault, how in (("drop", "is lost"), ("answer lost", "has no answer"), (503, "meets 503"))
        # An answer that is a stream is lost in the middle: see below.
        if (step, fault) != ("tail", "answer lost")
    ],
)
async def test_a_request_that_goes_wrong_at_any_step_is_made_again(head, submit, step, fault):
    head.faults[step] = [fault, fault]
    ended = await submit(head)
    assert ended.info.status == "SUCCEEDED"
    assert ended.shown == "".join(LINES)
    assert head.ledger.executions("job-1") == 1
    assert steps(head).count(step) >= 2


@pytest.mark.parametrize("how", ["break", "close"])
async def test_a_log_that_stops_in_the_middle_goes_on_where_it_was(head, submit, how):
    head.faults["tail"] = [(how, 2), (how, 1), (how, 4)]
    ended = await submit(head)
    assert ended.shown == "".join(LINES)
    assert head.tails == 4


async def test_the_end_of_a_log_is_fetched_though_the_job_has_ended(head, submit):
    head.faults["tail"] = [("break", 2)]
    head.head.submit("job-1")
    head.head.set_status("job-1", "SUCCEEDED")
    assert (await submit(head)).shown == "".join(LINES)


async def test_a_job_that_ended_is_not_waited_for_because_its_log_is_broken(head, submit):
    head.faults["tail"] = [("break", 2)] * 10
    head.head.submit("job-1")
    head.head.set_status("job-1", "FAILED", "boom")
    ended = await submit(head)
    assert (ended.info.status, ended.info.message) == ("FAILED", "boom")
    assert ended.shown == "".join(LINES[:2])


async def test_a_job_may_be_silent_for_longer_than_failures_are_put_up_with(head, submit):
    head.faults["tail"] = [("close", 0)] * 12
    head.faults["info"] = [None] * 11 + ["drop"]
    assert (await submit(head, patience=Patience(following=20))).info.status == "SUCCEEDED"


@pytest.mark.parametrize(
    ("step", "fault", "error"),
    [
        pytest.param("submit", 400, Refused, id="a job that Ray does not take"),
        pytest.param("version", 503, Refused, id="a head that is not there for too long"),
        pytest.param("submit", "drop", Unreachable, id="a line that breaks again and again"),
        pytest.param("info", "drop", Unreachable, id="a head that stops to answer"),
    ],
)
async def test_what_does_not_get_better_is_given_up(head, submit, step, fault, error):
    head.faults[step] = [fault] * 1000
    with pytest.raises(error):
        await submit(head)
    assert 5 < len(head.requests) < 200 or fault == 400


async def test_a_refusal_by_ray_itself_is_tried_three_times(head, submit):
    head.faults["submit"] = [500] * 10
    with pytest.raises(Refused):
        await submit(head)
    assert steps(head).count("submit") == 3


# --- at most once


async def test_a_head_that_may_have_the_job_is_not_followed_by_another_that_gets_it(head, submit):
    head.faults["submit"] = ["answer lost"]
    head.faults["version"] = [None, "new head"]
    with pytest.raises(Lost):
        await submit(head)
    assert head.ledger.executions("job-1") == 1


async def test_a_head_that_certainly_does_not_have_it_may_be_replaced(head, submit):
    head.faults["version"] = ["drop", "new head"]
    assert (await submit(head)).info.status == "SUCCEEDED"
    assert head.ledger.executions("job-1") == 1


async def test_another_head_than_the_one_that_is_meant_gets_nothing(head, submit):
    with pytest.raises(Lost):
        await submit(head, meant=Head("session_of_another_head"))
    assert head.ledger.started == []


async def test_a_head_that_does_not_tell_its_session_gets_nothing_if_another_is_meant(head, submit):
    head.faults["version"] = [404] * 100
    with pytest.raises(DashboardError):
        await submit(head, meant=Head("session_of_another_head"))
    assert head.ledger.started == []


async def test_a_ray_that_has_no_sessions_gets_its_job(head, submit):
    head.faults["version"] = [404] * 100
    assert (await submit(head)).info.status == "SUCCEEDED"


@pytest.mark.parametrize("step", ["tail", "info"])
async def test_a_job_is_lost_with_its_head(head, submit, step):
    head.faults[step] = ["new head"]
    with pytest.raises(Lost):
        await submit(head)
    assert head.ledger.executions("job-1") == 1


# --- tokens


async def test_every_request_shows_the_token(submit):
    async with FakeHead(token="sesame") as head:
        assert (await submit(head, token="sesame")).info.status == "SUCCEEDED"
        shown = {headers.get("x-ray-authorization") for _, headers, _ in head.requests}
        assert shown == {"Bearer sesame"}


@pytest.mark.parametrize(
    "token", ["", "wrong", "not a token"], ids=["no token", "a wrong one", "no such thing"]
)
async def test_a_wrong_token_ends_it_at_once(submit, token):
    async with FakeHead(token="sesame") as head:
        with pytest.raises(Unauthorised):
            await submit(head, token=token)
        assert len(head.requests) <= 1
        assert head.ledger.started == []


async def test_a_token_in_a_file_is_read_again_when_it_was_renewed(submit, tmp_path):
    file = tmp_path / "token"
    file.write_text("first\n")
    async with FakeHead(token="first", log=["a\n"]) as head:
        head.faults["info"] = ["drop"]
        old_handle = head.head.handle

        def renew(method, path, headers, body):
            answer = old_handle(method, path, headers, body)
            if method == "POST":
                head.head.token = "second"
                file.write_text("second\n")
            return answer

        head.head.handle = renew
        assert (await submit(head, file=file)).info.status == "SUCCEEDED"
