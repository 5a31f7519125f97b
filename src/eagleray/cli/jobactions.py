"""What `eagleray job` does in a cluster, with one user's rights. Ray is reached through the API server's proxy."""

import codecs
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from eagleray.cli.tables import span, table
from eagleray.dashboard.address import AddressError, status_address
from eagleray.dashboard.carriers import ProxyCarrier
from eagleray.dashboard.client import PROXIED, Dashboard
from eagleray.dashboard.errors import NotThere
from eagleray.dashboard.tokens import SecretTokens
from eagleray.dashboard.words import is_terminal
from eagleray.kube.client import Client, refusal
from eagleray.kube.requests import Request, Selection
from eagleray.kube.resources import PODS, RAY_CLUSTERS, RAY_JOBS
from eagleray.kube.transport import Transport
from eagleray.manifests import naming
from eagleray.manifests.cluster import Cluster
from eagleray.manifests.rayjob import K8S_JOB, SIDECAR, RayJob
from eagleray.manifests.submitter import CONTAINER
from eagleray.raycluster.status import condition_of
from eagleray.rayjob.status import TERMINAL
from eagleray.rayjob.submitting import token_secret
from kubewire import errors
from kubewire.sources import Clock
from kubewire.times import parse_time

Object = dict[str, Any]

# How often a log is asked for that can only be had as a whole.
_ASK_SECONDS = 2.0
_LONGEST_CAUSE = 100
_NOT_IN_RAY = "has no job that Ray knows"


class Refused(Exception):
    """What was asked for makes no sense for this object; the message says why."""


