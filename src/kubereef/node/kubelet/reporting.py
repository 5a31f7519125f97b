"""Telling the API server of a Pod: the newest status is written as soon as it can be, and nobody waits for it."""

import asyncio
import logging
from collections.abc import Callable

from kubereef.controllers.resources import PODS
from kubereef.kinds.resource import Object
from kubereef.node.kubelet.interfaces import Client
from kubewire import errors, mergepatch
from kubewire.sources import Clock

log = logging.getLogger(__name__)

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0


class Reporter:
    """Writes the status of one Pod.

    `newest` returns the Pod as last heard of and the status it should have; `heard` takes over what the server
    answers. A Pod that the server has no more, or another one of its name, ends the reporting.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        newest: Callable[[], tuple[Object, Object]],
        heard: Callable[[Object], None],
    ) -> None:
        self._client = client
        self._clock = clock
        self._newest = newest
        self._heard = heard
        self._is_due = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._settled: tuple[Object, Object] | None = (
            None  # what was last written, and what the server made of it
        )
        self._has_ended = False
        self.is_gone = False

    def tell(self) -> None:
        """Have the status written if it is not as it should be."""
        self._is_due.set()
        if not self._has_ended:
            self._is_idle.clear()

    async def flushed(self) -> None:
        """Return when everything told before was written, or the Pod is gone."""
        await self._is_idle.wait()

    async def run(self) -> None:
        """Write until cancelled, or the Pod is gone; after that nobody waits for anything to be written."""
        try:
            await self._write_all()
        finally:
            self._has_ended = True
            self._is_idle.set()

    async def _write_all(self) -> None:
        pause = _FIRST_PAUSE
        while not self.is_gone:
            await self._is_due.wait()
            self._is_due.clear()
            try:
                await self._write()
            except errors.Invalid as refusal:
                log.warning("status of %s: %s", self._newest()[0]["metadata"]["name"], refusal)
            except (errors.ApiError, OSError, TimeoutError) as trouble:
                log.warning("status of %s: %s; trying again", self._newest()[0]["metadata"]["name"], trouble)
                self._is_due.set()
                await self._clock.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            pause = _FIRST_PAUSE
            if not self._is_due.is_set():
                self._is_idle.set()

    async def _write(self) -> None:
        pod, status = self._newest()
        present: Object = pod.get("status") or {}
        patch = mergepatch.create(present, status)
        # A server may keep a status in another form than it was given, which is no reason to give it again.
        if not patch or (self._settled is not None and self._settled == (status, present)):
            return
        meta = pod["metadata"]
        body = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "status": patch,
        }
        try:
            written = await self._client.patch(PODS.url_of(pod, "status"), body)
            self._settled = (status, written.get("status") or {})
            self._heard(written)
        except errors.NotFound:
            self.is_gone = True
        except errors.Conflict:
            await self._catch_up(pod)

    async def _catch_up(self, pod: Object) -> None:
        """Hear of what others have written meanwhile, and write again."""
        try:
            present = await self._client.get(PODS.url_of(pod))
        except errors.NotFound:
            self.is_gone = True
            return
        if present["metadata"]["uid"] != pod["metadata"]["uid"]:
            self.is_gone = True
            return
        self._heard(present)
        self._is_due.set()
