"""Versions have an order of their own, and deprecated ones say what to use."""

import pytest

from kubereef.kinds.custom.versions import deprecation, rank


def test_stable_versions_come_before_beta_and_alpha_and_these_before_strangers():
    names = ["foo10", "v1", "v10beta1", "v11alpha2", "v12alpha1", "v2", "v3beta1", "v10", "foo1", "v11beta2"]
    assert sorted(names, key=rank) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v10beta1",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
        "foo10",
    ]


def _spec(*versions):
    return {"group": "example.com", "names": {"kind": "Box"}, "versions": list(versions)}


def _version(name, **more):
    return {"name": name, "served": True, **more}


@pytest.mark.parametrize(
    ("version", "others", "warning"),
    [
        pytest.param(_version("v1"), [], "", id="none for a version in good standing"),
        pytest.param(
            _version("v1alpha1", deprecated=True),
            [_version("v1beta1"), _version("v1")],
            "example.com/v1alpha1 Box is deprecated; use example.com/v1 Box",
            id="the best other version is named",
        ),
        pytest.param(
            _version("v1", deprecated=True),
            [_version("v1beta1"), _version("v2", served=False)],
            "example.com/v1 Box is deprecated",
            id="no other is named if all are older or not served",
        ),
        pytest.param(
            _version("v1", deprecated=True, deprecationWarning="go away"),
            [_version("v2")],
            "go away",
            id="a definition may have its own words",
        ),
    ],
)
def test_the_warning_of_a_version(version, others, warning):
    assert deprecation(_spec(version, *others), version) == warning
