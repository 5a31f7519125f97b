"""What `eagleray serve` tells of the RayServices of a cluster, with one user's rights."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Final

from eagleray.cli.tables import span, table
from eagleray.kube.client import Client
from eagleray.kube.requests import Selection
from eagleray.kube.resources import RAY_CLUSTERS, RAY_SERVICES
from eagleray.manifests import naming
from eagleray.manifests.rayservice import INCREMENTAL, RayService, ServiceSide
from eagleray.raycluster.status import condition_of
from eagleray.rayservice.clusters import DELETE_AT
from eagleray.rayservice.incremental import Share, shares_of
from eagleray.rayservice.look import READY, ROLLING_BACK, SUSPENDED, SUSPENDING, UPGRADING
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import parse_time

Object = dict[str, Any]

_LONGEST_MESSAGE: Final = 120
_PAUSE: Final = 1.0


class ServeActions:
    """The actions, with one user's rights."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def status(self, namespace: str, name: str, *, watch: bool) -> AsyncIterator[Sequence[str]]:
        """Yield how services are; to watch them is to yield so again whenever it has changed, for good."""
        shown = await self._picture(namespace, name)
        yield shown
        while watch:
            async for _ in self._changes(namespace, name):
                picture = await self._picture(namespace, name)
                if picture != shown:
                    shown = picture
                    yield shown
            await self._clock.sleep(_PAUSE)

    async def _changes(self, namespace: str, name: str) -> AsyncIterator[None]:
        """Yield once for everything that happens to services, until the server hangs up."""
        selection = Selection(namespace, fields=f"metadata.name={name}" if name else "")
        try:
            async with aclosing(self._client.watch(RAY_SERVICES, selection)) as happenings:
                async for _ in happenings:
                    yield
        except errors.Gone:
            return  # the history is shorter than the pause was: what is there now is told anyhow

    async def _picture(self, namespace: str, name: str) -> Sequence[str]:
        if name:
            services = [await self._client.get(RAY_SERVICES, namespace, name)]
        else:
            services = await self._client.list(RAY_SERVICES, Selection(namespace))
        if not services:
            return [f"no RayServices in {namespace}" if namespace else "no RayServices"]
        label = f"{naming.ORIGIN_KIND_LABEL}=RayService"
        clusters = await self._client.list(RAY_CLUSTERS, Selection(namespace, label))
        lines: list[str] = []
        for obj in services:
            service = RayService(obj)
            own = [one for one in clusters if _is_made_for(one, service)]
            lines += ["", *picture(service, own, self._clock.now())]
        return lines[1:]


def _is_made_for(cluster: Object, service: RayService) -> bool:
    metadata = cluster["metadata"]
    name = (metadata.get("labels") or {}).get(naming.ORIGIN_NAME_LABEL)
    return bool(metadata["namespace"] == service.namespace and name == service.name)


def picture(service: RayService, clusters: Sequence[Object], now: datetime) -> Iterator[str]:
    """Yield how a service is: a line on the whole, its clusters, and the applications on each."""
    endpoints = service.status.get("numServeEndpoints") or 0
    yield f"RayService {service.place}: {_state(service)}, {endpoints} Pods take requests"
    if doing := _upgrade(service):
        yield f"  {doing}"
    titles = ("", "CLUSTER", "ROLE", "STATE", "CAPACITY", "TRAFFIC", "AGE")
    rows = list(_clusters(service, clusters, now))
    if rows:
        yield from table([titles, *rows], skip=0)
    applications = [*_applications(service.active), *_applications(service.pending)]
    if applications:
        yield from table([("", "APPLICATION", "CLUSTER", "STATUS", "MESSAGE"), *applications], skip=0)


def _state(service: RayService) -> str:
    for kind, word in ((SUSPENDED, "suspended"), (SUSPENDING, "being suspended")):
        if (condition_of(service.status, kind) or {}).get("status") == "True":
            return word
    ready = condition_of(service.status, READY)
    if ready is None:
        return "waits for an operator"
    return "serves" if ready["status"] == "True" else f"does not serve ({ready['reason']})"


def _upgrade(service: RayService) -> str:
    """Return what is being done to a service with two clusters; empty if nothing is."""
    upgrading = condition_of(service.status, UPGRADING) or {}
    if upgrading.get("status") != "True":
        return ""
    rollback = condition_of(service.status, ROLLING_BACK) or {}
    if rollback.get("status") == "True":
        return f"rolling back: {rollback.get('message', '')}"
    _, _, held_back = str(upgrading.get("message") or "").partition("; ")
    return f"upgrading: {held_back}" if held_back else "upgrading"


def _clusters(service: RayService, clusters: Sequence[Object], now: datetime) -> Iterator[tuple[str, ...]]:
    found = {one["metadata"]["name"]: one for one in clusters}
    shares = shares_of(service)
    is_shared = bool(service.pending.name) and service.upgrade_type == INCREMENTAL
    for side, role, share in (
        (service.active, "active", shares.active),
        (service.pending, "pending", shares.pending),
    ):
        if side.name:
            shown = share if is_shared else Share(100, 100 if role == "active" else 0)
            yield _row(side.name, role, found.pop(side.name, None), shown, now)
    for name, cluster in found.items():
        due = (cluster["metadata"].get("annotations") or {}).get(DELETE_AT, "")
        role = f"replaced, kept for {span(parse_time(due) - now)}" if due else "replaced"
        yield _row(name, role, cluster, Share(0, 0), now)


def _row(name: str, role: str, cluster: Object | None, share: Share, now: datetime) -> tuple[str, ...]:
    if cluster is None:
        return ("", name, role, "not there", f"{share.capacity}%", f"{share.traffic}%", "-")
    metadata = cluster["metadata"]
    state = "deleting" if metadata.get("deletionTimestamp") else _cluster_state(cluster)
    age = span(now - parse_time(metadata["creationTimestamp"]))
    return ("", name, role, state, f"{share.capacity}%", f"{share.traffic}%", age)


def _cluster_state(cluster: Object) -> str:
    return str((cluster.get("status") or {}).get("state") or "starting")


def _applications(side: ServiceSide) -> Iterator[tuple[str, ...]]:
    applications: dict[str, Object] = side.status.get("applicationStatuses") or {}
    for name, told in applications.items():
        yield ("", name, side.name, str(told.get("status", "")), _line(told))
        for deployment, status in (told.get("serveDeploymentStatuses") or {}).items():
            yield ("", f"- {deployment}", "", str(status.get("status", "")), _line(status))


def _line(status: Object) -> str:
    """Return a message as one line; `eagleray why` tells the rest."""
    line = " ".join(str(status.get("message") or "").split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[: _LONGEST_MESSAGE - 1]}…"
