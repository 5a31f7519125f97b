"""A namespace of a real control plane, as its administrator sees it. It has the words of tests/eagleray/world.py."""

import asyncio
import time
from contextlib import suppress
from typing import Any

from kubereef.node.machine.client import HttpsClient
from kubewire import errors
from kubewire.sources import SystemClock
from tests.eagleray.world import PATHS

# Long enough for a machine that is busy with other things.
PATIENCE = 90.0
# The kinds whose objects an operator holds until it has cleaned up.
HELD = ("RayJob", "RayService", "RayCluster")
# How often things are looked at that are waited for.
_PAUSE = 0.1


class Namespace:
    """Objects of one namespace, or of another one that a call names. Time is real."""

    def __init__(self, api: HttpsClient, name: str) -> None:
        self.api = api
        self.name = name
        self.clock = SystemClock()

    # --- objects

    async def create(self, obj):
        namespace = obj["metadata"].setdefault("namespace", self.name)
        return await self.api.create(PATHS[obj["kind"]].format(namespace), obj)

    async def get(self, kind, name, namespace="") -> Any:
        """Return an object; None if there is none."""
        try:
            return await self._read(f"{self._path(kind, namespace)}/{name}")
        except errors.NotFound:
            return None

    async def list(self, kind, labels="", namespace=""):
        query = f"?labelSelector={labels}" if labels else ""
        return (await self._read(f"{self._path(kind, namespace)}{query}"))["items"]

    async def _read(self, path):
        """Read as clients do: a server that asks to wait, as it does when a CRD has changed, is asked again."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await self.api.get(path)
                except errors.TooManyRequests as busy:
                    await asyncio.sleep(max(busy.retry_after_seconds, 1))

    async def patch(self, kind, name, change, *, namespace="", part=""):
        return await self.api.patch(f"{self._path(kind, namespace)}/{name}{part}", change)

    async def delete(self, kind, name, namespace=""):
        return await self.api.delete(f"{self._path(kind, namespace)}/{name}")

    async def pods(self, cluster, node_type=""):
        labels = f"ray.io/cluster={cluster}" + (f",ray.io/node-type={node_type}" if node_type else "")
        return await self.list("Pod", labels)

    async def status(self, kind, name):
        return ((await self.get(kind, name)) or {}).get("status") or {}

    def _path(self, kind, namespace):
        return PATHS[kind].format(namespace or self.name)

    # --- time

    async def pass_time(self, seconds):
        await asyncio.sleep(seconds)

    async def until(self, holds, seconds=PATIENCE, *, about=None):
        """Wait until an async function returns something true, which is returned; fail after so long.

        A server that cannot be reached has not said no. `about` returns what is shown of a failure.
        """
        end = time.monotonic() + seconds
        while True:
            said: object = None
            try:
                if said := await holds():
                    return said
            except errors.ApiError as refusal:
                said = refusal
            if time.monotonic() > end:
                shown = await about() if about is not None else said
                raise AssertionError(f"it did not happen in {seconds} s: {shown!r}")
            await asyncio.sleep(_PAUSE)

    async def ready(self, name, seconds=PATIENCE):
        """Wait until a cluster is ready; returns it."""
        await self.reaches("RayCluster", name, "state", "ready", seconds)
        return await self.get("RayCluster", name)

    async def reaches(self, kind, name, field, value, seconds=PATIENCE):
        """Wait until a field of the status has a value."""

        async def has_reached():
            return (await self.status(kind, name)).get(field) == value

        await self.until(has_reached, seconds, about=lambda: self.status(kind, name))

    # --- its own life

    async def make(self):
        """Create it, and wait until Pods can be created there, which need its account."""
        await self.api.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        await self.until(lambda: self.get("ServiceAccount", "default"))

    async def is_gone(self):
        try:
            await self.api.get(f"/api/v1/namespaces/{self.name}")
        except errors.NotFound:
            return True
        return False

    async def remove(self):
        """Have it go with all that is in it, whoever held that."""
        await self.api.delete(f"/api/v1/namespaces/{self.name}")
        for kind in HELD:
            for obj in await self.list(kind):
                with suppress(errors.NotFound):
                    await self.patch(kind, obj["metadata"]["name"], {"metadata": {"finalizers": None}})
