"""An operator as a process that can be killed, and the wire to the server on which one thing goes wrong.

The wire belongs to a run: it counts the requests and the news since it was armed, over all lives of the operator.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, NamedTuple

import msgspec

from eagleray.kube.transport import AnswerLost, NotSent, Stream
from eagleray.operator.assembly import Operator
from eagleray.runtime.options import read_options
from kubereef.simulation import VirtualLoop, settle
from kubewire import errors
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import aiter_of, status, transport_to
from tests.eagleray.world import QUIET

READS = ("get", "list", "watch")
# For how long news are held back; longer than any pause of the operator that is not a resync.
HELD_SECONDS = 40.0

REFUSALS = {
    "meets 409": errors.Conflict("Operation cannot be fulfilled: the object has been modified"),
    "meets 429": errors.TooManyRequests("slow down", details=errors.Details(retry_after_seconds=3)),
    "meets 500": errors.InternalError("etcd has no leader"),
}
WRITE_FAULTS = ("then killed", "answer lost")
REQUEST_FAULTS = ("not sent", *REFUSALS)
NEWS_FAULTS = ("held back", "cut", "meets 410")


class Point(NamedTuple):
    """Where a fault is put: at the n-th request or news of a kind since the wire was armed.

    Not at the n-th of all: what happens within one moment may come in another order in another run.
    """

    fault: str
    number: int
    what: str

    def __str__(self):
        return f"{self.what} (#{self.number}) {self.fault}"


# Which process a callback belongs to; it is inherited by all that a process starts.
_PROCESS: ContextVar[Any] = ContextVar("process", default=None)


class PausableLoop(VirtualLoop):
    """A loop on which a process can be made to stand still, as SIGSTOP does, while time goes on for all others."""

    def call_soon(self, callback, *args, context=None):  # type: ignore[override]  # any callback will do
        process = context.get(_PROCESS) if context is not None else _PROCESS.get()
        if process is None or not process.is_paused:
            return super().call_soon(callback, *args, context=context)
        context = context or copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        process.missed.append((handle, callback, args, context))
        return handle


class Wire:
    """What all lives of an operator share on their way to the server."""

    def __init__(self, server):
        self.inner = transport_to(server)
        self.requests = []  # what each was since the wire was armed, the verb first
        self.news = []
        self.point = None
        self.has_fired = False
        self.killed = asyncio.Event()
        self.chance = None  # asked with what could go wrong, each time; says what does
        self.after_write = None  # called with each write that was answered
        self.writes = []  # (time, what) of each that reached the server
        self._armed = False
        self._passed: Counter[str] = Counter()
        self._flows = asyncio.Event()
        self._flows.set()

    def arm(self, point=None):
        """Begin to count, and have a fault happen at a point."""
        self._armed = True
        self.point = point

    def disarm(self):
        self._armed = False

    def wrote(self, request):
        self.writes.append((asyncio.get_running_loop().time(), f"{request.verb} {request.resource}"))
        if self.after_write is not None:
            self.after_write(self.writes[-1][1])

    def next_request(self, request):
        """Count a request; return what is to go wrong with it."""
        if self.chance is not None:
            return self.chance(REQUEST_FAULTS if request.verb in READS else (*WRITE_FAULTS, *REQUEST_FAULTS))
        if not self._armed:
            return ""
        what = f"{request.verb} {request.resource or request.path}"
        self.requests.append(what)
        return self._fault_at(what, (*WRITE_FAULTS, *REQUEST_FAULTS))

    async def next_news(self, what):
        """Wait while news are held back, count one, and return what is to go wrong with it."""
        await self._flows.wait()
        if self.chance is not None:
            fault = self.chance(NEWS_FAULTS)
        elif self._armed:
            self.news.append(what)
            fault = self._fault_at(what, NEWS_FAULTS)
        else:
            return ""
        if fault == "held back":
            self._flows.clear()
            asyncio.get_running_loop().call_later(HELD_SECONDS, self._flows.set)
            await self._flows.wait()
            return ""
        return fault

    def _fault_at(self, what, faults):
        number, point = self._passed[what], self.point
        self._passed[what] += 1
        if point is None or self.has_fired or (what, number) != (point.what, point.number):
            return ""
        if point.fault not in faults:
            return ""
        self.has_fired = True
        return point.fault


class Line:
    """The transport of one life of an operator. After a kill nothing passes any more, whatever still runs."""

    host = "simulated"

    def __init__(self, wire):
        self._wire = wire
        self.is_dead = False

    async def send(self, request):
        return await self.carry(request, lambda: self._wire.inner.send(request))

    async def carry(self, request, send):
        """Carry a request to whoever answers it, unless something goes wrong on the way."""
        self._require_life()
        fault = self._wire.next_request(request)
        if fault == "not sent":
            raise NotSent("refused")
        if fault in REFUSALS:
            return refusal_of(fault)
        # The server is no part of the process: it goes on while the process stands still.
        answer = await asyncio.create_task(self._answered(request, send), context=Context())
        if fault == "then killed":
            self.is_dead = True
            self._wire.killed.set()
            await asyncio.Event().wait()
        if fault == "answer lost":
            raise AnswerLost("cut off")
        self._require_life()
        return answer

    async def _answered(self, request, send):
        answer = await send()
        if request.verb not in READS:
            self._wire.wrote(request)
        return answer

    @asynccontextmanager
    async def stream(self, request):
        self._require_life()
        fault = self._wire.next_request(request)
        if fault == "not sent":
            raise NotSent("refused")
        if fault in REFUSALS:
            yield Stream(refusal_of(fault), aiter_of(()))
            return
        async with self._wire.inner.stream(request) as (answer, chunks):
            yield Stream(answer, self._lines(request, chunks))

    async def _lines(self, request, chunks):
        """Yield the lines of a watch one by one, so that something can happen at each."""
        async for chunk in chunks:
            for line in chunk.splitlines(keepends=True):
                kind = msgspec.json.decode(line)["type"]
                if kind != "BOOKMARK":
                    fault = await self._wire.next_news(f"{kind} {request.resource}")
                    if fault == "cut":
                        raise AnswerLost("cut off")
                    if fault == "meets 410":
                        gone = errors.Expired("too old resource version").status()
                        yield msgspec.json.encode({"type": "ERROR", "object": gone}) + b"\n"
                        return
                self._require_life()
                yield line

    def _require_life(self):
        if self.is_dead:
            raise NotSent("killed")

    async def close(self):
        """Nothing is held."""


class ServePut(NamedTuple):
    """That Serve is handed a configuration: a write, though not one to the API server."""

    verb: str = "put"
    resource: str = "Serve applications"


class Carrier:
    """The way of one life of an operator to Ray's dashboards, on which things go wrong with what Serve is handed."""

    def __init__(self, line, inner):
        self._line = line
        self._inner = inner

    async def send(self, address, request, token, **limits):
        if request.method != "PUT":
            return await self._inner.send(address, request, token, **limits)
        return await self._line.carry(ServePut(), lambda: self._inner.send(address, request, token, **limits))

    async def close(self):
        """Nothing is held."""


