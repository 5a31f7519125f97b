"""What `eagleray serve` tells of the RayServices of a cluster, with one user's rights."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final, NamedTuple

from eagleray.cli.tables import span, table
from eagleray.kube.client import Client
from eagleray.kube.requests import Selection
from eagleray.kube.resources import RAY_CLUSTERS, RAY_SERVICES, Resource
from eagleray.manifests import naming
from eagleray.manifests.rayservice import INCREMENTAL, RayService, ServiceSide
from eagleray.raycluster.controller import MANAGER
from eagleray.raycluster.status import condition_of
from eagleray.rayservice.clusters import DELETE_AT
from eagleray.rayservice.incremental import Share, shares_of, step_due, waits_for_traffic
from eagleray.rayservice.look import READY, ROLLING_BACK, SUSPENDED, SUSPENDING, UPGRADING
from eagleray.rayservice.timeouts import INITIALIZING
from eagleray.why.servecauses import operators_word, plain
from kubewire import errors
from kubewire.owners import is_controlled_by
from kubewire.sources import Clock
from kubewire.times import TimeError, parse_time

Object = dict[str, Any]

_LONGEST_MESSAGE, _LONGEST_CAUSE = 120, 200
# Changes come in bursts; so long the rest of one is waited for.
_CALM: Final = 0.25
# How long after the server has hung up it is asked again.
_PAUSE: Final = 1.0
# How often a picture is drawn in which nothing but the times has changed.
_TICK: Final = 1.0
_MADE_FOR_SERVICES: Final = f"{naming.ORIGIN_KIND_LABEL}=RayService"


class Sight(NamedTuple):
    """What was seen at one moment."""

    services: Sequence[Object]
    clusters: Sequence[Object]
    refusal: str = ""  # why the clusters could not be looked at


class ServeActions:
    """The actions, with one user's rights."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def status(self, namespace: str, name: str) -> Sequence[str]:
        """Return how services are: one, those of a namespace, or all."""
        return self._drawn(await self._sight(namespace, name), namespace)

    async def live(self, namespace: str, name: str, *, times: bool) -> AsyncGenerator[Sequence[str], None]:
        """Yield how services are, and again whenever that has changed, until the one that is named is gone.

        With `times`, it has also changed when nothing but the times in it have.
        """
        sight = await self._sight(namespace, name)
        shown = self._drawn(sight, namespace)
        yield shown
        changed = asyncio.Event()
        watched = [(RAY_SERVICES, Selection(namespace, fields=f"metadata.name={name}" if name else ""))]
        if not sight.refusal:
            watched.append((RAY_CLUSTERS, Selection(namespace, _MADE_FOR_SERVICES)))
        watches = [asyncio.create_task(self._notice(*one, changed)) for one in watched]
        try:
            while True:
                if await _happened(changed, watches, _TICK if times else None):
                    await self._clock.sleep(_CALM)
                    changed.clear()
                    before = shown if times else self._drawn(sight, namespace)
                    sight = await self._sight(namespace, name)
                else:
                    before = shown
                shown = self._drawn(sight, namespace)
                if shown != before:
                    yield shown
        except errors.NotFound:
            if not name:
                raise
            yield [f"RayService {namespace}/{name} is gone"]
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)

    async def _notice(self, resource: Resource, selection: Selection, changed: asyncio.Event) -> None:
        """Set an event at whatever happens to objects, for good: a server that hangs up is asked again."""
        while True:
            try:
                async with aclosing(self._client.watch(resource, selection)) as happenings:
                    async for _ in happenings:
                        changed.set()
            except (errors.Unauthorized, errors.Forbidden):
                raise
            except (errors.ApiError, OSError):
                pass  # whoever looks what has changed is told, if it lasts
            await self._clock.sleep(_PAUSE)
            changed.set()

    async def _sight(self, namespace: str, name: str) -> Sight:
        if name:
            services = [await self._client.get(RAY_SERVICES, namespace, name)]
        else:
            services = await self._client.list(RAY_SERVICES, Selection(namespace))
        try:
            clusters = await self._client.list(RAY_CLUSTERS, Selection(namespace, _MADE_FOR_SERVICES))
        except errors.Forbidden as refusal:
            return Sight(services, (), str(refusal))
        return Sight(services, clusters)

    def _drawn(self, sight: Sight, namespace: str) -> Sequence[str]:
        if not sight.services:
            return [f"no RayServices in {namespace}" if namespace else "no RayServices"]
        lines: list[str] = []
        for obj in sight.services:
            service = RayService(obj)
            own = [one for one in sight.clusters if is_controlled_by(one, service.uid)]
            lines += ["", *picture(service, own, self._clock.now())]
        if sight.refusal:
            lines += ["", f"note: clusters are shown as the services know them: {sight.refusal}"]
        return lines[1:]


