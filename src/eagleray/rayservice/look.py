"""What a pass over a RayService sees, and what it can decide."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from eagleray.dashboard.orders import Order
from eagleray.dashboard.questions import Observation
from eagleray.kube.resources import Ref
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayservice import RayService, cluster_serve_name
from eagleray.manifests.settings import Settings
from eagleray.raycluster.status import condition_of
from eagleray.raycluster.views import PodView
from eagleray.runtime.actions import SILENT, Said, Stage, Tell
from kubewire.owners import is_controlled_by
from kubewire.sources import Entropy

Object = dict[str, Any]

READY, UPGRADING, ROLLING_BACK = "Ready", "UpgradeInProgress", "RollbackInProgress"
SUSPENDING, SUSPENDED = "Suspending", "Suspended"


class Config(NamedTuple):
    """What a decision depends on besides the service."""

    settings: Settings = Settings()
    zero_downtime: bool = True  # a new cluster replaces the old one where the service names no strategy
    has_gateways: bool = True  # whether the cluster knows Gateways and HTTPRoutes

    def gate(self, name: str) -> bool:
        return self.settings.gates.enabled(name)


class Put(NamedTuple):
    """A Serve configuration that a cluster has taken: its text, with which capacity, and when."""

    text: str
    capacity: int | None
    at: datetime


class Seen(NamedTuple):
    """What is seen of one of the two clusters of a service."""

    obj: Object | None = None
    heads: Sequence[PodView] = ()
    serve: Observation | None = None  # what Ray says of the applications
    health: Observation | None = None  # whether the Serve proxy on the head takes traffic
    put: Put | None = None  # what we have handed over last; forgotten when the operator is started again
    put_failure: str = ""  # why handing over what is wanted now failed
    is_put_open: bool = (
        False  # whether something was handed over since `put` that may or may not have been taken
    )
    deployed: Mapping[str, Any] | None = None  # the configuration that the cluster itself says it runs
    takes_requests: bool = True  # whether any of its Pods is there for those that come by its serve Service

    @property
    def cluster(self) -> Cluster | None:
        return Cluster(self.obj) if self.obj is not None else None

    @property
    def head(self) -> PodView | None:
        """The one head Pod; None while there is none, or more than one."""
        return self.heads[0] if len(self.heads) == 1 else None


NOTHING = Seen()


class Look(NamedTuple):
    """One RayService with everything that belongs to it, at one moment.

    `clusters` are all that carry the service's labels, `services` all Services of interest by name, `slices` the
    EndpointSlices of the serve Services.
    """

    service: RayService
    now: datetime
    entropy: Entropy  # for names
    config: Config = Config()
    active: Seen = NOTHING
    pending: Seen = NOTHING
    clusters: Sequence[Object] = ()
    services: Mapping[str, Object] = {}
    slices: Sequence[Object] = ()
    gateway: Object | None = None
    route: Object | None = None

    @property
    def is_incremental(self) -> bool:
        return self.service.is_incremental(self.config.settings.gates)

    def condition(self, kind: str) -> Object:
        """Return a condition as it was written last; an empty one if it was not."""
        return condition_of(self.service.status, kind) or {}

    def is_true(self, kind: str) -> bool:
        return self.condition(kind).get("status") == "True"

    @property
    def is_upgrading(self) -> bool:
        """Whether it is on record that a second cluster is to take over."""
        return self.is_true(UPGRADING)

    @property
    def is_rolling_back(self) -> bool:
        return self.is_true(ROLLING_BACK)

    @property
    def dangling(self) -> Sequence[Object]:
        """The clusters that the service has no use for any more."""
        used = (self.service.active.name, self.service.pending.name)
        return [cluster for cluster in self.clusters if cluster["metadata"]["name"] not in used]

    def own(self, obj: Object | None) -> Object | None:
        """Return an object if it was made for this service."""
        return obj if obj is not None and is_controlled_by(obj, self.service.uid) else None

    @property
    def head_service(self) -> Object | None:
        return self.own(self.services.get(self.service.head_service_name))

    @property
    def serve_service(self) -> Object | None:
        """The Service in front of the applications; with incremental upgrades that of the cluster that is served."""
        if not self.is_incremental:
            return self.own(self.services.get(self.service.serve_service_name))
        served = selected_cluster(self.head_service)
        return self.services.get(cluster_serve_name(served)) if served else None


class Handover(NamedTuple):
    """A configuration to be handed to Serve on a cluster; once it has been taken, this is what has been put."""

    cluster: str
    order: Order
    text: str
    capacity: int | None
    said: Said = SILENT


class Decision(NamedTuple):
    """What to do now: actions first, then the status is to become this one, then Serve is handed configurations.

    Without a status the present one stays. The status says what was seen, and nothing of what the actions are to bring
    about, so that it is true even if they fail. If anything is done or changes, another look follows; otherwise one
    after `again` seconds, should nothing happen before. `complaint` is what cannot be done until somebody changes
    something; it comes last, since it keeps nothing else from being done.
    """

    status: Object | None = None
    stages: Sequence[Stage] = ()
    handovers: Sequence[Handover] = ()
    again: float | None = None
    complaint: Stage | None = None

    @property
    def acts(self) -> bool:
        """Whether it changes anything besides the status."""
        return any(not isinstance(action, Tell) for stage in self.stages for action in stage.actions)


def selected_cluster(service: Object | None) -> str:
    """Return the name of the cluster that a Service leads to; empty if there is no Service."""
    selector = ((service or {}).get("spec") or {}).get("selector") or {}
    return selector.get("ray.io/cluster") or ""


def ref_of(obj: Object) -> Ref:
    """Return the very object, whatever its version is by now."""
    return Ref.of(obj)._replace(version="")


def place_of(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def rounded_up(moment: datetime) -> datetime:
    """Return the first whole second that is not before: a record in seconds must not end a wait early."""
    return moment.replace(microsecond=0) + timedelta(seconds=1 if moment.microsecond else 0)


def soonest(*waits: float | None) -> float | None:
    """Return the shortest of several waits; None if there is none."""
    return min((wait for wait in waits if wait is not None), default=None)
