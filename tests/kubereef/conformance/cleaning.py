"""Takes away what a scenario has left on a server that others will use after it."""

import json
from typing import Any

from tests.kubereef.conformance.running import DEFINITIONS, Run
from tests.kubereef.conformance.transports import USER_AGENT, Answer, Transport

_NAMESPACES = "/api/v1/namespaces/"
_AT_ONCE = "gracePeriodSeconds=0&propagationPolicy=Background"
# A definition goes when its objects have gone, which the server looks after.
_PATIENCE = 30.0


async def clean_up(run: Run, transport: Transport) -> None:
    """Delete what a run has created, the youngest first, whatever holds it."""
    cleaning = _Cleaning(transport)
    for path in reversed(dict.fromkeys(run.created)):
        if path.startswith(_NAMESPACES) and path.count("/") == _NAMESPACES.count("/"):
            await cleaning.end_namespace(path)
        else:
            await cleaning.delete(path)


class _Cleaning:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def delete(self, path: str) -> None:
        left = await self._ask("DELETE", f"{path}?{_AT_ONCE}")
        metadata = left.body.get("metadata") if isinstance(left.body, dict) else None
        if metadata and metadata.get("finalizers") and not path.startswith(DEFINITIONS):
            await self._ask("PATCH", path, {"metadata": {"finalizers": None}})
        if path.startswith(DEFINITIONS):
            clock = self._transport.clock
            end = clock.monotonic() + _PATIENCE
            while (await self._ask("GET", path)).status != 404 and clock.monotonic() < end:
                await clock.sleep(0.1)

    async def end_namespace(self, path: str) -> None:
        """Let a namespace go even where no controller would empty it."""
        await self._ask("DELETE", path)
        await self._ask("DELETE", f"{path}/pods?gracePeriodSeconds=0")
        left = await self._ask("GET", path)
        if left.status == 200:
            await self._ask("PUT", f"{path}/finalize", {**left.body, "spec": {"finalizers": []}})

    async def _ask(self, method: str, url: str, body: Any = None) -> Answer:
        media_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = [("User-Agent", USER_AGENT), ("Accept", "application/json"), ("Content-Type", media_type)]
        data = None if body is None else json.dumps(body).encode()
        return await self._transport.send(method, url, headers, data, as_admin=True)
