"""The way to a Kubereef of this process, and a way on which things go wrong."""

import asyncio
from contextlib import asynccontextmanager

import msgspec

from eagleray.kube.transport import Answer, AnswerLost, NotSent, Stream
from eagleray.local.inprocess import transport_to

__all__ = ["FaultyTransport", "aiter_of", "status", "transport_to"]


class FaultyTransport:
    """Passes requests on, remembers them, and does to the next ones what a test has asked for.

    A fault is "not sent", "answer lost", "hangs", or an Answer that is given instead of the server's. Of watches, the
    news can be held back, and all that are open can be cut.
    """

    def __init__(self, inner):
        self.inner = inner
        self.sent = []
        self.next = []
        self.open = 0
        self.held = asyncio.Event()
        self.held.set()
        self._cut = asyncio.Event()
        self.refuse_watches = []

    @property
    def host(self):
        return self.inner.host

    def verbs(self, resource=None):
        return [request.verb for request in self.sent if resource in (None, request.resource)]

    def hold_news(self):
        self.held.clear()

    def release_news(self):
        self.held.set()

    def cut_watches(self):
        self._cut.set()
        self._cut = asyncio.Event()

    async def send(self, request):
        self.sent.append(request)
        fault = self.next.pop(0) if self.next else None
        if fault == "not sent":
            raise NotSent("refused")
        if fault == "hangs":
            await asyncio.Event().wait()
        if isinstance(fault, Answer):
            return fault
        answer = await self.inner.send(request)
        if fault == "answer lost":
            raise AnswerLost("cut off")
        return answer

    @asynccontextmanager
    async def stream(self, request):
        self.sent.append(request)
        if self.refuse_watches:
            refusal = self.refuse_watches.pop(0)
            if isinstance(refusal, Exception):
                raise refusal
            yield Stream(refusal, aiter_of(()))
            return
        async with self.inner.stream(request) as (answer, chunks):
            self.open += 1
            try:
                yield Stream(answer, self._late(chunks))
            finally:
                self.open -= 1

    async def _late(self, chunks):
        cut = self._cut
        while True:
            coming = asyncio.ensure_future(anext(chunks, None))
            ended = asyncio.ensure_future(cut.wait())
            try:
                await asyncio.wait({coming, ended}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    raise AnswerLost("cut off")
                await asyncio.wait(
                    {held := asyncio.ensure_future(self.held.wait()), ended},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                held.cancel()
                if ended.done():
                    raise AnswerLost("cut off")
                chunk = coming.result()
            finally:
                for task in (coming, ended):
                    task.cancel()
                await asyncio.gather(coming, ended, return_exceptions=True)
            if chunk is None:
                return
            yield chunk

    async def close(self):
        await self.inner.close()


async def aiter_of(chunks):
    for chunk in chunks:
        yield chunk


def status(error):
    """Return the answer of a server that refuses with an error."""
    return Answer(error.code, msgspec.json.encode(error.status()))
