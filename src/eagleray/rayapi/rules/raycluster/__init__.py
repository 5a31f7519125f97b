"""The rules of a RayCluster, and of the cluster that a RayJob or RayService describes."""

from collections.abc import Iterator

from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules.raycluster.autoscaling import AUTOSCALING
from eagleray.rayapi.rules.raycluster.fault_tolerance import FAULT_TOLERANCE
from eagleray.rayapi.rules.raycluster.groups import GROUPS
from eagleray.rayapi.rules.raycluster.history import HISTORY
from eagleray.rayapi.rules.raycluster.lifecycle import GROUP_SET, METADATA, STATUS, UPGRADE
from eagleray.rayapi.rules.raycluster.security import SECURITY
from eagleray.rayapi.rules.raycluster.view import ORIGIN_LABEL, Cluster
from eagleray.rayapi.rules.reading import Object, mapping
from eagleray.rayapi.rules.rulebook import Rule, Scope, broken

_SPEC: tuple[Rule[Cluster], ...] = (
    *GROUPS.rules,
    *FAULT_TOLERANCE.rules,
    *AUTOSCALING.rules,
    *HISTORY.rules,
    *SECURITY.rules,
    *GROUP_SET.rules,
)

RAYCLUSTER: tuple[Rule[Cluster], ...] = (*METADATA.rules, *_SPEC, *UPGRADE.rules, *STATUS.rules)


def described_cluster(host: Object, spec: Object, scope: Scope) -> Iterator[Problem]:
    """Yield what is wrong with the cluster that a RayJob or RayService describes, paths as in a RayCluster.

    It is judged with its host's annotations, which it will get. The reference notices an upgradeStrategy only
    when it meets the cluster it has made, and never starts that one; here the host is refused instead.
    """
    metadata = {
        "annotations": mapping(host, "metadata", "annotations"),
        "labels": {ORIGIN_LABEL: host.get("kind")},
    }
    cluster = Cluster({"metadata": metadata, "spec": spec}, scope)
    yield from broken(_SPEC, cluster, scope)
    for problem in broken(UPGRADE.rules, cluster, scope):
        yield problem._replace(stricter=True)
