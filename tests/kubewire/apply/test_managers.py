"""Who owns what after updates and applies."""

from typing import Any

import pytest

from kubewire.apply import Conflicted, Kind, MalformedFields, Managers, Writer
from kubewire.apply.fieldsets import of_paths, show_path
from kubewire.apply.managers import MAX_UPDATERS
from tests.kubewire.apply.kinds import SHAPE, STATUS, OneVersion, Thing


@pytest.fixture
def thing():
    return Thing()


def conflicts(thing, manager, spec, **more):
    with pytest.raises(Conflicted) as found:
        thing.apply(manager, spec, **more)
    return [f"{one.manager} {show_path(one.path)}" for one in found.value.conflicts]


def test_an_applier_owns_what_it_says(thing):
    thing.apply("alice", {"color": "red", "tags": ["x"]})
    assert thing.owned == {"alice": {"f:color": {}, "f:tags": {'v:"x"': {}}}}


def test_an_updater_owns_what_it_changes(thing):
    thing.update("one", {"color": "red", "count": 1})
    thing.update("two", {"color": "blue", "count": 1})
    assert thing.owned == {"one": {".": {}, "f:count": {}}, "two": {"f:color": {}}}


def test_what_an_update_removes_is_nobodys(thing):
    thing.update("one", {"color": "red", "count": 1})
    thing.update("two", {"count": 1})
    assert thing.owned == {"one": {".": {}, "f:count": {}}}


def test_the_same_value_is_shared(thing):
    thing.apply("alice", {"color": "red"})
    thing.apply("bob", {"color": "red"})
    assert thing.owned == {"alice": {"f:color": {}}, "bob": {"f:color": {}}}


def test_another_value_is_a_conflict_with_every_owner(thing):
    thing.apply("alice", {"color": "red", "count": 1})
    thing.update("up", {"color": "red", "count": 2}, part="scale")
    thing.apply("bob", {"color": "red"})
    assert conflicts(thing, "carol", {"color": "blue", "count": 3}) == [
        '"alice" .spec.color',
        '"bob" .spec.color',
        '"up" with subresource "scale" using example.com/v1 .spec.count',
    ]


def test_a_conflict_changes_nothing(thing):
    thing.apply("alice", {"color": "red"})
    before = thing.obj, thing.entries
    conflicts(thing, "bob", {"color": "blue"})
    assert (thing.obj, thing.entries) == before


def test_force_takes_the_field_from_its_owner(thing):
    thing.apply("alice", {"color": "red", "count": 1})
    thing.apply("bob", {"color": "blue"}, force=True)
    assert thing.spec == {"color": "blue", "count": 1}
    assert thing.owned == {"alice": {"f:count": {}}, "bob": {"f:color": {}}}


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [
        pytest.param({"color": "red", "count": 1}, {"count": 1}, {"count": 1}, id="a field"),
        pytest.param({"tags": ["a", "b"]}, {"tags": ["b"]}, {"tags": ["b"]}, id="a member"),
        pytest.param({"order": ["a"], "count": 1}, {"count": 1}, {"count": 1}, id="an atomic list"),
        pytest.param(
            {"parts": [{"name": "a"}, {"name": "b"}]},
            {"parts": [{"name": "b"}]},
            {"parts": [{"name": "b"}]},
            id="an item",
        ),
        pytest.param(
            {"parts": [{"name": "a", "size": 1}]},
            {"parts": [{"name": "a"}]},
            {"parts": [{"name": "a"}]},
            id="a field of an item",
        ),
        pytest.param({"labels": {"a": "1"}, "count": 1}, {"count": 1}, {"count": 1}, id="a whole map"),
    ],
)
def test_what_its_applier_drops_goes(thing, first, second, left):
    thing.apply("alice", first)
    thing.apply("alice", second)
    assert thing.spec == left


def test_what_somebody_else_owns_too_stays_when_one_drops_it(thing):
    thing.apply("alice", {"color": "red", "parts": [{"name": "a", "size": 1}]})
    thing.apply("bob", {"color": "red", "parts": [{"name": "a"}]})
    thing.apply("alice", {"count": 1})
    assert thing.spec == {"color": "red", "count": 1, "parts": [{"name": "a"}]}


def test_a_default_that_nobody_owns_stays(thing):
    thing.apply("alice", {"color": "red", "count": 1})
    thing.obj["spec"]["on"] = True
    thing.apply("alice", {"count": 1})
    assert thing.spec == {"count": 1, "on": True}


def test_applying_the_same_again_changes_neither_the_object_nor_the_time(thing):
    thing.apply("alice", {"color": "red"})
    before = thing.obj, thing.entries
    thing.apply("alice", {"color": "red"})
    assert (thing.obj, thing.entries) == before


def test_an_applier_that_owns_nothing_any_more_has_no_entry(thing):
    thing.apply("alice", {"color": "red"})
    thing.apply("bob", {"color": "red"})
    thing.apply("alice", None)
    assert list(thing.owned) == ["bob"]


def test_entries_are_sorted_by_operation_time_and_name(thing):
    thing.update("zoe", {"count": 1})
    thing.update("abe", {"count": 1, "on": True})
    thing.apply("yan", {"color": "red"})
    thing.apply("bea", {"tags": ["x"]})
    thing.update("zoe", {**thing.spec, "count": 2})
    assert [entry["manager"] for entry in thing.entries] == ["yan", "bea", "abe", "zoe"]


def test_an_entry_tells_who_how_where_and_when(thing):
    thing.update("one", {"color": "red"}, part="scale")
    assert thing.entries == [
        {
            "manager": "one",
            "operation": "Update",
            "apiVersion": "example.com/v1",
            "time": "2030-01-01T00:00:01Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {".": {}, "f:color": {}}},
            "subresource": "scale",
        }
    ]


