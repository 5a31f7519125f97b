"""Faults that tests of controllers ask for."""

import asyncio
from contextlib import aclosing

import pytest

from kubereef.server.inprocess import LocalClient


@pytest.fixture
def late_news(monkeypatch):
    """Hold back the news of resources, for as many seconds as a test says: `late_news["pods"] = 5`.

    Ask for it before the controllers are started.
    """
    delays: dict[str, float] = {}
    watch = LocalClient.watch

    async def late(self, url):
        resource = url.partition("?")[0].rpartition("/")[2]
        async with aclosing(watch(self, url)) as events:
            async for event in events:
                await asyncio.sleep(delays.get(resource, 0))
                yield event

    monkeypatch.setattr(LocalClient, "watch", late)
    return delays
