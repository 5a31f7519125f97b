"""RayJob rules v4 to v7, l1 to l5 and r1 to r9: what is deleted when the job is over."""

from collections.abc import Iterator
from itertools import pairwise

from eagleray.rayapi.problems import quoted
from eagleray.rayapi.rules.rayjob.view import Job, rulebook
from eagleray.rayapi.rules.reading import Object, integer, is_set, mapping, text
from eagleray.rayapi.rules.rulebook import Finding, Findings
from kubewire.paths import FieldPath

DELETION = rulebook()

_STRATEGY: FieldPath = ("spec", "deletionStrategy")
_RULES: FieldPath = (*_STRATEGY, "deletionRules")
_NEEDS_OWN_CLUSTER = ("DeleteCluster", "DeleteWorkers")

# Each contains what the one before deletes, so it cannot sensibly happen earlier.
_DELETION_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")


@DELETION.rule("rayjob-v4")
def strategy_gate(job: Job) -> Findings:
    """deletionStrategy needs the RayJobDeletionPolicy gate."""
    if is_set(job.spec, "deletionStrategy") and not job.scope.gate("RayJobDeletionPolicy"):
        yield Finding(
            _STRATEGY,
            "requires the RayJobDeletionPolicy feature gate to be enabled",
            "enable the gate, or remove deletionStrategy",
        )


@DELETION.rule("rayjob-v5")
def rules_and_shutdown(job: Job) -> Findings:
    """deletionRules and shutdownAfterJobFinishes are not used together."""
    if job.deletion_applies and job.deletion.rules and job.shutdown:
        yield Finding(
            _RULES,
            "cannot be used with shutdownAfterJobFinishes",
            "set shutdownAfterJobFinishes to false, as a rule with policy DeleteCluster does the same",
        )


@DELETION.rule("rayjob-v6")
def rules_and_legacy(job: Job) -> Findings:
    """deletionRules and the old onSuccess and onFailure are not used together."""
    if job.deletion_applies and job.deletion.rules and job.deletion.legacy:
        yield Finding(
            _RULES,
            "cannot be used with onSuccess and onFailure, which they replace",
            "remove onSuccess and onFailure",
        )


@DELETION.rule("rayjob-v7")
def strategy_empty(job: Job) -> Findings:
    """A deletionStrategy says something."""
    if job.deletion_applies and not job.deletion.rules and not job.deletion.legacy:
        yield Finding(_STRATEGY, "says nothing", "add deletionRules, or remove deletionStrategy")


@DELETION.rule("rayjob-l1")
def legacy_side_missing(job: Job) -> Findings:
    """Of the old policies both onSuccess and onFailure are set."""
    if not job.deletion_applies or not job.deletion.legacy:
        return
    for name, policy in _legacy_sides(job):
        if policy is None:
            yield Finding(
                (*_STRATEGY, name),
                "onSuccess and onFailure must both be set",
                "add it, or use deletionRules",
            )


@DELETION.rule("rayjob-l2")
def legacy_policy_missing(job: Job) -> Findings:
    """onSuccess and onFailure have a policy."""
    for name, policy in _legacy_sides(job):
        if policy is not None and not is_set(policy, "policy"):
            yield Finding(
                (*_STRATEGY, name, "policy"),
                "must be set",
                "use DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone",
            )


@DELETION.rule("rayjob-l3")
def legacy_with_selector(job: Job) -> Findings:
    """onSuccess and onFailure delete nothing of a cluster that was selected."""
    for name, policy in _legacy_sides(job):
        chosen = text(policy or {}, "policy")
        if job.selector and chosen in _NEEDS_OWN_CLUSTER:
            yield Finding(
                (*_STRATEGY, name, "policy"),
                f"{chosen} is not possible with clusterSelector, whose cluster is not the job's own",
                "use DeleteSelf or DeleteNone",
            )


@DELETION.rule("rayjob-l4")
def legacy_workers_with_autoscaling(job: Job) -> Findings:
    """onSuccess and onFailure do not delete workers that an autoscaler would bring back."""
    for name, policy in _legacy_sides(job):
        if job.autoscaling and text(policy or {}, "policy") == "DeleteWorkers":
            yield Finding(
                (*_STRATEGY, name, "policy"),
                "DeleteWorkers does not work with enableInTreeAutoscaling, which would bring them back",
                "use DeleteCluster, or switch autoscaling off",
            )


@DELETION.rule("rayjob-l5")
def legacy_none_with_shutdown(job: Job) -> Findings:
    """shutdownAfterJobFinishes is not contradicted by DeleteNone."""
    for name, policy in _legacy_sides(job):
        if job.shutdown and text(policy or {}, "policy") == "DeleteNone":
            yield Finding(
                (*_STRATEGY, name, "policy"),
                "DeleteNone contradicts shutdownAfterJobFinishes",
                "set shutdownAfterJobFinishes to false, or use DeleteCluster",
            )


@DELETION.rule("rayjob-r1")
def rule_with_two_conditions(job: Job) -> Findings:
    """A deletion rule's condition names one status, not two."""
    for i, rule in _rules(job):
        if _has_both(_condition(rule)):
            yield Finding(
                (*_RULES, i, "condition"),
                "jobStatus and jobDeploymentStatus cannot both be set",
                "keep one, and make a second rule for the other",
            )


