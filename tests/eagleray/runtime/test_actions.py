"""Plans as lines for people."""

import pytest

from eagleray.kube.requests import Selection
from eagleray.kube.resources import INGRESSES, PODS, RAY_CLUSTERS, Ref
from eagleray.runtime.actions import (
    Create,
    Delete,
    DeleteAll,
    Patch,
    Refuse,
    Replace,
    Said,
    Say,
    Stage,
    Tell,
    described,
)

OBJECT = {"metadata": {"namespace": "ns", "name": "a"}}
TOLD = Said(done=Say("Done", "Delete", "because"))


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (Create(PODS, OBJECT), "s: create Pod ns/a"),
        (Create(PODS, {"metadata": {"name": "a"}}), "s: create Pod a"),
        (Replace(INGRESSES, OBJECT), "s: replace Ingress ns/a"),
        (Patch(RAY_CLUSTERS, Ref("ns", "a"), {"x": 1}), "s: patch RayCluster ns/a: {'x': 1}"),
        (Delete(PODS, Ref("ns", "a", "u")), "s: delete Pod ns/a"),
        (Delete(PODS, Ref("ns", "a", "u"), TOLD), "s: delete Pod ns/a (because)"),
        (DeleteAll(PODS, Selection("ns", "k=v"), TOLD), "s: delete all pods in ns with k=v (because)"),
        (Tell(Say("Why", "Reconcile", "so", "Warning")), "s: tell Warning Why: so"),
        (Refuse("no"), "s: stop: no"),
    ],
)
def test_an_action_is_a_line(action, line):
    assert list(described([Stage("s", (action,)), Stage("empty")])) == [line]
