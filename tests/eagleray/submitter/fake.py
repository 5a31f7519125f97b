"""A head over real HTTP, with logs to be followed and faults at each step.

    async with FakeHead(log=["a\\n", "b\\n"]) as head:
        head.faults["submit"] = ["answer lost"]

Steps are version, submit, tail and info. A fault is a number (that status is answered), "drop" (the line breaks before
anything is done), "answer lost" (it breaks afterwards), "new head" (the head is replaced before it answers) or, of a
tail, ("break", n) and ("close", n): after so many parts the line breaks, or ends in good order.
"""

from collections import defaultdict

from aiohttp import WSCloseCode, web

from kubewire.sources import SystemClock
from tests.eagleray.dashboard.scripted import Ledger, ScriptedHead


class FakeHead:
    """One address at which heads answer, one after the other. The job ends with its log, as `ends` says."""

    def __init__(self, *, log=("hello\n", "world\n"), ends="SUCCEEDED", message="", token="", ssl=None):
        self.ledger = Ledger()
        self.log = list(log)
        self.ends = ends
        self.message = message
        self.faults = defaultdict(list)
        self.requests = []  # (step, headers, body)
        self.tails = 0
        self._token = token
        self._ssl = ssl
        self._heads = 0
        self.replace()

    @property
    def address(self):
        host, port = self._runner.addresses[0][:2]
        return f"{host}:{port}"

    def replace(self):
        """Put a new head in place of the one before: it knows no job."""
        self._heads += 1
        session = f"session_2030-01-01_00-00-0{self._heads}_000000_1"
        self.head = ScriptedHead(SystemClock(), self.ledger, session=session, token=self._token)

    async def __aenter__(self):
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._ssl).start()
        return self

    async def __aexit__(self, *_why):
        await self._runner.cleanup()

    async def _handle(self, request):
        path = request.rel_url.raw_path
        step = _step(request.method, path)
        body = await request.read()
        self.requests.append((step, dict(request.headers), body))
        fault = self.faults[step].pop(0) if self.faults[step] else None
        if fault == "new head":
            self.replace()
        if isinstance(fault, int):
            return web.Response(status=fault, text="trouble")
        if fault == "drop":
            return self._cut(request)
        if step == "tail":
            return await self._tail(request, fault)
        answer = self.head.handle(request.method, path, request.headers, body)
        if fault == "answer lost":
            return self._cut(request)
        return web.Response(status=answer.status, body=answer.body)

    async def _tail(self, request, fault):
        job_id = request.rel_url.raw_path.split("/")[3]
        found = self.head.handle("GET", f"/api/jobs/{job_id}", request.headers, b"")
        if found.status != 200:
            return web.Response(status=found.status, body=found.body)
        self.tails += 1
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        how, parts = fault if isinstance(fault, tuple) else ("end", len(self.log))
        for text in self.log[:parts]:
            await socket.send_str(text)
        if how == "break":
            self._cut(request)
        elif how == "end":
            self.head.set_status(job_id, self.ends, self.message)
        await socket.close(code=WSCloseCode.OK)
        return socket

    @staticmethod
    def _cut(request):
        request.transport.abort()
        return web.Response()


def _step(method, path):
    if path == "/api/version":
        return "version"
    if method == "POST":
        return "submit"
    return "tail" if path.endswith("/logs/tail") else "info"
