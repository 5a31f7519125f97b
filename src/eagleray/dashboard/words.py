"""What Ray says about jobs and Serve applications, as small values.

Of every answer only what is read is kept, and of bounded length, because thousands of them are cached. Fields that are
missing in older Rays or new in later ones do no harm; words that are not known are kept as they are.
"""

from datetime import UTC, datetime
from typing import Annotated, Final, TypeVar

import msgspec

from eagleray.dashboard.errors import Malformed, clipped

T = TypeVar("T")

PENDING: Final = "PENDING"
RUNNING: Final = "RUNNING"
STOPPED: Final = "STOPPED"
SUCCEEDED: Final = "SUCCEEDED"
FAILED: Final = "FAILED"

JOB_WORDS: Final = frozenset({PENDING, RUNNING, STOPPED, SUCCEEDED, FAILED})
TERMINAL_WORDS: Final = frozenset({STOPPED, SUCCEEDED, FAILED})

APPLICATION_WORDS: Final = frozenset(
    {"NOT_STARTED", "DEPLOYING", "RUNNING", "DEPLOY_FAILED", "DELETING", "UNHEALTHY"}
)
DEPLOYMENT_WORDS: Final = frozenset({"UPDATING", "HEALTHY", "UNHEALTHY"})

# How an application without a name is shown.
DEFAULT_APPLICATION: Final = "default"

# Ray itself cuts a job's message here.
_LONGEST_MESSAGE: Final = 20_000
_LONGEST_SERVE_MESSAGE: Final = 8_000
_LONGEST_WORD: Final = 256
# No status can hold more, and no cluster runs as many.
_MOST_APPLICATIONS: Final = 1_000
_MOST_DEPLOYMENTS: Final = 1_000
# No RayService can hold a longer configuration.
_LONGEST_CONFIGURATION: Final = 1_572_864
_LAST_MILLISECOND: Final = 253_402_300_799_999  # the end of the year 9999


def is_terminal(status: str) -> bool:
    """Whether a job with this status has ended. A word that nobody knows is no end."""
    return status in TERMINAL_WORDS


