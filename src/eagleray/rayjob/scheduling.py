"""What a batch scheduler takes back when an attempt or a job is over, and how a user hears of it."""

from eagleray.rayjob.look import Look
from eagleray.runtime.actions import Action, Refuse, Said, Say, Stage, Tell


def give_back(look: Look, *, may_fail: bool = False) -> tuple[Stage, ...]:
    """Return what the scheduler wants done; nothing if all is as it should be. Only a change is told."""
    actions = look.config.scheduler.clean_up(look.job.obj)
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
