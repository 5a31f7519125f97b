"""A cache alone: which news counts, and how fast objects are found."""

from timeit import repeat

import msgspec
import pytest

from eagleray.kube.cache import Cache, Change
from eagleray.kube.resources import PODS, Key, Object, Ref
from eagleray.kube.views import typed, whole

VIEW = whole(PODS)


class Small(msgspec.Struct, rename="camel"):
    """What somebody wants to know of an object."""

    class Metadata(msgspec.Struct):
        name: str

    metadata: Metadata


def pod(name, version, uid=None, namespace="team", labels=None, owners=(), **rest):
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "labels": labels or {},
        "ownerReferences": [{"uid": owner} for owner in owners],
    }
    return {"metadata": metadata, **rest}


def read(*objects, view=VIEW):
    return [view.of_object(obj) for obj in objects]


def filled(*objects, version=100, **options):
    """Return a cache that was listed at a version, and what it tells from then on."""
    cache = Cache(VIEW, **options)
    cache.replace("", read(*objects), version)
    changes: list[Change[Object]] = []
    cache.listen(changes.append)
    changes.clear()
    return cache, changes


def versions(cache):
    return {ref.name: int(ref.version) for ref in cache.refs()}


def told(cache, kind, obj):
    cache.apply("", kind, VIEW.of_object(obj))


def test_the_answer_to_a_write_is_there_at_once_and_its_event_is_no_news():
    cache, changes = filled(pod("a", 90))
    cache.saw(pod("a", 105))
    assert versions(cache) == {"a": 105}
    told(cache, "MODIFIED", pod("a", 105))
    assert [(change.key, change.cause) for change in changes] == [(Key("team", "a"), "write")]


def test_older_news_does_not_overwrite_a_newer_answer():
    cache, _ = filled(pod("a", 90))
    cache.saw(pod("a", 105))
    told(cache, "MODIFIED", pod("a", 103))
    assert versions(cache) == {"a": 105}
    told(cache, "MODIFIED", pod("a", 110))
    assert versions(cache) == {"a": 110}


def test_the_answer_to_a_creation_stays_while_a_list_is_older():
    cache, _ = filled()
    cache.saw(pod("a", 105))
    cache.replace("", [], 101)
    assert versions(cache) == {"a": 105}
    cache.replace("", [], 106)
    assert versions(cache) == {}


def test_an_answer_that_comes_after_the_news_of_the_objects_end_does_not_bring_it_back():
    cache, changes = filled(pod("a", 90))
    told(cache, "DELETED", pod("a", 107))
    cache.saw(pod("a", 105))
    assert versions(cache) == {}
    assert [change.new for change in changes] == [None]


def test_a_bookmark_says_how_far_the_watch_is():
    cache, _ = filled()
    cache.reached("", 200)
    cache.saw(pod("a", 150))
    assert versions(cache) == {}


def test_an_accepted_deletion_is_remembered_until_the_watch_tells_of_it():
    cache, changes = filled(pod("a", 90))
    cache.saw_deleted(Ref("team", "a", "uid-a"))
    assert versions(cache) == {}
    told(cache, "MODIFIED", pod("a", 104))
    assert versions(cache) == {}
    cache.saw(pod("a", 105))
    assert versions(cache) == {}
    told(cache, "DELETED", pod("a", 106))
    assert [(change.new, change.cause) for change in changes] == [(None, "write")]
    assert cache._gone == {}


def test_a_list_from_before_an_accepted_deletion_does_not_bring_the_object_back():
    cache, _ = filled(pod("a", 90))
    cache.saw_deleted(Ref("team", "a", "uid-a"))
    cache.replace("", read(pod("a", 104)), 110)
    assert versions(cache) == {}
    cache.replace("", [], 120)
    assert cache._gone == {}


def test_a_deletion_is_not_forgotten_by_a_list_from_before_the_creation():
    cache, _ = filled()
    cache.saw(pod("a", 105))
    cache.saw_deleted(Ref("team", "a", "uid-a"))
    cache.replace("", [], 101)
    told(cache, "ADDED", pod("a", 105))
    assert versions(cache) == {}
    told(cache, "DELETED", pod("a", 106))
    assert cache._gone == {}


def test_a_successor_of_the_same_name_is_another_object():
    cache, changes = filled(pod("a", 90, uid="first"))
    cache.saw_deleted(Ref("team", "a", "first"))
    cache.saw(pod("a", 110, uid="second"))
    told(cache, "DELETED", pod("a", 109, uid="first"))
    assert cache.ref(Key("team", "a")).uid == "second"
    cache.saw_deleted(Ref("team", "a", "first"))
    assert cache.ref(Key("team", "a")).uid == "second"
    told(cache, "ADDED", pod("a", 120, uid="third"))
    gone_and_come = [(change.old is not None, change.new is not None) for change in changes[-2:]]
    assert gone_and_come == [(True, False), (False, True)]


def test_an_object_that_leaves_the_selection_and_comes_back_by_our_own_write_stays():
    cache, _ = filled(pod("a", 90, labels={"app": "ray"}), label_selector="app=ray")
    cache.saw(pod("a", 105, labels={"app": "ray"}))
    told(cache, "DELETED", pod("a", 103))
    assert versions(cache) == {"a": 105}


@pytest.mark.parametrize(
    ("options", "obj"),
    [
        pytest.param({"label_selector": "app=ray"}, pod("a", 105, labels={"app": "web"}), id="by label"),
        pytest.param(
            {"field_selector": "status.phase!=Failed"},
            pod("a", 105, status={"phase": "Failed"}),
            id="by field",
        ),
        pytest.param({"scopes": ("other",)}, pod("a", 105), id="by namespace"),
    ],
)
def test_an_answer_that_the_watch_would_not_tell_of_is_left_out(options, obj):
    cache = Cache(VIEW, **options)
    cache.saw(obj)
    assert versions(cache) == {}


