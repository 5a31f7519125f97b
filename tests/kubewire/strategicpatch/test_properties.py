"""Strategic merge patch: what holds for every document and patch."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewire.strategicpatch import PatchError, apply, shape_of

POD_SPEC = shape_of("io.k8s.api.core.v1.PodSpec")
NAMES = st.sampled_from("abcdef")
TEXTS = st.sampled_from("xyz")


def unique_items(fields):
    """A list of objects with different names and some of the given fields."""
    items = st.fixed_dictionaries({"name": NAMES}, optional=fields)
    return st.lists(items, max_size=4, unique_by=lambda item: item["name"])


SPECS = st.fixed_dictionaries(
    {},
    optional={
        "hostname": TEXTS,
        "nodeSelector": st.dictionaries(NAMES, TEXTS, max_size=3),
        "securityContext": st.fixed_dictionaries({}, optional={"runAsUser": st.integers(0, 2)}),
        "tolerations": st.lists(st.fixed_dictionaries({"key": NAMES}), max_size=2),
        "volumes": unique_items(
            {"emptyDir": st.just({}), "hostPath": st.fixed_dictionaries({"path": TEXTS})}
        ),
        "containers": unique_items(
            {
                "image": TEXTS,
                "args": st.lists(TEXTS, max_size=2),
                "env": unique_items({"value": TEXTS}),
            }
        ),
    },
)

# Any JSON, but mostly with the keys that mean something.
KEYS = st.sampled_from(
    [
        *["containers", "env", "args", "name", "tolerations", "volumes", "affinity", "nodeSelector", "z", ""],
        *["$patch", "$retainKeys", "$setElementOrder/containers", "$setElementOrder/env", "$setElementOrder"],
        *[
            "$setElementOrder/tolerations",
            "$deleteFromPrimitiveList/args",
            "$deleteFromPrimitiveList/containers",
        ],
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["a", "b", "delete", "replace", "merge", "name"]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=5)


@given(SPECS)
def test_an_empty_patch_changes_nothing(document):
    assert apply(document, {}, POD_SPEC) == document


@given(SPECS, SPECS)
def test_a_patch_that_only_sets_is_idempotent(document, patch):
    once = apply(document, patch, POD_SPEC)
    assert apply(once, patch, POD_SPEC) == once


@given(SPECS)
def test_a_document_patched_with_itself_stays_as_it_is(document):
    assert apply(document, document, POD_SPEC) == document


@given(OBJECTS, OBJECTS)
def test_any_json_is_patched_or_refused_and_left_as_it_was(document, patch):
    before = repr((document, patch))
    with contextlib.suppress(PatchError):
        assert isinstance(apply(document, patch, POD_SPEC), dict)
    assert repr((document, patch)) == before


@given(st.lists(NAMES, unique=True), st.lists(NAMES, unique=True), st.data())
def test_an_order_holds_for_what_it_names_and_the_rest_keeps_its_own(live, order, data):
    new = [name for name in order if data.draw(st.booleans())]
    patch = {"$setElementOrder/containers": named(order)} | ({"containers": named(new)} if new else {})
    if not live and not new:
        with pytest.raises(PatchError):
            apply({"containers": []}, patch, POD_SPEC)
        return
    patched = [item["name"] for item in apply({"containers": named(live)}, patch, POD_SPEC)["containers"]]
    assert [name for name in patched if name in order] == [
        name for name in order if name in live or name in new
    ]
    assert [name for name in patched if name not in order] == [name for name in live if name not in order]


def named(names):
    return [{"name": name} for name in names]
