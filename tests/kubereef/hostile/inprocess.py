"""Attacks on a server of this process."""

import asyncio
import time
from contextlib import suppress
from typing import Any

from kubereef.cluster import Cluster
from kubereef.server.http import _split
from kubereef.server.requests import ADMINISTRATOR, Request
from kubereef.server.tokens import StaticTokens
from kubereef.store.store import Store
from kubewire import errors
from kubewire.sources import SystemClock, SystemEntropy
from tests.kubereef.hostile.aims import Attack
from tests.kubereef.hostile.judging import Answer

TOKEN = "the-administrators-token"
_REFUSED = Answer(400, "", b"")


class InProcess:
    """A cluster without a wire or controllers: nobody but the attacker writes to it."""

    def __init__(self) -> None:
        tokens = StaticTokens({TOKEN: ADMINISTRATOR})
        self.cluster = Cluster(Store(), clock=SystemClock(), entropy=SystemEntropy(), tokens=tokens)

    async def get(self, path: str) -> dict[str, Any]:
        return await self.cluster.client().get(path)

    async def ask(self, attack: Attack) -> Answer:
        """Send a request and return the answer; of a stream, what comes at once."""
        try:
            path, query = _split(attack.target)
        except errors.ApiError:
            return _REFUSED  # by the wire, which the server is not asked after
        headers = {"authorization": f"Bearer {TOKEN}"}
        repeated: dict[str, list[str]] = {}
        for name, value in attack.headers:
            repeated.setdefault(name.lower(), []).append(value)
            headers[name.lower()] = repeated[name.lower()][0]
        repeated = {name: values for name, values in repeated.items() if len(values) > 1}
        began = time.monotonic()
        request = Request(attack.method, path, query, headers, attack.body, None, repeated)
        response = await self.cluster.server.handle(request)
        body = response.body
        if response.stream is not None:
            chunks: list[bytes] = []
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    async for chunk in response.stream:
                        chunks.append(chunk)
                        if attack.until and attack.until in chunk:
                            break
            await response.stream.aclose()  # type: ignore[attr-defined]  # our streams are generators
            body = b"".join(chunks)
        seconds = time.monotonic() - began
        return Answer(response.status, response.content_type, body, seconds, response.stream is not None)
