"""A RayJob as its rules read it."""

from eagleray.rayapi.rules.reading import Object, integer, is_set, is_true, mapping, mappings, text
from eagleray.rayapi.rules.rulebook import Rulebook, Scope

SELECTOR_KEY = "ray.io/cluster"
DEFAULT_MODE = "K8sJobMode"


class Job:
    """A RayJob; also the one that a RayCronJob's template describes."""

    __slots__ = (
        "autoscaling",
        "backoff_limit",
        "cluster",
        "deletion",
        "mode",
        "obj",
        "scope",
        "selector",
        "shutdown",
        "spec",
        "suspend",
    )

    def __init__(self, obj: Object, scope: Scope) -> None:
        self.obj = obj
        self.scope = scope
        self.spec = mapping(obj, "spec")
        cluster = self.spec.get("rayClusterSpec")
        self.cluster: Object | None = cluster if isinstance(cluster, dict) else None
        self.autoscaling = is_true(self.cluster or {}, "enableInTreeAutoscaling")
        # An empty selector selects nothing: the job then makes its own cluster.
        self.selector = mapping(self.spec, "clusterSelector")
        self.mode = text(self.spec, "submissionMode") or DEFAULT_MODE
        self.suspend = is_true(self.spec, "suspend")
        self.shutdown = is_true(self.spec, "shutdownAfterJobFinishes")
        self.backoff_limit = integer(self.spec, "backoffLimit")
        self.deletion = Deletion(mapping(self.spec, "deletionStrategy"))

    @property
    def deletion_applies(self) -> bool:
        """Whether there is a deletionStrategy and the gate that gives it a meaning."""
        return is_set(self.spec, "deletionStrategy") and self.scope.gate("RayJobDeletionPolicy")


class Deletion:
    """A deletionStrategy: either the old pair of policies or a list of rules."""

    __slots__ = ("on_failure", "on_success", "rules")

    def __init__(self, strategy: Object) -> None:
        self.on_success = _policy(strategy, "onSuccess")
        self.on_failure = _policy(strategy, "onFailure")
        self.rules = mappings(strategy, "deletionRules")

    @property
    def legacy(self) -> bool:
        return self.on_success is not None or self.on_failure is not None


def _policy(strategy: Object, side: str) -> Object | None:
    policy = strategy.get(side)
    return policy if isinstance(policy, dict) else None


def rulebook() -> Rulebook[Job]:
    return Rulebook("RayJob")
