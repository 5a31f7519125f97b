"""Keep up with all objects at an address: list them, then watch, and begin anew where the watch cannot go on."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

from kubereef.kinds.resource import Object
from kubewire import errors

log = logging.getLogger(__name__)

# How long to wait after a failure, and how long at most after many.
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 30.0


class Reader(Protocol):
    """The part of a client that reading takes."""

    async def get(self, url: str) -> dict[str, Any]: ...

    def watch(self, url: str) -> AsyncGenerator[dict[str, Any], None]: ...


class Sink(Protocol):
    """Whoever wants to know about the objects."""

    def replace(self, objects: list[Object], revision: int) -> None:
        """Take these for all objects that there are at a revision."""
        ...

    def apply(self, kind: str, obj: Object, revision: int) -> None:
        """Take over a change: ADDED, MODIFIED or DELETED."""
        ...


async def follow(client: Reader, url: str, sink: Sink) -> None:
    """Tell a sink of everything that happens to the objects at an address, for as long as they are served."""
    pause = _FIRST_PAUSE
    revision = 0
    while True:
        try:
            if not revision:
                listed = await client.get(url)
                revision = int(listed["metadata"]["resourceVersion"])
                sink.replace(listed["items"], revision)
            revision = await _watch(client, url, sink, revision)
            pause = _FIRST_PAUSE
        except errors.Gone:
            revision = 0
        except errors.NotFound:
            return  # the resource is served no longer
        except errors.ApiError as refusal:
            log.warning("cannot follow %s: %s; trying again in %g s", url, refusal, pause)
            pause = await _rest(pause)
        except Exception:
            # Nobody knows what was missed, so everything is asked for once more.
            log.exception("following %s failed; beginning anew in %g s", url, pause)
            revision = 0
            pause = await _rest(pause)


async def _rest(pause: float) -> float:
    """Wait, and return how long to wait the next time."""
    await asyncio.sleep(pause)
    return min(2 * pause, _LONGEST_PAUSE)


async def _watch(client: Reader, url: str, sink: Sink, revision: int) -> int:
    """Pass on what a watch tells until it ends; return the revision from which to go on."""
    # Bookmarks would spare a quiet resource a new list every hour, and wake everybody every minute for it.
    async with aclosing(client.watch(f"{url}?resourceVersion={revision}")) as events:
        async for event in events:
            kind, obj = event["type"], event["object"]
            if kind == "ERROR":
                raise errors.from_status(obj, obj.get("code", 500))
            revision = int(obj["metadata"]["resourceVersion"])
            sink.apply(kind, obj, revision)
    return revision
