"""A real control plane as the place of a world: the scenarios of tests/eagleray live there as they do in memory.

A plane is shared by all worlds of a run, one after another. Whoever leaves takes everything along: the namespace, the
nodes and what is cluster-wide is emptied, and only Ray's kinds stay.
"""

import asyncio
import copy
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from eagleray.kube.http import HttpTransport
from eagleray.kube.kubeconfig import load
from eagleray.rayapi.crd import crd
from eagleray.rayapi.kinds import KINDS
from kubereef.node.machine.client import HttpsClient
from kubereef.simulation import VirtualClock
from kubewire import errors
from tests.eagleray.gateways import GATEWAY_KINDS, gateway_crd
from tests.eagleray.world import NAMESPACE, PATHS
from tests.kubernetes.patience import under_way
from tests.kubernetes.plane import Plane

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NODES = "/api/v1/nodes"
# What every namespace has.
_OF_THE_HOUSE = {
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    ("Service", "kubernetes"),
    ("EndpointSlice", "kubernetes"),
}
# Makers before what they make, so that nothing comes back.
_ORDER = ("RayCronJob", "RayService", "RayJob", "RayCluster", "Job", "Deployment")
_PATIENCE = 60.0


class PatientClient:
    """The calls of Kubereef's own client on the plane; time does not jump while it waits for an answer."""

    def __init__(self, plane: Plane) -> None:
        tls = ssl.create_default_context(cafile=str(plane.authority))
        tls.load_cert_chain(plane.directory / "admin.crt", plane.directory / "admin.key")
        self._inner = HttpsClient(plane.url, tls)

    async def get(self, url: str) -> dict[str, Any]:
        return await under_way(self._inner.get(url))

    async def create(self, url: str, body: object) -> dict[str, Any]:
        return await under_way(self._inner.create(url, body))

    async def replace(self, url: str, body: object) -> dict[str, Any]:
        return await under_way(self._inner.replace(url, body))

    async def patch(self, url: str, body: object, kind: str = "merge") -> dict[str, Any]:
        return await under_way(self._inner.patch(url, body, kind))

    async def delete(self, url: str, body: object = None) -> dict[str, Any]:
        return await under_way(self._inner.delete(url, body))

    def watch(self, url: str) -> Any:
        return self._inner.watch(url)

    async def close(self) -> None:
        await self._inner.close()


class PatientTransport:
    """The operator's own transport to the plane; time does not jump while it waits for an answer."""

    def __init__(self, kubeconfig: Path, clock: VirtualClock) -> None:
        self._inner = HttpTransport(load([kubeconfig], {}, clock))

    @property
    def host(self) -> str:
        return self._inner.host

    async def send(self, request: Any) -> Any:
        return await under_way(self._inner.send(request))

    @asynccontextmanager
    async def stream(self, request: Any) -> Any:
        opening = self._inner.stream(request)
        stream = await under_way(opening.__aenter__())
        try:
            yield stream
        finally:
            await opening.__aexit__(None, None, None)

    async def close(self) -> None:
        await self._inner.close()


class House:
    """What one world leaves behind for the next: the kinds, and whether everything else is gone."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self.is_clean = False


class PlanePlace:
    """A plane that a world lives on; there is one world at a time. `house` is what stays from one to the next."""

    def __init__(self, plane: Plane, house: "House") -> None:
        self._house = house
        now = asyncio.get_running_loop().time()
        # Servers stamp what they make with their own time, so that the world's begins there.
        self.clock = VirtualClock(datetime.now(UTC) - timedelta(seconds=now))
        self.api = PatientClient(plane)
        self._transports: list[PatientTransport] = []
        self._kubeconfig = plane.kubeconfig

    def transport(self) -> PatientTransport:
        transport = PatientTransport(self._kubeconfig, self.clock)
        self._transports.append(transport)
        return transport

    async def start(self, kinds: Any) -> None:
        """Make the place ready: empty, and with these kinds."""
        for kind in kinds:
            if kind not in self._house.kinds:
                await self._install(_definition(kind))
                self._house.kinds.add(kind)
        if not self._house.is_clean:
            await self._empty()
            await self._until(self._has_account)
        self._house.is_clean = False

    async def complete(self, kinds: Any) -> None:
        """Nothing is left to do: all kinds are there before the nodes."""

    async def stop(self) -> None:
        await self._empty()
        self._house.is_clean = True
        for transport in self._transports:
            await transport.close()
        await self.api.close()

    # --- kinds

    async def _install(self, definition: dict[str, Any]) -> None:
        """Install a kind, or the form of it that a test wants now, and wait until it is served."""
        try:
            await self.api.create(CRDS, definition)
        except errors.AlreadyExists:
            return

        spec = definition["spec"]

        async def is_served() -> bool:
            try:
                await self.api.get(
                    f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
                )
            except (errors.NotFound, errors.TooManyRequests):
                return False  # a definition that has just come is known first, and has a storage later
            return True

        await self._until(is_served)

    # --- emptiness

    async def _empty(self) -> None:
        """Take away all objects of the namespace, and the nodes."""

        async def is_empty() -> bool:
            left = 0
            for kind in (*_ORDER, *(kind for kind in PATHS if kind not in _ORDER)):
                left += await self._delete_all(kind)
            return left == 0

        await self._until(is_empty)
        for node in (await self.api.get(NODES))["items"]:
            await self._gone(f"{NODES}/{node['metadata']['name']}")

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
        try:
            await self.api.get(f"{PATHS['ServiceAccount'].format(NAMESPACE)}/default")
        except errors.NotFound:
            return False
        return True

    async def _until(self, holds: Any) -> None:
        left = _PATIENCE
        while not await holds():
            assert left > 0, f"the plane did not get there in {_PATIENCE:g} s"
            await asyncio.sleep(0.5)
            left -= 0.5


def _definition(kind: str) -> dict[str, Any]:
    """Return the CRD of a kind as a user installs it, with all its versions."""
    if kind in GATEWAY_KINDS:
        return copy.deepcopy(gateway_crd(kind))
    (found,) = (one for one in KINDS if one.name == kind)
    return crd(found)
