"""Orders: carried out once, whatever happens to their answers."""

from datetime import UTC, datetime

import pytest

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import Malformed, SessionChanged, Unreachable
from eagleray.dashboard.orders import (
    REMEMBERED,
    Delete,
    Order,
    OrderBook,
    Outcome,
    PutServe,
    Stop,
    Submit,
    carry_out,
)
from eagleray.dashboard.requests import Submission
from tests.eagleray.dashboard.places import place, rayjob
from tests.eagleray.dashboard.scripted import ANSWER_HANGS, WRONG_JSON

HOST = place().host
SUBMISSION = Submission("python job.py", "job-1")


def order(name="submit"):
    return Order(name, place(), Stop("job-1"))


def added(book, order):
    """Give an order that the book must take."""
    entry = book.add(rayjob(), order, again=False)
    assert entry is not None
    return entry


def end(entry):
    entry.is_started = True
    entry.outcome = Outcome(entry.order, datetime(2030, 1, 1, tzinfo=UTC))


# --- the book


def test_the_same_order_given_twice_is_one():
    book = OrderBook()
    assert book.add(rayjob(), order(), again=False) is not None
    assert book.add(rayjob(), order(), again=False) is None
    assert book.add(rayjob(), order(), again=True) is None  # it has not even ended
    assert book.add(rayjob("other"), order(), again=False) is not None


def test_an_outcome_is_kept_until_it_is_taken_and_the_order_is_not_given_anew_by_that():
    book = OrderBook()
    entry = added(book, order())
    assert book.outcome(rayjob(), "submit") is None
    assert book.take(rayjob(), "submit") is None
    end(entry)
    assert book.outcome(rayjob(), "submit") is entry.outcome
    assert book.take(rayjob(), "submit") is entry.outcome
    assert book.take(rayjob(), "submit") is None
    assert book.add(rayjob(), order(), again=False) is None


def test_told_again_an_order_that_has_ended_is_given_anew():
    book = OrderBook()
    end(added(book, order()))
    assert book.add(rayjob(), order(), again=True) is not None
    assert book.outcome(rayjob(), "submit") is None


def test_an_order_can_be_withdrawn_until_it_is_started():
    book = OrderBook()
    entry = added(book, order())
    assert book.cancel(rayjob(), "submit") is entry
    assert book.cancel(rayjob(), "submit") is None
    started = added(book, order())
    started.is_started = True
    assert book.cancel(rayjob(), "submit") is None


def test_what_is_forgotten_is_gone():
    book = OrderBook()
    entry = added(book, order())
    assert book.forget(rayjob()) == [entry]
    assert entry.is_cancelled
    assert len(book) == 0


def test_of_orders_that_are_over_only_so_many_are_remembered():
    book = OrderBook()
    waiting = added(book, order("waits"))
    for i in range(REMEMBERED + 10):
        end(added(book, order(f"n{i}")))
        book.take(rayjob(), f"n{i}")
    assert len(book) <= REMEMBERED + 2
    assert book.cancel(rayjob(), "waits") is waiting


# --- what is done


@pytest.fixture
def head(heads):
    return heads.start(HOST)


async def test_each_order_does_what_it_says(heads, head):
    dashboard = Dashboard(place(), heads)
    await carry_out(dashboard, Submit(SUBMISSION, session=head.session))
    assert head.jobs["job-1"]["status"] == "RUNNING"
    await carry_out(dashboard, Stop("job-1"))
    assert head.jobs["job-1"]["status"] == "STOPPED"
    await carry_out(dashboard, Delete("job-1"))
    assert head.jobs == {}
    await carry_out(dashboard, PutServe({"applications": [{"name": "app"}]}))
    assert set(head.applications) == {"app"}


async def test_a_new_head_does_not_get_what_was_meant_for_the_old_one(heads, head):
    dashboard = Dashboard(place(), heads)
    await carry_out(dashboard, Submit(SUBMISSION, session=head.session))
    heads.restart(HOST)
    with pytest.raises(SessionChanged, match="session_2, not session_1") as caught:
        await carry_out(dashboard, Submit(SUBMISSION, session=head.session))
    assert caught.value.certainly_not_done
    assert heads.ledger.executions("job-1") == 1


@pytest.mark.parametrize("fault", [ANSWER_HANGS, WRONG_JSON], ids=["no answer", "a wrong one"])
async def test_where_the_session_cannot_be_learned_nothing_is_submitted_for_certain(heads, head, fault):
    heads.fault(HOST, fault, times=1)
    with pytest.raises((Unreachable, Malformed)) as caught:
        await carry_out(Dashboard(place(), heads), Submit(SUBMISSION, session=head.session))
    assert caught.value.certainly_not_done
    assert heads.ledger.executions("job-1") == 0


async def test_a_submission_whose_answer_is_lost_may_have_happened(heads, head):
    heads.fault(HOST, ANSWER_HANGS, times=1)
    with pytest.raises(Unreachable) as caught:
        await carry_out(Dashboard(place(), heads), Submit(SUBMISSION))
    assert not caught.value.certainly_not_done
    assert heads.ledger.executions("job-1") == 1
