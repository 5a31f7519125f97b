"""One run: manifests are applied to a cluster, followed to their end, and summed up; any cluster will do."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from eagleray.kube.client import Client
from eagleray.kube.resources import RAY_JOBS, Object
from eagleray.kube.transport import Transport
from eagleray.local.applying import Applier
from eagleray.local.following import Ended, Follower, Forward
from eagleray.local.manifests import Manifest
from eagleray.local.output import JobLogs
from eagleray.local.screen import Screen
from eagleray.local.story import has_succeeded, how_it_ended
from eagleray.raycluster.troubles import trouble_of
from eagleray.raycluster.views import pod_view
from eagleray.rayjob.status import TERMINAL
from eagleray.why.kinds import diagnosis_of
from eagleray.why.reading import Reader
from eagleray.why.report import lines as report_lines
from kubewire import errors
from kubewire.sources import Clock, Entropy

EXIT_SUCCEEDED: Final = 0
EXIT_FAILED: Final = 1

# Kinds that go on until somebody ends them.
STAYING: Final = frozenset(
    (
        "RayCluster",
        "RayService",
        "RayCronJob",
        "Pod",
        "Deployment",
        "StatefulSet",
        "ReplicaSet",
        "Job",
        "CronJob",
    )
)
# Of a container that has crashed, the last lines are shown: with the cluster they are gone.
_LAST_LINES: Final = "15"
_MOST_CRASHES: Final = 3


class Work(NamedTuple):
    """What is to be run. With `leave` the cluster goes on without us, so that nothing has to be waited for for ever."""

    manifests: Sequence[Manifest]
    namespace: str = ""
    timeout: float = 0.0
    verbose: bool = False
    leave: bool = False

    @property
    def stays(self) -> bool:
        """Whether it goes on until it is ended."""
        return any(manifest.obj["kind"] in STAYING for manifest in self.manifests)


class Way(NamedTuple):
    """The way to a cluster. `fails` returns, or raises, when the cluster is gone; `forward` opens a way into it."""

    client: Client
    transport: Transport
    clock: Clock
    entropy: Entropy
    forward: Forward | None = None
    fails: Callable[[], Awaitable[None]] | None = None


async def perform(work: Work, way: Way, screen: Screen) -> int:
    """Run the work and return the exit code: 0 only if every RayJob has succeeded.

    Raises NotApplied, and whatever the cluster fails with. Work that stays goes on until it is cancelled.
    """
    roots = await _applied(work, way, screen)
    follower = Follower(
        roots,
        way.client,
        way.transport,
        screen,
        clock=way.clock,
        entropy=way.entropy,
        verbose=work.verbose,
        forward=way.forward,
    )
    async with follower.following():
        try:
            async with asyncio.timeout(work.timeout or None):
                ended = await _unless_it_fails(_followed(work, follower), way)
        except TimeoutError:
            screen.line(f"not done within {work.timeout:g} s (--timeout)", "bad")
            ended = [Ended(job) for job in follower.jobs]
        screen.stage("")
        return await _summed_up(ended, follower, way, screen)


async def _applied(work: Work, way: Way, screen: Screen) -> list[Object]:
    """Apply everything in its order; return the objects as the server has them."""
    applier = Applier(way.client, way.clock, work.namespace)
    roots = []
    for manifest in work.manifests:
        applied = await applier.apply(manifest)
        screen.line(f"{applied.title} {applied.change}")
        roots.append({**applied.obj, "kind": applied.resource.kind})
    return roots


async def _followed(work: Work, follower: Follower) -> Sequence[Ended]:
    if work.leave:
        return await follower.until_settled()
    if work.stays:
        await follower.forever()
    return await follower.until_jobs_ended()


async def _unless_it_fails(following: Awaitable[Sequence[Ended]], way: Way) -> Sequence[Ended]:
    """Return what following returns; a cluster that is gone before ends it."""
    task = asyncio.ensure_future(following)
    watching = [asyncio.ensure_future(way.fails())] if way.fails is not None else []
    try:
        await asyncio.wait((task, *watching), return_when=asyncio.FIRST_COMPLETED)
        for watch in watching:
            if watch.done() and not task.done():
                await watch
        return await task
    finally:
        for one in (task, *watching):
            one.cancel()
        await asyncio.gather(task, *watching, return_exceptions=True)


# --- the end


async def _summed_up(ended: Sequence[Ended], follower: Follower, way: Way, screen: Screen) -> int:
    """Say how every job ended and why; return the exit code."""
    failed = [one for one in ended if one.is_gone or not has_succeeded(one.job)]
    if failed:
        await _show_crashes(follower, way, screen)
    for one in failed:
        screen.line(f"RayJob {one.job.name}: {_result(one)}", "bad")
        for line in await _why(one, way):
            screen.line(f"  {line}")
    if ended:
        count = f"{len(ended) - len(failed)} of {len(ended)}" if len(ended) > 1 or failed else "the"
        screen.line(f"{count} RayJob{'s' if len(ended) > 1 else ''} succeeded", "bad" if failed else "good")
    return EXIT_FAILED if failed else EXIT_SUCCEEDED


def _result(one: Ended) -> str:
    if one.is_gone:
        return "it was deleted before it ended"
    job = one.job
    return how_it_ended(job) if job.state in TERMINAL else f"it has not ended, and is {job.state or 'New'}"


async def _why(one: Ended, way: Way) -> list[str]:
    """Return what holds a job back, or has ended it, and what would help; nothing if the cluster does not say."""
    if one.is_gone:
        return []
    reader = Reader(way.client, way.clock, way.entropy)
    with suppress(errors.ApiError, OSError):
        report = await diagnosis_of(RAY_JOBS.kind).diagnose(reader, one.job.namespace, one.job.name)
        return list(report_lines(report._replace(steps=())))[1:]
    return []


async def _show_crashes(follower: Follower, way: Way, screen: Screen) -> None:
    """Show the last lines of containers that have crashed, other than those whose output is the job's own."""
    logs = JobLogs(way.client, way.transport)
    shown = 0
    for obj in follower.picture().pods:
        pod = pod_view(obj)
        trouble = trouble_of(pod)
        if (
            trouble is None
            or trouble.kind not in ("Crash", "OutOfMemory")
            or not (pod.is_head or pod.is_worker)
        ):
            continue
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            end = status.state.terminated or status.last_state.terminated
            if end is None or not end.exit_code or shown >= _MOST_CRASHES:
                continue
            previous = {} if status.state.terminated else {"previous": "true"}
            with suppress(errors.ApiError, OSError):
                text = await logs.of_container(obj, status.name, tailLines=_LAST_LINES, **previous)
                screen.line(f"the last lines of container {status.name} of {pod.name}:", "warn")
                for line in text.splitlines():
                    screen.line(f"  {line}", "quiet")
                shown += 1
