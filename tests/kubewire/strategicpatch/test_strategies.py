"""Strategic merge patch: every strategy and directive, by example."""

import copy

import pytest

from kubewire.strategicpatch import apply, parse, shape_of

CORE = "io.k8s.api.core.v1."
CONFIG_MAP = CORE + "ConfigMap"
POD = CORE + "Pod"
POD_SPEC = CORE + "PodSpec"
SERVICE_SPEC = CORE + "ServiceSpec"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
DEPLOYMENT_SPEC = "io.k8s.api.apps.v1.DeploymentSpec"
BUDGET_SPEC = "io.k8s.api.policy.v1.PodDisruptionBudgetSpec"

OBJECTS = [
    pytest.param(
        CONFIG_MAP,
        {"data": {"a": "1", "b": "2"}},
        {"data": {"b": "3", "c": "4"}},
        {"data": {"a": "1", "b": "3", "c": "4"}},
        id="objects are merged key by key",
    ),
    pytest.param(
        CONFIG_MAP,
        {"data": {"a": "1", "b": "2"}},
        {"data": {"b": None, "z": None}},
        {"data": {"a": "1"}},
        id="null removes a key, and nothing where there is none",
    ),
    pytest.param(
        CONFIG_MAP,
        {"data": {"a": "1"}},
        {"data": None},
        {},
        id="null removes an object",
    ),
    pytest.param(
        POD_SPEC,
        {"securityContext": None, "nodeSelector": "wrong"},
        {"securityContext": {"runAsUser": 1, "runAsGroup": None}, "nodeSelector": {"a": "b"}},
        {"securityContext": {"runAsUser": 1}, "nodeSelector": {"a": "b"}},
        id="what is new or of another type is taken without its nulls",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {"nodeAffinity": {}}, "securityContext": {"runAsUser": 1}},
        {"affinity": "wrong", "securityContext": []},
        {"affinity": "wrong", "securityContext": []},
        id="another type replaces an object",
    ),
    pytest.param(
        POD_SPEC,
        {},
        {"affinity": {"$patch": "delete"}, "securityContext": {"seLinuxOptions": {"$patch": "replace"}}},
        {"securityContext": {}},
        id="an object with a directive is not taken where none was",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": "wrong"},
        {"affinity": {"$patch": "replace", "nodeAffinity": {}}},
        {},
        id="nor where something else was",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {"nodeAffinity": {"x": 1}, "podAffinity": {}}},
        {"affinity": {"$patch": "replace", "nodeAffinity": {"y": None}}},
        {"affinity": {"nodeAffinity": {"y": None}}},
        id="an object is replaced on request, by the patch as it stands",
    ),
    pytest.param(
        POD_SPEC,
        {"affinity": {"nodeAffinity": {}}, "hostname": "h"},
        {"affinity": {"$patch": "delete", "podAffinity": {}}},
        {"affinity": {}, "hostname": "h"},
        id="an object is emptied on request",
    ),
    pytest.param(
        CONFIG_MAP,
        {"kind": "ConfigMap", "data": {}},
        {"$patch": "replace", "kind": "Other"},
        {"kind": "Other"},
        id="the whole document is replaced on request",
    ),
    pytest.param(
        BUDGET_SPEC,
        {"selector": {"matchLabels": {"a": "1", "b": "2"}}},
        {"selector": {"matchLabels": {"c": "3"}}},
        {"selector": {"matchLabels": {"c": "3"}}},
        id="an object with strategy replace is replaced",
    ),
    pytest.param(
        DEPLOYMENT_SPEC,
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
        id="keys that are not retained go",
    ),
    pytest.param(
        DEPLOYMENT_SPEC,
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        {"strategy": {"$retainKeys": ["type", "rollingUpdate"]}},
        {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
        id="keys that are retained stay, even if the patch does not set them",
    ),
    pytest.param(
        POD_SPEC,
        {"hostname": "h", "subdomain": "s", "containers": [{"name": "a"}, {"name": "b"}]},
        {
            "$retainKeys": ["containers"],
            "hostname": None,
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        },
        {"containers": [{"name": "b"}, {"name": "a"}]},
        id="nulls and directives need not be among the retained keys",
    ),
    pytest.param(
        DEPLOYMENT_SPEC,
        {"strategy": {"type": "RollingUpdate"}},
        {"strategy": {"type": "Recreate"}},
        {"strategy": {"type": "Recreate"}},
        id="strategy retainKeys alone merges: dropping keys takes the directive",
    ),
]

