"""What can be asked of a dashboard again and again, and what came of it.

Questions are keys: two kinds of them about one address differ, as named tuples would not.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

import msgspec

from eagleray.dashboard.address import Address
from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import DashboardError, NotThere, Unreachable
from eagleray.dashboard.words import JobInfo, ServeDetails, Version

# Ray lists every job that ever ran. Beyond this, asking for each of ours is cheaper.
_LONGEST_LIST: Final = 2**20


class JobOf(msgspec.Struct, frozen=True):
    """How is this job doing? It is asked until the job has ended."""

    address: Address
    job_id: str


class SessionOf(msgspec.Struct, frozen=True):
    """Which start of Ray answers here? Once known, it is asked again when a job is missing."""

    address: Address


class ServeOf(msgspec.Struct, frozen=True):
    """How are the Serve applications of this cluster doing?"""

    address: Address


class HealthOf(msgspec.Struct, frozen=True):
    """Does the Serve proxy at this address take traffic?"""

    address: Address


Question: TypeAlias = JobOf | SessionOf | ServeOf | HealthOf
Value: TypeAlias = JobInfo | Version | ServeDetails | bool


class Observation(NamedTuple):
    """The latest that is known.

    `value` is the last answer there was, `error` is how asking has failed since. A job that Ray does not have is told
    as the error NotThere; the dashboard has answered then, so nothing is failing.
    """

    value: Value | None
    error: DashboardError | None
    # When the latest try ended.
    at: datetime
    # Since when no try has got an answer; None if the latest has.
    failing_since: datetime | None = None

    @property
    def job(self) -> JobInfo | None:
        """What is known of a job, if that was the question."""
        return self.value if isinstance(self.value, JobInfo) else None

    @property
    def session(self) -> str:
        """The name of the session, if that was the question and Ray has named it."""
        return self.value.session_name if isinstance(self.value, Version) else ""

    @property
    def serve(self) -> ServeDetails | None:
        """What is known of Serve, if that was the question."""
        return self.value if isinstance(self.value, ServeDetails) else None

    @property
    def takes_traffic(self) -> bool:
        """Whether the Serve proxy was last seen to take traffic; one that cannot be reached does not."""
        return self.value is True and self.error is None


class Found(NamedTuple):
    """What one question brought in one round."""

    question: Question
    result: Value | DashboardError


class Interview:
    """What is asked of one dashboard, round after round."""

    __slots__ = ("_may_list",)

    def __init__(self) -> None:
        self._may_list = True

    async def ask(
        self, dashboard: Dashboard, questions: Sequence[Question], spared: Sequence[Question] = ()
    ) -> AsyncIterator[Found]:
        """Ask everything, one request at a time, and yield what each question brought.

        Several jobs are asked for with one request. A job that is not in that list is asked for by its name before it
        is called missing. Once the dashboard cannot be reached, the rest is not asked but fails in the same way.
        What is `spared` is asked only if a job is missing, and before that is told.
        """
        unreachable: Unreachable | None = None
        listed: dict[str, JobInfo] = {}
        if self._may_list and sum(isinstance(question, JobOf) for question in questions) > 1:
            try:
                listed = _by_id(await dashboard.list(longest=_LONGEST_LIST))
            except Unreachable as failure:
                unreachable = failure
            except DashboardError:
                # Too long, or not to be had: from now on each job is asked for by its name, and says what is wrong.
                self._may_list = False
        for question in questions:
            if isinstance(question, JobOf) and question.job_id in listed:
                yield Found(question, listed[question.job_id])
                continue
            result = unreachable or await _ask(dashboard, question)
            if isinstance(result, Unreachable):
                unreachable = result
            if isinstance(result, NotThere):
                for also in spared:
                    yield Found(also, await _ask(dashboard, also))
                spared = ()
            yield Found(question, result)


def _by_id(jobs: Iterable[JobInfo]) -> dict[str, JobInfo]:
    """Return jobs by every id they have. An id that Ray gave to a driver must not hide a submission's."""
    by_driver = {job.job_id: job for job in jobs if job.job_id}
    return by_driver | {job.submission_id: job for job in jobs if job.submission_id}


async def _ask(dashboard: Dashboard, question: Question) -> Value | DashboardError:
    try:
        match question:
            case JobOf(_, job_id):
                return await dashboard.info(job_id)
            case SessionOf():
                return await dashboard.version()
            case ServeOf():
                return await dashboard.serve_details()
            case HealthOf():
                return await dashboard.serve_health()
    except DashboardError as failure:
        return failure
