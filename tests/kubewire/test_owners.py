import pytest

from kubewire.owners import (
    OwnershipError,
    controller_of,
    is_controlled_by,
    owner_reference,
    owner_references,
    with_owner,
    without_owner,
)

CLUSTER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c", "uid": "u1"}}
OTHER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "c", "uid": "u2"}}


def pod(*owners):
    return {"kind": "Pod", "metadata": {"name": "p", "ownerReferences": list(owners)}, "spec": {"x": 1}}


def test_a_controller_reference():
    assert owner_reference(CLUSTER) == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "c",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_a_plain_reference():
    assert owner_reference(CLUSTER, controller=False, block_owner_deletion=False) == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "c",
        "uid": "u1",
    }


@pytest.mark.parametrize(
    ("owner", "missing"),
    [
        pytest.param({**CLUSTER, "metadata": {"name": "c"}}, "uid", id="an owner that was never stored"),
        pytest.param({"metadata": {"name": "c", "uid": "u"}}, "apiVersion, kind", id="an owner of no kind"),
        pytest.param({}, "apiVersion, kind, name, uid", id="nothing at all"),
    ],
)
def test_says_what_an_owner_lacks(owner, missing):
    with pytest.raises(OwnershipError, match=f"an owner needs {missing}:"):
        owner_reference(owner)


def test_finds_the_controller_among_owners():
    plain, controller = owner_reference(OTHER, controller=False), owner_reference(CLUSTER)

    assert controller_of(pod(plain, controller)) == controller
    assert is_controlled_by(pod(plain, controller), "u1")
    assert not is_controlled_by(pod(plain, controller), "u2")


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param({}, id="no metadata"),
        pytest.param({"metadata": None}, id="null metadata"),
        pytest.param({"metadata": {"ownerReferences": None}}, id="null owners"),
        pytest.param(pod(owner_reference(CLUSTER, controller=False)), id="an owner that does not control"),
        pytest.param(
            pod({**owner_reference(CLUSTER), "controller": False}), id="a controller that says it is none"
        ),
    ],
)
def test_some_objects_have_no_controller(obj):
    assert controller_of(obj) is None
    assert not is_controlled_by(obj, "u1")


def test_sets_an_owner_in_a_new_object_and_leaves_the_old_one_alone():
    before = {"kind": "Pod", "spec": {"x": 1}}
    after = with_owner(before, owner_reference(CLUSTER))

    assert owner_references(after) == [owner_reference(CLUSTER)]
    assert before == {"kind": "Pod", "spec": {"x": 1}}
    assert after["spec"] is before["spec"]


def test_setting_an_owner_again_replaces_it_where_it_stands():
    first, second = owner_reference(CLUSTER, controller=False), owner_reference(OTHER, controller=False)
    before = pod(first, second)
    after = with_owner(before, owner_reference(CLUSTER))

    assert owner_references(after) == [owner_reference(CLUSTER), second]
    assert owner_references(before) == [first, second]


def test_a_second_controller_is_refused_by_name():
    with pytest.raises(OwnershipError, match="already controlled by RayCluster c"):
        with_owner(pod(owner_reference(OTHER)), owner_reference(CLUSTER))


def test_a_second_owner_that_does_not_control_is_fine():
    plain = owner_reference(CLUSTER, controller=False)

    assert owner_references(with_owner(pod(owner_reference(OTHER)), plain)) == [owner_reference(OTHER), plain]


def test_removes_an_owner_and_at_last_the_field():
    first, second = owner_reference(CLUSTER), owner_reference(OTHER, controller=False)
    before = pod(first, second)

    one_left = without_owner(before, "u1")
    assert owner_references(one_left) == [second]
    assert without_owner(one_left, "u2")["metadata"] == {"name": "p"}
    assert without_owner(before, "unknown") == before
    assert owner_references(before) == [first, second]
