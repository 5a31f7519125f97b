"""One job from its submission to its end.

    end = await Submitting(dashboard, order, clock=clock, entropy=entropy, printed=print).run()

Whatever is lost on the way is sent again under the same submission id, which a head takes once. A head that may have
the job and is replaced takes it with it: the next one is not given the job a second time.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import (
    AlreadyThere,
    DashboardError,
    Malformed,
    NotThere,
    Refused,
    Unauthorised,
)
from eagleray.dashboard.words import JobInfo
from eagleray.kube.retries import Backoff
from eagleray.submitter.order import Head, Order
from kubewire.sources import Clock, Entropy

# Answers by which somebody before Ray says that Ray cannot be asked right now.
_BUSY: Final = frozenset((408, 429, 502, 503, 504))
# Ray says 500 for its own troubles and for what is wrong with a job alike.
_TRIES_AFTER_REFUSALS: Final = 3
_TRIES_FOR_THE_REST_OF_A_LOG: Final = 3


class Patience(NamedTuple):
    """Seconds: how long nothing may go well before it is given up, and the pauses in between."""

    submitting: float = 120.0
    following: float = 300.0
    first_pause: float = 0.5
    longest_pause: float = 10.0


class Lost(Exception):
    """The head that had the job is gone, and the job with it."""

    def __init__(self) -> None:
        super().__init__("The job was lost with the head that it was submitted to")


class Submitting:
    """One job. What it prints is `printed` as it comes, each part once, however often the line breaks."""

    def __init__(
        self,
        dashboard: Dashboard,
        order: Order,
        *,
        clock: Clock,
        entropy: Entropy,
        printed: Callable[[str], None],
        patience: Patience | None = None,
    ) -> None:
        self._dashboard = dashboard
        self._submission = order.submission
        self._head = order.head
        self._clock = clock
        self._entropy = entropy
        self._printed = printed
        self._patience = patience or Patience()
        self._shown = 0

    async def run(self) -> JobInfo:
        """Return how the job ended; Lost, or the DashboardError that could not be got around."""
        await self._submit()
        return await self._follow()

    # --- the submission

    async def _submit(self) -> None:
        tries = _Tries(self._clock, self._entropy, self._patience, self._patience.submitting)
        refusals = 0
        while True:
            try:
                await self._submit_once()
            except AlreadyThere:
                return  # an earlier submission was received, of this process or of one before it
            except Unauthorised:
                raise
            except DashboardError as failure:
                if isinstance(failure, Refused) and failure.code not in _BUSY:
                    refusals += 1
                    if failure.code < 500 or refusals >= _TRIES_AFTER_REFUSALS:
                        raise
                await tries.pause_after(failure)
            else:
                return

    async def _submit_once(self) -> None:
        session = await self._session()
        if self._head.is_another(session):
            raise Lost
        try:
            await self._dashboard.submit(self._submission)
        except DashboardError as failure:
            if not failure.certainly_not_done and session:
                # This head may have it by now, so that no other one may get it.
                self._head = Head(session)
            raise

    async def _session(self) -> str:
        """Return which head answers; nothing if its Ray does not say and it does not matter yet."""
        try:
            return (await self._dashboard.version()).session_name
        except (Refused, Malformed) as failure:
            is_busy = isinstance(failure, Refused) and failure.code in _BUSY
            if is_busy or self._head.session:
                raise
            return ""

    # --- the log, and the end

    async def _follow(self) -> JobInfo:
        tries = _Tries(self._clock, self._entropy, self._patience, self._patience.following)
        broken = 0
        while True:
            before = self._shown
            trouble: DashboardError | None = None
            try:
                await self._show()
            except NotThere:
                raise Lost from None
            except Unauthorised:
                raise
            except DashboardError as failure:
                trouble, broken = failure, broken + 1
            if self._shown > before:
                tries.start_anew()
            try:
                info = await self._dashboard.info(self._submission.submission_id)
            except NotThere:
                raise Lost from None
            except Unauthorised:
                raise
            except DashboardError as failure:
                await tries.pause_after(failure)
                continue
            if info.is_terminal and (trouble is None or broken >= _TRIES_FOR_THE_REST_OF_A_LOG):
                return info
            if trouble is None:
                tries.start_anew(keeps_pace=True)  # it goes on, and only its log has nothing to say
            await tries.pause_after(trouble)

    async def _show(self) -> None:
        """Print what the job prints until the line ends; Ray begins with the first word every time."""
        heard = 0
        async with self._dashboard.tail(self._submission.submission_id) as texts:
            async for text in texts:
                new = text[max(0, self._shown - heard) :]
                heard += len(text)
                if new:
                    self._shown = heard
                    self._printed(new)


class _Tries:
    """Pauses that grow, and an end to them when nothing has gone well for long enough."""

    def __init__(self, clock: Clock, entropy: Entropy, patience: Patience, total: float) -> None:
        self._clock = clock
        self._total = total
        self._backoff = Backoff(entropy, patience.first_pause, patience.longest_pause)
        self._deadline = clock.monotonic() + total

    def start_anew(self, *, keeps_pace: bool = False) -> None:
        """Something has gone well."""
        self._deadline = self._clock.monotonic() + self._total
        if not keeps_pace:
            self._backoff.reset()

    async def pause_after(self, failure: DashboardError | None) -> None:
        """Wait before the next try; after too many failures the last one is raised."""
        pause = self._backoff.pause()
        if failure is not None and self._clock.monotonic() + pause >= self._deadline:
            raise failure
        await self._clock.sleep(pause)