def test_our_own_write_can_take_an_object_out_of_the_selection():
    cache, _ = filled(pod("a", 90, labels={"app": "ray"}), label_selector="app=ray")
    cache.saw(pod("a", 105, labels={}))
    assert versions(cache) == {}


def test_a_server_that_was_set_back_to_an_earlier_time_is_believed(caplog):
    cache, _ = filled(pod("a", 90), pod("b", 91), pod("c", 92))
    told(cache, "MODIFIED", pod("a", 150))
    cache.saw_deleted(Ref("team", "c", "uid-c"))
    cache.replace("", read(pod("a", 40), pod("c", 41)), 50)
    assert versions(cache) == {"a": 40, "c": 41}
    told(cache, "MODIFIED", pod("a", 60))
    assert versions(cache) == {"a": 60, "c": 41}
    assert "set back" in caplog.text


def test_each_namespace_has_its_own_watch():
    cache = Cache(VIEW, scopes=("one", "two"))
    cache.replace("one", read(pod("a", 5, namespace="one")), 200)
    cache.replace("two", read(pod("b", 6, namespace="two")), 100)
    cache.saw(pod("c", 150, namespace="two"))
    assert versions(cache) == {"a": 5, "b": 6, "c": 150}
    cache.replace("two", [], 160)
    assert versions(cache) == {"a": 5}


def test_indexes_follow_what_changes():
    cache, _ = filled(
        pod("a", 1, labels={"cluster": "x"}, owners=["o-1", "o-1"]),
        pod("b", 2, labels={"cluster": "x"}, namespace="other"),
        labels=["cluster"],
    )
    assert [obj["metadata"]["name"] for obj in cache.labelled("team", "cluster", "x")] == ["a"]
    assert [obj["metadata"]["name"] for obj in cache.owned_by("o-1")] == ["a"]
    assert [obj["metadata"]["name"] for obj in cache.in_namespace("other")] == ["b"]
    told(cache, "MODIFIED", pod("a", 101, labels={"cluster": "y"}, owners=["o-2"]))
    assert cache.labelled("team", "cluster", "x") == cache.owned_by("o-1") == []
    assert len(cache.labelled("team", "cluster", "y")) == len(cache.owned_by("o-2")) == 1
    told(cache, "DELETED", pod("a", 102))
    told(cache, "DELETED", pod("b", 103, namespace="other"))
    assert cache._found == {}
    with pytest.raises(KeyError, match="has no index"):
        cache.labelled("team", "colour", "red")


def test_a_label_may_be_called_like_an_index():
    cache, _ = filled(pod("a", 1, labels={"owner": "o-1"}), labels=["owner"])
    assert cache.owned_by("o-1") == []
    assert len(cache.labelled("team", "owner", "o-1")) == 1


def test_a_lookup_costs_the_same_among_ten_and_ten_thousand_objects():
    def cost(size):
        cache, _ = filled(
            *(pod(f"p{n}", n + 1, owners=[f"o-{n // 5}"], labels={"c": str(n // 5)}) for n in range(size)),
            labels=["c"],
        )

        def look():
            assert len(cache.owned_by("o-1")) == len(cache.labelled("team", "c", "1")) == 5

        return min(repeat(look, number=50, repeat=7))

    # A look at every object would take a thousand times as long.
    assert cost(10_000) < 10 * cost(10)


def test_a_listener_learns_what_is_there_and_what_happens():
    cache, _ = filled(pod("a", 1))
    changes: list[Change[Object]] = []
    cache.listen(changes.append)
    told(cache, "MODIFIED", pod("a", 101))
    cache.replace("", [], 200)
    seen = [(c.old is not None, c.new is not None, c.cause) for c in changes]
    assert seen == [(False, True, "list"), (True, True, "watch"), (True, False, "list")]
    assert isinstance(changes[0], Change)


def test_a_listener_that_fails_keeps_nobody_from_the_news(caplog):
    cache, changes = filled()

    def fail(_change):
        raise RuntimeError("no luck")

    cache.listen(fail)
    later: list[Change[Object]] = []
    cache.listen(later.append)
    told(cache, "ADDED", pod("a", 101))
    assert len(changes) == len(later) == 1
    assert "no luck" in caplog.text


def test_a_typed_view_keeps_what_is_read_alone():
    view = typed(Small)
    text = msgspec.Raw(msgspec.json.encode(pod("a", 7, spec={"much": "more"})))
    meta, small = view.of_text(text)
    assert (meta.key, small) == (Key("team", "a"), Small(Small.Metadata("a")))
    assert view.of_object(pod("a", 7))[1] == small


def test_a_whole_view_keeps_every_field_and_knows_the_kind():
    obj = pod("a", 7, spec={"unknown": {"field": [1, 2.5, None]}})
    _, found = VIEW.of_text(msgspec.Raw(msgspec.json.encode(obj)))
    assert found == {"apiVersion": "v1", "kind": "Pod", **obj}
    assert VIEW.of_object(obj)[1] == found


def test_who_manages_which_field_takes_no_memory_and_the_writer_keeps_it():
    obj = pod("a", 1, spec={"x": 1})
    obj["metadata"]["managedFields"] = [{"manager": "somebody", "fieldsV1": {"f:spec": {}}}]
    sent = msgspec.json.encode(obj)
    for _, kept in (VIEW.of_object(obj), VIEW.of_text(msgspec.Raw(sent))):
        assert "managedFields" not in kept["metadata"]
        assert kept["metadata"]["name"] == "a"
        assert kept["spec"] == {"x": 1}
    assert "managedFields" in obj["metadata"]
