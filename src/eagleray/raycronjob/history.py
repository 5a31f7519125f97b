"""Which RayJobs of a schedule have ended and are no longer kept."""

from collections.abc import Iterator
from typing import Final

from eagleray.raycronjob.look import FAILED, SUCCEEDED, Look
from eagleray.raycronjob.planning import delete_child
from eagleray.runtime.actions import Action, Stage

_LIMITS: Final = (("successfulJobsHistoryLimit", SUCCEEDED), ("failedJobsHistoryLimit", FAILED))


def surplus(look: Look) -> Stage:
    """Return the deletion of what is older than the limits allow; a limit that is not set keeps everything."""
    return Stage("history", tuple(_deletions(look)))


def _deletions(look: Look) -> Iterator[Action]:
    for limit, states in _LIMITS:
        kept = look.cron.spec.get(limit)
        if kept is None:
            continue
        ended = [child for child in look.children if child.state in states and not child.is_going]
        for child in ended[: max(0, len(ended) - max(0, kept))]:
            yield delete_child(look.cron, child, f"{limit} is {kept}")
