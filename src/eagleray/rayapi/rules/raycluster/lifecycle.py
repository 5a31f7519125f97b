"""RayCluster rules around the spec: names, upgrades, the status, and what is allowed but unwise."""

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.naming import name_of, not_a_label, too_long
from eagleray.rayapi.rules.raycluster.autoscaling import restart_policy
from eagleray.rayapi.rules.raycluster.view import Cluster, rulebook
from eagleray.rayapi.rules.reading import integer, is_set, mapping, mappings, text
from eagleray.rayapi.rules.rulebook import Finding, Findings

METADATA = rulebook()
GROUP_SET = rulebook()
UPGRADE = rulebook()
STATUS = rulebook()

LONGEST_NAME = 53

_UPGRADE_TYPE = ("spec", "upgradeStrategy", "type")


@METADATA.rule("raycluster-m1")
def name_length(cluster: Cluster) -> Findings:
    """The name has at most 53 characters."""
    return too_long("RayCluster", name_of(cluster.obj), LONGEST_NAME)


@METADATA.rule("raycluster-m2")
def name_form(cluster: Cluster) -> Findings:
    """The name is a DNS-1035 label."""
    return not_a_label("RayCluster", name_of(cluster.obj))


@GROUP_SET.rule("raycluster-g1", stricter=True)
def group_names_unique(cluster: Cluster) -> Findings:
    """No two worker groups share a name, for they would fight over the same Pods."""
    first: dict[str, int] = {}
    for i, group in enumerate(cluster.groups):
        if group.name in first:
            yield Finding(
                group.at("groupName"),
                f"{quoted(group.name)} is also the name of workerGroupSpecs[{first[group.name]}]",
                "give each group a name of its own",
            )
        elif is_set(group.spec, "groupName"):
            first[group.name] = i


@GROUP_SET.rule("raycluster-w1", severity="warning")
def worker_restarted_under_v1(cluster: Cluster) -> Findings:
    """With autoscaler v1 asked for, every worker group's restartPolicy is better Never or unset."""
    if not cluster.autoscaling or cluster.autoscaler.get("version") != "v1":
        return
    for group in cluster.groups:
        if policy := restart_policy(group):
            yield Finding(
                group.at_pod("restartPolicy"),
                f"with {quoted(policy)} a worker may come back that autoscaler v1 has given up",
                "set it to Never",
            )


@GROUP_SET.rule("raycluster-w2", severity="warning")
def replicas_outside_bounds(cluster: Cluster) -> Findings:
    """`replicas` lies between minReplicas and maxReplicas; 0 passes, since an unset field is stored as 0."""
    for group in cluster.groups:
        replicas = integer(group.spec, "replicas")
        low = integer(group.spec, "minReplicas")
        high = integer(group.spec, "maxReplicas")
        if not replicas:
            continue
        if high is not None and replicas > high:
            message = f"{replicas} is above maxReplicas {high}, which counts instead"
            yield Finding(group.at("replicas"), message, "lower it or raise maxReplicas")
        elif low is not None and replicas < low:
            message = f"{replicas} is below minReplicas {low}, which counts instead"
            yield Finding(group.at("replicas"), message, "raise it or lower minReplicas")


@UPGRADE.rule("raycluster-u1")
def upgrade_type_unknown(cluster: Cluster) -> Findings:
    """upgradeStrategy.type is Recreate or None."""
    strategy = mapping(cluster.spec, "upgradeStrategy")
    if is_set(strategy, "type") and strategy["type"] not in ("Recreate", "None"):
        yield Finding(_UPGRADE_TYPE, f"{quoted(text(strategy, 'type'))} is unknown", "use Recreate or None")


@UPGRADE.rule("raycluster-u2")
def upgrade_of_another_owner(cluster: Cluster) -> Findings:
    """A cluster that belongs to a RayJob or RayService has no upgradeStrategy of its own."""
    typed = is_set(mapping(cluster.spec, "upgradeStrategy"), "type")
    if typed and cluster.origin in ("RayJob", "RayService"):
        yield Finding(
            _UPGRADE_TYPE,
            f"cannot be set on a cluster created by a {cluster.origin}, which replaces it itself",
            "remove it",
        )


@STATUS.rule("raycluster-t1")
def suspending_and_suspended(cluster: Cluster) -> Findings:
    """The conditions RayClusterSuspending and RayClusterSuspended are not both True."""
    conditions = mappings(mapping(cluster.obj, "status"), "conditions")
    true = {text(condition, "type") for condition in conditions if condition.get("status") == "True"}
    if {"RayClusterSuspending", "RayClusterSuspended"} <= true:
        yield Finding(
            ("status", "conditions"),
            "RayClusterSuspending and RayClusterSuspended are both True",
            "remove one of them from the status, which only the operator should write",
        )
