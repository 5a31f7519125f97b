"""What is true of apply whatever is applied."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewire.apply import Conflicted
from kubewire.apply.comparing import compare, owned
from kubewire.apply.fieldsets import difference, intersection
from tests.kubewire.apply.kinds import SHAPE, Thing

LETTERS = st.sampled_from("abc")
TAGS = st.lists(LETTERS, unique=True, max_size=3)
MAPS = st.dictionaries(LETTERS, LETTERS, max_size=3)


def items(keys, **fields):
    """Return lists of objects no two of which have the same keys."""
    objects = st.fixed_dictionaries(keys, optional=fields)
    return st.lists(objects, max_size=3, unique_by=lambda item: tuple(item[key] for key in keys))


PARTS = items({"name": LETTERS}, size=st.integers(0, 2), tags=TAGS)
PORTS = items({"port": st.integers(1, 2), "protocol": st.sampled_from(["TCP", "UDP"])}, title=LETTERS)
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "color": LETTERS,
        "count": st.integers(0, 2),
        "labels": MAPS,
        "whole": MAPS,
        "tags": TAGS,
        "order": TAGS,
        "parts": PARTS,
        "ports": PORTS,
        "entries": st.dictionaries(
            LETTERS, st.fixed_dictionaries({}, optional={"name": LETTERS, "tags": TAGS})
        ),
        "free": st.recursive(
            LETTERS, lambda below: st.dictionaries(LETTERS, below, max_size=2), max_leaves=4
        ).map(lambda value: {"x": value}),
    },
)
WRITES = st.lists(st.tuples(st.booleans(), st.sampled_from("pq"), SPECS), max_size=4)


def written(writes):
    """Return a thing after some applies, by force, and updates."""
    thing = Thing()
    for is_apply, manager, spec in writes:
        if is_apply:
            thing.apply(manager, spec, force=True)
        else:
            thing.update(manager, spec)
    return thing


def everything(obj):
    """Return every field of an object, those that hold others included."""
    return compare(SHAPE, {}, obj).changed


@settings(max_examples=30, deadline=None)
@given(WRITES, SPECS)
def test_applying_twice_is_applying_once(writes, spec):
    thing = written(writes)
    thing.apply("me", spec, force=True)
    before = thing.obj, thing.entries
    thing.apply("me", spec)
    assert (thing.obj, thing.entries) == before


@settings(max_examples=30, deadline=None)
@given(WRITES, SPECS)
def test_an_applier_owns_what_it_said_and_nothing_else(writes, spec):
    thing = written(writes)
    thing.apply("me", spec, force=True)
    said = owned(SHAPE, {"spec": spec})
    assert [entry["fieldsV1"] for entry in thing.entries if entry["manager"] == "me"] == [said] * bool(said)


@settings(max_examples=30, deadline=None)
@given(WRITES, SPECS)
def test_what_was_applied_is_there(writes, spec):
    thing = written(writes)
    thing.apply("me", spec, force=True)
    assert not difference(owned(SHAPE, {"spec": spec}), everything(thing.obj))
    assert all(
        thing.spec[name] == spec[name] for name in ("color", "count", "whole", "order") if name in spec
    )


@settings(max_examples=30, deadline=None)
@given(SPECS)
def test_an_applier_that_drops_everything_leaves_nothing_that_it_owned(spec):
    thing = Thing()
    thing.apply("me", spec)
    thing.apply("me", None)
    assert not intersection(owned(SHAPE, {"spec": spec}), everything(thing.obj))
    assert thing.entries == []


@settings(max_examples=30, deadline=None)
@given(WRITES, SPECS)
def test_without_force_an_apply_takes_nothing_from_others(writes, spec):
    thing = written(writes)
    before = {entry["manager"]: entry["fieldsV1"] for entry in thing.entries if entry["operation"] == "Apply"}
    try:
        thing.apply("me", spec)
    except Conflicted:
        return
    after = {entry["manager"]: entry["fieldsV1"] for entry in thing.entries if entry["operation"] == "Apply"}
    assert {name: fields for name, fields in after.items() if name != "me"} == before


@settings(max_examples=30, deadline=None)
@given(WRITES)
def test_what_is_owned_is_there(writes):
    thing = written(writes)
    present = everything(thing.obj)
    for entry in thing.entries:
        if entry["operation"] == "Apply":
            assert not difference(entry["fieldsV1"], present)


@pytest.mark.parametrize("manager", ["me", "you"])
def test_a_conflict_can_always_be_won_by_force(manager):
    thing = Thing()
    thing.apply("me", {"color": "red"})
    thing.apply(manager, {"color": "blue"}, force=True)
    assert thing.spec == {"color": "blue"}
