"""What a RayJob prints, as it prints it, in every submission mode and over all its attempts.

Ray itself is asked, again and again: what it answers is the job's output and nothing else, and it is there some seconds
before a submitter has begun to follow. A submitter's own log is read where Ray cannot be asked any more, and where the
job never came to Ray.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from eagleray.dashboard.address import AddressError, status_address
from eagleray.dashboard.carriers import ProxyCarrier
from eagleray.dashboard.client import PROXIED, Dashboard
from eagleray.dashboard.errors import DashboardError
from eagleray.dashboard.tokens import SecretTokens
from eagleray.dashboard.words import is_terminal
from eagleray.kube.client import Client
from eagleray.kube.requests import Request, Selection
from eagleray.kube.resources import PODS, RAY_CLUSTERS, Object
from eagleray.kube.transport import Transport
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import K8S_JOB, SIDECAR, RayJob
from eagleray.manifests.submitter import CONTAINER
from eagleray.rayjob.status import TERMINAL
from eagleray.rayjob.submitting import token_secret
from kubewire import errors
from kubewire.sources import Clock

# How often Ray is asked at most, and which part of the time may go into asking: its answer is the whole log each time.
_SHORTEST_PAUSE: Final = 0.3
_ASKING_PART: Final = 0.05
_LONGEST_PAUSE: Final = 10.0
# By this much of its end, what was shown is found again in a submitter's log.
_TRACE: Final = 2000
_LONGEST_LOG: Final = 64 * 2**20


class JobLogs:
    """Reads what jobs have printed, with one user's rights."""

    def __init__(self, client: Client, transport: Transport) -> None:
        self._client = client
        self._transport = transport
        self._dashboards: dict[str, Dashboard] = {}

    async def of_ray(self, job: RayJob) -> str | None:
        """Return all that the present attempt has printed; None if Ray does not know it, or cannot be asked."""
        try:
            return await (await self._dashboard(job)).logs(job.job_id)
        except (DashboardError, AddressError, errors.ApiError, OSError):
            return None

    async def of_submitter(self, job: RayJob) -> str | None:
        """Return what the submitter has printed; None if there is none any more, or never was."""
        if job.mode not in (K8S_JOB, SIDECAR):
            return None
        is_beside = job.mode == SIDECAR
        labels = (
            f"{naming.CLUSTER_LABEL}={job.cluster_name},{naming.NODE_TYPE_LABEL}=head"
            if is_beside
            else f"batch.kubernetes.io/job-name={job.name}"
        )
        with suppress(errors.ApiError, OSError):
            pods = await self._client.list(PODS, Selection(job.namespace, labels))
            if pods:
                latest = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
                container = CONTAINER if is_beside else str(latest["spec"]["containers"][0]["name"])
                return await self.of_container(latest, container)
        return None

    async def of_container(self, pod: Object, container: str, **options: str) -> str:
        """Return what a container has printed; the options are the API's own, such as tailLines."""
        metadata = pod["metadata"]
        query = (("container", container), ("limitBytes", str(_LONGEST_LOG)), *options.items())
        request = Request(
            "GET",
            PODS.path(metadata["namespace"], metadata["name"], "log"),
            query,
            headers=(("accept", "*/*"),),
            repeatable="read",
            resource="pods/log",
        )
        answer = await self._client.send(request)
        return answer.body.decode("utf-8", "replace")

    async def _dashboard(self, job: RayJob) -> Dashboard:
        found = self._dashboards.get(job.dashboard_url)
        if found is None:
            cluster = Cluster(await self._client.get(RAY_CLUSTERS, job.namespace, job.cluster_name))
            address = status_address(job.namespace, job.dashboard_url, secret=token_secret(cluster))
            found = Dashboard(address, ProxyCarrier(self._transport), SecretTokens(self._client), PROXIED)
            self._dashboards = {
                job.dashboard_url: found
            }  # an attempt has one cluster, and the next one another
        return found


class JobOutput:
    """Shows what one job prints. `see` is told of every change; `run` ends when all of it has been shown."""

    def __init__(self, logs: JobLogs, clock: Clock, show: Callable[[str], None]) -> None:
        self._logs = logs
        self._clock = clock
        self._show = show
        self._job: RayJob | None = None
        self._changed = asyncio.Event()
        # Of the present attempt: its id, how much of its log was shown, the end of that, and whether that was all.
        self._attempt = ""
        self._shown = 0
        self._trace = ""
        self._is_whole = False

    def see(self, job: RayJob) -> None:
        """Take over what is known of the job now."""
        before = self._job
        self._job = job
        if before is None or (before.state, before.job_status, before.job_id) != (
            job.state,
            job.job_status,
            job.job_id,
        ):
            self._changed.set()

    async def run(self) -> None:
        """Show everything until the job has ended."""
        while True:
            self._changed.clear()
            job = self._job
            asked = self._clock.monotonic()
            if job is not None:
                await self._look(job)
                if job.state in TERMINAL:
                    return
            took = self._clock.monotonic() - asked
            await self._pause(min(max(_SHORTEST_PAUSE, took / _ASKING_PART), _LONGEST_PAUSE))

    async def _look(self, job: RayJob) -> None:
        """Show what is new in the log of the present attempt."""
        if job.job_id and job.job_id != self._attempt:
            self._attempt, self._shown, self._trace, self._is_whole = job.job_id, 0, "", False
        if self._is_whole or not job.job_id:
            return
        # What Ray says after the end has all in it.
        has_ended = is_terminal(job.job_status) or job.state in TERMINAL or job.state == "Retrying"
        text = await self._logs.of_ray(job) if job.dashboard_url else None
        if text is not None:
            self._tell(text)
            self._is_whole = has_ended
        elif has_ended:
            self._is_whole = True
            self._tell_rest(await self._logs.of_submitter(job))

    def _tell(self, text: str) -> None:
        # A log that has become shorter is another one.
        begin = self._shown if self._shown <= len(text) else 0
        self._show(text[begin:])
        self._shown, self._trace = len(text), text[-_TRACE:]

    def _tell_rest(self, text: str | None) -> None:
        """Show what a submitter has printed beyond what Ray said while it could be asked."""
        if text is None:
            return
        place = text.rfind(self._trace) if self._trace else -1
        self._show(text[place + len(self._trace) :] if place >= 0 else text)

    async def _pause(self, seconds: float) -> None:
        """Wait for the next change, at most for so long."""
        waiting = asyncio.ensure_future(self._changed.wait())
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((waiting, sleeping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            sleeping.cancel()
