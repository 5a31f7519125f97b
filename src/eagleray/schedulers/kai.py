"""KAI: it groups Pods by itself, and only has to be named, with a queue.

| what | how |
|---|---|
| opt-in | none: every object |
| queue | label `kai.scheduler/queue`, on every Pod; without it Pods wait until it is set |
| Pod marks | `schedulerName` |
| RayJob | starts in every mode; its submitter is scheduled by KAI, too |
"""

import logging
from typing import Any, Final

from eagleray.manifests import naming
from eagleray.schedulers.interface import SUBMITTER_GROUP, NoScheduler, Owner, copy_label, schedule_by

Object = dict[str, Any]

log = logging.getLogger(__name__)

NAME: Final = "kai-scheduler"
QUEUE_LABEL: Final = "kai.scheduler/queue"


class Kai(NoScheduler):
    """Marks Pods."""

    def mark_pod(self, owner: Owner, group: str, pod: Object) -> None:
        schedule_by(NAME, pod)
        if owner.labels.get(QUEUE_LABEL):
            copy_label(owner, QUEUE_LABEL, pod)
        elif group in (naming.HEAD_GROUP, SUBMITTER_GROUP):  # which there is one of: once is enough
            log.warning(
                "%s has no label %s: its Pods stay Pending until KAI finds them a queue",
                owner.place,
                QUEUE_LABEL,
            )
