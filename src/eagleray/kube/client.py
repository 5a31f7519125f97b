"""The client of the Kubernetes API: sends requests until they are answered or it would be wrong to go on."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar

import msgspec

from eagleray import __version__
from eagleray.kube import requests
from eagleray.kube.requests import EVERYTHING, PatchKind, Propagation, Request, Selection
from eagleray.kube.resources import Object, Ref, Resource
from eagleray.kube.retries import Backoff, Patience, asked_pause, may_repeat
from eagleray.kube.throttle import Throttle
from eagleray.kube.transport import Answer, AnswerLost, Transport, TransportError
from kubewire import errors
from kubewire.sources import Clock, Entropy

T = TypeVar("T")

log = logging.getLogger(__name__)

USER_AGENT = f"eagleray-{__version__}"
PAGE = 500
# No object is as large; a line that is longer comes from something that is no API server.
_LONGEST_LINE = 64 * 2**20


class Observer(Protocol):
    """Whoever counts requests. `code` is 0 for a try that got no answer."""

    def answered(self, request: Request, host: str, code: int, seconds: float, size: int) -> None:
        """A try has ended; `size` is how many bytes came back, nothing for a stream."""
        ...

    def held_back(self, request: Request, host: str, seconds: float) -> None:
        """The client's own limit has made a request wait."""
        ...

    def repeated(self, request: Request, host: str, code: int) -> None:
        """A request is sent again because its last try ended like this."""
        ...


class WatchEvent(msgspec.Struct, frozen=True):
    """Something that happened; the object is not decoded yet."""

    type: str
    object: msgspec.Raw


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMetadata
    items: list[msgspec.Raw] | None = None


class Listing(msgspec.Struct, frozen=True):
    """All objects of a selection at a version, not decoded yet."""

    items: list[msgspec.Raw]
    version: str


_events = msgspec.json.Decoder(WatchEvent)
_pages = msgspec.json.Decoder(_Page)
_objects = msgspec.json.Decoder(dict[str, Any])


