"""What `why` knows of an object: a few gets and lists with the user's own rights, and what these did not allow."""

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from eagleray.kube.client import Client
from eagleray.kube.requests import Selection
from eagleray.kube.resources import (
    EVENTS,
    GATEWAYS,
    HTTP_ROUTES,
    INGRESSES,
    JOBS,
    LEASES,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_CRON_JOBS,
    RAY_JOBS,
    RAY_SERVICES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.gateway import gateway_name, route_name
from eagleray.manifests.raycronjob import NAME_LABEL, RayCronJob
from eagleray.manifests.rayjob import RayJob
from eagleray.manifests.rayservice import INCREMENTAL, RayService, origin_labels
from eagleray.manifests.redis_cleanup import cleanup_name
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.raycluster.children import needs_account
from eagleray.raycluster.lostnodes import LostNodes
from eagleray.raycluster.planning import Around, Config, plan
from eagleray.raycluster.snapshot import Snapshot
from eagleray.raycluster.status import condition_of
from eagleray.raycluster.verdict import judge
from eagleray.raycluster.views import Child, JobView, PodView, pod_view
from eagleray.raycronjob.look import look_at
from eagleray.rayservice.look import SUSPENDING
from eagleray.runtime.actions import Create
from eagleray.runtime.leases import LEASE_NAME
from eagleray.why.eventing import last_time
from kubewire import errors
from kubewire.owners import controller_of, is_controlled_by
from kubewire.sources import Clock, Entropy

Object = dict[str, Any]
T = TypeVar("T")

# Nodes of unready Pods that are looked at; the others tell nothing new.
_MOST_NODES = 5
# Jobs of a schedule that are looked at in detail.
_MOST_JOBS = 3


class Foreign(NamedTuple):
    """An object that has the name of a child and belongs to somebody else."""

    kind: str
    place: str
    owner: str  # empty if nobody controls it


class Seen(NamedTuple):
    """A cluster and what was found around it."""

    snapshot: Snapshot
    now: datetime
    events: Sequence[Object] = ()  # about the cluster, oldest first
    leases: Sequence[Object] | None = ()  # those of operators; None if they may not be seen
    account_exists: bool = True  # the service account that the head's template names
    foreign: Sequence[Foreign] = ()
    unready_nodes: Sequence[str] = ()
    rejected: str = ""  # what is invalid about it
    unseen: Mapping[Resource, str] = {}  # what the user may not read, in words

    @property
    def cluster(self) -> Cluster:
        return self.snapshot.cluster


class SeenJob(NamedTuple):
    """A RayJob and what was found around it."""

    job: RayJob
    now: datetime
    cluster: Seen | None = None
    submitter: Object | None = None  # the Job of the RayJob's name, whoever made it
    submitter_pods: Sequence[PodView] = ()  # oldest first
    service: Object | None = None  # the one of the job's own name
    events: Sequence[Object] = ()  # about the job, oldest first
    leases: Sequence[Object] | None = ()
    rejected: str = ""
    unseen: Mapping[Resource, str] = {}


class SeenService(NamedTuple):
    """A RayService and what was found around it."""

    service: RayService
    now: datetime
    active: Seen | None = None
    pending: Seen | None = None
    clusters: Sequence[Object] = ()  # all that were made for it, also those that it has no use for any more
    gateway: Object | None = None
    route: Object | None = None
    children: Sequence[tuple[str, Object]] = ()  # what else has to go when it is suspended, by kind
    events: Sequence[Object] = ()  # about the service, oldest first
    leases: Sequence[Object] | None = ()
    rejected: str = ""
    unseen: Mapping[Resource, str] = {}


class SeenCronJob(NamedTuple):
    """A RayCronJob and its RayJobs."""

    cron: RayCronJob
    now: datetime
    jobs: Sequence[Object] = ()
    active: Sequence[SeenJob] = ()  # those of them that have not ended, the latest few
    leases: Sequence[Object] | None = ()
    rejected: str = ""
    unseen: Mapping[Resource, str] = {}


class Reader:
    """Reads for one user. What is forbidden is noted and counts as not there."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy
        self._unseen: dict[Resource, str] = {}

    async def raycluster(self, namespace: str, name: str) -> Seen:
        """Return a cluster with what is around it; NotFound or Forbidden if it cannot be had itself."""
        cluster = Cluster(await self._client.get(RAY_CLUSTERS, namespace, name))
        snapshot = await self._snapshot(cluster)
        account_exists = await self._account_exists(cluster)
        rejected = judge(cluster, ValidationConfig(), is_running=bool(snapshot.pods)).rejected
        foreign: Sequence[Foreign] = ()
        if cluster.metadata.get("deletionTimestamp"):
            snapshot = snapshot._replace(cleanup=await self._cleanup(cluster))
        elif rejected is None:  # of what is invalid no plan can be made
            snapshot, foreign = await self._with_children(snapshot, account_exists)
        return Seen(
            snapshot,
            self._clock.now(),
            await self._events(cluster.namespace, cluster.uid),
            await self._leases(),
            account_exists,
            foreign,
            await self._unready_nodes(snapshot.pods),
            rejected.message if rejected is not None else "",
            self._unseen,
        )

    async def rayjob(self, namespace: str, name: str) -> SeenJob:
        """Return a job with what is around it; NotFound or Forbidden if it cannot be had itself."""
        job = RayJob(await self._client.get(RAY_JOBS, namespace, name))
        of_submitter = Selection(namespace, f"batch.kubernetes.io/job-name={name}")
        pods = await self._allowed(PODS, self._client.list(PODS, of_submitter), [])
        return SeenJob(
            job,
            self._clock.now(),
            await self._cluster_named(namespace, job.cluster_name),
            await self._get(JOBS, namespace, name),
            sorted(map(pod_view, pods), key=lambda pod: pod.metadata.creation_timestamp),
            await self._get(SERVICES, namespace, naming.checked_name(f"{name}-head-svc")),
            await self._events(namespace, job.uid),
            await self._leases(),
            _rejected(job.obj),
            self._unseen,
        )

    async def raycronjob(self, namespace: str, name: str) -> SeenCronJob:
        """Return a schedule with its jobs; NotFound or Forbidden if it cannot be had itself."""
        cron = RayCronJob(await self._client.get(RAY_CRON_JOBS, namespace, name))
        listed = self._client.list(RAY_JOBS, Selection(namespace, f"{NAME_LABEL}={name}"))
        jobs = [job for job in await self._allowed(RAY_JOBS, listed, []) if is_controlled_by(job, cron.uid)]
        active = look_at(cron, jobs, self._clock.now()).active[-_MOST_JOBS:]
        found = [await self._job_named(namespace, child.name) for child in active]
        return SeenCronJob(
            cron,
            self._clock.now(),
            jobs,
            [job for job in found if job is not None],
            await self._leases(),
            _rejected(cron.obj),
            self._unseen,
        )

    async def _job_named(self, namespace: str, name: str) -> SeenJob | None:
        try:
            return await self.rayjob(namespace, name)
        except errors.NotFound:  # it went in between
            return None

    async def rayservice(self, namespace: str, name: str) -> SeenService:
        """Return a service with what is around it; NotFound or Forbidden if it cannot be had itself."""
        service = RayService(await self._client.get(RAY_SERVICES, namespace, name))
        labels = ",".join(f"{label}={value}" for label, value in origin_labels(name).items())
        made = self._client.list(RAY_CLUSTERS, Selection(namespace, labels))
        clusters = await self._allowed(RAY_CLUSTERS, made, [])
        has_way_in = service.upgrade_type == INCREMENTAL
        gateway = await self._get(GATEWAYS, namespace, gateway_name(service)) if has_way_in else None
        route = await self._get(HTTP_ROUTES, namespace, route_name(service)) if has_way_in else None
        ways = (("Gateway", gateway), ("HTTPRoute", route))
        return SeenService(
            service,
            self._clock.now(),
            await self._cluster_named(namespace, service.active.name),
            await self._cluster_named(namespace, service.pending.name),
            [one for one in clusters if is_controlled_by(one, service.uid)],
            gateway,
            route,
            [
                (kind, obj)
                for kind, obj in (*await self._services_of(service), *ways)
                if obj is not None and is_controlled_by(obj, service.uid)
            ],
            await self._events(namespace, service.uid),
            await self._leases(),
            _rejected(service.obj, is_running=bool(service.active.name)),
            self._unseen,
        )

    async def _services_of(self, service: RayService) -> Sequence[tuple[str, Object | None]]:
        """Return the Services that a service has; they are looked at when they have to go."""
        suspending = condition_of(service.status, SUSPENDING) or {}
        if not service.is_suspended and suspending.get("status") != "True":
            return ()
        names = (service.head_service_name, service.serve_service_name)
        return [("Service", await self._get(SERVICES, service.namespace, one)) for one in names]

    async def _cluster_named(self, namespace: str, name: str) -> Seen | None:
        try:
            return await self.raycluster(namespace, name) if name else None
        except errors.NotFound:
            return None
        except errors.Forbidden as refusal:
            self._note(RAY_CLUSTERS, refusal)
            return None

    async def _snapshot(self, cluster: Cluster) -> Snapshot:
        """Return the cluster with its Pods and head Services, and the Pods that are lost apart from the others."""
        labelled = Selection(cluster.namespace, f"{naming.CLUSTER_LABEL}={cluster.name}")
        found = [pod_view(pod) for pod in await self._allowed(PODS, self._client.list(PODS, labelled), [])]
        services = await self._allowed(SERVICES, self._client.list(SERVICES, labelled), [])
        snapshot = Snapshot(
            cluster,
            [
                pod
                for pod in found
                if pod.metadata.controller in ("", cluster.uid) and (pod.is_head or pod.is_worker)
            ],
            [
                service
                for service in services
                if service["metadata"]["labels"].get(naming.NODE_TYPE_LABEL) == "head"
                and (controller_of(service) or {}).get("uid", "") in ("", cluster.uid)
            ],
        )
        lost = await LostNodes(self._client, self._clock).among(snapshot)
        uids = {pod.metadata.uid for pod in lost}
        left = [pod for pod in snapshot.pods if pod.metadata.uid not in uids]
        return snapshot._replace(pods=left, lost=lost)

    async def _with_children(
        self, snapshot: Snapshot, account_exists: bool
    ) -> tuple[Snapshot, Sequence[Foreign]]:
        """Return the snapshot with the children that a plan asks for, and what stands in their place."""
        cluster = snapshot.cluster
        foreign: list[Foreign] = []
        children: dict[tuple[Resource, str], Child] = {}
        ingress: Object | None = None
        around = Around(account_exists=account_exists)
        for stage in plan(snapshot, Config(), around, self._entropy):
            for action in stage.actions:
                if not isinstance(action, Create) or action.resource == PODS:
                    continue
                resource, name = action.resource, action.obj["metadata"]["name"]
                found = await self._get(resource, cluster.namespace, name)
                if found is None:
                    continue
                owner = controller_of(found) or {}
                if owner.get("uid") != cluster.uid:
                    whose = f"{owner['kind']} {owner['name']}" if owner else ""
                    foreign.append(Foreign(resource.kind, f"{cluster.namespace}/{name}", whose))
                elif resource == INGRESSES:
                    ingress = found
                else:
                    children[resource, name] = msgspec.convert(found, Child)
        return snapshot._replace(children=children, ingress=ingress), foreign

    async def _cleanup(self, cluster: Cluster) -> JobView | None:
        job = await self._get(JOBS, cluster.namespace, cleanup_name(cluster))
        return msgspec.convert(job, JobView) if job is not None else None

    async def _account_exists(self, cluster: Cluster) -> bool:
        name = needs_account(cluster)
        if not name:
            return True
        found = await self._get(SERVICE_ACCOUNTS, cluster.namespace, name)
        return found is not None or SERVICE_ACCOUNTS in self._unseen

    async def _events(self, namespace: str, uid: str) -> Sequence[Object]:
        about = Selection(namespace, fields=f"regarding.uid={uid}")
        found = await self._allowed(EVENTS, self._client.list(EVENTS, about), [])
        return sorted(found, key=last_time)

    async def _leases(self) -> Sequence[Object] | None:
        """Return the Leases that operators lead by, wherever they are; None if the user may not see them."""
        try:
            return await self._client.list(LEASES, Selection(fields=f"metadata.name={LEASE_NAME}"))
        except errors.Forbidden:
            return None

    async def _unready_nodes(self, pods: Sequence[PodView]) -> Sequence[str]:
        """Return the nodes of Pods that run and are not ready, if these nodes are not ready themselves."""
        asked = dict.fromkeys(
            pod.spec.node_name
            for pod in pods
            if pod.spec.node_name and pod.is_running and not pod.is_running_and_not_unready
        )
        found = [(name, await self._get(NODES, "", name, quietly=True)) for name in list(asked)[:_MOST_NODES]]
        return [name for name, node in found if node is not None and not _is_ready(node)]

    async def _get(
        self, resource: Resource, namespace: str, name: str, *, quietly: bool = False
    ) -> Object | None:
        try:
            return await self._client.get(resource, namespace, name)
        except errors.NotFound:
            return None
        except errors.Forbidden as refusal:
            if not quietly:
                self._note(resource, refusal)
            return None

    async def _allowed(self, resource: Resource, asked: Awaitable[T], otherwise: T) -> T:
        """Return an answer; if it is forbidden, note so and return the other value."""
        try:
            return await asked
        except errors.Forbidden as refusal:
            self._note(resource, refusal)
            return otherwise

    def _note(self, resource: Resource, refusal: errors.Forbidden) -> None:
        self._unseen.setdefault(resource, f"{resource.plural} were not looked at: {refusal}")


def _rejected(obj: Object, *, is_running: bool = False) -> str:
    """Return the first rule for whose breach an object is refused; empty if there is none.

    What runs is refused only by rules that the reference has, too.
    """
    for problem in problems_of(obj, ValidationConfig()):
        if problem.severity == "error" and not (is_running and problem.stricter):
            return str(problem)
    return ""


def _is_ready(node: Object) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)