class JobInfo(msgspec.Struct, frozen=True):
    """What Ray knows about a job."""

    status: str
    message: str = ""
    error_type: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    submission_id: str = ""
    job_id: str = ""
    type: str = ""
    entrypoint: str = ""
    exit_code: int | None = None

    @property
    def is_terminal(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return is_terminal(self.status)


class Version(msgspec.Struct, frozen=True):
    """Which Ray answers, and which start of it: a new head has a new session name."""

    ray_version: str = ""
    session_name: str = ""


class Deployment(msgspec.Struct, frozen=True):
    """A deployment of a Serve application."""

    name: str
    status: str
    message: str = ""


class Application(msgspec.Struct, frozen=True):
    """A Serve application."""

    name: str
    status: str
    message: str = ""
    deployments: tuple[Deployment, ...] = ()


class ServeDetails(msgspec.Struct, frozen=True):
    """All Serve applications of a cluster, in the order of their names."""

    applications: tuple[Application, ...] = ()
    target_capacity: float | None = None
    # What the applications were deployed from, as JSON that Serve takes again; empty if any of them does not say.
    configuration: bytes = b""

    @property
    def is_ready(self) -> bool:
        """Whether there is an application, and all of them run."""
        return bool(self.applications) and all(app.status == RUNNING for app in self.applications)


# --- what comes over the wire

_Word = Annotated[str, msgspec.Meta(min_length=1)]


class _Job(msgspec.Struct):
    status: _Word
    message: str | None = None
    error_type: str | None = None
    start_time: int | float | None = None
    end_time: int | float | None = None
    submission_id: str | None = None
    job_id: str | None = None
    type: str | None = None
    entrypoint: str | None = None
    driver_exit_code: int | None = None


class _Version(msgspec.Struct):
    ray_version: str | None = None
    session_name: str | None = None


class _Submitted(msgspec.Struct):
    submission_id: str | None = None
    job_id: str | None = None


class _Stopped(msgspec.Struct):
    stopped: bool


class _Deleted(msgspec.Struct):
    deleted: bool


class _Logs(msgspec.Struct):
    logs: str | None = None


class _Deployment(msgspec.Struct):
    status: _Word
    message: str | None = None


class _Application(msgspec.Struct):
    status: _Word
    message: str | None = None
    deployments: dict[str, _Deployment] | None = None
    deployed_app_config: msgspec.Raw = msgspec.Raw()


class _Serve(msgspec.Struct):
    applications: dict[str, _Application] | None = None
    target_capacity: int | float | None = None


_jobs = msgspec.json.Decoder(_Job)
_job_lists = msgspec.json.Decoder(list[msgspec.Raw])
_versions = msgspec.json.Decoder(_Version)
_submitted = msgspec.json.Decoder(_Submitted)
_stopped = msgspec.json.Decoder(_Stopped)
_deleted = msgspec.json.Decoder(_Deleted)
_logs = msgspec.json.Decoder(_Logs)
_serve = msgspec.json.Decoder(_Serve)


def read_job(body: bytes) -> JobInfo:
    """Return what an answer says about one job."""
    return _job_info(_read(_jobs, body))


def read_jobs(body: bytes) -> tuple[JobInfo, ...]:
    """Return what an answer says about all jobs; one that cannot be read is left out and hides no other."""
    found = []
    for item in _read(_job_lists, body):
        try:
            found.append(_job_info(_read(_jobs, item)))
        except Malformed:
            continue  # whoever asks for this very job will be told what is wrong with it
    return tuple(found)


def read_version(body: bytes) -> Version:
    """Return which Ray has answered."""
    version = _read(_versions, body)
    return Version(_word(version.ray_version), _word(version.session_name))


def read_submitted(body: bytes) -> str:
    """Return the submission id under which Ray has accepted a job."""
    submitted = _read(_submitted, body)
    given = submitted.submission_id or submitted.job_id
    if not given:
        raise Malformed("the answer to a submission names no job", certainly_not_done=False)
    return _word(given)


def read_stopped(body: bytes) -> bool:
    """Return whether Ray has begun to stop a job; it has not if there is nothing left to stop."""
    return _read(_stopped, body).stopped


def read_deleted(body: bytes) -> bool:
    """Return whether Ray has forgotten a job."""
    return _read(_deleted, body).deleted


def read_logs(body: bytes) -> str:
    """Return what a job has printed so far."""
    return _read(_logs, body).logs or ""


def read_serve(body: bytes) -> ServeDetails:
    """Return the state of all Serve applications."""
    details = _read(_serve, body)
    applications = details.applications or {}
    if len(applications) > _MOST_APPLICATIONS:
        raise Malformed(f"more than {_MOST_APPLICATIONS} Serve applications", certainly_not_done=False)
    return ServeDetails(
        tuple(
            _application(name or DEFAULT_APPLICATION, found) for name, found in sorted(applications.items())
        ),
        None if details.target_capacity is None else float(details.target_capacity),
        _configuration([found for _, found in sorted(applications.items())]),
    )


def _read(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as bad:
        raise Malformed(f"the answer cannot be read: {bad}", certainly_not_done=False) from bad


def _job_info(job: _Job) -> JobInfo:
    return JobInfo(
        status=_word(job.status),
        message=clipped(job.message or "", _LONGEST_MESSAGE),
        error_type=_word(job.error_type),
        started_at=_moment(job.start_time),
        ended_at=_moment(job.end_time),
        submission_id=_word(job.submission_id),
        job_id=_word(job.job_id),
        type=_word(job.type),
        entrypoint=clipped(job.entrypoint or "", _LONGEST_MESSAGE),
        exit_code=job.driver_exit_code,
    )


def _application(name: str, found: _Application) -> Application:
    deployments = found.deployments or {}
    if len(deployments) > _MOST_DEPLOYMENTS:
        raise Malformed(f"application {name[:100]!r} has too many deployments", certainly_not_done=False)
    return Application(
        _word(name),
        _word(found.status),
        clipped(found.message or "", _LONGEST_SERVE_MESSAGE),
        tuple(
            Deployment(_word(of), _word(state.status), clipped(state.message or "", _LONGEST_SERVE_MESSAGE))
            for of, state in sorted(deployments.items())
        ),
    )


def _configuration(applications: list[_Application]) -> bytes:
    """Return the configuration that applications say they were deployed from; nothing if one of them does not."""
    parts = [bytes(found.deployed_app_config) for found in applications]
    if not parts or not all(part.startswith(b"{") for part in parts):
        return b""
    whole = b'{"applications":[' + b",".join(parts) + b"]}"
    return whole if len(whole) <= _LONGEST_CONFIGURATION else b""


def _word(text: str | None) -> str:
    return clipped(text or "", _LONGEST_WORD)


def _moment(milliseconds: float | None) -> datetime | None:
    """Return a time that Ray gives in milliseconds; none for 0, and for what is no time of this era."""
    if milliseconds is None or not 0 < milliseconds <= _LAST_MILLISECOND:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
