"""A stand-in for the Ray of every cluster: one HTTP server, which tells heads apart by the host they are asked at.

What a head answers is as in the tests (tests/eagleray/dashboard/scripted.py). It answers at once, which a real
dashboard does not; what is measured is the operator.
"""

# The scripted Ray of the tests has no types.
# mypy: disable-error-code="no-untyped-call"

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from aiohttp import web

from kubewire.sources import SystemClock
from tests.eagleray.dashboard.scripted import Ledger, ScriptedHead

DASHBOARD, SERVE_PROXY = 8265, 8000


class Heads:
    """The heads that have been asked so far, by host. `hangs` says at which hosts nobody ever answers.

    `questions` counts the requests of all, and `connections` those that were made for them.
    """

    def __init__(self, hangs: Callable[[str], bool] = lambda _host: False) -> None:
        self.hangs = hangs
        self.questions = 0
        self.connections = 0
        self._heads: dict[str, ScriptedHead] = {}
        self._clock = SystemClock()
        self._ledger = Ledger()

    def at(self, host: str) -> ScriptedHead:
        """Return the head at a host, which has been there all the time. Its applications run at once."""
        if host not in self._heads:
            session = f"session_{len(self._heads) + 1}"
            self._heads[host] = ScriptedHead(self._clock, self._ledger, session=session, deploys=0.0)
        return self._heads[host]

    def finish(self, host: str, job: str) -> None:
        """Have a job succeed."""
        self.at(host).set_status(job, "SUCCEEDED", "Job finished successfully.")

    async def answer(self, request: web.BaseRequest) -> web.Response:
        self.questions += 1
        if self.hangs(request.host):
            await asyncio.Event().wait()
        body = await request.read()
        found = self.at(request.host).handle(request.method, request.path, request.headers, body)
        return web.Response(status=found.status, body=found.body)


class _Server(web.Server):
    """Makes something to answer with for every connection, and counts them."""

    def __init__(self, heads: Heads) -> None:
        # Who hangs is let go when the one who asks has gone away.
        super().__init__(heads.answer, access_log=None, handler_cancellation=True)
        self._heads = heads

    def __call__(self) -> web.RequestHandler:
        self._heads.connections += 1
        return super().__call__()


@asynccontextmanager
async def answering(
    heads: Heads, address: str = "0.0.0.0", ports: Sequence[int] = (DASHBOARD, SERVE_PROXY)
) -> AsyncIterator[list[int]]:
    """Answer for heads and their Serve proxies at every address of this place; gives the ports."""
    runner = web.ServerRunner(_Server(heads), shutdown_timeout=0.1)
    await runner.setup()
    try:
        for port in ports:
            await web.TCPSite(runner, address, port, backlog=1024).start()
        yield [place[1] for place in runner.addresses]
    finally:
        await runner.cleanup()