LISTS = [
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a", "image": "x", "args": ["p"]}, {"name": "b", "image": "x"}]},
        {"containers": [{"name": "a", "image": "y"}]},
        {"containers": [{"name": "a", "image": "y", "args": ["p"]}, {"name": "b", "image": "x"}]},
        id="an item is merged into the one with its key",
    ),
    pytest.param(
        SERVICE_SPEC,
        {"ports": [{"port": 80, "name": "x"}, {"port": 81}]},
        {"ports": [{"port": 81, "name": "y"}, {"port": 80, "name": None}]},
        {"ports": [{"port": 81, "name": "y"}, {"port": 80}]},
        id="a key may be a number, and the patch's order wins",
    ),
    pytest.param(
        SERVICE_SPEC,
        {"ports": [{"port": 1}]},
        {"ports": [{"port": True}, {"port": 1.0}, {"port": "1"}]},
        {"ports": [{"port": True}, {"port": 1.0}, {"port": "1"}, {"port": 1}]},
        id="keys of different types are different keys",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}]},
        {
            "containers": [
                {"name": "a", "env": [{"name": "B", "value": None, "valueFrom": {}}, {"name": "C"}]}
            ]
        },
        {
            "containers": [
                {
                    "name": "a",
                    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {}}, {"name": "C"}],
                }
            ]
        },
        id="merged lists inside merged lists",
    ),
    pytest.param(
        POD_SPEC,
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]},
        id="strategy merge,retainKeys merges",
    ),
    pytest.param(
        POD_SPEC,
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
        {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}, {"name": "w"}]},
        id="and drops what is not retained",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}]},
        {
            "containers": [
                {"name": "a", "image": "1"},
                {"name": "a", "image": "2"},
                {"name": "b"},
                {"name": "b", "tty": True},
            ]
        },
        {"containers": [{"name": "a", "image": "2"}, {"name": "b", "tty": True}]},
        id="of items with the same key the later one wins",
    ),
    pytest.param(
        POD_SPEC,
        {
            "containers": [{"name": "a", "image": "x", "args": ["p", "q"]}],
            "tolerations": [{"key": "a"}, {"key": "b"}],
        },
        {"containers": [{"name": "a", "args": ["r"]}], "tolerations": [{"key": "c", "value": None}]},
        {
            "containers": [{"name": "a", "image": "x", "args": ["r"]}],
            "tolerations": [{"key": "c", "value": None}],
        },
        id="lists without a strategy are replaced, by the patch as it stands",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": []},
        {"containers": []},
        {"containers": []},
        id="two empty lists are an empty list",
    ),
    pytest.param(
        POD_SPEC,
        {},
        {
            "containers": [
                {"name": "a", "env": [{"name": "A", "$patch": "delete"}, {"name": "B", "value": None}]},
                {"name": "b", "$patch": "delete"},
            ]
        },
        {"containers": [{"name": "a", "env": [{"name": "B"}]}]},
        id="a new list is taken without nulls and directives",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "b", "image": None, "env": [{"name": "B", "$patch": "delete"}]}]},
        {
            "containers": [
                {"name": "b", "image": None, "env": [{"name": "B", "$patch": "delete"}]},
                {"name": "a"},
            ]
        },
        id="a new item of an old list is taken as it stands",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]},
        {"containers": [{"name": "a", "$patch": "delete", "image": "x"}, {"name": "z", "$patch": "delete"}]},
        {"containers": [{"name": "b"}]},
        id="all items with the key of a deletion go",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]},
        {"containers": [{"name": "a", "tty": True}, {"name": "a", "$patch": "delete"}]},
        {"containers": [{"name": "a", "tty": True}, {"name": "b"}]},
        id="an item that is deleted and set starts afresh",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}, {"name": "b"}]},
        {
            "containers": [
                {"name": "z"},
                {"$patch": "replace"},
                {"name": "y"},
                {"name": "x", "$patch": "delete"},
            ]
        },
        {"containers": [{"name": "z"}, {"name": "y"}]},
        id="an item that says replace replaces the list by the items without directives",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}]},
        {"containers": [{"name": "a", "image": "lost", "$patch": "replace"}]},
        {"containers": []},
        id="whatever else that item says",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}], "volumes": [{"name": "v"}]},
        {"containers": None, "volumes": "wrong"},
        {"volumes": "wrong"},
        id="null removes a list, and another type replaces it",
    ),
]

