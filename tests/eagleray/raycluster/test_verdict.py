"""What the rules say about a cluster, in the words of its events."""

import pytest

from eagleray.rayapi.rules import ValidationConfig
from eagleray.raycluster.verdict import judge
from tests.eagleray.manifests.clusters import cluster

TWINS = {"workers": [{"groupName": "a"}, {"groupName": "a"}]}


def judged(*, is_running=False, **facts):
    return judge(cluster(**facts), ValidationConfig(), is_running=is_running)


@pytest.mark.parametrize(
    ("facts", "reason", "words"),
    [
        pytest.param(
            {"metadata": {"name": "c" * 54}},
            "InvalidRayClusterMetadata",
            "metadata is invalid ns/ccc",
            id="name",
        ),
        pytest.param(
            {"head": {"rayStartParams": {"labels": "a"}}},
            "InvalidRayClusterSpec",
            "spec is invalid ns/c: ",
            id="spec",
        ),
        pytest.param(
            {
                "metadata": {"labels": {"ray.io/originated-from-crd": "RayJob"}},
                "upgradeStrategy": {"type": "None"},
            },
            "InvalidRayClusterSpec",
            "UpgradeStrategy is invalid ns/c: ",
            id="upgrade",
        ),
        pytest.param(TWINS, "InvalidRayClusterSpec", "spec is invalid ns/c: ", id="groups of one name"),
    ],
)
def test_a_broken_rule_rejects(facts, reason, words):
    rejected = judged(**facts).rejected
    assert rejected.reason == reason
    assert f"The RayCluster {words}" in rejected.message
    assert rejected.action == "Validate"


def test_a_sound_cluster_passes_without_a_word():
    assert judged(workers=[{"replicas": 7, "maxReplicas": 3}]) == (None, [])


def test_a_rule_of_our_own_only_warns_about_what_runs():
    verdict = judged(is_running=True, **TWINS)
    assert verdict.rejected is None
    (warning,) = verdict.warnings
    assert warning[:2] == ("InvalidRayClusterSpec", "Validate")
    assert warning.kind == "Warning"


@pytest.mark.parametrize(
    ("options", "count"), [({}, 1), ({"mode": "disabled"}, 0), ({"mode": "token"}, 0), (None, 0)]
)
def test_authentication_without_a_mode_is_pointed_out(options, count):
    spec = {} if options is None else {"authOptions": options}
    warnings = judged(rayVersion="2.52.0", **spec).warnings
    assert len(warnings) == count
    assert all("mode to token" in warning.note for warning in warnings)
