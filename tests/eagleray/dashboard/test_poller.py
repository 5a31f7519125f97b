"""Many dashboards asked for many objects, none of which ever waits."""

import asyncio
from collections import Counter

import pytest

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import AlreadyThere, Malformed, NotThere, Refused, SessionChanged, Unreachable
from eagleray.dashboard.orders import Order, Owner, PutServe, Stop, Submit
from eagleray.dashboard.poller import Limits, Poller
from eagleray.dashboard.questions import HealthOf, JobOf, ServeOf, SessionOf
from eagleray.dashboard.requests import Submission
from kubewire.sources import SeededEntropy
from tests.eagleray.dashboard.places import place, rayjob
from tests.eagleray.dashboard.scripted import (
    ANSWER_LOST,
    CONNECT_HANGS,
    HANGS,
    REFUSES,
    SERVER_ERROR,
    WRONG_JSON,
    says,
    slow,
)

HOST = place().host


class Desk:
    """A poller with its dashboards, and whom it has woken."""

    def __init__(self, heads, **limits):
        self.heads = heads
        self.woken: list[Owner] = []
        self.poller = Poller(
            lambda address: Dashboard(address, heads),
            heads.clock,
            SeededEntropy(7),
            self.woken.append,
            Limits(**limits),
        )

    def follow(self, name="job", question=None):
        return self.poller.follow(rayjob(name), question or JobOf(place(), name))


@pytest.fixture
async def desk(heads):
    desk = Desk(heads)
    yield desk
    await desk.poller.close()


@pytest.fixture
async def desk_of(heads):
    """Make a desk with other limits."""
    made = []

    def make(**limits):
        made.append(Desk(heads, **limits))
        return made[-1]

    yield make
    for desk in made:
        await desk.poller.close()


@pytest.fixture
def head(heads):
    return heads.start(HOST)


# --- what is followed


async def test_the_first_look_sees_nothing_and_the_first_answer_wakes_the_object(desk, head):
    head.submit("job")
    assert desk.follow() is None
    await asyncio.sleep(0.1)
    assert desk.woken == [rayjob()]
    assert desk.follow().job.status == "RUNNING"
    assert desk.follow().failing_since is None