PLAIN_LISTS = [
    pytest.param(
        OBJECT_META,
        {"finalizers": ["a", "b"]},
        {"finalizers": ["c", "b", "c"]},
        {"finalizers": ["c", "a", "b"]},
        id="plain values are merged as a set",
    ),
    pytest.param(
        OBJECT_META,
        {"finalizers": ["a", "b", "a", "c"]},
        {"$deleteFromPrimitiveList/finalizers": ["a", "z"]},
        {"finalizers": ["b", "c"]},
        id="plain values are deleted",
    ),
    pytest.param(
        OBJECT_META,
        {"finalizers": ["a", "b"]},
        {"$deleteFromPrimitiveList/finalizers": ["b", "c"], "finalizers": ["c", "d"]},
        {"finalizers": ["d", "a"]},
        id="a value both added and deleted is gone",
    ),
    pytest.param(
        OBJECT_META,
        {"finalizers": ["a"]},
        {"$deleteFromPrimitiveList/finalizers": ["a"]},
        {"finalizers": []},
        id="the last value leaves an empty list",
    ),
    pytest.param(
        OBJECT_META,
        {"name": "n"},
        {"$deleteFromPrimitiveList/finalizers": ["a"], "$deleteFromPrimitiveList/name": ["n"]},
        {"name": "n"},
        id="deletions from a list that is not there do nothing",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "c", "args": ["p", "q", "r"]}]},
        {"containers": [{"name": "c", "$deleteFromPrimitiveList/args": ["q"]}]},
        {"containers": [{"name": "c", "args": ["p", "r"]}]},
        id="deletions work on lists of any strategy",
    ),
    pytest.param(
        OBJECT_META,
        {"finalizers": ["a"]},
        {"$deleteFromPrimitiveList/finalizers": None},
        {},
        id="deleting null deletes the list",
    ),
    pytest.param(
        OBJECT_META,
        {"name": "n", "labels": {"a": "b"}},
        {"$deleteFromPrimitiveList/name": "m", "$deleteFromPrimitiveList/labels": {"c": "d"}},
        {"name": "m", "labels": {"a": "b", "c": "d"}},
        id="deletions of what is no list are ordinary changes",
    ),
    pytest.param(
        POD_SPEC,
        {"containers": [{"name": "a"}]},
        {"$deleteFromPrimitiveList/containers": [{"name": "a", "image": "x"}]},
        {"containers": [{"name": "a", "image": "x"}]},
        id="and so are those of objects",
    ),
]


@pytest.mark.parametrize(("type_name", "document", "patch", "want"), OBJECTS + LISTS + PLAIN_LISTS)
def test_a_patched_document(type_name, document, patch, want):
    before = copy.deepcopy((document, patch))
    assert repr(_sorted(apply(document, patch, shape_of(type_name)))) == repr(_sorted(want))
    assert (document, patch) == before


def test_fields_are_found_whatever_the_case_of_their_letters():
    assert apply({}, {"$setElementOrder/CONTAINERS": []}, shape_of(POD_SPEC)) == {}


def test_what_a_patch_leaves_alone_is_shared():
    metadata, first = {"name": "p"}, {"name": "a"}
    document = {"metadata": metadata, "spec": {"containers": [first, {"name": "b"}]}}
    patched = apply(document, {"spec": {"containers": [{"name": "b", "image": "x"}]}}, shape_of(POD))
    assert patched["metadata"] is metadata
    assert patched["spec"]["containers"][0] is first


def test_a_null_patch_changes_nothing():
    assert parse(None) == {}


def _sorted(value):
    """The value with its keys sorted, so that its text shows 1, 1.0 and True apart and nothing else."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
