"""The webhooks on the wire: HTTPS, one POST for each question, and bounds on what it may cost."""

import asyncio
import logging
import ssl
from functools import partial
from typing import Final, NamedTuple

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from eagleray.runtime.addresses import Address
from eagleray.runtime.metrics import Registry
from eagleray.webhooks.reviews import WEBHOOKS, NotAReview, Webhook, answer
from kubewire.sources import Clock

log = logging.getLogger(f"{__name__}.connections")


def _is_our_fault(record: logging.LogRecord) -> bool:
    """Keep out of the log what others sent wrong."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


log.addFilter(_is_our_fault)

# The object, the one before, and room for what stands around them.
LONGEST_BODY: Final = 7 * 1024 * 1024
# Bodies are held in memory, so not many are at a time; an answer takes milliseconds once its question is read.
AT_ONCE: Final = 32
# API servers keep a few each. Whoever opens more and says nothing is cut off when somebody else comes.
MOST_CONNECTIONS: Final = 512
_KEEP_ALIVE: Final = 150.0
_HANDSHAKE: Final = 10.0
_JSON: Final = "application/json"
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Patience(NamedTuple):
    """How many seconds others may take. An API server gives up after 10 unless it is told otherwise."""

    body: float = 10.0
    turn: float = 10.0
    # What is under way when the server stops, and what is left of a body that was refused.
    end: float = 2.0


class WebhookMetrics:
    """What is asked of the webhooks, under the names that dashboards know."""

    def __init__(self, registry: Registry) -> None:
        self.total = registry.counter(
            "controller_runtime_webhook_requests_total",
            "Questions by the code of the answer",
            ("webhook", "code"),
        )
        self.seconds = registry.histogram(
            "controller_runtime_webhook_latency_seconds", "How long answers took", ("webhook",), _SECONDS
        )
        for webhook in WEBHOOKS:
            self.total.start(webhook.path, "200")
            self.seconds.start(webhook.path)


class WebhookServer:
    """Answers AdmissionReviews."""

    def __init__(
        self,
        context: ssl.SSLContext,
        metrics: WebhookMetrics,
        clock: Clock,
        patience: Patience | None = None,
    ) -> None:
        self._context = context
        self._metrics = metrics
        self._clock = clock
        self._patience = patience or Patience()
        self._webhooks = {webhook.path: webhook for webhook in WEBHOOKS}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._server: web.Server | None = None
        self._listener: asyncio.Server | None = None

    async def start(self, address: Address) -> int:
        """Listen and return the port; port 0 takes any free one."""
        self._server = web.Server(
            self._handle,
            access_log=None,
            logger=log,
            keepalive_timeout=_KEEP_ALIVE,
            lingering_time=self._patience.end,
            # A small body that unpacks into a huge one would pass the bound on its length.
            auto_decompress=False,
        )
        self._listener = await asyncio.get_running_loop().create_server(
            partial(_connection, self._server),
            address.host or None,
            address.port,
            ssl=self._context,
            ssl_handshake_timeout=_HANDSHAKE,
        )
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stop to listen, and give what is under way a moment."""
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            self._server.pre_shutdown()
            await self._server.shutdown(self._patience.end)
        if self._listener is not None:
            await self._listener.wait_closed()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        webhook = self._webhooks.get(request.path)
        if webhook is None:
            return _refusal(404, "there is no such webhook")
        started = self._clock.monotonic()
        response = await self._answered(webhook, request)
        self._metrics.total.add(webhook.path, str(response.status))
        self._metrics.seconds.observe(self._clock.monotonic() - started, webhook.path)
        return response

    async def _answered(self, webhook: Webhook, request: web.BaseRequest) -> web.Response:
        if request.method != "POST":
            return _refusal(405, "only POST", Allow="POST")
        if request.content_type != _JSON or "Content-Encoding" in request.headers:
            return _refusal(415, f"only {_JSON}, and not compressed")
        try:
            async with asyncio.timeout(self._patience.turn):
                await self._turns.acquire()
        except TimeoutError:
            return _refusal(503, "too many questions at once", **{"Retry-After": "1"})
        try:
            async with asyncio.timeout(self._patience.body):
                body = await _body(request)
            if body is None:
                return _refusal(413, f"more than {LONGEST_BODY} bytes")
            return web.Response(body=answer(webhook, body), content_type=_JSON)
        except TimeoutError:
            return _refusal(408, f"the question did not come within {self._patience.body:g} s")
        except NotAReview as bad:
            return _refusal(400, str(bad))
        finally:
            self._turns.release()


def _connection(server: web.Server) -> asyncio.BaseProtocol:
    """Return what speaks on a new connection; the oldest makes room for it if there are too many."""
    present = server.connections
    if len(present) >= MOST_CONNECTIONS:
        present[0].force_close()
    return server()


async def _body(request: web.BaseRequest) -> bytes | None:
    """Return the body; None if it is too long."""
    if (request.content_length or 0) > LONGEST_BODY:
        return None
    parts: list[bytes] = []
    held = 0
    async for chunk in request.content.iter_any():
        held += len(chunk)
        if held > LONGEST_BODY:
            return None
        parts.append(chunk)
    return b"".join(parts)


def _refusal(status: int, text: str, **headers: str) -> web.Response:
    response = web.Response(status=status, text=f"{text}\n", headers=headers)
    # What is left of the body is not worth reading.
    response.force_close()
    return response
