"""Small HTTP pages about this process: `/healthz`, `/readyz` and `/metrics`, with checks that tell the truth."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from aiohttp import web

from eagleray.runtime.addresses import Address
from eagleray.runtime.metrics import CONTENT_TYPE, Registry

log = logging.getLogger(__name__)

# Whoever reads so slowly that an answer takes longer is cut off.
_SHUTDOWN_SECONDS = 2.0

# How often the event loop shows that it lives, and how long it may be silent.
BEAT_SECONDS = 1.0
SILENCE_SECONDS = 30.0

# A check returns None if all is well, else what is wrong.
Check = Callable[[], str | None]


class Page(NamedTuple):
    """An answer to a GET."""

    status: int
    text: str
    content_type: str = "text/plain; charset=utf-8"


class Checks:
    """Named checks behind one page."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {"ping": lambda: None}

    def add(self, name: str, check: Check) -> None:
        """Let the page depend on a check."""
        self._checks[name] = check

    def page(self, only: str = "") -> Page:
        """Return 200 if all checks are well (or the one that is named), else 500 with what is wrong."""
        if only and only not in self._checks:
            return Page(404, f"there is no check {only!r}\n")
        lines: list[str] = []
        status = 200
        for name, check in self._checks.items():
            if only in ("", name):
                wrong = _problem(name, check)
                lines.append(f"[-]{name} failed: {wrong}" if wrong else f"[+]{name} ok")
                status = 500 if wrong else status
        lines.append("check failed" if status == 500 else "ok")
        return Page(status, "\n".join([*lines, ""]))


class Pulse:
    """Notices when the event loop, or what runs on it, has stopped to turn."""

    def __init__(self) -> None:
        self._last = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to beat."""
        self._last = asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._beat(), name="pulse")

    async def stop(self) -> None:
        """Stop to beat."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def check(self) -> str | None:
        """Return what is wrong if the last beat is too long ago."""
        silent = asyncio.get_running_loop().time() - self._last
        return f"the event loop was silent for {silent:.0f} s" if silent > SILENCE_SECONDS else None

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self._last = loop.time()


class PageServer:
    """Answers GET and HEAD with pages, over plain HTTP."""

    def __init__(self, pages: Mapping[str, Callable[[str], Page]]) -> None:
        self._pages = pages
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, address: Address) -> int:
        """Listen and return the port; port 0 takes any free one."""
        self._server = web.Server(self._handle, access_log=None)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._server, address.host or None, address.port)
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop to listen and cut what is open."""
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            await self._server.shutdown(_SHUTDOWN_SECONDS)
        if self._listener is not None:
            await self._listener.wait_closed()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        path, _, rest = request.path.lstrip("/").partition("/")
        page = self._pages.get(path)
        if page is None:
            return web.Response(status=404, text="not found\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="only GET\n", headers={"Allow": "GET, HEAD"})
        answer = page(rest)
        headers = {"Content-Type": answer.content_type}
        return web.Response(status=answer.status, body=answer.text.encode(), headers=headers)


def metrics_server(registry: Registry) -> PageServer:
    """Return the server of `/metrics`."""
    return PageServer({"metrics": lambda rest: _metrics_page(registry, rest)})


def probe_server(health: Checks, readiness: Checks) -> PageServer:
    """Return the server of `/healthz` and `/readyz`; `/readyz/NAME` asks one check."""
    return PageServer({"healthz": health.page, "readyz": readiness.page})


def _metrics_page(registry: Registry, rest: str) -> Page:
    return Page(404, "not found\n") if rest else Page(200, registry.render(), CONTENT_TYPE)


def _problem(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        log.exception("the check %s itself is broken", name)
        return f"the check is broken: {error}"
