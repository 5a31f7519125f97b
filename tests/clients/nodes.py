"""Scripted nodes of a cluster that runs elsewhere: its Pods run as far as anybody can see, by the label `life`."""

import asyncio
import base64
import gc
import ssl
import threading
import warnings
from pathlib import Path
from typing import Any, Self

import yaml

from kubereef.node.machine.client import HttpsClient
from kubereef.node.scripted import Fails, Running, Script, ScriptedNodes, Succeeds
from kubewire.sources import SystemClock

PATIENCE = 30.0
# Pods without the label run and are ready until they are deleted.
LIVES = (
    Script(when={"life": "succeeds"}, steps=[Running(), Succeeds(after=0.2)]),
    Script(when={"life": "fails"}, steps=[Running(), Fails(after=0.2)]),
    Script(when={"life": "hangs"}, steps=[Running(ready=False)]),
)


class Nodes:
    """One scripted node, in a thread of its own, for as long as the context lasts."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted nodes")

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(PATIENCE)
        return self

    def __exit__(self, *_why: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()
        with warnings.catch_warnings():
            # A watch that was broken off has a connection whose end nobody has waited for.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    async def _start(self) -> None:
        self._client = _Client(self._kubeconfig)
        self._nodes = ScriptedNodes(self._client, SystemClock(), scripts=LIVES)
        await self._nodes.start()

    async def _stop(self) -> None:
        await self._nodes.stop()
        await self._client.close()
        await asyncio.sleep(0.1)  # TLS connections say goodbye after the session has let go of them


class _Client(HttpsClient):
    """A client with the token of a kubeconfig, which API servers of any make take."""

    def __init__(self, kubeconfig: Path) -> None:
        content: Any = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        trust = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"),
            cadata=base64.b64decode(cluster.get("certificate-authority-data", "")).decode() or None,
        )
        super().__init__(cluster["server"], trust)
        self._session.headers["Authorization"] = f"Bearer {content['users'][0]['user']['token']}"