@DELETION.rule("rayjob-r2")
def rule_without_condition(job: Job) -> Findings:
    """A deletion rule's condition names a status."""
    for i, rule in _rules(job):
        if _has_neither(_condition(rule)):
            yield Finding(
                (*_RULES, i, "condition"),
                "jobStatus or jobDeploymentStatus must be set",
                "add one, such as jobStatus: SUCCEEDED",
            )


@DELETION.rule("rayjob-r3")
def rule_ttl_negative(job: Job) -> Findings:
    """A deletion rule's ttlSeconds is not negative."""
    for i, rule in _rules(job):
        if (ttl := _ttl(rule)) < 0:
            path = (*_RULES, i, "condition", "ttlSeconds")
            yield Finding(path, f"{ttl} is negative", "use 0 or more")


@DELETION.rule("rayjob-r4")
def rule_with_selector(job: Job) -> Findings:
    """A deletion rule deletes nothing of a cluster that was selected."""
    for i, rule in _rules(job):
        if _deletes_selected(job, rule):
            chosen = text(rule, "policy")
            yield Finding(
                (*_RULES, i, "policy"),
                f"{chosen} is not possible with clusterSelector, whose cluster is not the job's own",
                "use DeleteSelf or DeleteNone",
            )


@DELETION.rule("rayjob-r5")
def rule_workers_with_autoscaling(job: Job) -> Findings:
    """A deletion rule does not delete workers that an autoscaler would bring back."""
    for i, rule in _rules(job):
        if _deletes_autoscaled(job, rule):
            yield Finding(
                (*_RULES, i, "policy"),
                "DeleteWorkers does not work with enableInTreeAutoscaling, which would bring them back",
                "use DeleteCluster, or switch autoscaling off",
            )


@DELETION.rule("rayjob-r6")
def rule_repeated_for_job_status(job: Job) -> Findings:
    """No two deletion rules have the same jobStatus and policy."""
    return _repeated(job, "jobStatus")


@DELETION.rule("rayjob-r7")
def rule_repeated_for_deployment_status(job: Job) -> Findings:
    """No two deletion rules have the same jobDeploymentStatus and policy."""
    return _repeated(job, "jobDeploymentStatus")


@DELETION.rule("rayjob-r8")
def ttl_order_for_job_status(job: Job) -> Findings:
    """For one jobStatus, workers are deleted no later than the cluster, and that no later than the job."""
    return _ttl_order(job, "jobStatus")


@DELETION.rule("rayjob-r9")
def ttl_order_for_deployment_status(job: Job) -> Findings:
    """For one jobDeploymentStatus, the order of deletion is the same."""
    return _ttl_order(job, "jobDeploymentStatus")


def _legacy_sides(job: Job) -> Iterator[tuple[str, Object | None]]:
    if job.deletion_applies:
        yield "onSuccess", job.deletion.on_success
        yield "onFailure", job.deletion.on_failure


def _rules(job: Job) -> Iterator[tuple[int, Object]]:
    if job.deletion_applies:
        yield from enumerate(job.deletion.rules)


def _condition(rule: Object) -> Object:
    return mapping(rule, "condition")


def _has_both(condition: Object) -> bool:
    return is_set(condition, "jobStatus") and is_set(condition, "jobDeploymentStatus")


def _has_neither(condition: Object) -> bool:
    return not is_set(condition, "jobStatus") and not is_set(condition, "jobDeploymentStatus")


def _ttl(rule: Object) -> int:
    return integer(_condition(rule), "ttlSeconds") or 0


def _deletes_selected(job: Job, rule: Object) -> bool:
    return bool(job.selector) and text(rule, "policy") in _NEEDS_OWN_CLUSTER


def _deletes_autoscaled(job: Job, rule: Object) -> bool:
    return job.autoscaling and text(rule, "policy") == "DeleteWorkers"


def _sound_rules(job: Job, status: str) -> Iterator[tuple[int, str, Object]]:
    """Yield position, status value and rule of those on this kind of status that are right by themselves.

    Comparing a rule that must be changed anyway with its neighbours would only add noise.
    """
    for i, rule in _rules(job):
        condition = _condition(rule)
        if _has_both(condition) or _ttl(rule) < 0:
            continue
        if _deletes_selected(job, rule) or _deletes_autoscaled(job, rule):
            continue
        if is_set(condition, status):
            yield i, text(condition, status), rule


def _repeated(job: Job, status: str) -> Findings:
    seen: dict[tuple[str, str], int] = {}
    for i, value, rule in _sound_rules(job, status):
        policy = text(rule, "policy")
        first = seen.setdefault((value, policy), i)
        if first != i:
            yield Finding(
                (*_RULES, i),
                f"duplicate of deletionRules[{first}]: policy {quoted(policy)} for {status} {quoted(value)}",
                "remove one of the two",
            )


def _ttl_order(job: Job, status: str) -> Findings:
    first_of: dict[str, dict[str, tuple[int, int]]] = {}
    for i, value, rule in _sound_rules(job, status):
        first_of.setdefault(value, {}).setdefault(text(rule, "policy"), (i, _ttl(rule)))
    for value, policies in first_of.items():
        ordered = [(policy, *policies[policy]) for policy in _DELETION_ORDER if policy in policies]
        for (earlier, _, before), (later, i, after) in pairwise(ordered):
            if after < before:
                yield Finding(
                    (*_RULES, i, "condition", "ttlSeconds"),
                    f"for {status} {quoted(value)} {later} would come after {after} s, "
                    f"before {earlier} after {before} s",
                    f"use {before} or more, or lower the other",
                )
