"""Following a run: watches what was made for it, tells the story of it, and shows what its jobs print.

It needs nothing but a client, so that a cluster of this process is followed as one behind HTTPS is.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from eagleray.kube.cache import Change
from eagleray.kube.client import Client
from eagleray.kube.informers import Informer, Informers
from eagleray.kube.resources import (
    EVENTS,
    JOBS,
    PODS,
    RAY_CLUSTERS,
    RAY_CRON_JOBS,
    RAY_JOBS,
    RAY_SERVICES,
    SERVICES,
    Object,
    Resource,
)
from eagleray.kube.transport import Transport
from eagleray.kube.views import whole
from eagleray.local.doors import Door, doors_of
from eagleray.local.output import JobLogs, JobOutput
from eagleray.local.screen import LabelledOutput, Screen
from eagleray.local.story import Picture, Told, is_up, news, stage
from eagleray.manifests.rayjob import RayJob
from eagleray.rayjob.status import TERMINAL
from kubewire.sources import Clock, Entropy

_REPLICA_SETS: Final = Resource("apps", "v1", "replicasets", "ReplicaSet")
# Changes that come together are told together.
_TOGETHER: Final = 0.03
# What stands between an object of ours and its Pods, from the outside to the inside: owners come before what they own.
_WATCHED: Final = (
    RAY_CRON_JOBS,
    RAY_SERVICES,
    RAY_JOBS,
    RAY_CLUSTERS,
    JOBS,
    _REPLICA_SETS,
    PODS,
    SERVICES,
)

# What objects of ours may lead to. A cluster that serves no RayCronJobs need not be asked about them.
_LEADS_TO: Final[Mapping[str, tuple[Resource, ...]]] = {
    RAY_CRON_JOBS.kind: (RAY_CRON_JOBS, RAY_JOBS, RAY_CLUSTERS),
    RAY_SERVICES.kind: (RAY_SERVICES, RAY_CLUSTERS),
    RAY_JOBS.kind: (RAY_JOBS, RAY_CLUSTERS),
    RAY_CLUSTERS.kind: (RAY_CLUSTERS,),
}

Forward = Callable[[str, int, int], Awaitable[int]]


class Ended(NamedTuple):
    """A RayJob at its end; `is_gone` if it was deleted before that was seen."""

    job: RayJob
    is_gone: bool = False


class Follower:
    """Follows some objects, the roots, as the server has them, and whatever is owned by them.

    `forward` opens a way to an address inside of the cluster, where there is one.
    """

    def __init__(
        self,
        roots: Sequence[Object],
        client: Client,
        transport: Transport,
        screen: Screen,
        *,
        clock: Clock,
        entropy: Entropy,
        verbose: bool = False,
        forward: Forward | None = None,
    ) -> None:
        self._screen = screen
        self._clock = clock
        self._verbose = verbose
        self._forward = forward
        self._logs = JobLogs(client, transport)
        namespaces = dict.fromkeys(str(obj["metadata"].get("namespace") or "default") for obj in roots)
        self._informers = Informers(client, clock, entropy, namespaces=namespaces)
        self._watched = self._watches({obj["kind"] for obj in roots})
        self._changed = asyncio.Event()
        self._roots = {obj["metadata"]["uid"] for obj in roots}
        self._told: Told = {}
        self._jobs: dict[str, RayJob] = {}  # the root jobs as they were last seen, by uid
        self._passed: list[Object] = []  # jobs in a state that may be over before it is looked at
        self._outputs: dict[str, JobOutput] = {}
        self._labels: dict[str, LabelledOutput] = {}
        self._printing: dict[str, asyncio.Task[None]] = {}
        self._doors: dict[str, Door] = {}
        self._urls: dict[str, str] = {}
        jobs = [RayJob(obj) for obj in roots if obj["kind"] == RAY_JOBS.kind]
        for job in jobs:
            self._jobs[job.uid] = job
            self._outputs[job.uid] = self._output_of(job, among=len(jobs))

    def _watches(self, kinds: Collection[str]) -> Mapping[Resource, Informer[Object]]:
        """Return what to watch for objects of some kinds, in the order of ownership."""
        of_ray = {resource for kind in kinds for resource in _LEADS_TO.get(kind, ())}
        watched = {
            resource: self._informers.add(resource, whole(resource))
            for resource in (*_WATCHED, EVENTS)
            if resource.group != RAY_JOBS.group or resource in of_ray
        }
        for informer in watched.values():
            informer.cache.listen(lambda _change: self._changed.set())
        if RAY_JOBS in watched:
            watched[RAY_JOBS].cache.listen(self._see)
        return watched

    @asynccontextmanager
    async def following(self) -> AsyncIterator["Follower"]:
        """Follow until the block ends."""
        await self._informers.start()
        self._printing = {
            uid: asyncio.create_task(output.run(), name=f"output of {self._jobs[uid].place}")
            for uid, output in self._outputs.items()
        }
        try:
            yield self
        finally:
            for task in self._printing.values():
                task.cancel()
            await asyncio.gather(*self._printing.values(), return_exceptions=True)
            for label in self._labels.values():
                label.close()
            await self._informers.stop()

    async def until_jobs_ended(self) -> Sequence[Ended]:
        """Tell what happens until all jobs have ended and all that they printed is shown; return how they ended."""
        while True:
            await self._tell()
            if all(self._has_ended(uid) for uid in self._jobs):
                return [Ended(job, is_gone=self._is_gone(uid)) for uid, job in self._jobs.items()]
            await self._next()

    async def until_settled(self) -> Sequence[Ended]:
        """As `until_jobs_ended`, and until all clusters and services among the objects are ready."""
        ended = await self.until_jobs_ended()
        while not is_up(self.picture(), self._roots):
            await self._next()
            await self._tell()
        return ended

    async def forever(self) -> None:
        """Tell what happens until cancelled."""
        while True:
            await self._tell()
            await self._next()

    @property
    def jobs(self) -> Sequence[RayJob]:
        """The jobs among the objects as they were last seen."""
        return list(self._jobs.values())

    def picture(self) -> Picture:
        """Return what there is of the followed objects now."""
        ours = set(self._roots)
        found: Mapping[Resource, list[Object]] = {resource: [] for resource in _WATCHED}
        for resource, informer in self._watched.items():
            if resource == EVENTS:
                continue
            for obj in informer.cache:
                metadata = obj["metadata"]
                owners = (owner.get("uid") for owner in metadata.get("ownerReferences") or ())
                if metadata["uid"] in ours or any(uid in ours for uid in owners):
                    ours.add(metadata["uid"])
                    found[resource].append(obj)
        events = [
            event
            for event in self._watched[EVENTS].cache
            if (event.get("regarding") or {}).get("uid") in ours
        ]
        return Picture(
            jobs=found[RAY_JOBS],
            clusters=found[RAY_CLUSTERS],
            services=found[RAY_SERVICES],
            crons=found[RAY_CRON_JOBS],
            pods=found[PODS],
            kube_services=found[SERVICES],
            events=events,
            passed=tuple(self._passed),
            urls=self._urls,
        )

    # --- jobs

    def _output_of(self, job: RayJob, among: int) -> JobOutput:
        show: Callable[[str], None] = self._screen.output
        if among > 1:
            show = self._labels[job.uid] = LabelledOutput(self._screen, job.name)
        output = JobOutput(self._logs, self._clock, show)
        output.see(job)
        return output

    def _see(self, change: Change[Object]) -> None:
        """Take over a job at once: what it has printed may be gone with its cluster a moment later."""
        if change.new is None:
            return
        job = RayJob(change.new)
        if job.uid in self._jobs:
            if job.state == "Retrying":
                self._passed.append(job.obj)
            self._jobs[job.uid] = job
            self._outputs[job.uid].see(job)

    def _is_gone(self, uid: str) -> bool:
        job = self._jobs[uid]
        held = self._watched[RAY_JOBS].cache.ref((job.namespace, job.name))
        return job.state not in TERMINAL and (held is None or held.uid != uid)

    def _has_ended(self, uid: str) -> bool:
        return self._is_gone(uid) or (self._jobs[uid].state in TERMINAL and self._printing[uid].done())

    # --- telling

    async def _tell(self) -> None:
        picture = self.picture()
        self._passed.clear()
        await self._open_doors(picture)
        self._told, lines = news(self._told, picture, verbose=self._verbose)
        for text, tone in lines:
            self._screen.line(text, tone)
        self._screen.stage(stage(picture))

    async def _open_doors(self, picture: Picture) -> None:
        """Open a way to every dashboard and Serve application that has come up, and say where it is."""
        if self._forward is None:
            return
        for door in doors_of(picture):
            if self._doors.get(door.name) == door:
                continue
            try:
                port = await self._forward(door.address, door.port, door.port)
            except OSError:  # somebody has that port already
                port = await self._forward(door.address, door.port, 0)
            self._doors[door.name] = door
            self._urls[door.name] = f"http://127.0.0.1:{port}"
            self._screen.line(f"{door.title}: {self._urls[door.name]}", "good")

    async def _next(self) -> None:
        """Wait until something has changed, or an output has come to its end."""
        change = asyncio.ensure_future(self._changed.wait())
        printing = [task for task in self._printing.values() if not task.done()]
        try:
            await asyncio.wait((change, *printing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            change.cancel()
        await self._clock.sleep(_TOGETHER)
        self._changed.clear()
