"""Plans become requests, and their ends become events."""

import asyncio
from typing import Any

import pytest

from eagleray.kube.resources import PODS, Ref
from eagleray.kube.writer import NameTaken
from eagleray.runtime.acting import MOST_AT_ONCE, Acting, ActionFailed
from eagleray.runtime.actions import Create, Delete, Refuse, Said, Say, Stage, Tell
from eagleray.runtime.outcomes import failed_step
from kubewire import errors

CLUSTER = {"kind": "RayCluster", "metadata": {"name": "c"}}
DONE = Say("Made", "Create", "made it")
FAILED = Say("NotMade", "Create", "could not", "Warning")
SAID = Said(DONE, FAILED, "mark")


class Writes:
    """A writer that notes what is asked of it, how much of it at once, and refuses what it is told to."""

    def __init__(self, refused=None):
        self.refused = refused or {}
        self.asked = []
        self.batches = []
        self._going = 0

    async def create_child(self, _resource, obj):
        name = obj["metadata"]["name"]
        self.asked.append(name)
        self._going += 1
        await asyncio.sleep(0)
        if self._going:
            self.batches.append(self._going)
            self._going = 0
        if name in self.refused:
            raise self.refused[name]

    async def delete(self, _resource, ref):
        self.asked.append(f"delete {ref.name}")


class Told:
    """A recorder that remembers."""

    def __init__(self):
        self.events = []

    def normal(self, _regarding, reason, _action, note):
        self.events.append(("Normal", reason, note))

    def warning(self, _regarding, reason, _action, note):
        self.events.append(("Warning", reason, note))


def create(name, **more):
    return Create(PODS, {"metadata": {"name": name}}, SAID, **more)


async def act(writes, *stages):
    """Act on a plan; returns what was told and how it failed, if it did."""
    told: Any = Told()
    try:
        await Acting(writes, told).act(CLUSTER, stages)
    except ActionFailed as failed:
        return told.events, failed
    return told.events, None


async def test_stages_go_in_order_and_what_was_done_is_told():
    writes = Writes()
    events, failed = await act(
        writes, Stage("one", (create("a"),)), Stage("two", (Delete(PODS, Ref("", "b", "u")), Tell(FAILED)))
    )
    assert failed is None
    assert writes.asked == ["a", "delete b"]
    assert events == [("Normal", "Made", "made it"), ("Warning", "NotMade", "could not")]


async def test_many_actions_begin_with_one_and_go_on_a_few_at_a_time():
    writes = Writes()
    await act(writes, Stage("many", [create(str(number)) for number in range(2 + 3 * MOST_AT_ONCE)]))
    assert writes.batches == [1, *[MOST_AT_ONCE] * 3, 1]


async def test_a_failure_ends_the_plan_once_what_had_begun_is_finished():
    writes = Writes({"2": errors.Forbidden("no more")})
    events, failed = await act(
        writes, Stage("many", [create(str(number)) for number in range(60)]), Stage("later", (create("x"),))
    )
    assert writes.asked == ["0", "1", "2"]
    assert events[-1] == ("Warning", "NotMade", "could not, no more")
    assert events.count(("Normal", "Made", "made it")) == 2
    assert (str(failed.cause), failed.mark, failed_step(failed.cause)) == ("no more", "mark", "many")


async def test_an_optional_child_whose_name_is_taken_is_told_of_and_let_be():
    writes = Writes({"a": NameTaken("somebody has it")})
    events, failed = await act(
        writes, Stage("one", (create("a", optional=True),)), Stage("two", (create("b"),))
    )
    assert failed is None
    assert events == [("Warning", "NotMade", "could not, somebody has it"), ("Normal", "Made", "made it")]


@pytest.mark.parametrize(
    ("optional", "refusal"),
    [(False, NameTaken("taken")), (True, errors.Forbidden("no")), (True, OSError("cut"))],
)
async def test_any_other_refusal_of_a_child_ends_the_plan(optional, refusal):
    writes = Writes({"a": refusal})
    _, failed = await act(
        writes, Stage("one", (create("a", optional=optional),)), Stage("two", (create("b"),))
    )
    assert failed.cause is refusal
    assert writes.asked == ["a"]


async def test_a_plan_that_refuses_says_what_it_has_to_say_once():
    events, failed = await act(Writes(), Stage("one", (Refuse("a and b", FAILED),)))
    assert events == [("Warning", "NotMade", "could not")]
    assert str(failed.cause) == "a and b"


async def test_a_bug_is_no_refusal():
    writes = Writes({"a": KeyError("metadata")})
    with pytest.raises(KeyError):
        await act(writes, Stage("one", (create("a"),)))
