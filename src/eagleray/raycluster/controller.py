"""The RayCluster controller: one pass observes, plans, acts, and writes down what there is."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from eagleray.kube.client import Client
from eagleray.kube.resources import PERSISTENT_VOLUME_CLAIMS, RAY_CLUSTERS, SERVICE_ACCOUNTS, Key, Resource
from eagleray.kube.writer import Writer
from eagleray.manifests.cluster import Cluster
from eagleray.rayapi.rules import ValidationConfig
from eagleray.raycluster.caches import Caches
from eagleray.raycluster.children import needs_account
from eagleray.raycluster.deletion import plan_deletion
from eagleray.raycluster.lostnodes import LostNodes
from eagleray.raycluster.metrics import ClusterMetrics
from eagleray.raycluster.planning import Around, Config, blocked, plan
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.status import (
    BLOCKED,
    PROVISIONED,
    Blocked,
    Failure,
    Observed,
    condition_of,
    is_urgent,
    needs_write,
    next_status,
    stamped,
    suspension_of,
)
from eagleray.raycluster.storage import needs_user_claim
from eagleray.raycluster.streaks import NONE, Groups, held_back, next_streaks
from eagleray.raycluster.verdict import judge
from eagleray.runtime.acting import Acting, ActionFailed
from eagleray.runtime.actions import Say, Stage, described
from eagleray.runtime.events import Recorder
from eagleray.runtime.gathering import Gathering
from eagleray.runtime.outcomes import Again, Done, Outcome, step
from kubewire import errors, mergepatch
from kubewire.sources import Clock, Entropy
from kubewire.times import parse_time

Object = dict[str, Any]

log = logging.getLogger(__name__)

NAME = "raycluster"
MANAGER = "ray.io/kuberay-operator"

# News that can wait are gathered for so long before the next status is written, and longer while a cluster starts:
# everybody waits for its being ready then, which is told at once.
STATUS_PAUSE = 1.0
STARTING_PAUSE = 10.0


class RayClusters:
    """Makes and keeps what RayClusters describe. `reconcile` is one pass over one of them."""

    def __init__(
        self,
        caches: Caches,
        client: Client,
        writer: Writer,
        events: Recorder,
        config: Config,
        *,
        clock: Clock,
        entropy: Entropy,
        metrics: ClusterMetrics | None = None,
        dry_run: Callable[[str], None] | None = None,
    ) -> None:
        self._caches = caches
        self._client = client
        self._writer = writer
        self._events = events
        self._acting = Acting(writer, events)
        self._config = config
        self._rules = ValidationConfig(config.settings.gates)
        self._clock = clock
        self._entropy = entropy
        self._metrics = metrics
        self._dry_run = dry_run
        self._lost_nodes = LostNodes(client, clock)
        self._streaks: dict[str, Groups] = {}
        self._news = Gathering(clock)

    def find(self, key: Key) -> Object | None:
        """Return the cluster of a key as it is known."""
        return self._caches.clusters.get(key)

    async def reconcile(self, key: Key) -> Outcome:
        """Make one pass over a cluster."""
        snapshot = self._caches.snapshot(key)
        if snapshot is None:
            self._forget(key)
            return Done()
        cluster = snapshot.cluster
        if cluster.spec.get("managedBy") not in (None, MANAGER):
            return Done()
        snapshot = await self._without_lost(snapshot)
        if cluster.metadata.get("deletionTimestamp"):
            return await self._delete(snapshot)
        verdict = judge(cluster, self._rules, is_running=bool(snapshot.pods))
        if verdict.rejected is not None:
            await self._write_generation(cluster)
            return verdict.rejected
        if _generation(cluster) != _status(cluster).get("observedGeneration"):
            for warning in verdict.warnings:
                self._tell(cluster, warning)
        return await self._pursue(snapshot)

    # --- acting

    async def _pursue(self, snapshot: Snapshot) -> Outcome:
        """Bring a valid cluster closer to what it describes, and write down what there is afterwards."""
        cluster = snapshot.cluster
        now = self._clock.now()
        streaks = next_streaks(cluster, snapshot.pods, self._known_streaks(cluster), now.timestamp())
        self._streaks[cluster.uid] = streaks
        waiting = held_back(streaks, now.timestamp())
        around = Around(
            frozenset(waiting), await self._account_exists(snapshot), await self._claim_exists(snapshot)
        )
        failure = await self._act(cluster, list(plan(snapshot, self._config, around, self._entropy)))
        pause = await self._write_status(snapshot, streaks, failure)
        if failure is not None:
            raise failure.cause
        return Again(
            min([self._config.resync_seconds, pause, *waiting.values(), *self._until_lost(snapshot)])
        )

    async def _delete(self, snapshot: Snapshot) -> Outcome:
        ending = plan_deletion(
            snapshot,
            self._config.settings,
            self._clock.now(),
            cleanup_enabled=self._config.redis_cleanup,
        )
        failure = await self._act(snapshot.cluster, ending.stages)
        if failure is not None and (instead := ending.instead(failure.cause)):
            # A namespace that goes takes no event either: what is left behind is at least in the log.
            for line in described(instead):
                log.warning("%s", line)
            failure = await self._act(snapshot.cluster, instead)
        if failure is not None:
            raise failure.cause
        return Done() if ending.look_again is None else Again(ending.look_again)

    async def _act(self, cluster: Cluster, stages: Sequence[Stage]) -> ActionFailed | None:
        """Carry a plan out, or print it; return how it failed if it did."""
        if self._dry_run is not None:
            for line in described(stages):
                self._dry_run(f"RayCluster {cluster.namespace}/{cluster.name}: {line}")
            return None
        try:
            await self._acting.act(cluster.obj, stages)
        except ActionFailed as failed:
            return failed
        return None

    async def _account_exists(self, snapshot: Snapshot) -> bool:
        name = needs_account(snapshot.cluster)
        return await self._exists(snapshot, "service-account", SERVICE_ACCOUNTS, name)

    async def _claim_exists(self, snapshot: Snapshot) -> bool:
        name = needs_user_claim(snapshot.cluster)
        return await self._exists(snapshot, "storage", PERSISTENT_VOLUME_CLAIMS, name)

    async def _exists(self, snapshot: Snapshot, name_of_step: str, resource: Resource, name: str) -> bool:
        """Ask for something that a user has to bring, as long as no head runs with it."""
        if not name or any(pod.is_head for pod in snapshot.pods):
            return True
        with step(name_of_step):
            try:
                await self._client.get(resource, snapshot.cluster.namespace, name)
            except errors.NotFound:
                return False
        return True

    async def _without_lost(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot without Pods whose end nobody will ever report."""
        with step("nodes"):
            lost = await self._lost_nodes.among(snapshot)
        if not lost:
            return snapshot
        uids = {pod.metadata.uid for pod in lost}
        return snapshot._replace(
            pods=[pod for pod in snapshot.pods if pod.metadata.uid not in uids], lost=lost
        )

    def _until_lost(self, snapshot: Snapshot) -> list[float]:
        return self._lost_nodes.next_look(snapshot)

    # --- status

    async def _write_status(self, before: Snapshot, streaks: Groups, failure: ActionFailed | None) -> float:
        """Write the status if it has changed; return after how many seconds to look again for what can wait."""
        cluster = before.cluster
        key = Key(cluster.namespace, cluster.name)
        seen = self._caches.snapshot(key)
        if seen is None or seen.cluster.uid != cluster.uid:
            return self._config.resync_seconds
        lost = {pod.metadata.uid for pod in before.lost}
        seen = seen._replace(
            pods=[pod for pod in seen.pods if pod.metadata.uid not in lost], lost=before.lost
        )
        now = self._clock.now()
        stuck = blocked(seen, streaks)
        observed = Observed(
            seen.pods,
            seen.head_services,
            now,
            Failure(str(failure.cause), failure.mark) if failure is not None else None,
            self._config.conditions,
            stuck,
        )
        old = _status(seen.cluster)
        # What was judged and acted on is the generation of the plan, even if a newer one has come since.
        new = next_status(cluster_at(seen.cluster, cluster), observed)
        if not needs_write(old, new):
            self._news.told(key)
            return self._config.resync_seconds
        if not is_urgent(old, new) and (pause := self._pause_for_news(key, cluster, old)) > 0:
            return pause
        self._news.told(key)
        self._tell_of(seen.cluster, old, stuck)
        await self._patch_status(seen.cluster, old, stamped(new, now))
        if self._metrics is not None:
            self._metrics.wrote(seen.cluster, old, new, now)
        # Whether Pods go or come is planned from these conditions, and our own write wakes nobody.
        return 0.0 if suspension_of(old) != suspension_of(new) else self._config.resync_seconds

    def _pause_for_news(self, key: Key, cluster: Cluster, old: Object) -> float:
        """Return how many seconds news that can wait have yet to wait.

        A RayService waits for the head of its cluster, so that there the last write counts.
        """
        if cluster.crd_type == "RayService":
            return _pause_after(old, self._clock.now())
        is_starting = (condition_of(old, PROVISIONED) or {}).get("status") != "True"
        return self._news.left(key, STARTING_PAUSE if is_starting else STATUS_PAUSE)

    async def _write_generation(self, cluster: Cluster) -> None:
        """Write down that a generation was looked at, though nothing of it was done."""
        old = _status(cluster)
        if old.get("observedGeneration") != _generation(cluster):
            new = {**old, "observedGeneration": _generation(cluster)}
            await self._patch_status(cluster, old, stamped(new, self._clock.now()))

    async def _patch_status(self, cluster: Cluster, old: Object, new: Object) -> None:
        key = (cluster.namespace, cluster.name)
        ref = self._caches.clusters.ref(key)
        change = mergepatch.create(old, new)
        if self._dry_run is not None:
            self._dry_run(f"RayCluster {'/'.join(key)}: status: {change}")
        elif ref is not None and ref.uid == cluster.uid:
            with step("status"):
                await self._writer.patch_status(RAY_CLUSTERS, ref, change)

    def _tell_of(self, cluster: Cluster, old: Object, stuck: Blocked | None) -> None:
        """Tell why Pods do not run, when that begins or becomes another reason."""
        known = condition_of(old, BLOCKED)
        if stuck is not None and (known is None or known["reason"] != stuck.reason):
            self._tell(cluster, Say(BLOCKED, "Reconcile", stuck.message, "Warning"))

    def _tell(self, cluster: Cluster, say: Say) -> None:
        tell = self._events.warning if say.kind == "Warning" else self._events.normal
        if self._dry_run is None:
            tell(cluster.obj, say.reason, say.action, say.note)

    # --- memory

    def _known_streaks(self, cluster: Cluster) -> Groups:
        return self._streaks.get(cluster.uid, NONE)

    def _forget(self, key: Key) -> None:
        """Drop what was remembered of clusters that are gone."""
        self._news.told(key)
        if self._streaks:
            present = {ref.uid for ref in self._caches.clusters.refs()}
            self._streaks = {uid: groups for uid, groups in self._streaks.items() if uid in present}
        if self._metrics is not None:
            self._metrics.gone(key)


def cluster_at(current: Cluster, planned: Cluster) -> Cluster:
    """Return the cluster as it was planned for, with the status that it has by now."""
    return Cluster({**planned.obj, "status": current.obj.get("status") or {}})


def _status(cluster: Cluster) -> Object:
    status: Object = cluster.obj.get("status") or {}
    return status


def _generation(cluster: Cluster) -> int:
    return int(cluster.metadata.get("generation", 0))


def _pause_after(old: Object, now: datetime) -> float:
    """Return how many seconds news have to wait, given when a status was written last."""
    last = old.get("lastUpdateTime")
    return STATUS_PAUSE - (now - parse_time(last)).total_seconds() if last else 0.0
