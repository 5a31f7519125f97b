"""A real control plane as the place of a world: the scenarios of tests/eagleray live there as they do in memory.

A plane is shared by all worlds of a run, one after another. Whoever leaves takes everything along: the namespace, the
nodes and what is cluster-wide is emptied, and only Ray's kinds stay.
"""

import asyncio
import copy
import re
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from eagleray.kube.http import HttpTransport
from eagleray.kube.kubeconfig import load
from eagleray.kube.transport import Stream
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubereef.node.machine.client import HttpsClient
from kubereef.simulation import START, VirtualClock
from kubewire import errors
from tests.eagleray.gateways import GATEWAY_KINDS, gateway_crd
from tests.eagleray.raycronjob.situations import raycronjob
from tests.eagleray.world import NAMESPACE, PATHS, raycluster, rayjob, rayservice
from tests.kubernetes.debts import Debts
from tests.kubernetes.patience import ECHO, patient_loop, under_way
from tests.kubernetes.plane import Plane
from tests.kubernetes.stamps import Stamps, on_the_wall

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES = "/api/v1/nodes"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# What every namespace has.
_OF_THE_HOUSE = {
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("Service", "kubernetes"),
    ("EndpointSlice", "kubernetes"),
}
# Makers before what they make, so that nothing comes back.
_ORDER = ("RayCronJob", "RayService", "RayJob", "RayCluster", "Job", "Deployment")
# Those whose garbage has to be collected.
_OWNERS: dict[str, Callable[[], dict[str, Any]]] = {
    "RayCluster": raycluster,
    "RayJob": rayjob,
    "RayService": rayservice,
    "RayCronJob": raycronjob,
}
_PATIENCE = 90.0
_STEP = 0.05
# How long a server may need until it goes by a changed definition; it does not say when it does.
_REDEFINING = 2.0
# How long a namespace may need to go.
_EMPTYING = 30.0
# What nobody looks at, and what controllers of the plane look at only when it goes.
_UNNOTICED = re.compile(r"/events|/leases")
_RAYS = re.compile(r"/apis/ray\.io/")
_NAMESPACE = re.compile(r"/api/v1/namespaces/[^/]+")
_NODES_SAY = re.compile(rf".*/pods/[^/]+/status|{NODES}/[^/]+/status|{NODE_LEASES}.*")

T = TypeVar("T")


class PatientClient:
    """The calls of Kubereef's own client on the plane; time stands still while it waits for what comes of them."""

    def __init__(self, plane: Plane, stamps: Stamps, debts: Debts) -> None:
        self.redefined: set[str] = set()  # the kinds whose definition has been changed
        self._stamps = stamps
        self._debts = debts
        tls = ssl.create_default_context(cafile=str(plane.authority))
        tls.load_cert_chain(plane.directory / "admin.crt", plane.directory / "admin.key")
        self._inner = HttpsClient(plane.url, tls)

    async def get(self, url: str) -> dict[str, Any]:
        return self._told(await under_way(self._inner.get(url)))

    async def create(self, url: str, body: object) -> dict[str, Any]:
        return self._told(await _written("POST", url, self._inner.create(url, _said(url, body))))

    async def replace(self, url: str, body: object) -> dict[str, Any]:
        answer = self._told(await _written("PUT", url, self._inner.replace(url, body)))
        if url.startswith(CRDS):
            self.redefined.add(answer["spec"]["names"]["kind"])
            await _really(_REDEFINING)
        return answer

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]:
        return self._told(await _written("PATCH", url, self._inner.patch(url, _said(url, body), kind)))

    async def delete(self, url: str, body: object = None) -> dict[str, Any]:
        if _NAMESPACE.fullmatch(url):
            # Whoever empties it comes back some times, by the time on the wall.
            patient_loop().promise(url, _EMPTYING)
        return self._told(await _written("DELETE", url, self._inner.delete(url, body)))

    async def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]:
        async with aclosing(self._inner.watch(url)) as events:
            async for event in events:
                self._debts.heard(event["type"], event["object"])
                yield self._told(event)

    async def close(self) -> None:
        await self._inner.close()

    def _told(self, answer: dict[str, Any]) -> dict[str, Any]:
        self._stamps.told(answer)
        return answer