class Process:
    """An operator that is started, stopped and killed, and remembers nothing from one life to the next."""

    def __init__(self, world, wire, flags, seed=0, name="eagleray"):
        self._world = world
        self._wire = wire
        self._flags = (*QUIET, *flags)
        self._seed = seed
        self._name = name
        self._lives = 0
        self._line = Line(wire)
        self._stop = asyncio.Event()
        self._zombies = []
        self.running: Any = None
        self.is_paused = False
        self.missed: list[Any] = []

    async def start(self):
        self._lives += 1
        self._line = Line(self._wire)
        self._stop = asyncio.Event()
        operator = Operator(
            read_options(self._flags, {}),
            self._line,
            clock=self._world.clock,
            entropy=SeededEntropy(f"{self._seed} {self._name} {self._lives}"),
            hostname=self._name,
            carrier=Carrier(self._line, self._world.dashboards),
        )
        context = copy_context()
        context.run(_PROCESS.set, self)
        self.running = asyncio.create_task(
            operator.run(self._stop), name=f"operator {self._name}", context=context
        )
        await settle()

    def pause(self):
        """Make it stand still; needs a `PausableLoop`."""
        self.is_paused = True

    def resume(self):
        """Let it go on, as one that has not noticed how much time has passed."""
        self.is_paused = False
        missed, self.missed = self.missed, []
        loop = asyncio.get_running_loop()
        for handle, callback, args, context in missed:
            if not handle.cancelled():
                loop.call_soon(callback, *args, context=context)

    async def stop(self):
        """Stop in order; returns the exit code."""
        self._stop.set()
        return await self.running

    def kill(self):
        """End it as kill -9 would: from now on the world hears nothing of it."""
        if self.running is not None:
            self._line.is_dead = True
            self.running.cancel()
            self._zombies.append(self.running)
            self.running = None

    async def restart_when_killed(self):
        """Start anew whenever the wire says that the operator was killed."""
        while True:
            await self._wire.killed.wait()
            self._wire.killed.clear()
            self.kill()
            await self.start()

    async def end(self):
        self.kill()
        await asyncio.gather(*self._zombies, return_exceptions=True)


def refusal_of(fault):
    error = REFUSALS[fault]
    answer = status(error)
    pause = error.retry_after_seconds
    return answer._replace(headers={"retry-after": str(pause)}) if pause else answer