class Client:
    """Speaks to one API server. Refusals are raised as `kubewire.errors`, silence as a TransportError.

    A request whose outcome is unknown is repeated only if its name or precondition makes that safe. The answer is
    then the second one: a create may meet its own object as AlreadyExists, a change its own effect as Conflict, a
    delete as NotFound.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        entropy: Entropy,
        *,
        qps: float = 100.0,
        burst: int = 200,
        patience: Patience | None = None,
        user_agent: str = USER_AGENT,
        observer: Observer | None = None,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._entropy = entropy
        self._throttle = Throttle(clock, qps, burst)
        self._patience = patience or Patience()
        self._user_agent = ("user-agent", user_agent)
        self._observer = observer

    # --- objects

    async def get(self, resource: Resource, namespace: str, name: str, *, part: str = "") -> Object:
        """Return an object as it is now."""
        return await self._read(requests.get(resource, namespace, name, part=part), _objects)

    async def list(self, resource: Resource, selection: Selection = EVERYTHING) -> list[Object]:
        """Return all objects of a selection as they were at one moment."""
        return [_objects.decode(item) for item in (await self.listing(resource, selection)).items]

    async def create(
        self, resource: Resource, obj: Mapping[str, Any], *, manager: str = "", dry_run: bool = False
    ) -> Object:
        request = requests.create(resource, obj, manager=manager, dry_run=dry_run)
        return await self._read(request, _objects)

    async def replace(
        self,
        resource: Resource,
        obj: Mapping[str, Any],
        *,
        part: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Have the object become this one; with its resourceVersion, only if nobody else has changed it."""
        request = requests.replace(resource, obj, part=part, manager=manager, dry_run=dry_run)
        return await self._read(request, _objects)

    async def patch(
        self,
        resource: Resource,
        ref: Ref,
        change: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        kind: PatchKind = "merge",
        *,
        part: str = "",
        manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Change the object; with a version in the reference, only if it still is as it was observed."""
        request = requests.patch(
            resource, ref, change, kind, part=part, manager=manager, force=force, dry_run=dry_run
        )
        return await self._read(request, _objects)

    async def patch_status(
        self, resource: Resource, ref: Ref, status: Mapping[str, Any], *, manager: str = ""
    ) -> Object:
        """Merge this into the object's status."""
        return await self.patch(resource, ref, {"status": status}, part="status", manager=manager)

    async def delete(
        self,
        resource: Resource,
        ref: Ref,
        *,
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete this very object; returns it as it is left, or the Status that says that it is gone."""
        request = requests.delete(
            resource, ref, propagation=propagation, grace_seconds=grace_seconds, dry_run=dry_run
        )
        return await self._read(request, _objects)

    async def delete_collection(
        self, resource: Resource, selection: Selection, *, propagation: Propagation | None = None
    ) -> Sequence[Object]:
        """Delete whatever is selected; returns what that was, as far as the server says so."""
        request = requests.delete_collection(resource, selection, propagation=propagation)
        return (await self._read(request, _objects)).get("items") or []

    # --- many objects

    async def listing(
        self, resource: Resource, selection: Selection = EVERYTHING, *, page: int = PAGE
    ) -> Listing:
        """Return all objects of a selection at one moment, page by page and undecoded."""
        items: list[msgspec.Raw] = []
        proceed = ""
        while True:
            request = requests.list_page(resource, selection, limit=page, proceed=proceed)
            try:
                found = await self._read(request, _pages)
            except errors.Gone:
                if not proceed:
                    raise
                # The pages were read too slowly for the server's memory. All at once cannot fall behind.
                items, proceed, page = [], "", 0
                continue
            items += found.items or []
            proceed = found.metadata.continue_
            if not proceed:
                return Listing(items, found.metadata.resource_version)

    async def watch(
        self,
        resource: Resource,
        selection: Selection = EVERYTHING,
        *,
        version: str = "",
        seconds: int = 0,
        with_present: bool = False,
    ) -> AsyncGenerator[tuple[WatchEvent, ...], None]:
        """Yield what happens, as many events at once as have come, until the server hangs up.

        The first time there are none: the server has agreed. A failure that it tells of is raised. Nothing is
        repeated here: where to go on is for the caller to know. Close it (`contextlib.aclosing`) to hang up.
        """
        request = requests.watch(
            resource, selection, version=version, seconds=seconds, with_present=with_present
        )
        request = request._replace(headers=(*request.headers, self._user_agent))
        await self._wait_for_turn(request, self._patience.total)
        started = self._clock.monotonic()
        async with AsyncExitStack() as opened:
            try:
                async with asyncio.timeout(self._patience.attempt):
                    answer, chunks = await opened.enter_async_context(self._transport.stream(request))
            except TimeoutError:
                raise AnswerLost(f"{_shown(request)}: no answer in {self._patience.attempt:g} s") from None
            self._observe(request, answer, started)
            if not answer.is_success:
                raise refusal(answer)
            yield ()
            async for batch in _lines(chunks):
                events = tuple(_events.decode(line) for line in batch)
                for event in events:
                    if event.type == "ERROR":
                        status = _objects.decode(event.object)
                        raise errors.from_status(status, status.get("code") or 500)
                yield events

    # --- sending

    async def send(self, request: Request, patience: Patience | None = None) -> Answer:
        """Send a request, again where that is safe and may help, and return the answer of its success."""
        patience = patience or self._patience
        deadline = self._clock.monotonic() + patience.total
        request = request._replace(headers=(*request.headers, self._user_agent))
        backoff = Backoff(self._entropy, patience.first_pause, patience.longest_pause)
        tries = 1
        while True:
            left = deadline - self._clock.monotonic()
            outcome = await self._try(request, min(patience.attempt, left), left)
            if isinstance(outcome, Answer) and outcome.is_success:
                return outcome
            pause = backoff.pause()
            if isinstance(outcome, Answer):
                asked = asked_pause(outcome, self._clock.now())
                if asked > patience.longest_asked:
                    raise refusal(outcome)
                pause = max(pause, asked)
            out_of_time = self._clock.monotonic() + pause >= deadline or tries >= patience.tries
            if out_of_time or not may_repeat(request, outcome):
                raise refusal(outcome) if isinstance(outcome, Answer) else outcome
            code = outcome.status if isinstance(outcome, Answer) else 0
            log.debug("%s ended with %s; again in %.3g s", _shown(request), code or outcome, pause)
            if self._observer is not None:
                self._observer.repeated(request, self._transport.host, code)
            await self._clock.sleep(pause)
            tries += 1

    async def close(self) -> None:
        """Let go of all connections."""
        await self._transport.close()

    async def _read(self, request: Request, decoder: msgspec.json.Decoder[T]) -> T:
        answer = await self.send(request)
        try:
            return decoder.decode(answer.body)
        except msgspec.DecodeError as bad:
            raise AnswerLost(f"{_shown(request)}: the answer cannot be read: {bad}") from bad

    async def _try(self, request: Request, seconds: float, at_most: float) -> Answer | TransportError:
        """Return how one try ended."""
        await self._wait_for_turn(request, at_most)
        started = self._clock.monotonic()
        outcome: Answer | TransportError
        try:
            async with asyncio.timeout(seconds):
                outcome = await self._transport.send(request)
        except TimeoutError:
            outcome = AnswerLost(f"{_shown(request)}: no answer in {seconds:g} s")
        except TransportError as failure:
            outcome = failure
        self._observe(request, outcome if isinstance(outcome, Answer) else None, started)
        return outcome

    async def _wait_for_turn(self, request: Request, at_most: float) -> None:
        waited = await self._throttle.wait(request.resource, at_most)
        if waited and self._observer is not None:
            self._observer.held_back(request, self._transport.host, waited)

    def _observe(self, request: Request, answer: Answer | None, started: float) -> None:
        if self._observer is not None:
            code, size = (answer.status, len(answer.body)) if answer is not None else (0, 0)
            seconds = self._clock.monotonic() - started
            self._observer.answered(request, self._transport.host, code, seconds, size)


def refusal(answer: Answer) -> errors.ApiError:
    """Return the error that an answer stands for, with the pause that the server asks for."""
    try:
        status = _objects.decode(answer.body)
    except msgspec.DecodeError:
        status = None  # a page of a proxy, or of a server that has no such path
    error = errors.from_status(status, answer.status)
    asked = answer.headers.get("retry-after", "")
    if not error.retry_after_seconds and asked.isascii() and asked.isdecimal():
        error.details = (error.details or errors.Details())._replace(retry_after_seconds=int(asked[:9]))
    return error


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the whole lines of a stream, as many as each chunk completes; a last line that was cut off is dropped."""
    parts: list[bytes] = []
    held = 0
    async for chunk in chunks:
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            whole = b"".join([*parts, head])
            parts, held = [], 0
            yield [line for line in whole.split(b"\n") if line]
        if tail:
            parts.append(tail)
            held += len(tail)
            if held > _LONGEST_LINE:
                raise AnswerLost(f"a line of more than {_LONGEST_LINE // 2**20} MiB: this is no API server")


def _shown(request: Request) -> str:
    return f"{request.method} {request.path}"