async def _happened(
    changed: asyncio.Event, watches: Sequence["asyncio.Task[None]"], seconds: float | None
) -> bool:
    """Wait until something has changed, and tell whether it has in so many seconds. What ends a watch is raised."""
    waiting = asyncio.ensure_future(changed.wait())
    try:
        done, _ = await asyncio.wait(
            {waiting, *watches}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        waiting.cancel()
    for watch in watches:
        if watch in done:
            watch.result()
    return bool(done)


# --- pictures


def picture(service: RayService, clusters: Sequence[Object], now: datetime) -> Iterator[str]:
    """Yield how a service is: a line on the whole, its clusters, and the applications on each."""
    endpoints = service.status.get("numServeEndpoints") or 0
    taken = "1 Pod takes requests" if endpoints == 1 else f"{endpoints} Pods take requests"
    yield f"RayService {service.place}: {_state(service)}, {taken}"
    if doing := _doing(service, now):
        yield f"  {doing}"
    rows = list(_clusters(service, clusters, now))
    if rows:
        titles = ("", "CLUSTER", "ROLE", "STATE", "CAPACITY", "TRAFFIC", "AGE")
        yield from table([titles, *rows], skip=0)
    applications = [*_applications(service.active), *_applications(service.pending)]
    if applications:
        yield from table([("", "APPLICATION", "CLUSTER", "STATUS", "MESSAGE"), *applications], skip=0)


def _state(service: RayService) -> str:
    manager = service.spec.get("managedBy")
    if manager not in (None, MANAGER):
        return f"managed by {manager}"
    if service.metadata.get("deletionTimestamp"):
        return "being deleted"
    for kind, word in ((SUSPENDED, "suspended"), (SUSPENDING, "being suspended")):
        if _is_true(service, kind):
            return word
    ready = condition_of(service.status, READY)
    if ready is None:
        return "waits for an operator"
    return "serves" if ready["status"] == "True" else f"does not serve ({ready['reason']})"


def _doing(service: RayService, now: datetime) -> str:
    """Return what is being done to a service, or why it does not serve; empty if there is nothing to say."""
    word = operators_word(service)
    waits = _line(f"{word.cluster}: {word.cause}" if word.cluster else word.cause, _LONGEST_CAUSE)
    if _is_true(service, UPGRADING):
        rolling_back = _is_true(service, ROLLING_BACK)
        doing = "rolling back" if rolling_back else "upgrading"
        waits = waits or _next_step(service, now, rolling_back=rolling_back)
        return f"{doing}: {waits}" if waits else doing
    ready = condition_of(service.status, READY) or {}
    if ready.get("status") == "True" or _is_true(service, SUSPENDED):
        return ""
    is_first_start = ready.get("reason") == INITIALIZING
    return waits if is_first_start else _line(str(ready.get("message") or ""), _LONGEST_CAUSE)


def _next_step(service: RayService, now: datetime, *, rolling_back: bool) -> str:
    due = step_due(service, rolling_back=rolling_back)
    is_waiting = waits_for_traffic(shares_of(service), rolling_back=rolling_back)
    if service.upgrade_type != INCREMENTAL or not is_waiting or due is None or due <= now:
        return ""
    return f"traffic moves again in {span(due - now)}"


def _clusters(service: RayService, clusters: Sequence[Object], now: datetime) -> Iterator[tuple[str, ...]]:
    found = {one["metadata"]["name"]: one for one in clusters}
    shares = shares_of(service)
    is_shared = bool(service.active.name and service.pending.name) and service.upgrade_type == INCREMENTAL
    for side, role, share in (
        (service.active, "active", shares.active),
        (service.pending, "pending", shares.pending),
    ):
        if side.name:
            shown = share if is_shared else Share(100, 100 if role == "active" else 0)
            yield _row(side.name, role, found.pop(side.name, _copied(side)), shown, now)
    for name, cluster in found.items():
        yield _row(name, _replaced(cluster, now), cluster, Share(0, 0), now)


def _copied(side: ServiceSide) -> Object:
    """Return a cluster as far as the service knows it."""
    return {"metadata": {}, "status": side.status.get("rayClusterStatus") or {}}


def _replaced(cluster: Object, now: datetime) -> str:
    """Return the role of a cluster that is not used any more."""
    try:
        due = parse_time((cluster["metadata"].get("annotations") or {}).get(DELETE_AT, ""))
    except TimeError:
        return "replaced"
    return f"replaced, kept for {span(due - now)}" if due > now else "replaced"


def _row(name: str, role: str, cluster: Object, share: Share, now: datetime) -> tuple[str, ...]:
    metadata, status = cluster["metadata"], cluster.get("status") or {}
    state = "deleting" if metadata.get("deletionTimestamp") else str(status.get("state") or "starting")
    made = metadata.get("creationTimestamp")
    age = span(now - parse_time(made)) if made else "-"
    return ("", name, role, state, f"{share.capacity}%", f"{share.traffic}%", age)


def _applications(side: ServiceSide) -> Iterator[tuple[str, ...]]:
    applications: dict[str, Object] = side.status.get("applicationStatuses") or {}
    for name, told in applications.items():
        yield ("", name, side.name, str(told.get("status") or ""), _line(str(told.get("message") or "")))
        for deployment, status in (told.get("serveDeploymentStatuses") or {}).items():
            message = _line(str(status.get("message") or ""))
            yield ("", f"- {deployment}", "", str(status.get("status") or ""), message)


def _line(message: str, longest: int = _LONGEST_MESSAGE) -> str:
    """Return a message as one line; `eagleray why` tells the rest."""
    line = plain(message)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _is_true(service: RayService, kind: str) -> bool:
    return (condition_of(service.status, kind) or {}).get("status") == "True"
