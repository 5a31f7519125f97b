"""RayCluster rules 11 to 15: suspended groups and the autoscaler."""

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.raycluster.view import AUTOSCALER_V2_VARIABLE, Cluster, Group, rulebook
from eagleray.rayapi.rules.reading import integer, is_set, is_true, mappings, named, text
from eagleray.rayapi.rules.rulebook import Finding, Findings

AUTOSCALING = rulebook()

START_COMMAND_VARIABLE = "KUBERAY_GEN_AUTOSCALER_START_CMD"


@AUTOSCALING.rule("raycluster-11")
def suspended_group_gate(cluster: Cluster) -> Findings:
    """A suspended worker group needs the RayJobDeletionPolicy gate."""
    if cluster.scope.gate("RayJobDeletionPolicy"):
        return
    for group in cluster.groups:
        if is_true(group.spec, "suspend"):
            yield Finding(
                group.at("suspend"),
                f"{group.title} can be suspended only when the RayJobDeletionPolicy feature gate is enabled",
                "enable the gate, or remove suspend",
            )


@AUTOSCALING.rule("raycluster-12")
def v2_without_autoscaling(cluster: Cluster) -> Findings:
    """Without autoscaling the head's environment does not switch autoscaler v2 on."""
    variable = cluster.head.variable(AUTOSCALER_V2_VARIABLE)
    if variable and not cluster.autoscaling and cluster.v2_by_variable:
        yield Finding(
            variable,
            f"{AUTOSCALER_V2_VARIABLE} switches autoscaler v2 on, but enableInTreeAutoscaling is not true",
            "set enableInTreeAutoscaling to true, or remove the variable",
        )


@AUTOSCALING.rule("raycluster-13a")
def suspended_group_with_autoscaling(cluster: Cluster) -> Findings:
    """With autoscaling no worker group is suspended."""
    if not cluster.autoscaling:
        return
    for group in cluster.groups:
        if is_true(group.spec, "suspend"):
            yield Finding(
                group.at("suspend"),
                f"{group.title} cannot be suspended while autoscaling is on",
                "remove suspend, or set enableInTreeAutoscaling to false",
            )


@AUTOSCALING.rule("raycluster-13b")
def autoscaler_version_twice(cluster: Cluster) -> Findings:
    """The autoscaler's version is given in autoscalerOptions or in the environment, not in both."""
    variable = cluster.head.variable(AUTOSCALER_V2_VARIABLE)
    if variable and cluster.autoscaling and is_set(cluster.autoscaler, "version"):
        yield Finding(
            variable,
            f"{AUTOSCALER_V2_VARIABLE} is set beside autoscalerOptions.version",
            "remove the variable",
        )


@AUTOSCALING.rule("raycluster-13c")
def head_restarted_under_v2(cluster: Cluster) -> Findings:
    """With autoscaler v2 the head's restartPolicy is Never or unset."""
    if cluster.autoscaling and cluster.autoscaler.get("version") == "v2":
        yield from _restarted_under_v2(cluster.head)


@AUTOSCALING.rule("raycluster-13d")
def worker_restarted_under_v2(cluster: Cluster) -> Findings:
    """With autoscaler v2 every worker group's restartPolicy is Never or unset."""
    if cluster.autoscaling and cluster.autoscaler.get("version") == "v2":
        for group in cluster.groups:
            yield from _restarted_under_v2(group)


@AUTOSCALING.rule("raycluster-14")
def idle_timeout_negative(cluster: Cluster) -> Findings:
    """autoscalerOptions.idleTimeoutSeconds is not negative."""
    seconds = integer(cluster.autoscaler, "idleTimeoutSeconds")
    if seconds is not None and seconds < 0:
        path = ("spec", "autoscalerOptions", "idleTimeoutSeconds")
        yield Finding(path, f"{seconds} is negative", "use 0 or more")


@AUTOSCALING.rule("raycluster-15")
def start_command_shadowed(cluster: Cluster) -> Findings:
    """autoscalerOptions.env leaves the generated start command alone."""
    position = named(mappings(cluster.autoscaler, "env"), START_COMMAND_VARIABLE)
    if position is not None:
        yield Finding(
            ("spec", "autoscalerOptions", "env", position),
            f"{START_COMMAND_VARIABLE} is set by the operator and would be hidden",
            "remove it",
        )


def restart_policy(group: Group) -> str:
    """Return the template's restartPolicy if it makes Kubernetes restart containers, else nothing."""
    policy = text(group.pod, "restartPolicy")
    return "" if policy == "Never" else policy


def _restarted_under_v2(group: Group) -> Findings:
    if restart_policy(group):
        yield Finding(
            group.at_pod("restartPolicy"),
            f"{quoted(restart_policy(group))} does not work with autoscaler v2, which replaces Pods",
            "set it to Never or remove it",
        )
