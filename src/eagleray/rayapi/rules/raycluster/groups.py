"""RayCluster rules 1 to 4: what each group must look like by itself."""

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.raycluster.view import Cluster, Group, rulebook
from eagleray.rayapi.rules.reading import integer, is_set, mapping
from eagleray.rayapi.rules.rulebook import Finding, Findings
from kubewire.names import label_value, qualified_name

GROUPS = rulebook()

PRIORITY_SINCE = "2.56.0"

_RESOURCE_PARAMS = ("num-cpus", "num-gpus", "memory", "resources")


@GROUPS.rule("raycluster-1")
def head_without_container(cluster: Cluster) -> Findings:
    """The head's Pod template has a container."""
    return _without_container(cluster.head)


@GROUPS.rule("raycluster-2")
def head_resources_twice(cluster: Cluster) -> Findings:
    """The head's resources are given in `resources` or in rayStartParams, not in both."""
    return _resources_twice(cluster.head)


@GROUPS.rule("raycluster-3a")
def head_labels_as_start_param(cluster: Cluster) -> Findings:
    """The head's node labels are given in `labels`, not in rayStartParams."""
    return _labels_as_start_param(cluster.head)


@GROUPS.rule("raycluster-3b")
def head_label_keys(cluster: Cluster) -> Findings:
    """The keys of the head's labels are qualified names."""
    return _label_keys(cluster.head)


@GROUPS.rule("raycluster-3c")
def head_label_values(cluster: Cluster) -> Findings:
    """The values of the head's labels are label values."""
    return _label_values(cluster.head)


@GROUPS.rule("raycluster-4a")
def worker_without_container(cluster: Cluster) -> Findings:
    """Every worker group's Pod template has a container."""
    for group in cluster.groups:
        yield from _without_container(group)


@GROUPS.rule("raycluster-4b")
def replica_bounds_missing(cluster: Cluster) -> Findings:
    """Without autoscaling every worker group has minReplicas and maxReplicas."""
    if cluster.autoscaling:
        return
    for group in cluster.groups:
        for bound in ("minReplicas", "maxReplicas"):
            if not is_set(group.spec, bound):
                yield Finding(
                    group.at(bound),
                    f"{group.title} must set it while autoscaling is off",
                    "set it, or set enableInTreeAutoscaling to true",
                )


@GROUPS.rule("raycluster-4c")
def min_replicas_negative(cluster: Cluster) -> Findings:
    """minReplicas is not negative."""
    for group in cluster.groups:
        yield from _negative(group, "minReplicas")


@GROUPS.rule("raycluster-4d")
def max_replicas_negative(cluster: Cluster) -> Findings:
    """maxReplicas is not negative."""
    for group in cluster.groups:
        yield from _negative(group, "maxReplicas")


@GROUPS.rule("raycluster-4e")
def replica_bounds_crossed(cluster: Cluster) -> Findings:
    """minReplicas is not above maxReplicas."""
    for group in cluster.groups:
        low = integer(group.spec, "minReplicas")
        high = integer(group.spec, "maxReplicas")
        if low is not None and high is not None and low > high:
            yield Finding(
                group.at("maxReplicas"),
                f"{high} is below minReplicas {low}",
                "raise it or lower minReplicas",
            )


@GROUPS.rule("raycluster-4f")
def worker_resources_twice(cluster: Cluster) -> Findings:
    """A worker group's resources are given in `resources` or in rayStartParams, not in both."""
    for group in cluster.groups:
        yield from _resources_twice(group)


@GROUPS.rule("raycluster-4g")
def worker_labels(cluster: Cluster) -> Findings:
    """A worker group's labels are given in `labels` alone, with valid keys and values."""
    for group in cluster.groups:
        yield from _labels_as_start_param(group)
        yield from _label_keys(group)
        yield from _label_values(group)


@GROUPS.rule("raycluster-4h")
def worker_idle_timeout(cluster: Cluster) -> Findings:
    """A worker group's idleTimeoutSeconds is not negative and is used with autoscaler v2 only."""
    for group in cluster.groups:
        yield from _negative(group, "idleTimeoutSeconds")
        if integer(group.spec, "idleTimeoutSeconds") is not None and not cluster.v2:
            yield Finding(
                group.at("idleTimeoutSeconds"),
                "only autoscaler v2 reads it, which is not enabled",
                "set autoscalerOptions.version to v2, or remove it",
            )


@GROUPS.rule("raycluster-4i")
def worker_priority(cluster: Cluster) -> Findings:
    """A worker group's priority is used with autoscaler v2 of a Ray that knows it."""
    for group in cluster.groups:
        if not integer(group.spec, "priority"):
            continue
        if why := cluster.lacks_ray(PRIORITY_SINCE):
            yield Finding(
                group.at("priority"),
                f"needs Ray {PRIORITY_SINCE} or later, but {why}",
                "set rayVersion to the Ray of the image if that is new enough, or remove the priority",
            )
        if not cluster.v2:
            yield Finding(
                group.at("priority"),
                "only autoscaler v2 reads it, which is not enabled",
                "set autoscalerOptions.version to v2, or remove it",
            )


def _without_container(group: Group) -> Findings:
    if not group.containers:
        yield Finding(
            group.at_pod("containers"),
            f"{group.title} should have at least one container",
            "add the container that runs Ray",
        )


def _resources_twice(group: Group) -> Findings:
    params = [name for name in _RESOURCE_PARAMS if group.start_params.get(name)]
    if params and mapping(group.spec, "resources"):
        yield Finding(
            group.at("resources"),
            f"{group.title} also sets resources in rayStartParams ({', '.join(params)})",
            "keep them in one of the two places",
        )


def _labels_as_start_param(group: Group) -> Findings:
    if "labels" in group.start_params:
        yield Finding(
            group.at("rayStartParams", "labels"),
            "node labels are not supported here",
            f"use the field labels of {group.title} instead",
        )


def _label_keys(group: Group) -> Findings:
    for key in mapping(group.spec, "labels"):
        if qualified_name(key):
            yield Finding(
                group.at("labels", key),
                f"{quoted(key)} is not a label key",
                "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, "
                "optionally after a DNS name and '/'",
            )


def _label_values(group: Group) -> Findings:
    for key, value in mapping(group.spec, "labels").items():
        if isinstance(value, str) and label_value(value):
            yield Finding(
                group.at("labels", key),
                f"{quoted(value)} is not a label value",
                "use at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends",
            )


def _negative(group: Group, field: str) -> Findings:
    number = integer(group.spec, field)
    if number is not None and number < 0:
        yield Finding(group.at(field), f"{number} is negative", "use 0 or more")