def test_a_writer_without_a_name_is_unknown(thing):
    thing.update("", {"color": "red"})
    assert list(thing.owned) == ["unknown"]


def test_the_same_name_applies_and_updates_as_two(thing):
    thing.apply("alice", {"color": "red"})
    thing.update("alice", {"color": "red", "count": 1})
    assert [entry["operation"] for entry in thing.entries] == ["Apply", "Update"]


def test_only_so_many_updaters_have_entries_of_their_own(thing):
    for number in range(MAX_UPDATERS + 3):
        thing.update(
            f"m{number:02}", {**(thing.spec or {}), "labels": {f"l{i}": "" for i in range(number + 1)}}
        )
    names = [entry["manager"] for entry in thing.entries]
    assert names == ["ancient-changes", *(f"m{number:02}" for number in range(4, MAX_UPDATERS + 3))]
    assert set(thing.owned["ancient-changes"]["f:labels"]) == {".", "f:l0", "f:l1", "f:l2", "f:l3"}


def test_a_way_of_writing_that_leaves_fields_alone_does_not_own_them():
    config = {"metadata": {"labels": {"a": "b"}}, "spec": {"color": "red"}, "status": {"phase": "Up"}}
    writer = Writer("ctl", "example.com/v1", "status", "2030-01-01T00:00:00Z")
    _, entries = Managers({}).applied(STATUS, {}, config, writer, force=False)
    assert [entry["fieldsV1"] for entry in entries] == [{"f:status": {"f:phase": {}}}]


def test_nobody_owns_what_an_object_is_called():
    metadata = {"name": "t", "namespace": "n", "uid": "u", "resourceVersion": "1", "generation": 2}
    writer = Writer("one", "example.com/v1", "", "2030-01-01T00:00:00Z")
    kind = Kind(SHAPE, {}, OneVersion())
    obj = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata}
    assert Managers({}).updated(kind, {}, obj, writer) == []


def test_what_was_there_before_anybody_applied_has_an_owner_of_its_own(thing):
    thing.obj = {"metadata": {"name": "t"}, "spec": {"color": "red"}}
    writer = Writer("late", "example.com/v1", "", "2030-01-01T00:00:00Z")
    thing.entries = (
        thing._managers()
        .with_earlier(thing.kind, {}, thing.obj, writer)
        .updated(thing.kind, thing.obj, thing.obj, writer)
    )
    assert conflicts(thing, "late", {"color": "blue"}) == [
        '"before-first-apply" using example.com/v1 .spec.color'
    ]


def test_fields_that_became_one_whole_are_owned_as_such(thing):
    entry = {
        "manager": "alice",
        "operation": "Apply",
        "apiVersion": "example.com/v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:whole": {".": {}, "f:a": {}}}},
    }
    thing.obj, thing.entries = {"spec": {"whole": {"a": "1"}}}, [entry]
    assert conflicts(thing, "bob", {"whole": {"b": "1"}}) == ['"alice" .spec.whole']


# --- versions


@pytest.fixture
def two_versions():
    return Thing(Kind(SHAPE, of_paths(("f:status",)), OneVersion(has_second=True)))


def test_ownership_in_another_version_is_seen_in_that_version(two_versions):
    entry = {
        "manager": "other",
        "operation": "Apply",
        "apiVersion": "example.com/v2",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:paint": {}}},
    }
    two_versions.obj, two_versions.entries = {"spec": {"color": "red"}}, [entry]
    assert conflicts(two_versions, "alice", {"color": "blue"}) == ['"other" .spec.paint']


def test_what_is_owned_in_another_version_stays_when_an_applier_drops_it(two_versions):
    two_versions.apply("alice", {"color": "red", "count": 1})
    entry = {**two_versions.entries[0], "manager": "other", "apiVersion": "example.com/v2"}
    two_versions.entries.append({**entry, "fieldsV1": {"f:spec": {"f:paint": {}}}})
    two_versions.apply("alice", {"count": 1})
    assert two_versions.spec == {"color": "red", "count": 1}


def test_what_was_applied_in_another_version_can_be_dropped_in_this(two_versions):
    two_versions.apply("alice", {"color": "red", "count": 1})
    fields: dict[str, Any] = {"f:spec": {"f:paint": {}, "f:count": {}}}
    two_versions.entries = [{**two_versions.entries[0], "apiVersion": "example.com/v2", "fieldsV1": fields}]
    two_versions.apply("alice", {"count": 1})
    assert two_versions.spec == {"count": 1}


def test_owners_in_a_version_that_is_gone_are_forgotten(thing):
    thing.update("one", {"color": "red"}, version="v0")
    thing.update("two", {"color": "red", "count": 1})
    assert list(thing.owned) == ["two"]


# --- entries from outside


GOOD = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({**GOOD, "operation": "Guess"}, id="an unknown operation"),
        pytest.param({**GOOD, "apiVersion": ""}, id="no version"),
        pytest.param({**GOOD, "fieldsType": "FieldsV2"}, id="another form"),
        pytest.param({**GOOD, "fieldsV1": {"f:a": 1}}, id="no set"),
        pytest.param("m", id="no object"),
    ],
)
def test_malformed_entries_are_refused(entry):
    with pytest.raises(MalformedFields):
        Managers.given([GOOD, entry])


def test_entries_from_outside_are_taken_over():
    assert Managers.given([GOOD])
    assert not Managers.given([])
    assert not Managers.given(None)
