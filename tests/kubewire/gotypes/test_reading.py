"""Reading an object of a built-in kind: what the recorded answers of Go cannot show."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewire import builtin, gotypes
from kubewire.gotypes.facts import fields_of
from kubewire.gotypes.walk import MAX_DEPTH, MAX_UNKNOWN

POD = "io.k8s.api.core.v1.Pod"
SERVICE = "io.k8s.api.core.v1.Service"
DEPLOYMENT = "io.k8s.api.apps.v1.Deployment"
CONFIG_MAP = "io.k8s.api.core.v1.ConfigMap"
SECRET = "io.k8s.api.core.v1.Secret"
CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"


def refusal(definition, obj):
    with pytest.raises(gotypes.DecodeError) as refused:
        gotypes.read(definition, obj)
    return refused.value


def test_the_object_itself_is_changed_and_dropped_fields_are_told():
    pod = {
        "metadata": {"name": "a", "labels": {}},
        "spec": {"hostNetwork": False, "containers": [{"name": "c", "comand": ["x"], "args": []}]},
    }
    assert gotypes.read(POD, pod) == ["spec.containers[0].comand"]
    assert pod == {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "resources": {}}]},
        "status": {},
    }


@pytest.mark.parametrize(
    ("definition", "want"),
    [
        pytest.param(CONFIG_MAP, {"metadata": {}}, id="a ConfigMap has no status"),
        pytest.param(
            SERVICE,
            {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}},
            id="a Service has a load balancer",
        ),
        pytest.param(
            "io.k8s.api.rbac.v1.Role", {"metadata": {}, "rules": None}, id="a Role has null for no rules"
        ),
    ],
)
def test_an_object_in_which_nothing_is_set(definition, want):
    assert gotypes.empty(definition) == want


def test_every_empty_object_is_one_of_its_own():
    gotypes.empty(SERVICE)["status"]["loadBalancer"]["ingress"] = ["mine"]
    assert gotypes.empty(SERVICE)["status"] == {"loadBalancer": {}}


def test_values_that_one_reading_made_are_not_shared_with_the_next():
    first: dict[str, Any] = {"spec": {"containers": [{}]}}
    second: dict[str, Any] = {"spec": {"containers": [{}]}}
    gotypes.read(POD, first)
    gotypes.read(POD, second)
    first["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1"}
    assert second["spec"]["containers"][0]["resources"] == {}


def test_a_type_that_is_not_known_is_a_key_error():
    assert not gotypes.is_known("io.k8s.api.core.v1.Nothing")
    with pytest.raises(KeyError):
        gotypes.read("io.k8s.api.core.v1.Nothing", {})


@pytest.mark.parametrize(
    ("definition", "obj", "want"),
    [
        pytest.param(
            DEPLOYMENT, {"spec": {"replicas": "3"}}, "unrecognized type: int32", id="text for a number"
        ),
        pytest.param(
            DEPLOYMENT, {"spec": {"replicas": 1.5}}, "cannot convert float64 to int32", id="a fraction"
        ),
        pytest.param(
            CONFIG_MAP, {"data": {"a": 1}}, "cannot convert int64 to string", id="a number for text"
        ),
        pytest.param(CONFIG_MAP, {"data": {"a": True}}, "unrecognized type: string", id="a bool for text"),
        pytest.param(
            POD, {"spec": {"restartPolicy": 1}}, "cannot convert int64 to v1.RestartPolicy", id="a named type"
        ),
        pytest.param(POD, {"spec": {"hostPID": 1}}, "unrecognized type: bool", id="a number for a bool"),
        pytest.param(
            POD, {"spec": {"containers": {}}}, "cannot restore slice from map", id="an object for a list"
        ),
        pytest.param(CONFIG_MAP, {"data": "x"}, "cannot restore map from string", id="text for a map"),
        pytest.param(POD, {"spec": []}, "cannot restore struct from: slice", id="a list for a struct"),
        pytest.param(SECRET, {"data": {"a": 1}}, "cannot restore slice from int64", id="a number for bytes"),
        pytest.param(
            SECRET,
            {"data": {"a": "?"}},
            "error decoding from json: illegal base64 data at input byte 0",
            id="text that is no base64",
        ),
        pytest.param(
            POD,
            {"metadata": {"creationTimestamp": 1}},
            "json: cannot unmarshal number into Go value of type string",
            id="a number for a time",
        ),
    ],
)
def test_a_conversion_from_a_map_has_words_of_its_own(definition, obj, want):
    assert refusal(definition, obj).conversion == want


def test_schemas_may_nest_only_so_deep():
    def crd(levels):
        schema: dict[str, Any] = {"type": "object"}
        for _ in range(levels):
            schema = {"properties": {"a": schema}}
        return {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}

    assert gotypes.read(CRD, crd(MAX_DEPTH // 2)) == []
    assert str(refusal(CRD, crd(MAX_DEPTH))) == "exceeded max depth"


def test_schemas_of_items_may_nest_only_so_deep():
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(MAX_DEPTH):
        schema = {"items": schema}
    crd = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    assert str(refusal(CRD, crd)) == "exceeded max depth"


def test_structs_beside_each_other_are_not_deep():
    assert gotypes.read(POD, {"spec": {"containers": [{"name": "c"}] * (2 * MAX_DEPTH)}}) == []


def test_only_so_many_unknown_fields_are_told():
    obj: dict[str, Any] = {f"field{n}": n for n in range(10_000)}
    assert gotypes.read(CONFIG_MAP, obj) == [f"field{n}" for n in range(MAX_UNKNOWN)]
    assert obj == {"metadata": {}}


def test_three_megabytes_of_almost_base64_are_refused_quickly():
    text = "A" * 3_000_001 + "?"
    began = time.process_time()
    assert str(refusal(SECRET, {"data": {"a": text}})) == "illegal base64 data at input byte 3000001"
    assert time.process_time() - began < 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def objects(draw, definition, depth=0):
    """Objects that have some of a type's fields, most with values of the right type and some with any."""
    fields = draw(
        st.lists(st.sampled_from(fields_of(definition)), max_size=5, unique_by=lambda field: field.name)
    )
    made = {}
    for field in fields:
        inner = field.type.lstrip("*")
        element = inner.removeprefix("[]")
        if gotypes.is_known(element) and depth < 4 and draw(st.integers(0, 9)):
            value = draw(objects(element, depth + 1))
            made[field.name] = value if element == inner else [value]
        else:
            made[field.name] = draw(JSON)
    return made


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([POD, SERVICE, DEPLOYMENT, SECRET, CRD]).flatmap(
        lambda name: st.tuples(st.just(name), objects(name))
    )
)
def test_what_was_read_once_is_read_again_without_a_change(named):
    definition, obj = named
    try:
        gotypes.read(definition, obj)
    except gotypes.DecodeError:
        return
    before = json.dumps(obj, sort_keys=True)
    assert gotypes.read(definition, obj) == []
    assert json.dumps(obj, sort_keys=True) == before


def test_the_facts_have_the_fields_of_the_published_definitions():
    for name, definition in builtin.definitions().items():
        if gotypes.is_known(name):
            published = set(definition.get("properties", ()))
            assert {field.name for field in fields_of(name)} == published, name


def test_every_published_kind_has_facts():
    for name, definition in builtin.definitions().items():
        # Lists are never sent, and other API servers are not aggregated.
        is_left_out = name.endswith("List") or name.startswith("io.k8s.kube-aggregator.")
        is_kind = len(definition.get("x-kubernetes-group-version-kind", ())) == 1 and not is_left_out
        assert gotypes.is_known(name) or not is_kind, name
