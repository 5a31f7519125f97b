"""An operator put together from its options and a way to a cluster, and its whole life."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from eagleray.dashboard.address import Address
from eagleray.dashboard.carriers import Carrier, ProxyCarrier
from eagleray.dashboard.client import DIRECT, PROXIED, Dashboard
from eagleray.dashboard.http import HttpCarrier
from eagleray.dashboard.orders import Owner
from eagleray.dashboard.poller import Limits, Poller
from eagleray.dashboard.tokens import SecretTokens
from eagleray.kube.cache import Change
from eagleray.kube.client import Client
from eagleray.kube.http import HttpTransport
from eagleray.kube.informers import Informers
from eagleray.kube.requests import Request, Selection, list_page
from eagleray.kube.resources import (
    GATEWAYS,
    HTTP_ROUTES,
    RAY_CLUSTERS,
    RAY_CRON_JOBS,
    RAY_JOBS,
    RAY_SERVICES,
    Key,
    Object,
    Resource,
)
from eagleray.kube.transport import Transport
from eagleray.kube.writer import Writer
from eagleray.manifests.rayservice import INCREMENTAL_GATE
from eagleray.manifests.settings import settings_of
from eagleray.operator.adapters import ClusterEvents, ClusterLeases, PrintedEvents, RequestCounts
from eagleray.operator.fence import Fenced
from eagleray.rayapi.rules import ValidationConfig
from eagleray.raycluster import controller as raycluster
from eagleray.raycluster.caches import Caches as ClusterCaches
from eagleray.raycluster.metrics import ClusterMetrics
from eagleray.raycluster.planning import Config as ClusterConfig
from eagleray.raycronjob import controller as raycronjob
from eagleray.raycronjob.caches import Caches as CronCaches
from eagleray.rayjob import controller as rayjob
from eagleray.rayjob.caches import Caches as JobCaches
from eagleray.rayjob.look import Config as JobConfig
from eagleray.rayjob.metrics import JobMetrics
from eagleray.rayservice import controller as rayservice
from eagleray.rayservice.caches import Caches as ServiceCaches
from eagleray.rayservice.look import Config as ServiceConfig
from eagleray.rayservice.metrics import ServiceMetrics
from eagleray.runtime.controller import Controller
from eagleray.runtime.events import Recorder
from eagleray.runtime.leases import Election, identity, lease_namespace
from eagleray.runtime.manager import EXIT_FAILURE, EXIT_OK, FILL_SECONDS, Caches, Manager
from eagleray.runtime.metrics import Registry
from eagleray.runtime.options import Options
from eagleray.runtime.outcomes import Outcome
from eagleray.runtime.queue import WorkQueue
from eagleray.runtime.series import ClientMetrics, ControllerMetrics, LeaderMetrics, collect_process
from eagleray.schedulers.choosing import SchedulerError, choose, needs
from eagleray.schedulers.interface import Scheduler
from eagleray.schedulers.made import Made
from kubewire import errors
from kubewire.sources import Clock, Entropy

if TYPE_CHECKING:
    from eagleray.webhooks.service import Webhooks

log = logging.getLogger(__name__)

LEASE_METRIC = "ray-operator-leader"
_ASK_AGAIN_AFTER = 5.0
# How often to look whether kinds have come that were missing.
_LOOK_AGAIN_AFTER = 15.0
# What `run` returns instead of an exit code when more is served than at its start.
EXIT_AGAIN = -1
# Any of these says that the cluster is OpenShift.
_OPENSHIFT = frozenset(("route.openshift.io", "security.openshift.io", "config.openshift.io"))


class _Groups(msgspec.Struct):
    class Group(msgspec.Struct):
        name: str

    groups: list[Group]


class _Resources(msgspec.Struct):
    class Resource(msgspec.Struct):
        kind: str

    resources: list[Resource]


class _Found(NamedTuple):
    """What a server was found to serve, and why it will not do, if so."""

    groups: frozenset[str]
    kinds: frozenset[str]
    too_old: str
    has_gateways: bool
    scheduling: frozenset[Resource]  # of what a batch scheduler needs


class _ServerVersion(msgspec.Struct):
    major: str
    minor: str


# From here on a single container of a Pod can be restarted by rules of its own.
_RESTARTS_GATE = "SidecarSubmitterRestart"
_RESTARTS_FROM = (1, 35)


def _number(text: str) -> int:
    """Return a part of a version; some vendors add a plus sign."""
    digits = text.rstrip("+")
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 9 else 0


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
        carrier: Carrier | None = None,
        begins_anew: bool = False,
    ) -> None:
        self._options = options
        self._begins_anew = begins_anew
        self._clock = clock
        self._entropy = entropy
        self._hostname = hostname
        self._printed = printed
        self.registry = Registry()
        counts = ClientMetrics(self.registry)
        observer = RequestCounts(counts)
        if isinstance(transport, HttpTransport):
            transport.on_resolved = counts.resolved
        self.webhooks: Webhooks | None = None
        self._webhook_client = Client(transport, clock, entropy, observer=observer)
        self._election: Election | None = None
        if options.leader_election and not options.dry_run:
            # With limits of its own: however much there is to write, the Lease is renewed in time.
            leases = ClusterLeases(Client(transport, clock, entropy, observer=observer))
            self._election = election = self._elected_by(leases)
            transport = Fenced(transport, lambda: election.holds)
        self.client = Client(
            transport, clock, entropy, qps=options.qps, burst=options.burst, observer=observer
        )
        self.informers = Informers(self.client, clock, entropy, namespaces=options.watch_namespaces)
        self.manager: Manager | None = None
        # The way to Ray: a given one, through the API server, or straight.
        self._carrier = carrier or (
            ProxyCarrier(transport) if options.use_kubernetes_proxy else HttpCarrier()
        )
        self._tokens = SecretTokens(self.client)
        self._queues: dict[str, WorkQueue] = {}
        self._poller = Poller(
            self._dashboard,
            clock,
            entropy,
            self._wake_owner,
            Limits(
                at_once=options.dashboard_poll_concurrency,
                interval=options.dashboard_poll_interval,
                calm_interval=options.dashboard_calm_interval,
                cache_size=options.dashboard_cache_size,
                cache_age=options.dashboard_cache_expiry,
            ),
        )

    async def run(self, stop: asyncio.Event) -> int:
        """Run until `stop` is set, or until there is a reason to give up; returns the exit code of the process.

        EXIT_AGAIN instead of one says that a new operator would find kinds that this one did not (`begins_anew`).
        """
        found = await self._discover(stop)
        if found is None:
            return EXIT_OK if stop.is_set() else EXIT_FAILURE
        if found.too_old:
            log.error("%s", found.too_old)
            return EXIT_FAILURE
        try:
            scheduler = choose(self._options, found.scheduling, self.informers)
        except SchedulerError as missing:
            log.error("%s", missing)
            return EXIT_FAILURE
        self._tell_missing(found.kinds)
        self.manager = self._assembled(found, scheduler)
        try:
            async with self._webhooks_served(self.manager), self._until_more_is_served(found, stop) as ended:
                code = await self.manager.run(ended)
                return EXIT_AGAIN if code == EXIT_OK and not stop.is_set() else code
        except OSError as refusal:
            log.error("%s", refusal)
            return EXIT_FAILURE
        finally:
            await self._poller.close()

    async def _discover(self, stop: asyncio.Event) -> "_Found | None":
        """Return what the server serves; None if it could not be asked for as long as caches may take to fill."""
        deadline = self._clock.monotonic() + FILL_SECONDS
        while not stop.is_set():
            try:
                groups = await self._api_groups()
                return _Found(
                    groups,
                    await self._ray_kinds(),
                    await self._too_old(),
                    await self._has_gateways(groups),
                    await self._served(needs(self._options)),
                )
            except (errors.ApiError, OSError) as refusal:
                log.error("The API server does not say what it serves: %s", refusal)
            if self._clock.monotonic() >= deadline:
                return None
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_AGAIN_AFTER):
                    await stop.wait()
        return None

    @asynccontextmanager
    async def _until_more_is_served(self, found: _Found, stop: asyncio.Event) -> AsyncIterator[asyncio.Event]:
        """Give an event that comes with `stop`, or when a kind is served that was missed at the start."""
        if not self._begins_anew or not self._misses(found):
            yield stop
            return
        ended = asyncio.Event()

        async def end_after(happening: Awaitable[object]) -> None:
            await happening
            ended.set()

        tasks = [asyncio.create_task(end_after(one)) for one in (stop.wait(), self._more_is_served(found))]
        try:
            yield ended
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _misses(self, found: _Found) -> bool:
        lacks_kinds = any(one.kind not in found.kinds for one in self._wanted_kinds())
        return lacks_kinds or (self._options.gates.enabled(INCREMENTAL_GATE) and not found.has_gateways)

    async def _more_is_served(self, found: _Found) -> None:
        """Return once something that was missed at the start is served."""
        while True:
            await self._clock.sleep(_LOOK_AGAIN_AFTER)
            try:
                kinds = await self._ray_kinds()
                has_gateways = await self._has_gateways(await self._api_groups())
            except (errors.ApiError, OSError) as refusal:
                log.debug("The API server does not say what it serves: %s", refusal)
                continue
            more = sorted(kinds - found.kinds) + ["Gateway"] * (has_gateways > found.has_gateways)
            if more:
                log.info("Beginning anew, because this is served now: %s", ", ".join(more))
                return

    async def close(self) -> None:
        """Let go of the connections."""
        await self._carrier.close()
        await self.client.close()

    def _assembled(self, found: _Found, scheduler: Scheduler) -> Manager:
        options = self._options
        groups, kinds = found.groups, found.kinds
        collect_process(self.registry, self._clock.now().timestamp())
        metrics = ControllerMetrics(self.registry)
        writer = Writer(self.client, self.informers)
        routes = bool(_OPENSHIFT & groups) and not options.environment.ingress_on_openshift
        clusters = ClusterCaches(
            self.informers,
            routes=routes,
            claims=options.gates.enabled("GCSFaultToleranceEmbeddedStorage"),
        )
        built = [self._ray_clusters(metrics, writer, clusters, scheduler, routes=routes)]
        if "RayJob" in kinds and not options.dry_run:
            jobs = JobCaches(self.informers, clusters)
            built.append(self._ray_jobs(metrics, writer, jobs, scheduler))
            if "RayCronJob" in kinds and options.gates.enabled("RayCronJob"):
                built.append(self._ray_cron_jobs(metrics, writer, jobs))
        if "RayService" in kinds and not options.dry_run:
            services = ServiceCaches(self.informers, clusters, gateways=found.has_gateways)
            built.append(self._ray_services(metrics, writer, services))
        for made in scheduler.watches():
            made.listen(self._scheduling_changed)
        controllers = [controller for controller, _ in built]
        recorders = [recorder for _, recorder in built]
        return Manager(
            controllers,
            recorders,
            Caches(self.informers.start, lambda: self.informers.problems, self.informers.stop),
            self.registry,
            election=self._election,
            metrics_address=options.metrics_address,
            probe_address=options.probe_address,
        )

    @asynccontextmanager
    async def _webhooks_served(self, manager: Manager) -> AsyncIterator[None]:
        """Serve the webhooks if they are asked for; the operator is ready only when they can be."""
        options = self._options
        address = options.webhook_address
        if address is None or not options.environment.webhooks or options.dry_run:
            yield
            return
        # Most operators go without, and certificates take long to import.
        from eagleray.webhooks.service import Place, Webhooks

        namespace = lease_namespace("", otherwise=options.leader_election_namespace or "default")
        place = Place(
            address,
            Path(options.webhook_certificates),
            Key(namespace, options.webhook_service),
            options.webhook_configuration,
            options.environment.cluster_domain,
        )
        self.webhooks = webhooks = Webhooks(
            place, self._webhook_client, self.registry, clock=self._clock, entropy=self._entropy
        )
        manager.readiness.add("webhooks", webhooks.check)
        try:
            await webhooks.start()
            yield
        finally:
            await webhooks.stop()

    def _ray_clusters(
        self,
        metrics: ControllerMetrics,
        writer: Writer,
        caches: ClusterCaches,
        scheduler: Scheduler,
        *,
        routes: bool,
    ) -> tuple[Controller, Recorder]:
        options = self._options
        config = ClusterConfig(
            settings=settings_of(options),
            scheduler=scheduler,
            redis_cleanup=options.environment.redis_cleanup,
            random_pod_delete=options.environment.random_pod_delete,
            routes=routes,
            resync_seconds=options.environment.raycluster_requeue_seconds,
        )
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
        controller = self._controller(raycluster.NAME, "RayCluster", clusters, recorder, metrics)
        caches.wake_by(_waking(controller))
        return controller, recorder

    def _ray_jobs(
        self, metrics: ControllerMetrics, writer: Writer, caches: JobCaches, scheduler: Scheduler
    ) -> tuple[Controller, Recorder]:
        options = self._options
        config = JobConfig(
            settings=settings_of(options),
            scheduler=scheduler,
            transition_grace_seconds=options.environment.rayjob_transition_grace_seconds,
            status_check_seconds=options.environment.rayjob_status_check_seconds,
            delete_rayjob=options.delete_rayjob,
        )
        recorder = self._recorder(rayjob.NAME)
        jobs = rayjob.RayJobs(
            caches,
            self._poller,
            writer,
            recorder,
            config,
            clock=self._clock,
            entropy=self._entropy,
            metrics=JobMetrics(self.registry, caches.jobs) if options.enable_metrics else None,
        )
        controller = self._controller(rayjob.NAME, "RayJob", jobs, recorder, metrics)
        caches.wake_by(_waking(controller))
        return controller, recorder

    def _ray_cron_jobs(
        self, metrics: ControllerMetrics, writer: Writer, jobs: JobCaches
    ) -> tuple[Controller, Recorder]:
        caches = CronCaches(self.informers, jobs.jobs)
        recorder = self._recorder(raycronjob.NAME)
        rules = ValidationConfig(self._options.gates)
        crons = raycronjob.RayCronJobs(caches, writer, recorder, rules, clock=self._clock)
        controller = self._controller(raycronjob.NAME, "RayCronJob", crons, recorder, metrics)
        caches.wake_by(_waking(controller))
        return controller, recorder

    def _ray_services(
        self, metrics: ControllerMetrics, writer: Writer, caches: ServiceCaches
    ) -> tuple[Controller, Recorder]:
        options = self._options
        config = ServiceConfig(
            settings=settings_of(options),
            zero_downtime=options.environment.zero_downtime,
            has_gateways=caches.gateways is not None,
        )
        recorder = self._recorder(rayservice.NAME)
        services = rayservice.RayServices(
            caches, self._poller, writer, recorder, config, clock=self._clock, entropy=self._entropy
        )
        if options.enable_metrics:
            ServiceMetrics(self.registry, caches.rayservices)
        controller = self._controller(rayservice.NAME, "RayService", services, recorder, metrics)
        caches.wake_by(_waking(controller))
        return controller, recorder

    def _controller(
        self, name: str, kind: str, reconciler: "_Reconciler", recorder: Recorder, metrics: ControllerMetrics
    ) -> Controller:
        controller = Controller(
            name,
            kind,
            reconciler.reconcile,
            find=reconciler.find,
            events=recorder,
            metrics=metrics,
            entropy=self._entropy,
            cap=self._options.reconcile_concurrency,
        )
        self._queues[kind] = controller.queue
        return controller

    def _dashboard(self, address: Address) -> Dashboard:
        patience = PROXIED if self._options.use_kubernetes_proxy else DIRECT
        return Dashboard(address, self._carrier, self._tokens, patience)

    def _wake_owner(self, owner: Owner) -> None:
        """Have the object looked at that some news from Ray is about."""
        self._queues[owner.kind].add(owner.key)

    def _scheduling_changed(self, change: Change[Made]) -> None:
        """Have the objects looked at for which a scheduler's object was made; what we wrote ourselves is no news."""
        made = change.new or change.old
        if made is None or change.old == change.new or (change.cause == "write" and change.new is not None):
            return
        for owner in made.metadata.owner_references:
            if owner.kind in self._queues:
                key = Key(change.key.namespace, owner.name)
                self._queues[owner.kind].add(key, recheck=change.cause == "list")

    def _recorder(self, name: str) -> Recorder:
        dry = self._options.dry_run
        writer = PrintedEvents(self._printed) if dry else ClusterEvents(self.client)
        return Recorder(writer, self._clock, f"{name}-controller", self._hostname)

    def _elected_by(self, leases: ClusterLeases) -> Election:
        leads = LeaderMetrics(self.registry, LEASE_METRIC)
        return Election(
            leases,
            lease_namespace(self._options.leader_election_namespace),
            identity(self._hostname, self._entropy),
            clock=self._clock,
            entropy=self._entropy,
            told=leads.leads,
        )

    async def _api_groups(self) -> frozenset[str]:
        answer = await self.client.send(Request("GET", "/apis", repeatable="read"))
        return frozenset(group.name for group in msgspec.json.decode(answer.body, type=_Groups).groups)

    async def _served(self, wanted: Sequence[Resource]) -> frozenset[Resource]:
        """Return which of these the server serves."""
        kinds: dict[str, set[str]] = {}
        for version in dict.fromkeys(one.api_version for one in wanted):
            try:
                answer = await self.client.send(Request("GET", f"/apis/{version}", repeatable="read"))
            except errors.NotFound:
                kinds[version] = set()
            else:
                found = msgspec.json.decode(answer.body, type=_Resources).resources
                kinds[version] = {one.kind for one in found}
        return frozenset(one for one in wanted if one.kind in kinds[one.api_version])

    async def _has_gateways(self, groups: frozenset[str]) -> bool:
        """Return whether traffic can be shared out here; without the gate nobody wants to."""
        if GATEWAYS.group not in groups or not self._options.gates.enabled(INCREMENTAL_GATE):
            return False
        wanted = (GATEWAYS, HTTP_ROUTES)
        return (await self._served(wanted)).issuperset(wanted)

    async def _too_old(self) -> str:
        """Return why the server is too old for what was asked for; empty if it is not."""
        if not self._options.gates.enabled(_RESTARTS_GATE):
            return ""
        answer = await self.client.send(Request("GET", "/version", repeatable="read"))
        found = msgspec.json.decode(answer.body, type=_ServerVersion)
        version = (_number(found.major), _number(found.minor))
        if version >= _RESTARTS_FROM:
            return ""
        least = ".".join(map(str, _RESTARTS_FROM))
        return (
            f"Feature gate {_RESTARTS_GATE} needs Kubernetes {least}, and this is"
            f" {found.major}.{found.minor}; leave the gate out"
        )

    def _wanted_kinds(self) -> list[Resource]:
        """Return the kinds of ours that are to be looked after."""
        crons = [RAY_CRON_JOBS] if self._options.gates.enabled("RayCronJob") else []
        return [RAY_CLUSTERS, RAY_JOBS, RAY_SERVICES, *crons]

    async def _ray_kinds(self) -> frozenset[str]:
        """Return the kinds of ours that the server knows."""
        answer = await self.client.send(Request("GET", "/apis/ray.io/v1", repeatable="read"))
        found = {one.kind for one in msgspec.json.decode(answer.body, type=_Resources).resources}
        for resource in self._wanted_kinds():
            # Right after its CRD has come, a kind is served some seconds before the server tells of it.
            if resource.kind not in found and await self._has_list(resource):
                found.add(resource.kind)
        return frozenset(found)

    def _tell_missing(self, kinds: frozenset[str]) -> None:
        """Tell which kinds are not looked after, because the server does not know them."""
        way_out = "install its CRD" if self._begins_anew else "install its CRD and start the operator again"
        for resource in self._wanted_kinds():
            if resource.kind not in kinds:
                log.warning("%s is not served here; %s", resource.kind, way_out)

    async def _has_list(self, resource: Resource) -> bool:
        """Return whether there is a list of these objects, where we are to look after them."""
        places = Selection(next(iter(self._options.watch_namespaces), ""))
        try:
            await self.client.send(list_page(resource, places, limit=1))
        except errors.NotFound:
            return False
        return True


class _Reconciler(Protocol):
    """What a kind's controller consists of."""

    async def reconcile(self, key: Key) -> Outcome: ...

    def find(self, key: Key) -> Object | None: ...


def _waking(controller: Controller) -> Callable[[Key, bool], None]:
    def wake(key: Key, recheck: bool) -> None:
        controller.queue.add(key, recheck=recheck)

    return wake
