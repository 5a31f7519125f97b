"""What `eagleray job submit` does in a cluster: makes a RayJob, hands its files over, and follows it to its end.

    end = await Submitting(actions, client, clock, printed=…, said=…).run(manifest, delivery, wait=True)

What the job prints goes one way, and what there is to say about it another.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

from eagleray.cli.jobactions import JobActions, Refused, clipped, waits_for
from eagleray.cli.tables import size
from eagleray.cli.workingdir import Package
from eagleray.dashboard.client import Dashboard
from eagleray.dashboard.errors import AlreadyThere, DashboardError, NotThere, Unreachable
from eagleray.dashboard.errors import Refused as RayRefused
from eagleray.dashboard.requests import Submission
from eagleray.kube.client import Client
from eagleray.kube.resources import RAY_JOBS
from eagleray.manifests.rayjob import RayJob
from eagleray.raycluster.status import condition_of
from eagleray.rayjob.status import TERMINAL
from kubewire import errors
from kubewire.sources import Clock

Object = dict[str, Any]
T = TypeVar("T")

SUCCEEDED: Final = "SUCCEEDED"

_LOOK_EVERY: Final = 1.0
# A head that answers to nobody may be starting, or its line may be broken for a moment.
_PATIENCE: Final = 120.0
_FIRST_LOOK: Final = 5.0
_LONGEST_PAUSE: Final = 15.0
_NOT_TAKEN: Final = 413


class Delivery(NamedTuple):
    """What is handed over to Ray itself, once its head is there."""

    package: Package
    runtime_env: Object


class End(NamedTuple):
    """How a job ended, in Ray's word, or in the operator's where Ray had none."""

    status: str
    message: str = ""


class Submitting:
    """One submission. `is_submitted` tells whether there is something that runs."""

    def __init__(
        self,
        actions: JobActions,
        client: Client,
        clock: Clock,
        *,
        printed: Callable[[str], None],
        said: Callable[[str], None],
    ) -> None:
        self._actions = actions
        self._client = client
        self._clock = clock
        self._printed = printed
        self._said = said
        self._shown = 0
        self._cause = ""
        self._began = clock.monotonic()
        self.is_created = False
        self.is_submitted = False

    async def run(self, manifest: Object, delivery: Delivery | None, *, wait: bool) -> End | None:
        """Make a job and see it through; without `wait`, only until it can do without this command."""
        try:
            job = RayJob(await self._client.create(RAY_JOBS, manifest))
        except errors.AlreadyExists as taken:
            raise Refused(f"{taken}; choose another --name") from taken
        self.is_created = True
        self._said(f"rayjob.ray.io/{job.name} created in namespace {job.namespace}")
        if delivery is not None:
            ready = await self._until_ready(job)
            if isinstance(ready, End):
                return ready
            await self._deliver(ready, delivery)
        self.is_submitted = True
        return await self._follow(job) if wait else None

    async def _get(self, job: RayJob) -> RayJob:
        try:
            return RayJob(await self._client.get(RAY_JOBS, job.namespace, job.name))
        except errors.NotFound as missing:
            raise Refused(f"RayJob {job.place} was deleted meanwhile") from missing

    def _tell_cause(self, job: RayJob) -> None:
        if not job.state and self._clock.monotonic() < self._began + _FIRST_LOOK:
            return  # an operator that is there has not seen it yet
        cause = clipped(waits_for(job))
        if cause not in (self._cause, "-"):
            self._cause = cause
            self._said(f"waits for: {cause}")

    # --- the files, and the job

    async def _until_ready(self, job: RayJob) -> RayJob | End:
        """Return the job once its cluster is there; an end that comes first is returned instead."""
        while True:
            job = await self._get(job)
            if job.state in TERMINAL:
                return _end_of(job)
            if job.state == "Running" and job.dashboard_url:
                return job
            self._tell_cause(job)
            await self._clock.sleep(_LOOK_EVERY)

    async def _deliver(self, job: RayJob, delivery: Delivery) -> None:
        dashboard = await self._actions.dashboard(job)
        package = delivery.package
        session = (await self._persistently(dashboard.version)).session_name
        if await self._persistently(lambda: dashboard.has_package(package.name)):
            self._said(f"{package.files} files are there already, as {package.name}")
        else:
            self._said(f"uploading {package.files} files ({size(len(package.data))})")
            await self._persistently(lambda: self._upload(dashboard, package))
        runtime_env = {**delivery.runtime_env, "working_dir": package.uri}
        entrypoint = str(job.spec["entrypoint"])
        submission = Submission(entrypoint, job.job_id, runtime_env)
        await self._submit(dashboard, submission, session)
        self._said(f"submitted {entrypoint!r} as {job.job_id}")

    async def _upload(self, dashboard: Dashboard, package: Package) -> None:
        try:
            await dashboard.put_package(package.name, package.data)
        except RayRefused as refused:
            if refused.code != _NOT_TAKEN:
                raise
            raise Refused(
                f"{size(len(package.data))} are more than what stands between here and Ray takes as one request; "
                "leave files out by a .rayignore file, or have them in the image"
            ) from refused

    async def _submit(self, dashboard: Dashboard, submission: Submission, session: str) -> None:
        """Have Ray run a job, once.

        A head refuses an id that it knows, so that a request whose answer was lost is repeated safely, to that head. A
        later one has forgotten: whether the job ran on its predecessor, nobody can tell.
        """
        deadline = self._clock.monotonic() + _PATIENCE
        is_open = False
        while True:
            if is_open and (await self._persistently(dashboard.version)).session_name != session:
                raise Refused(
                    "the head was replaced while the job was being submitted: it may have begun there, so that it is "
                    "not submitted again"
                )
            try:
                await dashboard.submit(submission)
            except AlreadyThere:
                return
            except DashboardError as failure:
                if not isinstance(failure, Unreachable) and failure.certainly_not_done:
                    raise
                if self._clock.monotonic() > deadline:
                    raise
                is_open = is_open or not failure.certainly_not_done
                await self._clock.sleep(_LOOK_EVERY)
            else:
                return

    async def _persistently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return an answer of Ray's to what may be asked as often as one likes, as soon as there is one."""
        deadline = self._clock.monotonic() + _PATIENCE
        while True:
            try:
                return await ask()
            except Unreachable:
                if self._clock.monotonic() > deadline:
                    raise
                await self._clock.sleep(_LOOK_EVERY)

    # --- to its end

    async def _follow(self, job: RayJob) -> End:
        """Print what a job prints until it has ended; returns how."""
        while True:
            job = await self._get(job)
            end = await self._ray_says(job) if job.state in ("Running", *TERMINAL) else None
            if end is not None:
                return end
            if job.state in TERMINAL:
                return _end_of(job)
            if job.state != "Running" or _is_silent(job):
                self._tell_cause(job)
            # A log can only be had as a whole, so that a long one is asked for less often.
            await self._clock.sleep(min(_LOOK_EVERY + self._shown / 2**20, _LONGEST_PAUSE))

    async def _ray_says(self, job: RayJob) -> End | None:
        """Print what is new in the log; returns the end if there is one. A silent Ray is asked again later."""
        try:
            dashboard = await self._actions.dashboard(job)
            # Asked before the log is: whatever was printed before the end is in the log after it.
            info = await dashboard.info(job.job_id)
            text = await dashboard.logs(job.job_id)
        except (NotThere, Unreachable, Refused):
            return None
        except RayRefused as refused:
            if refused.code < 500:
                raise
            return None
        if len(text) > self._shown:
            self._printed(text[self._shown :])
            self._shown = len(text)
        return End(info.status, info.message) if info.is_terminal else None


def _is_silent(job: RayJob) -> bool:
    """Tell whether a job runs that nobody can ask about."""
    condition = condition_of(job.status, "Progressing")
    return condition is not None and condition.get("reason") == "DashboardUnreachable"


def _end_of(job: RayJob) -> End:
    status = job.status
    if job.job_status == SUCCEEDED:
        return End(SUCCEEDED)
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "") or waits_for(job)
    return End(job.job_status or job.state, f"{reason}: {message}" if reason else message)
