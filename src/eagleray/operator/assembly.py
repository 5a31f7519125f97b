"""An operator put together from its options and a way to a cluster, and its whole life."""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from eagleray.kube.client import Client
from eagleray.kube.informers import Informers
from eagleray.kube.requests import Request
from eagleray.kube.resources import Key
from eagleray.kube.transport import Transport
from eagleray.kube.writer import Writer
from eagleray.manifests.settings import settings_of
from eagleray.operator.adapters import ClusterEvents, ClusterLeases, RequestCounts
from eagleray.raycluster import controller as raycluster
from eagleray.raycluster.caches import Caches as ClusterCaches
from eagleray.raycluster.metrics import ClusterMetrics
from eagleray.raycluster.planning import Config as ClusterConfig
from eagleray.runtime.controller import Controller
from eagleray.runtime.events import Recorder
from eagleray.runtime.leases import Election, identity, lease_namespace
from eagleray.runtime.manager import EXIT_FAILURE, Caches, Manager
from eagleray.runtime.metrics import Registry
from eagleray.runtime.options import Options
from eagleray.runtime.series import ClientMetrics, ControllerMetrics, LeaderMetrics, collect_process
from kubewire import errors
from kubewire.sources import Clock, Entropy

log = logging.getLogger(__name__)

LEASE_METRIC = "ray-operator-leader"
# Any of these says that the cluster is OpenShift.
_OPENSHIFT = frozenset(("route.openshift.io", "security.openshift.io", "config.openshift.io"))


class _Groups(msgspec.Struct):
    class Group(msgspec.Struct):
        name: str

    groups: list[Group]


class Operator:
    """The operator over one connection. `run` is its life; `registry` has its metrics."""

    def __init__(
        self,
        options: Options,
        transport: Transport,
        *,
        clock: Clock,
        entropy: Entropy,
        hostname: str = "eagleray",
        printed: Callable[[str], None] = print,
    ) -> None:
        self._options = options
        self._clock = clock
        self._entropy = entropy
        self._hostname = hostname
        self._printed = printed
        self.registry = Registry()
        self.client = Client(
            transport,
            clock,
            entropy,
            qps=options.qps,
            burst=options.burst,
            observer=RequestCounts(ClientMetrics(self.registry)),
        )
        self.informers = Informers(self.client, clock, entropy, namespaces=options.watch_namespaces)
        self.manager: Manager | None = None

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set, or until there is a reason to give up; returns the exit code of the process."""
        try:
            groups = await self._api_groups()
        except (errors.ApiError, OSError) as refusal:
            log.error("The API server does not say what it serves: %s", refusal)
            return EXIT_FAILURE
        self.manager = self._assembled(groups)
        return await self.manager.run(stop)

    async def close(self) -> None:
        """Let go of the connection."""
        await self.client.close()

    def _assembled(self, groups: frozenset[str]) -> Manager:
        options = self._options
        collect_process(self.registry, self._clock.now().timestamp())
        metrics = ControllerMetrics(self.registry)
        writer = Writer(self.client, self.informers)
        controllers = []
        recorders = []
        for build in (self._ray_clusters,):
            controller, recorder = build(metrics, writer, groups)
            controllers.append(controller)
            recorders.append(recorder)
        return Manager(
            controllers,
            recorders,
            Caches(self.informers.start, lambda: self.informers.problems, self.informers.stop),
            self.registry,
            election=self._election() if options.leader_election and not options.dry_run else None,
            metrics_address=options.metrics_address,
            probe_address=options.probe_address,
        )

    def _ray_clusters(
        self, metrics: ControllerMetrics, writer: Writer, groups: frozenset[str]
    ) -> tuple[Controller, Recorder]:
        options = self._options
        routes = bool(_OPENSHIFT & groups) and not options.environment.ingress_on_openshift
        config = ClusterConfig(
            settings=settings_of(options),
            redis_cleanup=options.environment.redis_cleanup,
            random_pod_delete=options.environment.random_pod_delete,
            routes=routes,
            resync_seconds=options.environment.raycluster_requeue_seconds,
        )
        caches = ClusterCaches(self.informers, routes=routes)
        recorder = self._recorder(raycluster.NAME)
        clusters = raycluster.RayClusters(
            caches,
            self.client,
            writer,
            recorder,
            config,
            clock=self._clock,
            entropy=self._entropy,
            metrics=ClusterMetrics(self.registry, caches.clusters) if options.enable_metrics else None,
            dry_run=self._printed if options.dry_run else None,
        )
        controller = Controller(
            raycluster.NAME,
            "RayCluster",
            clusters.reconcile,
            find=clusters.find,
            events=recorder,
            metrics=metrics,
            entropy=self._entropy,
            cap=options.reconcile_concurrency,
        )
        caches.wake_by(_waking(controller))
        return controller, recorder

    def _recorder(self, name: str) -> Recorder:
        return Recorder(ClusterEvents(self.client), self._clock, f"{name}-controller", self._hostname)

    def _election(self) -> Election:
        leads = LeaderMetrics(self.registry, LEASE_METRIC)
        return Election(
            ClusterLeases(self.client),
            lease_namespace(self._options.leader_election_namespace),
            identity(self._hostname, self._entropy),
            clock=self._clock,
            entropy=self._entropy,
            told=leads.leads,
        )

    async def _api_groups(self) -> frozenset[str]:
        answer = await self.client.send(Request("GET", "/apis", repeatable="read"))
        return frozenset(group.name for group in msgspec.json.decode(answer.body, type=_Groups).groups)


def _waking(controller: Controller) -> Callable[[Key, bool], None]:
    def wake(key: Key, recheck: bool) -> None:
        controller.queue.add(key, recheck=recheck)

    return wake