class PatientTransport:
    """The operator's own transport to the plane; time stands still while it waits for what comes of its requests."""

    def __init__(self, kubeconfig: Path, clock: VirtualClock, stamps: Stamps, debts: Debts) -> None:
        self._stamps = stamps
        self._debts = debts
        self._inner = HttpTransport(load([kubeconfig], {}, clock))

    @property
    def host(self) -> str:
        return self._inner.host

    async def send(self, request: Any) -> Any:
        if request.method == "GET":
            answer = await under_way(self._inner.send(request))
        else:
            answer = await _written(request.method, request.path, self._inner.send(request))
        return answer._replace(body=self._stamps.text(answer.body))

    @asynccontextmanager
    async def stream(self, request: Any) -> Any:
        opening = self._inner.stream(request)
        answer, chunks = await under_way(opening.__aenter__())
        try:
            yield Stream(answer, self._lines(chunks))
        finally:
            await opening.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._inner.close()

    async def _lines(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the events of a watch one by one."""
        rest = b""
        async for chunk in chunks:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = msgspec.json.decode(line)
                self._debts.heard(event["type"], event["object"])
                yield msgspec.json.encode(self._stamps.told(event)) + b"\n"


def _said(url: str, body: object) -> object:
    return on_the_wall(body) if _NODES_SAY.fullmatch(url) else body


async def _written(method: str, url: str, answer: Awaitable[T]) -> T:
    """Return the answer to a write, after which the plane has time for whatever it does about it."""
    try:
        return await under_way(answer)
    finally:
        loop = patient_loop()
        if _RAYS.match(url) and method != "DELETE":
            loop.listen(ECHO)
        elif not _UNNOTICED.search(url):
            loop.stir()


class WorldClock(VirtualClock):
    """A clock that begins when it is told to: whatever a plane needs to get ready takes none of the world's time."""

    def begin(self) -> None:
        self._start = START - timedelta(seconds=self.monotonic())


class House:
    """What one world leaves behind for the next: the kinds, and whether everything else is gone."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.is_clean = False


class PlanePlace:
    """A plane that a world lives on; there is one world at a time. `house` is what stays from one to the next."""

    def __init__(self, plane: Plane, house: "House") -> None:
        self._house = house
        self.clock = WorldClock()
        self._stamps = Stamps(self.clock)
        self._debts = Debts()
        self.api = PatientClient(plane, self._stamps, self._debts)
        self._transports: list[PatientTransport] = []
        self._kubeconfig = plane.kubeconfig

    def transport(self) -> PatientTransport:
        transport = PatientTransport(self._kubeconfig, self.clock, self._stamps, self._debts)
        self._transports.append(transport)
        return transport

    async def start(self, kinds: Any) -> None:
        """Make the place ready: empty, and with these kinds. Of others, only Ray's may be there."""
        new = [kind for kind in kinds if kind not in self._house.kinds]
        for kind in new:
            await self._install(_definition(kind))
            self._house.kinds.add(kind)
        for kind in new:
            if kind in _OWNERS:
                await self._until_collected(kind)
        for kind in GATEWAY_KINDS:
            if kind in self._house.kinds and kind not in kinds:
                await self._remove(_definition(kind))
                self._house.kinds.remove(kind)
        if not self._house.is_clean:
            await self._empty()
            await self._until(self._has_account)
        self._house.is_clean = False

    async def complete(self, kinds: Any) -> None:
        """Return once Pods can be put on the nodes."""
        await self._until(self._has_ready_nodes)
        self.clock.begin()

    async def stop(self) -> None:
        await self._empty()
        for kind in self.api.redefined.copy():
            await self._restore(_definition(kind))
        self._house.is_clean = True
        for transport in self._transports:
            await transport.close()
        await self.api.close()

    # --- kinds

    async def _install(self, definition: dict[str, Any]) -> None:
        """Install a kind, and wait until it is served."""
        try:
            await self.api.create(CRDS, definition)
        except errors.AlreadyExists:
            return

        async def is_served() -> bool:
            return await self._serves(definition) and await self._tells_of(definition)

        await self._until(is_served)

    async def _until_collected(self, kind: str) -> None:
        """Return once garbage of a new kind is collected: whoever does it looks for kinds twice a minute."""
        owner = await self.api.create(PATHS[kind].format(NAMESPACE), _OWNERS[kind]())
        name = owner["metadata"]["name"]
        reference = {"apiVersion": owner["apiVersion"], "kind": kind, "name": name}
        reference["uid"] = owner["metadata"]["uid"]
        owned = {"metadata": {"name": name, "ownerReferences": [reference]}}
        await self.api.create(PATHS["ConfigMap"].format(NAMESPACE), owned)
        await self._gone(f"{PATHS[kind].format(NAMESPACE)}/{name}")

        async def is_gone() -> bool:
            return not await self._exists(f"{PATHS['ConfigMap'].format(NAMESPACE)}/{name}")

        await self._until(is_gone)

    async def _restore(self, definition: dict[str, Any]) -> None:
        url = f"{CRDS}/{definition['metadata']['name']}"
        await self.api.replace(url, {**await self.api.get(url), "spec": definition["spec"]})

    async def _remove(self, definition: dict[str, Any]) -> None:
        url = f"{CRDS}/{definition['metadata']['name']}"
        await self._gone(url)

        async def is_gone() -> bool:
            return not await self._exists(url) and not await self._tells_of(definition)

        await self._until(is_gone)

    async def _serves(self, definition: dict[str, Any]) -> bool:
        spec = definition["spec"]
        url = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        try:
            return await self._exists(url)
        except errors.TooManyRequests:
            return False  # a definition that has just come is known first, and has a storage later

    async def _tells_of(self, definition: dict[str, Any]) -> bool:
        """Return whether a kind is among those that the server tells of, which is a little later than it is served."""
        spec = definition["spec"]
        if spec["group"] not in [group["name"] for group in (await self.api.get("/apis"))["groups"]]:
            return False
        try:
            told = await self.api.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}")
        except errors.NotFound:
            return False
        return spec["names"]["plural"] in [resource["name"] for resource in told["resources"]]

    # --- emptiness

    async def _empty(self) -> None:
        """Take away all objects of the namespace, and the nodes."""

        others = [kind for kind in PATHS if kind not in _ORDER]

        async def is_empty() -> bool:
            left = 0
            for kind in _ORDER:
                left += await self._delete_all(kind)
            left += sum(await asyncio.gather(*(self._delete_all(kind) for kind in others)))
            return left == 0

        await self._until(is_empty)
        for node in (await self.api.get(NODES))["items"]:
            name = node["metadata"]["name"]
            await self._gone(f"{NODES}/{name}")
            await self._gone(f"{NODE_LEASES}/{name}")

    async def _delete_all(self, kind: str) -> int:
        """Delete the objects of a kind at once; returns how many there were."""
        url = PATHS[kind].format(NAMESPACE)
        try:
            found = (await self.api.get(url))["items"]
        except errors.NotFound:
            return 0  # a kind that no test has wanted so far
        found = [one for one in found if (kind, one["metadata"]["name"]) not in _OF_THE_HOUSE]
        for one in found:
            await self._gone(f"{url}/{one['metadata']['name']}", one["metadata"].get("finalizers"))
        return len(found)

    async def _gone(self, url: str, finalizers: object = None) -> None:
        try:
            if finalizers:
                await self.api.patch(url, {"metadata": {"finalizers": None}})
            await self.api.delete(url, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})
        except errors.NotFound:
            pass  # somebody was faster

    async def _has_account(self) -> bool:
        """Return whether Pods can be made: they need the namespace's account, which a controller makes."""
        return await self._exists(f"{PATHS['ServiceAccount'].format(NAMESPACE)}/default")

    async def _exists(self, url: str) -> bool:
        try:
            await self.api.get(url)
        except errors.NotFound:
            return False
        return True

    async def _has_ready_nodes(self) -> bool:
        """Return whether no node is new any more: until a controller has looked at it, nothing may run there."""
        nodes = (await self.api.get(NODES))["items"]
        taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints") or ()]
        return "node.kubernetes.io/not-ready" not in taints

    async def _until(self, holds: Any) -> None:
        left = _PATIENCE
        while not await holds():
            assert left > 0, f"the plane did not get there in {_PATIENCE:g} s"
            await _really(_STEP)
            left -= _STEP


async def _really(seconds: float) -> None:
    """Wait for so long on the wall."""
    await under_way(asyncio.to_thread(time.sleep, seconds))


def _definition(kind: str) -> dict[str, Any]:
    """Return the CRD of a kind as a user installs it, with all its versions."""
    if kind in GATEWAY_KINDS:
        return copy.deepcopy(gateway_crd(kind))
    (found,) = (one for one in KINDS if one.name == kind)
    return crd(found)