async def test_changes_wake_the_object_and_nothing_else_does(desk, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(60)
    assert desk.woken == [rayjob()]
    head.set_status("job", "SUCCEEDED")
    await asyncio.sleep(4)
    assert desk.woken == [rayjob()] * 2
    assert desk.follow().job.status == "SUCCEEDED"


async def test_a_flapping_status_wakes_at_each_change(desk, head):
    head.submit("job")
    head.flap("job", "PENDING", "RUNNING", "RUNNING", "PENDING", "RUNNING")
    desk.follow()
    await asyncio.sleep(30)
    assert len(desk.woken) == 4


async def test_a_dashboard_is_asked_about_every_interval_with_some_jitter(desk, heads, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(30)
    assert 9 <= len(heads.requests) <= 12


async def test_the_longer_nothing_changes_the_less_often_it_is_asked(desk, heads, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(100)
    before = len(heads.requests)
    await asyncio.sleep(20)
    assert 1 <= len(heads.requests) - before <= 3
    await asyncio.sleep(1000)
    before = len(heads.requests)
    await asyncio.sleep(600)
    assert 9 <= len(heads.requests) - before <= 12


async def test_after_a_change_it_is_asked_often_again(desk, heads, head):
    head.submit("job")
    head.set_status("job", "PENDING")
    desk.follow()
    await asyncio.sleep(1000)
    head.set_status("job", "RUNNING")
    async with asyncio.timeout(67):
        while desk.follow().job.status != "RUNNING":  # noqa: ASYNC110 - time is virtual
            await asyncio.sleep(1)
    before = len(heads.requests)
    await asyncio.sleep(12)
    assert len(heads.requests) - before >= 3


async def test_a_hurry_makes_it_asked_often_again(desk, heads, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(1000)
    desk.poller.hurry(rayjob())
    before = len(heads.requests)
    await asyncio.sleep(12)
    assert len(heads.requests) - before >= 4


@pytest.mark.parametrize(("question", "interval"), [(HealthOf(place()), 10), (ServeOf(place()), 30)])
async def test_serve_is_asked_more_often_than_jobs_however_calm_it_is(desk, heads, head, question, interval):
    desk.follow("service", question)
    await asyncio.sleep(1000)
    before = len(heads.requests)
    await asyncio.sleep(10 * interval)
    assert 9 <= len(heads.requests) - before <= 12


async def test_a_session_that_is_known_is_asked_for_again_only_when_a_job_is_missing(desk, heads, head):
    head.submit("job")
    desk.follow("job", SessionOf(place()))
    desk.follow()
    await asyncio.sleep(20)
    assert heads.asked(HOST).count("/api/version") == 1
    heads.restart(HOST)
    await asyncio.sleep(4)
    assert isinstance(desk.follow().error, NotThere)
    assert desk.follow("job", SessionOf(place())).session == "session_2"


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED", "STOPPED"])
async def test_nothing_is_asked_after_a_terminal_status(desk, heads, head, status):
    head.submit("job")
    head.set_status("job", status)
    desk.follow()
    await asyncio.sleep(60)
    desk.poller.hurry(rayjob())
    desk.follow()
    await asyncio.sleep(60)
    assert len(heads.requests) == 1
    assert desk.follow().job.status == status


async def test_following_often_asks_no_more_often(desk, heads, head):
    head.submit("job")
    for _ in range(100):
        desk.follow()
        await asyncio.sleep(0.0001)
    await asyncio.sleep(2)
    assert len(heads.requests) == 1


async def test_hurry_asks_at_once_but_not_all_the_time(desk, heads, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(1)
    desk.poller.hurry(rayjob())
    await asyncio.sleep(0.1)
    assert len(heads.requests) == 2
    for _ in range(100):
        desk.poller.hurry(rayjob())
        await asyncio.sleep(0.01)
    assert len(heads.requests) <= 8


async def test_hurry_ends_a_long_pause(desk, heads, head):
    heads.fault(HOST, REFUSES)
    desk.follow()
    await asyncio.sleep(300)
    heads.heal(HOST)
    head.submit("job")
    desk.poller.hurry(rayjob())
    await asyncio.sleep(0.1)
    assert desk.follow().job.status == "RUNNING"


async def test_a_job_that_is_not_there_is_told_as_such_and_is_no_failure_to_ask(desk, head):
    desk.follow()
    await asyncio.sleep(60)
    seen = desk.follow()
    assert isinstance(seen.error, NotThere)
    assert seen.failing_since is None
    assert desk.woken == [rayjob()]


async def test_a_lost_job_table_is_told_with_what_was_known_before(desk, heads, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(5)
    head.forget_jobs()
    await asyncio.sleep(5)
    seen = desk.follow()
    assert isinstance(seen.error, NotThere)
    assert seen.job.status == "RUNNING"


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param(REFUSES, Unreachable, id="refused"),
        pytest.param(HANGS, Unreachable, id="hanging"),
        pytest.param(SERVER_ERROR, Refused, id="500"),
        pytest.param(WRONG_JSON, Malformed, id="wrong JSON"),
    ],
)
async def test_a_failure_wakes_once_keeps_what_was_known_and_says_since_when(desk, heads, head, fault, error):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(5)
    heads.fault(HOST, fault)
    failed = heads.clock.now()
    await asyncio.sleep(200)
    seen = desk.follow()
    assert isinstance(seen.error, error)
    assert seen.job.status == "RUNNING"
    assert 0 <= (seen.failing_since - failed).total_seconds() < 6
    assert (seen.at - seen.failing_since).total_seconds() > 100
    assert len(desk.woken) == 2
    heads.heal(HOST)
    await asyncio.sleep(40)
    assert desk.follow().error is None
    assert desk.follow().failing_since is None
    assert len(desk.woken) == 3


async def test_pauses_grow_while_nothing_answers(desk, heads, head):
    heads.fault(HOST, REFUSES)
    desk.follow()
    await asyncio.sleep(3600)
    assert 3600 / 30 - 1 <= len(heads.requests) <= 3600 / 15 + 5


# --- several questions


async def test_several_jobs_of_one_dashboard_share_one_request(desk, heads, head):
    for i in range(5):
        head.submit(f"job{i}")
        desk.follow(f"job{i}")
    await asyncio.sleep(0.1)
    assert heads.asked() == ["/api/jobs/"]
    assert Counter(desk.woken) == {rayjob(f"job{i}"): 1 for i in range(5)}
    head.set_status("job3", "FAILED", "oops")
    await asyncio.sleep(4)
    assert desk.woken[5:] == [rayjob("job3")]
    assert desk.follow("job3").job.message == "oops"


async def test_a_job_that_is_not_listed_is_asked_for_by_name_before_it_is_called_missing(desk, heads, head):
    head.submit("job0")
    desk.follow("job0")
    desk.follow("gone")
    await asyncio.sleep(0.1)
    assert heads.asked() == ["/api/jobs/", "/api/jobs/gone"]
    assert isinstance(desk.follow("gone").error, NotThere)
    assert desk.follow("job0").job.status == "RUNNING"


@pytest.mark.parametrize(
    "fault", [says(200, b"[" + b" " * 2**21 + b"]"), SERVER_ERROR], ids=["too long", "500"]
)
async def test_where_the_list_cannot_be_used_jobs_are_asked_for_by_name_from_then_on(
    desk, heads, head, fault
):
    for name in ("a", "b"):
        head.submit(name)
        desk.follow(name)
    heads.fault(HOST, fault, times=1)
    await asyncio.sleep(10)
    assert heads.asked().count("/api/jobs/") == 1
    assert desk.follow("a").job.status == desk.follow("b").job.status == "RUNNING"


async def test_two_objects_may_follow_one_job_and_each_goes_on_its_own(desk, heads, head):
    head.submit("shared")
    question = JobOf(place(), "shared")
    desk.follow("a", question)
    desk.follow("b", question)
    await asyncio.sleep(1)
    assert sorted(desk.woken) == [rayjob("a"), rayjob("b")]
    desk.poller.unfollow(rayjob("a"), question)
    head.set_status("shared", "SUCCEEDED")
    await asyncio.sleep(4)
    assert desk.woken[2:] == [rayjob("b")]


async def test_sessions_serve_and_health_are_followed_likewise(desk, heads, head):
    head.set_application("app", "DEPLOYING")
    for question in (SessionOf(place()), ServeOf(place()), HealthOf(place())):
        desk.follow("job", question)
    await asyncio.sleep(1)
    assert desk.follow("job", SessionOf(place())).session == "session_1"
    assert desk.follow("job", ServeOf(place())).serve.is_ready is False
    assert desk.follow("job", HealthOf(place())).takes_traffic is True
    assert len(desk.woken) == 3
    head.set_application("app", "RUNNING")
    head.takes_traffic = False
    await asyncio.sleep(4)
    assert len(desk.woken) == 5
    assert desk.follow("job", ServeOf(place())).serve.is_ready is True
    assert desk.follow("job", HealthOf(place())).takes_traffic is False
    heads.restart(HOST)
    await asyncio.sleep(4)
    assert desk.follow("job", SessionOf(place())).session == "session_2"


async def test_a_proxy_that_cannot_be_reached_takes_no_traffic_whatever_it_said_before(desk, heads, head):
    desk.follow("job", HealthOf(place()))
    await asyncio.sleep(1)
    heads.kill(HOST)
    await asyncio.sleep(4)
    assert desk.follow("job", HealthOf(place())).takes_traffic is False


# --- many dashboards


async def test_at_most_so_many_are_asked_at_once_and_never_one_twice(desk_of, heads):
    desk = desk_of(at_once=16)
    for i in range(100):
        heads.start(place(f"c{i}").host).submit("job")
        heads.fault(place(f"c{i}").host, slow(0.3))
        desk.follow(f"j{i}", JobOf(place(f"c{i}"), "job"))
    for _ in range(20):
        for i in range(100):
            desk.poller.hurry(rayjob(f"j{i}"))
        await asyncio.sleep(0.5)
    assert heads.most_at_once <= 16
    assert heads.most_at_one_host == 1
    assert len(set(desk.woken)) == 100


@pytest.mark.parametrize("fault", [HANGS, CONNECT_HANGS], ids=["no answer", "no connection"])
async def test_dashboards_that_hang_delay_nobody_else(desk_of, heads, fault):
    desk = desk_of(at_once=32)
    for i in range(100):
        head = heads.start(place(f"c{i}").host)
        head.submit("job")
        if i % 10 == 0:
            heads.fault(place(f"c{i}").host, fault)
        desk.follow(f"j{i}", JobOf(place(f"c{i}"), "job"))
    await asyncio.sleep(30)
    desk.woken.clear()
    changed = [i for i in range(100) if i % 10]
    for i in changed:
        heads.heads[place(f"c{i}").host].set_status("job", "SUCCEEDED")
        desk.poller.hurry(rayjob(f"j{i}"))
    await asyncio.sleep(0.3)  # the least gap between two questions to one dashboard, and a moment
    assert Counter(desk.woken) == {rayjob(f"j{i}"): 1 for i in changed}


# --- what is kept


async def test_what_nobody_follows_is_asked_no_more_and_nothing_is_kept(desk, heads, head):
    head.submit("job")
    desk.follow()
    await asyncio.sleep(1)
    desk.poller.unfollow(rayjob(), JobOf(place(), "job"))
    desk.poller.unfollow(rayjob(), JobOf(place(), "never followed"))
    await asyncio.sleep(60)
    assert len(heads.requests) == 1
    assert not desk.poller._lines
    assert not desk.poller._questions
    assert not desk.poller._cache
    assert not desk.poller._lanes._seats


async def test_with_the_object_all_goes(desk, heads, head):
    head.submit("job")
    desk.follow()
    desk.follow("job", ServeOf(place()))
    desk.poller.order(rayjob(), Order("stop", place(), Stop("job")))
    desk.poller.forget(rayjob())
    await asyncio.sleep(60)
    assert heads.requests == []
    assert not desk.poller._lines
    assert not desk.poller._book
    assert desk.woken == []


async def test_an_answer_that_comes_when_nobody_follows_any_more_is_dropped(desk, heads, head):
    head.submit("job")
    heads.fault(HOST, slow(1))
    desk.follow()
    await asyncio.sleep(0.5)
    desk.poller.forget(rayjob())
    await asyncio.sleep(10)
    assert desk.woken == []
    assert not desk.poller._cache
    assert not desk.poller._lanes._seats


async def test_followed_again_during_its_last_request_it_is_asked_anew(desk, heads, head):
    head.submit("job")
    heads.fault(HOST, slow(1), times=1)
    desk.follow()
    await asyncio.sleep(0.5)
    desk.poller.forget(rayjob())
    desk.follow()
    await asyncio.sleep(2)
    assert heads.most_at_one_host == 1
    assert desk.follow().job.status == "RUNNING"


async def test_what_is_not_kept_any_more_is_asked_again_and_wakes_although_it_is_no_news(
    desk_of, heads, head
):
    desk = desk_of(cache_age=100)
    head.submit("job")
    head.set_status("job", "SUCCEEDED")
    desk.follow()
    await asyncio.sleep(200)
    assert desk.follow() is None
    await asyncio.sleep(1)
    assert desk.woken == [rayjob()] * 2
    assert desk.follow().job.status == "SUCCEEDED"


async def test_a_running_job_that_nobody_looks_at_is_watched_for_as_long_as_it_takes(desk_of, head):
    desk = desk_of(cache_age=10)
    head.submit("job")
    desk.follow()
    await asyncio.sleep(3600)
    head.set_status("job", "SUCCEEDED")
    await asyncio.sleep(67)
    assert desk.woken == [rayjob()] * 2


async def test_no_more_answers_are_kept_than_allowed_and_changes_still_wake(desk_of, heads):
    desk = desk_of(cache_size=3)
    for i in range(10):
        heads.start(place(f"c{i}").host).submit("job")
        desk.follow(f"j{i}", JobOf(place(f"c{i}"), "job"))
    await asyncio.sleep(60)
    assert len(desk.poller._cache) == 3
    assert len(desk.woken) == 10
    for i in range(10):
        heads.heads[place(f"c{i}").host].set_status("job", "FAILED")
    await asyncio.sleep(8)
    assert len(desk.woken) == 20


# --- orders


def submit(session=""):
    return Order("submit-1", place(), Submit(Submission("python job.py", "job"), session))


async def test_an_order_is_carried_out_and_its_outcome_wakes_the_object(desk, heads, head):
    assert desk.poller.order(rayjob(), submit("session_1")) is None
    await asyncio.sleep(0.1)
    assert desk.woken == [rayjob()]
    assert desk.poller.order(rayjob(), submit("session_1")).is_success
    assert desk.poller.outcome(rayjob(), "submit-1").is_success
    assert desk.poller.take(rayjob(), "submit-1").is_success
    assert desk.poller.outcome(rayjob(), "submit-1") is None
    assert heads.ledger.executions("job") == 1
    assert not desk.poller._lines


async def test_an_order_given_any_number_of_times_is_carried_out_once(desk, heads, head):
    for _ in range(50):
        desk.poller.order(rayjob(), submit())
        desk.poller.take(rayjob(), "submit-1")
        await asyncio.sleep(0.01)
    assert heads.asked(method="POST") == ["/api/jobs/"]


async def test_a_failed_order_is_not_repeated_by_itself_and_says_what_is_known(desk, heads, head):
    heads.fault(HOST, ANSWER_LOST, times=1)
    desk.poller.order(rayjob(), submit())
    await asyncio.sleep(600)
    outcome = desk.poller.outcome(rayjob(), "submit-1")
    assert isinstance(outcome.error, Unreachable)
    assert not outcome.error.certainly_not_done
    assert len(heads.requests) == 1


async def test_told_again_the_same_head_refuses_and_a_new_head_is_not_even_asked_to(desk, heads, head):
    heads.fault(HOST, ANSWER_LOST, times=1)
    desk.poller.order(rayjob(), submit())
    await asyncio.sleep(1)
    desk.poller.order(rayjob(), submit("session_1"), again=True)
    await asyncio.sleep(1)
    assert isinstance(desk.poller.outcome(rayjob(), "submit-1").error, AlreadyThere)
    heads.restart(HOST)
    desk.poller.order(rayjob(), submit("session_1"), again=True)
    await asyncio.sleep(1)
    assert isinstance(desk.poller.outcome(rayjob(), "submit-1").error, SessionChanged)
    assert heads.ledger.executions("job") == 1


async def test_what_was_seen_before_a_submission_is_not_shown_after_it(desk, heads, head):
    desk.follow()
    await asyncio.sleep(1)
    assert isinstance(desk.follow().error, NotThere)
    heads.fault(HOST, slow(0.5))
    desk.poller.order(rayjob(), submit())
    await asyncio.sleep(0.7)
    assert desk.poller.outcome(rayjob(), "submit-1").is_success
    assert desk.follow() is None
    await asyncio.sleep(1)
    assert desk.follow().job.status == "RUNNING"
    assert heads.most_at_one_host == 1


async def test_an_order_that_was_certainly_not_carried_out_leaves_what_is_known(desk, heads, head):
    desk.follow()
    await asyncio.sleep(1)
    heads.fault(HOST, says(400), times=1)
    desk.poller.order(rayjob(), submit())
    heads.fault(HOST, slow(1))
    await asyncio.sleep(0.3)
    assert not desk.poller.outcome(rayjob(), "submit-1").is_success
    assert isinstance(desk.follow().error, NotThere)


async def test_an_order_can_be_withdrawn_while_it_waits(desk, heads, head):
    heads.fault(HOST, slow(1))
    desk.poller.order(rayjob("first"), Order("serve", place(), PutServe({})))
    await asyncio.sleep(0.5)
    desk.poller.order(rayjob(), submit())
    assert desk.poller.cancel(rayjob(), "submit-1") is True
    assert desk.poller.cancel(rayjob("first"), "serve") is False
    await asyncio.sleep(10)
    assert heads.ledger.executions("job") == 0
    assert desk.poller.outcome(rayjob("first"), "serve").is_success


async def test_an_order_whose_object_is_gone_ends_silently(desk, heads, head):
    heads.fault(HOST, slow(1))
    desk.poller.order(rayjob(), submit())
    await asyncio.sleep(0.5)
    desk.poller.forget(rayjob())
    await asyncio.sleep(10)
    assert heads.ledger.executions("job") == 1
    assert desk.woken == []
    assert not desk.poller._book


async def test_once_a_dashboard_cannot_be_reached_its_other_orders_wait_and_are_not_lost(desk, heads, head):
    heads.fault(HOST, REFUSES, times=1)
    for i in range(3):
        desk.poller.order(rayjob(f"j{i}"), Order("serve", place(), PutServe({})))
    await asyncio.sleep(0.1)
    assert desk.woken == [rayjob("j0")]
    await asyncio.sleep(10)
    assert [desk.poller.outcome(rayjob(f"j{i}"), "serve").is_success for i in range(3)] == [False, True, True]


async def test_an_order_that_fails_unexpectedly_still_has_an_outcome(desk, heads, head, monkeypatch, caplog):
    async def broken(*_args):
        raise KeyError("a bug")

    monkeypatch.setattr(Dashboard, "stop", broken)
    desk.poller.order(rayjob(), Order("stop", place(), Stop("job")))
    await asyncio.sleep(1)
    outcome = desk.poller.outcome(rayjob(), "stop")
    assert "a bug" in str(outcome.error)
    assert not outcome.error.certainly_not_done
    assert "nobody expected" in caplog.text


async def test_the_newest_secret_of_an_address_is_used(heads, virtual_time):
    connected = []

    def connect(address):
        connected.append(address.secret)
        return Dashboard(address._replace(secret=""), heads)

    heads.start(HOST).submit("job")
    poller = Poller(connect, heads.clock, SeededEntropy(7), lambda owner: None)
    poller.follow(rayjob(), JobOf(place(secret="old"), "job"))
    await asyncio.sleep(1)
    poller.follow(rayjob(), JobOf(place(secret="new"), "job"))
    await asyncio.sleep(1)
    assert connected == ["old", "new"]
    assert heads.most_at_one_host == 1
    await poller.close()


async def test_after_a_hurry_pauses_are_short_again(desk, heads, head):
    heads.fault(HOST, REFUSES)
    desk.follow()
    await asyncio.sleep(300)
    desk.poller.hurry(rayjob())
    await asyncio.sleep(0.1)
    before = len(heads.requests)
    await asyncio.sleep(6.1)
    assert len(heads.requests) > before


async def test_once_a_dashboard_cannot_be_reached_the_rest_of_the_round_is_not_asked(desk, heads, head):
    heads.fault(HOST, HANGS)
    questions = [JobOf(place(), "job"), SessionOf(place()), ServeOf(place())]
    for question in questions:
        desk.follow("job", question)
    await asyncio.sleep(2.1)
    assert len(heads.requests) == 1
    assert all(isinstance(desk.follow("job", question).error, Unreachable) for question in questions)


async def test_what_is_expected_to_answer_is_asked_at_once_and_then_as_usual(desk, heads, head):
    def follow():
        return desk.poller.follow(rayjob(), JobOf(place(), "job"), is_expected=True)

    heads.fault(HOST, REFUSES)
    desk.follow()
    await asyncio.sleep(300)
    heads.heal(HOST)
    head.submit("job")
    follow()
    await asyncio.sleep(0.1)
    assert follow().job.status == "RUNNING"
    heads.fault(HOST, REFUSES)
    heads.requests.clear()
    for _ in range(600):
        follow()
        await asyncio.sleep(1)
    assert len(heads.requests) <= 600 / 15 + 5, "what goes on to be expected is not asked all the time"
