"""What a pass over a RayJob sees, and what it can decide."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from eagleray.dashboard.orders import Order, Outcome
from eagleray.dashboard.questions import Observation
from eagleray.dashboard.words import is_terminal
from eagleray.kube.resources import Ref
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import HTTP, SIDECAR, RayJob
from eagleray.manifests.settings import Settings
from eagleray.raycluster.views import Child, JobView, PodView
from eagleray.runtime.actions import Stage, Tell
from eagleray.schedulers.interface import NoScheduler, Scheduler
from kubewire.sources import Entropy
from kubewire.times import parse_time

Object = dict[str, Any]


class Config(NamedTuple):
    """What a decision depends on besides the job."""

    settings: Settings = Settings()
    scheduler: Scheduler = NoScheduler()
    transition_grace_seconds: float = 300.0
    status_check_seconds: float = 300.0
    delete_rayjob: bool = False  # with its cluster, when shutdownAfterJobFinishes asks for the latter

    def gate(self, name: str) -> bool:
        return self.settings.gates.enabled(name)


class Look(NamedTuple):
    """One RayJob with everything that belongs to it, at one moment."""

    job: RayJob
    now: datetime
    entropy: Entropy  # for names
    config: Config = Config()
    cluster: Object | None = None  # the one of the attempt's name, whoever made it
    submitter: JobView | None = None
    service: Object | None = None
    heads: Sequence[PodView] = ()
    pods: Sequence[PodView] = ()  # of the attempt's cluster, also when the cluster itself is gone
    children: Mapping[str, Child] = {}
    info: Observation | None = None  # what Ray says of the job
    session: Observation | None = None  # which head answers
    outcome: Outcome | None = None  # what came of our own submission

    @property
    def is_own_cluster(self) -> bool:
        """Whether the cluster was made for this job."""
        return self.cluster is not None and _controller(self.cluster) == self.job.uid

    @property
    def ray_cluster(self) -> Cluster | None:
        return Cluster(self.cluster) if self.cluster is not None else None

    @property
    def has_submitter(self) -> bool:
        """Whether something other than the operator hands the job to Ray and follows it."""
        return self.job.mode not in (HTTP, "InteractiveMode")

    @property
    def finished_at(self) -> datetime | None:
        """When the submitter ended; None while it goes on, or where there is none."""
        if self.job.mode == SIDECAR:
            return _sidecar_end(self.heads)
        if self.submitter is None:
            return None
        ended = self.submitter.ending
        return parse_time(ended.last_transition_time) if ended and ended.last_transition_time else None

    @property
    def is_news_of_the_end(self) -> bool:
        """Whether Ray has been asked, whatever came of it, since the submitter ended; true while none has.

        What was known before says nothing: the job may have come and gone since. An end is told in whole seconds.
        """
        ended = self.finished_at
        if ended is None or is_terminal(self.job.job_status):
            return True
        return self.info is not None and self.info.at >= ended + timedelta(seconds=1)

    def seconds_since(self, stamp: str | None) -> float | None:
        """Return how long ago a time of the status was; None if it is not set."""
        return (self.now - parse_time(stamp)).total_seconds() if stamp else None


class Cause(NamedTuple):
    """What a job waits for: a word, and a sentence that a user can act on."""

    reason: str
    message: str


class Decision(NamedTuple):
    """What to do now: actions first, then a status; then perhaps something that is asked of Ray.

    `fields` of the status become these, None removes one. If anything is done or changes, another look follows.
    """

    to: str | None = None
    fields: Mapping[str, Any] = {}
    stages: Sequence[Stage] = ()
    orders: Sequence[Order] = ()
    cause: Cause | None = None
    again: float | None = None
    # Whether something suggests that Ray has news: it is asked soon.
    hurries: bool = False
    # Whether the wait is likely to be over before anybody could read what it is for: it is not told.
    is_brief: bool = False

    @property
    def acts(self) -> bool:
        """Whether it changes anything besides the status."""
        return any(not isinstance(action, Tell) for stage in self.stages for action in stage.actions)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is to be done but to wait, and perhaps to tell for what."""
        return self.to is None and not self.fields and not self.acts


def ref_of(obj: Object) -> Ref:
    """Return the very object, whatever its version is by now."""
    return Ref.of(obj)._replace(version="")


def _controller(obj: Object) -> str:
    references = obj["metadata"].get("ownerReferences") or ()
    return next((str(one["uid"]) for one in references if one.get("controller")), "")


def _sidecar_end(heads: Sequence[PodView]) -> datetime | None:
    for head in heads:
        for status in head.status.container_statuses:
            ended = status.state.terminated
            if status.name == "ray-job-submitter" and ended is not None and ended.finished_at:
                return parse_time(ended.finished_at)
    return None
