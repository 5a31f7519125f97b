"""Groups whose Pods keep failing the same way: each round of replacements waits longer than the one before.

The delay spares the cluster and its users a hot loop and is nothing that correctness needs, so it is only remembered:
an operator that starts anew begins again with a short one.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eagleray.manifests.cluster import Cluster
from eagleray.raycluster.troubles import Trouble, trouble_of
from eagleray.raycluster.views import PodView
from kubewire.times import parse_time

# As Kubernetes backs off from a crashing container; the first failure is replaced at once.
FIRST_DELAY = 10.0
LONGEST_DELAY = 300.0
# A Pod that lived for so long was no failure of its group, and ends its streak.
HEALTHY_SECONDS = 600.0


class Streak(NamedTuple):
    """Failures in a row: rounds of Pods that failed the same way, the last of them, and until when to wait."""

    rounds: int
    trouble: Trouble
    at: float
    until: float
    template: object  # what the Pods were made from; another one deserves a new try
    seen: frozenset[str]  # uids of the Pods of the last round


Groups = Mapping[str, Streak]
NONE: Groups = {}


def next_streaks(cluster: Cluster, pods: Iterable[PodView], known: Groups, now: float) -> Groups:
    """Return the streaks of a cluster's groups after a look at its Pods; `now` is in seconds since 1970.

    Pods that were made before the last round ended belong to it: a thousand Pods that fail together are one round. A
    Pod that is being deleted ends because of that, however it ends; if it had failed before, that was seen before.
    """
    templates = {group["groupName"]: group.get("template") for group in cluster.workers}
    streaks = {
        name: streak
        for name, streak in known.items()
        if name in templates and templates[name] == streak.template
    }
    for pod in pods:
        if not pod.is_worker or pod.is_terminating or not pod.must_go or pod.group not in templates:
            continue
        made = _seconds(pod)
        trouble = trouble_of(pod)
        if trouble is None or now - made >= HEALTHY_SECONDS:
            streaks.pop(pod.group, None)
            continue
        streak = streaks.get(pod.group)
        uid = pod.metadata.uid
        if streak is not None and (made < int(streak.at) or uid in streak.seen):
            streaks[pod.group] = streak._replace(seen=streak.seen | {uid})
            continue
        rounds = streak.rounds + 1 if streak is not None and streak.trouble.way == trouble.way else 1
        delay = 0.0 if rounds == 1 else min(FIRST_DELAY * 2 ** (rounds - 2), LONGEST_DELAY)
        streaks[pod.group] = Streak(
            rounds, trouble, now, now + delay, templates[pod.group], frozenset((uid,))
        )
    return streaks


def held_back(streaks: Groups, now: float) -> dict[str, float]:
    """Return the groups that are not to be replaced yet, with the seconds that are left."""
    return {name: streak.until - now for name, streak in streaks.items() if streak.until > now}


def _seconds(pod: PodView) -> float:
    stamp = pod.metadata.creation_timestamp
    return parse_time(stamp).timestamp() if stamp else 0.0
