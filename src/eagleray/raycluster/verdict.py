"""Whether a cluster may be acted on: the rules, in the words of its events."""

from collections.abc import Sequence
from typing import NamedTuple

from eagleray.manifests.cluster import Cluster
from eagleray.rayapi.problems import Problem
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.runtime.actions import Say
from eagleray.runtime.outcomes import Rejected


class Verdict(NamedTuple):
    """The reason for which a cluster is refused, if any, and what its owner should know all the same."""

    rejected: Rejected | None = None
    warnings: Sequence[Say] = ()


def judge(cluster: Cluster, config: ValidationConfig, *, is_running: bool) -> Verdict:
    """Return what the rules say; the first that is broken decides.

    A rule that the reference does not have refuses only a cluster that runs nothing yet.
    """
    warnings: list[Say] = []
    place = f"{cluster.namespace}/{cluster.name}"
    for problem in problems_of(cluster.obj, config, skip=_ONLY_BEFOREHAND):
        if problem.severity == "error" and not (problem.stricter and is_running):
            return Verdict(_rejection(place, problem), warnings)
        warnings.append(_warning(place, str(problem)))
    if _has_idle_authentication(cluster):
        warnings.append(_warning(place, _IDLE_AUTHENTICATION))
    return Verdict(None, warnings)


# What is pointed out to whoever checks a manifest, and no news about a cluster that an autoscaler changes.
_ONLY_BEFOREHAND = frozenset(("raycluster-w2",))


# Not an error: a token that came with new Pods of a running cluster would cut them off from a head that has none.
_IDLE_AUTHENTICATION = (
    "spec.authOptions: authentication is off, because mode is not set; set mode to token to turn it on"
)


def _has_idle_authentication(cluster: Cluster) -> bool:
    options = cluster.spec.get("authOptions")
    return options is not None and not options.get("mode")


def _warning(place: str, what: str) -> Say:
    return Say("InvalidRayClusterSpec", "Validate", f"RayCluster spec warning {place}: {what}", "Warning")


def _rejection(place: str, problem: Problem) -> Rejected:
    part = problem.rule.removeprefix("raycluster-")[0]
    if part == "m":
        return Rejected("InvalidRayClusterMetadata", f"The RayCluster metadata is invalid {place}: {problem}")
    if part == "t":
        return Rejected("InvalidRayClusterStatus", f"The RayCluster status is invalid {place}, {problem}")
    subject = "UpgradeStrategy" if part == "u" else "spec"
    return Rejected("InvalidRayClusterSpec", f"The RayCluster {subject} is invalid {place}: {problem}")
