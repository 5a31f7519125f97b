"""The policies of a Job: what the way in which a Pod failed means for it, and when some successes are enough."""

from typing import NamedTuple

from kubereef.kinds.resource import Object


class Judgement(NamedTuple):
    """What the failure of a Pod means: the action of the rule that is about it, and why that ends the Job."""

    action: str = ""
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure is one of those that the Job may have so many of."""
        return self.action != "Ignore"


_ORDINARY = Judgement()


def judge(job: Object, pod: Object) -> Judgement:
    """Return what the first rule says that a failed Pod meets."""
    policy = (job.get("spec") or {}).get("podFailurePolicy") or {}
    for index, rule in enumerate(policy.get("rules") or ()):
        action = rule.get("action", "")
        met = _met(rule, pod)
        if met:
            return Judgement(action, f"{met} matching {action} rule at index {index}")
    return _ORDINARY


def _met(rule: Object, pod: Object) -> str:
    """Return what about a Pod meets a rule, in words; empty if nothing does."""
    meta, status = pod["metadata"], pod.get("status") or {}
    name = f"{meta.get('namespace', '')}/{meta['name']}"
    if (codes := rule.get("onExitCodes")) is not None:
        statuses = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
        for one in statuses:
            code = ((one.get("state") or {}).get("terminated") or {}).get("exitCode", 0)
            if code and codes.get("containerName") in (None, one.get("name")) and _is_listed(codes, code):
                return f"Container {one.get('name')} for pod {name} failed with exit code {code}"
        return ""
    for pattern in rule.get("onPodConditions") or ():
        for one in status.get("conditions") or ():
            if (one.get("type"), one.get("status")) == (pattern.get("type"), pattern.get("status", "True")):
                return f"Pod {name} has condition {one['type']}"
    return ""


def _is_listed(codes: Object, code: int) -> bool:
    return (code in (codes.get("values") or ())) == (codes.get("operator") == "In")
