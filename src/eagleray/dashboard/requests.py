"""Requests to a dashboard as values; their paths begin at the dashboard's root. Pure."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from eagleray.dashboard.errors import Refused
from eagleray.kube.requests import Request

JOBS: Final = "/api/jobs/"
SERVE: Final = "/api/serve/applications/"
PACKAGES: Final = "/api/packages/gcs/"

_ACCEPT: Final = ("accept", "application/json")
_CONTENT: Final = ("content-type", "application/json")
# Ids are names of objects with a suffix, or a user's own.
_LONGEST_ID: Final = 1024


class Submission(NamedTuple):
    """A job to be run. What is empty or 0 is left out of the request."""

    entrypoint: str
    submission_id: str
    runtime_env: Mapping[str, Any] | None = None
    metadata: Mapping[str, str] | None = None
    num_cpus: float = 0.0
    num_gpus: float = 0.0
    resources: Mapping[str, float] | None = None


def version() -> Request:
    """Ask which Ray this is, and which start of it."""
    return _read("/api/version")


def info(job_id: str) -> Request:
    """Ask about one job."""
    return _read(_job(job_id))


def list_jobs() -> Request:
    """Ask about all jobs."""
    return _read(JOBS)


def logs(job_id: str) -> Request:
    """Ask for what a job has printed."""
    return _read(f"{_job(job_id)}/logs")


def logs_tail(job_id: str) -> Request:
    """Ask for what a job prints, line by line over a WebSocket."""
    return _read(f"{_job(job_id)}/logs/tail")


def submit(submission: Submission) -> Request:
    """Ask to run a job. Within one session of Ray the submission id makes a second request a refused one."""
    wanted = {
        "submission_id": submission.submission_id,
        "metadata": submission.metadata,
        "runtime_env": submission.runtime_env,
        "entrypoint_num_cpus": submission.num_cpus,
        "entrypoint_num_gpus": submission.num_gpus,
        "entrypoint_resources": submission.resources,
    }
    given = {name: value for name, value in wanted.items() if value}
    return _write("POST", JOBS, "create", {"entrypoint": submission.entrypoint, **given})


def stop(job_id: str) -> Request:
    """Ask to stop a job."""
    return _write("POST", f"{_job(job_id)}/stop", "create")


def delete(job_id: str) -> Request:
    """Ask to forget a job that has ended."""
    return _write("DELETE", _job(job_id), "delete")


def package(name: str) -> Request:
    """Ask whether Ray has a package of files; one that it has is kept for some minutes more."""
    return _read(f"{PACKAGES}{quote(name, safe='')}")


def put_package(name: str, data: bytes) -> Request:
    """Hand over a package. Its name stands for its content, so that a second one changes nothing."""
    content = ("content-type", "application/octet-stream")
    path = f"{PACKAGES}{quote(name, safe='')}"
    return Request("PUT", path, headers=(_ACCEPT, content), body=data, repeatable="name", verb="update")


def serve_details() -> Request:
    """Ask about all Serve applications, in the form for configurations of several."""
    return _read(SERVE)._replace(query=(("api_type", "declarative"),))


def put_serve(configuration: Mapping[str, Any]) -> Request:
    """Ask to have the Serve applications become these."""
    return _write("PUT", SERVE, "update", configuration)


def serve_health() -> Request:
    """Ask a Serve proxy whether it takes traffic."""
    return _read("/-/healthz")


def _job(job_id: str) -> str:
    # These would name another path: the list of jobs, or something above it.
    if job_id in {"", ".", ".."} or len(job_id) > _LONGEST_ID:
        raise Refused(400, f"{job_id[:100]!r} cannot be the id of a job", certainly_not_done=True)
    return f"{JOBS}{quote(job_id, safe='')}"


def _read(path: str) -> Request:
    return Request("GET", path, headers=(_ACCEPT,), repeatable="read", verb="get")


def _write(method: str, path: str, verb: str, body: Mapping[str, Any] | None = None) -> Request:
    if body is None:
        return Request(method, path, headers=(_ACCEPT,), verb=verb)
    try:
        text = msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as bad:
        raise Refused(400, f"{path}: this cannot be sent as JSON: {bad}", certainly_not_done=True) from bad
    return Request(method, path, headers=(_ACCEPT, _CONTENT), body=text, verb=verb)
