"""Which kinds and versions there are, and how they are found."""

import pytest

from eagleray.rayapi.kinds import KINDS, kind_for, kind_named, struct_for


def test_the_kinds_and_their_versions():
    assert {kind.name: [version.name for version in kind.versions] for kind in KINDS} == {
        "RayCluster": ["v1", "v1alpha1"],
        "RayJob": ["v1", "v1alpha1"],
        "RayService": ["v1", "v1alpha1"],
        "RayCronJob": ["v1"],
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_first_version_alone_is_stored_and_the_others_are_deprecated(kind):
    first, *others = kind.versions
    assert first.storage
    assert first.deprecation is None
    assert not any(version.storage for version in others)
    assert all(f"use ray.io/v1 {kind.name}" in str(version.deprecation) for version in others)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("ray.io/v1", "RayJob"), ("ray.io/v1alpha1", "RayCluster"), ("ray.io/v1", "RayCronJob")],
)
def test_an_object_of_ray_is_recognised(api_version, kind):
    version = kind_for(api_version, kind)
    assert version is not None
    assert (version.api_version, version.kind) == (api_version, kind)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("v1", "Pod", id="a kind of Kubernetes"),
        pytest.param("ray.io/v2", "RayJob", id="a version that does not exist"),
        pytest.param("ray.io/v1alpha1", "RayCronJob", id="a version that this kind never had"),
        pytest.param("example.com/v1", "RayJob", id="a kind of the same name in another group"),
        pytest.param("ray.io/v1", "rayjob", id="a kind in the wrong case"),
    ],
)
def test_another_object_is_not(api_version, kind):
    assert kind_for(api_version, kind) is None


@pytest.mark.parametrize("name", ["raycluster", "RayCluster", "rayclusters", "RAYCLUSTERS"])
def test_a_user_may_call_a_kind(name):
    kind = kind_named(name)
    assert kind is not None
    assert kind.name == "RayCluster"


def test_a_user_may_not_call_a_kind_by_half_its_name():
    assert kind_named("cluster") is None


def test_structs_are_found_by_the_names_that_references_use():
    spec = struct_for("io.ray.v1alpha1.RayClusterSpec")
    assert spec is not None
    assert spec.version == "v1alpha1"
    assert struct_for("io.k8s.api.core.v1.PodSpec") is None
