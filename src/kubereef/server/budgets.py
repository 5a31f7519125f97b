"""What Pod disruption budgets say to an eviction: whether the Pod can be spared, and the note that it was."""

from datetime import datetime

from kubereef.kinds.resource import Object
from kubereef.store.records import Record
from kubereef.store.store import Store
from kubewire import errors
from kubewire.selectors import LabelSelector, SelectorError
from kubewire.times import format_time

BUDGETS = "poddisruptionbudgets.policy"
ALLOWED = "DisruptionAllowed"
SYNC_FAILED = "SyncFailed"
# How many evicted Pods a budget may wait for to go.
_MOST_UNCONFIRMED = 2000
_REFUSAL = "Cannot evict pod as it would violate the pod's disruption budget."
_UNCOUNTED_SECONDS = 10


def spend_budget(store: Store, pod: Object, now: datetime, *, dry_run: bool) -> None:
    """Take the eviction of a Pod off its budget, if it has one; raise TooManyRequests if it cannot be spared.

    Nothing waits between this and the deletion, so that no two evictions are let by the same budget.
    """
    if is_beyond_budgets(pod):
        return
    found = _budgets_of(store, pod)
    if len(found) > 1:
        raise errors.ApiError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    for record in found:
        budget = record.object()
        if not _is_free_of(budget, pod):
            _check(budget)
            if not dry_run:
                _note(budget, pod["metadata"]["name"], now)
                store.put(record.key, budget, record)


def is_beyond_budgets(pod: Object) -> bool:
    """Tell whether a Pod does not do anything yet, or any more, that its end could disrupt."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or bool(pod["metadata"].get("deletionTimestamp"))


def tell_whether_allowed(status: Object, generation: int, now: datetime, failure: str = "") -> None:
    """Set the condition of a budget's status that tells whether a Pod could be evicted."""
    is_allowed = status.get("disruptionsAllowed", 0) > 0 and not failure
    reason = SYNC_FAILED if failure else ("SufficientPods" if is_allowed else "InsufficientPods")
    new: Object = {"type": ALLOWED, "status": "True" if is_allowed else "False"}
    old = allowed_condition(status)
    is_same = old is not None and old.get("status") == new["status"]
    new["lastTransitionTime"] = old["lastTransitionTime"] if old and is_same else format_time(now)
    new |= {"reason": reason, "message": failure}
    if generation:
        new["observedGeneration"] = generation
    others = [one for one in status.get("conditions") or () if one.get("type") != ALLOWED]
    status["conditions"] = [*others, new]


def allowed_condition(status: Object) -> Object | None:
    """Return the condition of a budget's status that tells whether a Pod could be evicted."""
    return next((one for one in status.get("conditions") or () if one.get("type") == ALLOWED), None)


def is_guarded(budget: Object, pod: Object) -> bool:
    """Tell whether a budget of the same namespace is about a Pod."""
    try:
        selector = LabelSelector.of((budget.get("spec") or {}).get("selector"))
    except SelectorError:
        return False  # what cannot be read chooses nothing
    return selector.matches(pod["metadata"].get("labels"))


def _is_ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def _budgets_of(store: Store, pod: Object) -> list[Record]:
    if not pod["metadata"].get("labels"):
        return []
    latest = (store.latest(one.key) for one in store.records(BUDGETS, pod["metadata"]["namespace"]))
    return [record for record in latest if record is not None and is_guarded(record.object(), pod)]


def _is_free_of(budget: Object, pod: Object) -> bool:
    """Tell whether a Pod may go without counting: it is not ready, so that nobody loses it."""
    if _is_ready(pod):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired, current = int(status.get("desiredHealthy", 0)), int(status.get("currentHealthy", 0))
    return 0 < desired <= current


def _check(budget: Object) -> None:
    meta, status = budget["metadata"], budget.get("status") or {}
    name = meta["name"]
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise _too_early(cause, _UNCOUNTED_SECONDS)
    if len(status.get("disruptedPods") or ()) > _MOST_UNCONFIRMED:
        because = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise errors.forbidden("poddisruptionbudget", name, because, group="policy")
    if status.get("disruptionsAllowed", 0) <= 0:
        condition = allowed_condition(status) or {}
        if condition.get("reason") == SYNC_FAILED:
            cause = (
                f"The disruption budget {name} does not allow evicting pods currently because it failed sync:"
                f" {condition.get('message', '')}"
            )
        else:
            desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
            cause = f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        raise _too_early(cause, 0)


def _too_early(cause: str, seconds: int) -> errors.TooManyRequests:
    refusal = errors.too_many_requests(_REFUSAL, retry_after_seconds=seconds)
    assert refusal.details is not None
    refusal.details = refusal.details._replace(causes=(errors.Cause("DisruptionBudget", cause),))
    return refusal


def _note(budget: Object, pod: str, now: datetime) -> None:
    """Count the Pod as gone before it is, so that the next eviction knows."""
    status = budget["status"]
    status["disruptionsAllowed"] -= 1
    if not status["disruptionsAllowed"]:
        tell_whether_allowed(status, status.get("observedGeneration", 0), now)
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: format_time(now)}
