"""Strategic merge patch: the order of lists, with and without `$setElementOrder`."""

import pytest

from kubewire.strategicpatch import apply, shape_of

POD_SPEC = shape_of("io.k8s.api.core.v1.PodSpec")
OBJECT_META = shape_of("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")

ITEMS = [
    # live, patch, order, want
    pytest.param("a b c", "c a", None, "b c a", id="without an order the items of the patch keep theirs"),
    pytest.param("a b", "x", None, "x a b", id="a new item comes first"),
    pytest.param(
        "a b c", "b x", None, "a b x c", id="a new item follows the item that it follows in the patch"
    ),
    pytest.param("a b c", "x b", None, "x a b c", id="and precedes the rest otherwise"),
    pytest.param("a b c", "-b x", None, "x a c", id="a new item does not take a deleted one's place"),
    pytest.param("a b c", None, "c b a", "c b a", id="an order alone sorts"),
    pytest.param(
        "a b c", None, "c a", "b c a", id="what the order leaves out stays in front of what it preceded"
    ),
    pytest.param("a b c d", None, "b z a", "b a c d", id="what the order has too much is not made"),
    pytest.param("a b", "x", "a x b", "a x b", id="a new item stands where the order has it"),
    pytest.param("a b c", "x", "x a", "x a b c", id="and in front of what the order leaves out"),
    pytest.param("a b c", "x -a", "x b", "c x b", id="unless it takes the place of a deleted one"),
    pytest.param(
        "a b c", "x y -a", "x b y", "c x b y", id="of two new items and one place the first takes it"
    ),
    pytest.param("s a b", "a -b", "a", "s a", id="a deleted item need not be in the order"),
    pytest.param("", "b a", "b a", "b a", id="a list that was empty"),
    pytest.param(None, "b a -c", "b a", "b a", id="a list that was absent"),
    pytest.param("a b", "! z y", "z y", "z y", id="a replaced list"),
    pytest.param(None, None, "a b", None, id="an order of nothing makes nothing"),
    pytest.param("a b", "b a", "", "a b", id="an empty order brings the live one back"),
    pytest.param(None, "a b", "", "b a", id="an empty order turns new items round"),
]

VALUES = [
    # live, patch, order, want
    pytest.param("a b c", None, "c b a", "c b a", id="an order alone sorts"),
    pytest.param("a b", "x", "x b a", "x b a", id="a new value stands where the order has it"),
    pytest.param(
        "a b c", "x", "x b", "x a b c", id="what the order leaves out stays in front of what it preceded"
    ),
    pytest.param("b a", "a b", None, "a b", id="without an order the values of the patch keep theirs"),
    pytest.param(None, "b a", "b a", "b a", id="a list that was absent"),
    pytest.param("a b a", None, "b", "a a b", id="values that occur twice stand together"),
]


@pytest.mark.parametrize(("live", "patch", "order", "want"), ITEMS)
def test_the_order_of_items(live, patch, order, want):
    patched = apply({} if live is None else {"containers": items(live)}, changes(patch, order), POD_SPEC)
    assert patched == ({} if want is None else {"containers": items(want)})


@pytest.mark.parametrize(("live", "patch", "order", "want"), VALUES)
def test_the_order_of_plain_values(live, patch, order, want):
    document = {} if live is None else {"finalizers": live.split()}
    patched = apply(document, changes(patch, order, "finalizers", str.split), OBJECT_META)
    assert patched == {"finalizers": want.split()}


def test_deletions_follow_an_order():
    patch = {
        "$deleteFromPrimitiveList/finalizers": ["b", "x"],
        "$setElementOrder/finalizers": ["x", "a"],
        "finalizers": ["x"],
    }
    assert apply({"finalizers": ["a", "b", "c"]}, patch, OBJECT_META) == {"finalizers": ["a", "c"]}


def test_an_order_inside_an_ordered_list():
    live = {"containers": [{"name": "a", "env": items("A B")}, {"name": "b"}]}
    patch = {
        "$setElementOrder/containers": items("b a"),
        "containers": [{"name": "a", "$setElementOrder/env": items("B A")}],
    }
    assert apply(live, patch, POD_SPEC) == {"containers": [{"name": "b"}, {"name": "a", "env": items("B A")}]}


def test_an_order_for_a_list_without_strategy_sorts_the_new_list():
    live = {"containers": [{"name": "c", "args": ["p", "q"]}]}
    patch = {"containers": [{"name": "c", "args": ["s", "r"], "$setElementOrder/args": ["s", "z", "r"]}]}
    assert apply(live, patch, POD_SPEC) == {"containers": [{"name": "c", "args": ["s", "r"]}]}


def items(tokens):
    """`a -b !`: an item, a deletion, and the item that replaces the list."""
    special = {"!": {"$patch": "replace"}}
    return [
        special.get(token)
        or {"name": token.removeprefix("-")} | ({"$patch": "delete"} if token[0] == "-" else {})
        for token in tokens.split()
    ]


def changes(patch, order, field="containers", listed=items):
    """The patch of one list, as far as it is given."""
    lists = {field: patch, f"$setElementOrder/{field}": order}
    return {key: listed(tokens) for key, tokens in lists.items() if tokens is not None}
