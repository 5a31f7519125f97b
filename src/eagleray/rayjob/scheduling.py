"""What a batch scheduler wants before an attempt, takes back after it, and how a user hears of both."""

from eagleray.manifests.cluster import Cluster
from eagleray.rayjob.look import Cause, Decision, Look
from eagleray.runtime.actions import Action, Refuse, Said, Say, Stage, Tell


def reserve(look: Look) -> Decision | None:
    """Return what the scheduler wants before there is a cluster; None once it has it."""
    stages = look.config.scheduler.submit(look.job)
    if not stages:
        return None
    actions = (action for stage in stages for action in stage.actions)
    refused = next((action.message for action in actions if isinstance(action, Refuse)), "")
    return Decision(stages=stages, cause=Cause("BatchSchedulerRefused", refused) if refused else None)


def give_back(look: Look, *, may_fail: bool = False) -> tuple[Stage, ...]:
    """Return what the scheduler wants done; nothing if all is as it should be. Only a change is told."""
    own = look.cluster if look.is_own_cluster else None
    actions = look.config.scheduler.clean_up(look.job, Cluster(own) if own is not None else None)
    if not actions:
        return ()
    note = f"Cleaned up batch scheduler resources for RayJob {look.job.place}"
    done = Say("BatchSchedulerCleanedUp", "Cleanup", note)
    return (
        Stage("scheduler", tuple(_told(look, action) for action in actions), may_fail=may_fail),
        Stage("scheduler", (Tell(done),)),
    )


def _told(look: Look, action: Action) -> Action:
    note = f"Failed to cleanup batch scheduler resources for RayJob {look.job.place}:"
    failed = Say("FailedToCleanupBatchScheduler", "Cleanup", note, "Warning")
    if isinstance(action, Tell):
        return action
    if isinstance(action, Refuse):
        return action._replace(say=failed._replace(note=f"{note} {action.message}"))
    return action._replace(said=Said(failed=failed))
