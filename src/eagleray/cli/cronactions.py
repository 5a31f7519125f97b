"""What `eagleray cron` does in a cluster; each action returns the lines to print."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from eagleray.cli.cronruns import coming_runs
from eagleray.cli.tables import span, table
from eagleray.cron import InvalidSchedule, UnknownZone
from eagleray.cron.parser import is_interval
from eagleray.kube.client import Client
from eagleray.kube.requests import Selection
from eagleray.kube.resources import RAY_CRON_JOBS, RAY_JOBS, Ref
from eagleray.manifests.raycronjob import RayCronJob, triggered_job
from eagleray.rayapi.rules import ValidationConfig, problems_of
from eagleray.raycronjob.planning import SCHEDULED, condition, ticks_of
from kubewire import errors
from kubewire.owners import is_controlled_by
from kubewire.sources import Clock, Entropy
from kubewire.times import format_time

_MANAGER = "eagleray-cron"
_SUFFIX = 5


class Refused(Exception):
    """What was asked for makes no sense for this object; the message says why."""


class CronActions:
    """The actions, with one user's rights."""

    def __init__(self, client: Client, clock: Clock, entropy: Entropy) -> None:
        self._client = client
        self._clock = clock
        self._entropy = entropy

    async def list(self, namespace: str) -> Sequence[str]:
        """Return a table of the RayCronJobs of a namespace, or of all namespaces."""
        found = await self._client.list(RAY_CRON_JOBS, Selection(namespace))
        if not found:
            return [f"no RayCronJobs in {namespace}" if namespace else "no RayCronJobs"]
        now = self._clock.now()
        rows = [_row(RayCronJob(obj), now) for obj in found]
        titles = ("NAMESPACE", "NAME", "SCHEDULE", "ZONE", "LAST", "NEXT", "ACTIVE", "STATE")
        return list(table([titles, *rows], skip=1 if namespace else 0))

    async def next(self, namespace: str, name: str, count: int, zone: str) -> Sequence[str]:
        """Return the coming runs of a RayCronJob; `zone` counts where it names none."""
        cron = await self._get(namespace, name)
        try:
            runs = list(coming_runs(cron.schedule, cron.zone or zone, self._after(cron), count))
        except (InvalidSchedule, UnknownZone) as bad:
            raise Refused(f"{cron.place} has no runs: {bad}") from bad
        if cron.zone is None:
            runs.append(
                f"note: spec.timeZone is not set, so the operator's own zone counts; shown for {zone} (--zone)"
            )
        if cron.is_suspended:
            runs.append("note: it is suspended; none of these takes place until it is resumed")
        return runs

    async def trigger(self, namespace: str, name: str) -> Sequence[str]:
        """Create a RayJob of the template now."""
        cron = await self._get(namespace, name)
        _require_valid(cron)
        job = triggered_job(cron, self._entropy.suffix(_SUFFIX), self._clock.now())
        try:
            await self._client.create(RAY_JOBS, job, manager=_MANAGER)
        except errors.AlreadyExists:
            # Either the answer to our own request was lost, or chance repeats itself.
            present = await self._client.get(RAY_JOBS, namespace, job["metadata"]["name"])
            if not is_controlled_by(present, cron.uid):
                raise
        lines = [f"rayjob.ray.io/{job['metadata']['name']} created"]
        if active := [str(one.get("name")) for one in cron.status.get("active") or ()]:
            lines.append(f"note: besides it {', '.join(active)} of the same RayCronJob has not ended")
        return lines

    async def suspend(self, namespace: str, name: str) -> Sequence[str]:
        """Make no further runs."""
        cron = await self._get(namespace, name)
        if cron.is_suspended:
            return [f"raycronjob.ray.io/{name} was suspended already"]
        await self._set_suspend(cron, suspend=True)
        return [f"raycronjob.ray.io/{name} suspended"]

    async def resume(self, namespace: str, name: str) -> Sequence[str]:
        """Go on with the schedule."""
        cron = await self._get(namespace, name)
        if not cron.is_suspended:
            return [f"raycronjob.ray.io/{name} was not suspended"]
        await self._set_suspend(cron, suspend=False)
        lines = [f"raycronjob.ray.io/{name} resumed"]
        missed = _missed(cron, self._clock.now())
        if missed is not None:
            lines.append(
                f"note: the run of {format_time(missed)}, the latest that was missed, is made up now"
            )
        return lines

    async def _get(self, namespace: str, name: str) -> RayCronJob:
        return RayCronJob(await self._client.get(RAY_CRON_JOBS, namespace, name))

    async def _set_suspend(self, cron: RayCronJob, *, suspend: bool) -> None:
        ref = Ref.of(cron.obj)._replace(version="")
        await self._client.patch(RAY_CRON_JOBS, ref, {"spec": {"suspend": suspend}}, manager=_MANAGER)

    def _after(self, cron: RayCronJob) -> datetime:
        """Return the time after which runs are to come: an interval counts from its latest tick."""
        now = self._clock.now()
        if is_interval(cron.schedule):
            return ticks_of(cron, now, UTC).due or cron.base
        return max(now, cron.base)


def _require_valid(cron: RayCronJob) -> None:
    for problem in problems_of(cron.obj, ValidationConfig()):
        if problem.severity == "error":
            raise Refused(f"{cron.place} is invalid, so no RayJob of it would run: {problem}")


def _missed(cron: RayCronJob, now: datetime) -> datetime | None:
    """Return the tick that is run as soon as a suspended RayCronJob goes on."""
    try:
        due = ticks_of(cron, now, UTC).due
    except (InvalidSchedule, UnknownZone):
        return None  # the operator refuses it, and says so
    late = cron.deadline is not None and due is not None and now - due > timedelta(seconds=cron.deadline)
    return None if late else due


def _row(cron: RayCronJob, now: datetime) -> tuple[str, ...]:
    standing = condition(cron, SCHEDULED)
    last = cron.last_tick
    return (
        cron.namespace,
        cron.name,
        cron.schedule,
        cron.zone or "-",
        f"{span(now - last)} ago" if last else "-",
        _next(cron, now),
        str(len(cron.status.get("active") or ())),
        standing["reason"] if standing else "New",
    )


def _next(cron: RayCronJob, now: datetime) -> str:
    if cron.is_suspended:
        return "-"
    try:
        following = ticks_of(cron, now, UTC).next
    except (InvalidSchedule, UnknownZone):
        return "-"
    return f"in {span(following - now)}" if following else "never"
