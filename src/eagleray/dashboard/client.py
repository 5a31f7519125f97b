"""Ray's dashboard as an object: what to ask it for, what it says, and how it fails."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, NamedTuple, TypeVar

from eagleray.dashboard import requests, words
from eagleray.dashboard.address import Address
from eagleray.dashboard.carriers import Carrier, ConnectTimedOut, HandshakeRefused, Tailing, TooLong
from eagleray.dashboard.errors import (
    AlreadyThere,
    DashboardError,
    Malformed,
    NotThere,
    Refused,
    Unauthorised,
    Unreachable,
)
from eagleray.dashboard.requests import Submission
from eagleray.dashboard.tokens import NoTokens, Token, Tokens
from eagleray.dashboard.words import JobInfo, ServeDetails, Version
from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, NotSent, TransportError

T = TypeVar("T")

# Answers about one thing, about everything, and logs.
_LONGEST_ANSWER: Final = 4 * 2**20
_LONGEST_LIST: Final = 32 * 2**20
_LONGEST_LOGS: Final = 256 * 2**20
_LONGEST_REFUSAL: Final = 2000
# A connection gets this part of the deadline, so that one that is never made is told from an answer that never came.
_CONNECT_PART: Final = 0.75

# Ray's own words; a 404 of anybody else (a route that is not there, a gateway) says nothing about a job.
_NO_SUCH_JOB: Final = b"does not exist"
_ID_TAKEN: Final = b"Please use a different submission_id"
# Whoever gave up waiting for the request may have had it whole.
_REQUEST_TIMEOUT: Final = 408


class Patience(NamedTuple):
    """How many seconds a call may take."""

    # For whatever only reads.
    read: float = 2.0
    # Ray waits up to 10 s for an agent before it starts a job; hanging up earlier leaves open what it did.
    write: float = 15.0
    # Logs are as long as they are.
    logs: float = 60.0
    # A package has up to 100 MiB, and some lines are slow.
    package: float = 600.0


DIRECT: Final = Patience()
PROXIED: Final = Patience(read=10.0, write=20.0)


class Dashboard:
    """The dashboard at one address. Whatever goes wrong is raised as a DashboardError.

    Every call has a deadline. None is repeated here, except that a refused token is replaced by a newer one.
    """

    def __init__(
        self, address: Address, carrier: Carrier, tokens: Tokens | None = None, patience: Patience = DIRECT
    ) -> None:
        self.address = address
        self._carrier = carrier
        self._tokens = tokens or NoTokens()
        self._patience = patience

    # --- jobs

    async def version(self) -> Version:
        """Return which Ray this is and the name of its session, which is another one for every new head."""
        return await self._ask(requests.version(), words.read_version)

    async def submit(self, submission: Submission) -> str:
        """Have a job run; returns its submission id.

        An error with `certainly_not_done` means that Ray has not started it because of this call. `AlreadyThere` means
        that this head knows the id: an earlier submission was received.
        """
        return await self._ask(requests.submit(submission), words.read_submitted)

    async def info(self, job_id: str) -> JobInfo:
        """Return what Ray knows about a job; `NotThere` if it has none of this id."""
        try:
            return await self._ask(requests.info(job_id), words.read_job)
        except (Refused, Malformed, Unauthorised) as failure:
            failure.args = (f"GetJobInfo fail: {failure}",)  # the words that users of the reference look for
            raise

    async def list(self, *, longest: int = _LONGEST_LIST) -> tuple[JobInfo, ...]:
        """Return all jobs, those of other submitters included. A Ray without jobs at all has none."""
        try:
            return await self._ask(requests.list_jobs(), words.read_jobs, longest=longest)
        except Refused as refused:
            if refused.code == 404:
                return ()
            raise

    async def stop(self, job_id: str) -> None:
        """Have a job stopped; returns once Ray has begun to, or if the job has ended already."""
        stopped = await self._ask(requests.stop(job_id), words.read_stopped)
        if stopped:
            return
        info = await self.info(job_id)
        if not info.is_terminal:
            raise Refused(
                409, f"job {job_id} is {info.status}, and Ray did not stop it", certainly_not_done=True
            )

    async def delete(self, job_id: str) -> bool:
        """Have Ray forget a job that has ended; returns whether it has."""
        return await self._ask(requests.delete(job_id), words.read_deleted)

    async def logs(self, job_id: str) -> str:
        """Return what a job has printed so far."""
        return await self._ask(
            requests.logs(job_id), words.read_logs, seconds=self._patience.logs, longest=_LONGEST_LOGS
        )

    @asynccontextmanager
    async def tail(self, job_id: str) -> AsyncIterator[AsyncIterator[str]]:
        """Give what a job prints, from its beginning, until it ends. Only a direct connection can."""
        request = requests.logs_tail(job_id)
        carrier = self._carrier
        if not isinstance(carrier, Tailing):
            raise Refused(501, "logs cannot be followed through the API server", certainly_not_done=True)
        async with AsyncExitStack() as opened:
            try:
                async with asyncio.timeout(self._patience.read):
                    token = await self._tokens.current(self.address)
                    listening = carrier.listen(self.address, request, token, longest=_LONGEST_ANSWER)
                    texts = await opened.enter_async_context(listening)
            except HandshakeRefused as refused:
                # The body is lost with the handshake. A dashboard with this path says 404 for a missing job only.
                body = _NO_SUCH_JOB if refused.status == 404 else b""
                raise _refusal(self.address, request, Answer(refused.status, body)) from refused
            except TransportError as failure:
                raise _unreachable(failure, request) from failure
            except TimeoutError:
                raise self._too_late(request, self._patience.read, is_sent=False) from None
            yield _told(texts, request)

    # --- packages of files

    async def has_package(self, name: str) -> bool:
        """Return whether Ray has a package of this name."""
        try:
            await self._ask(requests.package(name), _ignored)
        except NotThere:
            return False
        return True

    async def put_package(self, name: str, data: bytes) -> None:
        """Hand a package over, which jobs then name as `gcs://<name>`."""
        await self._ask(requests.put_package(name, data), _ignored, seconds=self._patience.package)

    # --- Serve

    async def serve_details(self) -> ServeDetails:
        """Return the state of all Serve applications."""
        return await self._ask(requests.serve_details(), words.read_serve, longest=_LONGEST_LIST)

    async def put_serve(self, configuration: Mapping[str, Any]) -> None:
        """Have the Serve applications become these."""
        await self._ask(requests.put_serve(configuration), _ignored)

    async def serve_health(self) -> bool:
        """Return whether the Serve proxy at this address takes traffic; anything but 200 is a no."""
        try:
            await self._ask(requests.serve_health(), _ignored)
        except (Refused, NotThere, Unauthorised):
            return False
        return True

    # --- sending

    async def _ask(
        self,
        request: Request,
        read: Callable[[bytes], T],
        *,
        seconds: float | None = None,
        longest: int = _LONGEST_ANSWER,
    ) -> T:
        is_read = request.repeatable == "read"
        seconds = seconds or (self._patience.read if is_read else self._patience.write)
        try:
            answer = await self._send(request, seconds, longest)
            if not answer.is_success:
                raise _refusal(self.address, request, answer)
            return read(answer.body)
        except DashboardError as failure:
            # Whatever became of a question, it has changed nothing.
            failure.certainly_not_done = failure.certainly_not_done or is_read
            raise

    async def _send(self, request: Request, seconds: float, longest: int) -> Answer:
        """Return the answer to a request within a time; the token is got within the same time."""
        is_sent = False
        try:
            async with asyncio.timeout(seconds):
                token = await self._tokens.current(self.address)
                is_sent = True
                answer = await self._send_with(token, request, seconds, longest)
                if answer.status not in {401, 403} or not self._tokens.refused(self.address, token):
                    return answer
                # Nothing has been done for a stranger, so that sending it again is safe whatever it is.
                is_sent = False
                renewed = await self._tokens.current(self.address)
                if renewed == token:
                    return answer
                is_sent = True
                return await self._send_with(renewed, request, seconds, longest)
        except TimeoutError:
            raise self._too_late(request, seconds, is_sent=is_sent) from None
        except TransportError as failure:
            raise _unreachable(failure, request) from failure

    async def _send_with(self, token: Token | None, request: Request, seconds: float, longest: int) -> Answer:
        return await self._carrier.send(
            self.address, request, token, connect_seconds=seconds * _CONNECT_PART, longest=longest
        )

    def _too_late(self, request: Request, seconds: float, *, is_sent: bool) -> Unreachable:
        what = f"{_shown(self.address, request)}: no answer in {seconds:g} s"
        return Unreachable(what, certainly_not_done=not is_sent, timed_out=True)


def _refusal(address: Address, request: Request, answer: Answer) -> DashboardError:
    """Return the error that an answer other than success stands for."""
    told = f"{_shown(address, request)}: {answer.status}: {_reason(answer.body)}"
    if answer.status in {401, 403}:
        return Unauthorised(told, certainly_not_done=True)
    if answer.status == 404 and _NO_SUCH_JOB in answer.body:
        return NotThere(told, certainly_not_done=True)
    if _ID_TAKEN in answer.body:
        return AlreadyThere(answer.status, told, certainly_not_done=True)
    # An error of the server leaves open how far it came.
    not_done = answer.status < 500 and answer.status != _REQUEST_TIMEOUT
    return Refused(answer.status, told, certainly_not_done=not_done)


def _reason(body: bytes) -> str:
    """Return what went wrong; Ray answers with tracebacks, in which it stands in the last line that says anything."""
    lines = body[-_LONGEST_REFUSAL:].decode("utf-8", "replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip(" .")), "no reason is given")


def _unreachable(failure: TransportError, request: Request) -> DashboardError:
    if isinstance(failure, TooLong):
        return Malformed(f"{request.method} {request.path}: {failure}", certainly_not_done=False)
    is_read = request.repeatable == "read"
    return Unreachable(
        str(failure),
        certainly_not_done=is_read or isinstance(failure, NotSent),
        timed_out=isinstance(failure, ConnectTimedOut),
    )


async def _told(texts: AsyncIterator[str], request: Request) -> AsyncIterator[str]:
    """Yield texts; a line that breaks is told as everything else is."""
    try:
        async for text in texts:
            yield text
    except TransportError as failure:
        raise _unreachable(failure, request) from failure


def _ignored(_body: bytes) -> None:
    """Whatever a success says beyond itself is not read."""


def _shown(address: Address, request: Request) -> str:
    return f"{request.method} {address}{request.path}"