class JobActions:
    """The actions, with one user's rights."""

    def __init__(self, client: Client, transport: Transport, clock: Clock) -> None:
        self._client = client
        self._transport = transport
        self._clock = clock

    async def list(self, namespace: str) -> Sequence[str]:
        """Return a table of the RayJobs of a namespace, or of all namespaces."""
        found = await self._client.list(RAY_JOBS, Selection(namespace))
        if not found:
            return [f"no RayJobs in {namespace}" if namespace else "no RayJobs"]
        now = self._clock.now()
        titles = ("NAMESPACE", "NAME", "STATE", "JOB", "CLUSTER", "AGE", "WAITS FOR")
        rows = [_row(RayJob(obj), now) for obj in found]
        return list(table([titles, *rows], skip=1 if namespace else 0))

    async def logs(self, namespace: str, name: str, *, follow: bool) -> AsyncIterator[str]:
        """Yield what a job has printed; to follow it is to go on until it has ended.

        A submitter prints all that its job does, and stays readable after the cluster has gone. Where there is none,
        Ray itself is asked.
        """
        job = await self._get(namespace, name)
        if job.mode == K8S_JOB:
            pod = await self._submitter(job)
        elif job.mode == SIDECAR:
            pod = await self._head(job)
        else:
            pod = None
        told = self._ray_log(job, follow=follow) if pod is None else self._pod_log(*pod, follow=follow)
        async for text in told:
            yield text

    async def stop(self, namespace: str, name: str) -> Sequence[str]:
        """Have Ray stop a job."""
        job = await self._get(namespace, name)
        if job.state in TERMINAL or is_terminal(job.job_status):
            raise Refused(f"RayJob {job.place} has ended already: {job.job_status or job.state}")
        dashboard = await self.dashboard(job)
        try:
            await dashboard.stop(job.job_id)
        except NotThere as missing:
            raise Refused(f"Ray has no job {job.job_id} of RayJob {job.place}: {waits_for(job)}") from missing
        cluster = "is deleted after that" if _is_shut_down(job) else "is left running"
        return [
            f"rayjob.ray.io/{name}: Ray stops job {job.job_id}",
            f"note: the RayJob becomes Complete with job status STOPPED; its cluster {cluster}",
        ]

    async def _get(self, namespace: str, name: str) -> RayJob:
        return RayJob(await self._client.get(RAY_JOBS, namespace, name))

    # --- logs of Pods

    async def _submitter(self, job: RayJob) -> tuple[Object, str]:
        """Return the latest Pod of the submitter, and the container that prints."""
        selection = Selection(job.namespace, f"batch.kubernetes.io/job-name={job.name}")
        pods = await self._client.list(PODS, selection)
        if not pods:
            raise _too_early(job, "has no submitter")
        latest = max(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
        return latest, str(latest["spec"]["containers"][0]["name"])

    async def _head(self, job: RayJob) -> tuple[Object, str]:
        labels = f"{naming.CLUSTER_LABEL}={job.cluster_name},{naming.NODE_TYPE_LABEL}=head"
        pods = await self._client.list(PODS, Selection(job.namespace, labels)) if job.cluster_name else []
        if not pods:
            raise _too_early(job, "has no head")
        return pods[0], CONTAINER

    async def _pod_log(self, pod: Object, container: str, *, follow: bool) -> AsyncIterator[str]:
        metadata = pod["metadata"]
        path = PODS.path(metadata["namespace"], metadata["name"], "log")
        query = (("container", container), *((("follow", "true"),) if follow else ()))
        request = Request(
            "GET", path, query, headers=(("accept", "*/*"),), repeatable="read", resource="pods/log"
        )
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async with self._transport.stream(request) as (answer, chunks):
            if not answer.is_success:
                raise refusal(answer)
            yield answer.body.decode("utf-8", "replace")
            async for chunk in chunks:
                yield decoder.decode(chunk)
        yield decoder.decode(b"", final=True)

    # --- Ray's own word

    async def _ray_log(self, job: RayJob, *, follow: bool) -> AsyncIterator[str]:
        dashboard = await self.dashboard(job)
        shown = 0
        while True:
            # Asked before the log is: whatever was printed before the end is in the log after it.
            has_ended = not follow or await self._has_ended(dashboard, job)
            try:
                text = await dashboard.logs(job.job_id)
            except NotThere as missing:
                raise _too_early(job, _NOT_IN_RAY) from missing
            # A log that has become shorter is another one.
            shown = shown if shown <= len(text) else 0
            yield text[shown:]
            shown = len(text)
            if has_ended:
                return
            await self._clock.sleep(_ASK_SECONDS)

    async def _has_ended(self, dashboard: Dashboard, job: RayJob) -> bool:
        try:
            return (await dashboard.info(job.job_id)).is_terminal
        except NotThere as missing:
            raise _too_early(job, _NOT_IN_RAY) from missing

    async def dashboard(self, job: RayJob) -> Dashboard:
        """Return the dashboard of a job's cluster, with the token that it asks for."""
        if not job.dashboard_url or not job.job_id:
            raise _too_early(job, _NOT_IN_RAY)
        try:
            cluster = Cluster(await self._client.get(RAY_CLUSTERS, job.namespace, job.cluster_name))
        except errors.NotFound as missing:
            raise Refused(
                f"RayCluster {job.namespace}/{job.cluster_name} of RayJob {job.place} is gone, and Ray with it"
            ) from missing
        except errors.Forbidden:
            cluster = None  # without a token, then: most dashboards ask for none
        try:
            address = status_address(job.namespace, job.dashboard_url, secret=token_secret(cluster))
        except AddressError as bad:
            raise Refused(str(bad)) from bad
        return Dashboard(address, ProxyCarrier(self._transport), SecretTokens(self._client), PROXIED)


def _too_early(job: RayJob, what: str) -> Refused:
    return Refused(
        f"RayJob {job.place} {what}: it is {job.state or 'New'} and waits for this: {clipped(waits_for(job))}"
        f" (eagleray why rayjob/{job.name} -n {job.namespace})"
    )


def _is_shut_down(job: RayJob) -> bool:
    return bool(job.spec.get("shutdownAfterJobFinishes")) and not job.has_selector


def waits_for(job: RayJob) -> str:
    """Return what a job waits for, or how it ended, in the words of its status."""
    for kind in ("Progressing", "Failed", "Suspended"):
        condition = condition_of(job.status, kind)
        if condition is not None and condition["status"] == "True":
            message = str(condition.get("message") or "").partition("; took: ")[0]
            # The cluster has a column of its own.
            message = message.removeprefix(f"RayCluster {job.namespace}/{job.cluster_name}: ")
            return message or str(condition["reason"])
    return "-" if job.state else "an operator"


def _row(job: RayJob, now: datetime) -> tuple[str, ...]:
    return (
        job.namespace,
        job.name,
        job.state or "New",
        job.job_status or "-",
        job.cluster_name or "-",
        span(now - parse_time(job.metadata["creationTimestamp"])),
        clipped(waits_for(job)),
    )


def clipped(cause: str) -> str:
    """Return a cause as one line; `eagleray why` tells the rest."""
    line = " ".join(cause.split())
    return line if len(line) <= _LONGEST_CAUSE else f"{line[: _LONGEST_CAUSE - 1]}…"
