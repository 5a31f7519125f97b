"""The whole plan of a pass: a pure function of what was seen, the time and the operator's settings."""

import base64
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from eagleray.manifests.settings import Settings
from eagleray.raycluster.children import plan_children
from eagleray.raycluster.deletion import add_finalizer, has_finalizer, needs_cleanup
from eagleray.raycluster.podactions import PodActions
from eagleray.raycluster.podplan import Circumstances, plan_pods
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.status import Blocked
from eagleray.raycluster.streaks import Groups
from eagleray.raycluster.troubles import group_troubles
from eagleray.runtime.actions import Stage
from eagleray.schedulers.interface import NoScheduler, Scheduler
from kubewire.sources import Entropy
from kubewire.times import format_time

_LONGEST_MESSAGE = 1000


class Config(NamedTuple):
    """What a plan depends on besides the cluster."""

    settings: Settings = Settings()
    scheduler: Scheduler = NoScheduler()
    redis_cleanup: bool = True
    random_pod_delete: bool = False
    routes: bool = False  # the way in is OpenShift's
    resync_seconds: float = 300.0

    @property
    def conditions(self) -> bool:
        return self.settings.gates.enabled("RayClusterStatusConditions")

    @property
    def indexing(self) -> bool:
        return self.settings.gates.enabled("RayMultiHostIndexing")


class Around(NamedTuple):
    """What was found out for this pass besides the snapshot."""

    held_back: frozenset[str] = frozenset()  # groups that fail again and again, and wait
    account_exists: bool = True  # the service account that a user names
    claim_exists: bool = True  # the volume claim that a user names


def plan(snapshot: Snapshot, config: Config, around: Around, entropy: Entropy) -> Iterator[Stage]:
    """Yield the stages of a pass over a cluster that is valid and there to stay. `entropy` gives names and tokens."""
    cluster = snapshot.cluster
    if needs_cleanup(cluster, enabled=config.redis_cleanup) and not has_finalizer(cluster):
        yield add_finalizer(cluster)
    token = base64.b64encode(entropy.token(32)).decode("ascii")
    yield from plan_children(
        snapshot,
        config.settings,
        routes=config.routes,
        token=token,
        account_exists=around.account_exists,
        claim_exists=around.claim_exists,
    )
    circumstances = Circumstances(
        version=config.settings.version,
        indexing=config.indexing,
        conditions_gate=config.conditions,
        random_deletion=config.random_pod_delete,
        held_back=around.held_back,
    )
    actions = PodActions(cluster, config.settings, config.scheduler, entropy, indexing=config.indexing)
    yield from actions.stages(plan_pods(cluster, snapshot.pods, circumstances))


def blocked(snapshot: Snapshot, streaks: Groups) -> Blocked | None:
    """Return what keeps Pods of a cluster from running, and which groups wait before they are tried again."""
    troubles = group_troubles(snapshot.pods)
    sentences = [str(trouble) for trouble in troubles]
    reasons = [trouble.trouble.kind for trouble in troubles]
    for name, streak in streaks.items():
        if streak.rounds > 1:
            sentences.append(
                f"group {name} failed {streak.rounds} times in a row ({streak.trouble.text});"
                f" {streak.trouble.help}; next try at {_time(streak.until)}"
            )
            reasons.append(streak.trouble.kind)
    for pod in snapshot.lost:
        sentences.append(f"Pod {pod.name} cannot end because its node {pod.spec.node_name} is lost")
        reasons.append("NodeLost")
    return Blocked(reasons[0], _clipped(sentences)) if sentences else None


def _clipped(sentences: Sequence[str]) -> str:
    text = "; ".join(sentences)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def _time(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))
