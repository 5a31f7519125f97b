"""One Pod on this node: observes, plans, and carries the plan out, from its first sight to its end."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from kubereef.controllers.resources import PODS
from kubereef.kinds.resource import Object
from kubereef.node.kubelet.container import ContainerLife
from kubereef.node.kubelet.events import Named
from kubereef.node.kubelet.interfaces import NodeFacts, Sandbox, Tools
from kubereef.node.kubelet.making import Ground
from kubereef.node.kubelet.plan import Plan, Stop, is_finished, pod_plan
from kubereef.node.kubelet.problems import VolumeProblem
from kubereef.node.kubelet.records import ContainerRecord, PodRecord, Waiting, Wish
from kubereef.node.kubelet.reporting import Reporter
from kubereef.node.kubelet.resources import GpuPool, container_limits, pod_limits, wider
from kubereef.node.kubelet.security import pod_refusal, unserved
from kubereef.node.kubelet.status import OVER, pod_status
from kubereef.node.kubelet.trees import remove_tree
from kubereef.node.network.resolv import (
    BadHostname,
    PodNames,
    pod_hosts,
    pod_names,
    pod_resolution,
    write_resolution,
)
from kubereef.node.sandbox import Limits, Mount, PodSpec, Refused, SandboxError, write_etc_files
from kubereef.node.sandbox.pod import check_pod
from kubewire import errors
from kubewire.times import parse_time

log = logging.getLogger(__name__)

DEFAULT_GRACE = 30
ABANDONED_GRACE = 1.0
EVICTION_GRACE = 1.0  # of a Pod that takes more than it may: other kubelets give it no more either
LOOK_EVERY = 10.0  # how often emptyDirs are measured
REFRESH_EVERY = 30.0  # how often mounted ConfigMaps, Secrets and tokens are compared with their sources
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 122.0
_REMOVAL_TRIES = 20
_REMOVAL_PAUSE = 0.1


class PodWorker:
    """A Pod of this node; it is a `handles.PodHandle`."""

    def __init__(self, pod: Object, tools: Tools, facts: NodeFacts, gpus: GpuPool) -> None:
        self._tools = tools
        self._facts = facts
        status: Object = pod.get("status") or {}
        started = status.get("startTime")
        self.record = PodRecord(pod, parse_time(started) if started else tools.clock.now())
        self.record.restore(tools.clock.now())
        self._ground = Ground(self.record, tools, facts, gpus)
        self._lives: dict[str, ContainerLife] = {}
        self._news = asyncio.Event()
        self._refresh_due = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failures = 0
        self._is_stopped = False
        self._shortest: float | None = None
        self._reporter = Reporter(tools.client, tools.clock, self._newest, self.update)
        self._tasks = [tools.tasks.spawn(self._reporter.run(), f"status of {self.record.name}")]
        self._main = tools.tasks.spawn(self._live_and_let_go(), f"Pod {self.record.name}")

    # --- what the HTTPS API sees

    @property
    def manifest(self) -> Object:
        return {**self.record.pod, "status": self._newest()[1]}

    @property
    def network(self) -> int | None:
        return None if self._ground.sandbox is None else self._ground.sandbox.network

    def containers(self) -> Sequence[ContainerLife]:
        return [self._life(record.name) for record in self.record.containers]

    def container(self, name: str) -> ContainerLife | None:
        return next((life for life in self.containers() if life.name == name), None)

    # --- what the kubelet tells

    def update(self, pod: Object) -> None:
        """Hear of the Pod as the API server has it now."""
        if int(pod["metadata"]["resourceVersion"]) < int(self.record.pod["metadata"]["resourceVersion"]):
            return  # older than the answer to our own write
        if _annotated(pod) != _annotated(self.record.pod):
            self._refresh_due.set()  # by which people ask for the newest ConfigMaps and Secrets
        before = self.record.spec
        self.record.take_over(pod)
        if self.record.is_deleted:
            grace = pod["metadata"].get("deletionGracePeriodSeconds")
            self._hasten(DEFAULT_GRACE if grace is None else grace)
        elif before != self.record.spec or self.record.resize_problem:
            self._resize(pod_limits(before))
        self._news.set()

    async def stop(self, grace: float) -> None:
        """End what runs because the node ends; the Pod itself goes on living, here or after a restart."""
        self._is_stopped = True
        for task in self._tasks:
            task.cancel()
        self._hasten(grace)
        self.record.is_ended = True
        self._news.set()
        await asyncio.gather(self._main, return_exceptions=True)

    async def abandon(self) -> None:
        """End what runs, soon, because the API server has the Pod no more."""
        self.record.is_deleted = True
        self._reporter.is_gone = True
        self._reporter.tell()
        self._hasten(ABANDONED_GRACE)
        self._news.set()
        await asyncio.gather(self._main, return_exceptions=True)

    # --- living

    async def _live_and_let_go(self) -> None:
        status: Object = self.record.pod.get("status") or {}
        is_over = status.get("phase") in OVER
        if not is_over:
            await self._live()
            await self._end()
        self.record.is_ended = True
        if self._is_stopped:
            return
        self._reporter.tell()
        await self._reporter.flushed()
        if await self._is_deleted():
            await self._remove()

    async def _is_deleted(self) -> bool:
        """Wait until somebody deletes the Pod, which is over; False if the node ends before."""
        while not self.record.is_deleted:
            self._news.clear()
            if self._is_stopped:
                return False
            await self._news.wait()
        return True

    async def _live(self) -> None:
        """Carry out one plan after the other until nothing is left to be done."""
        if not self._has_lived():
            self.record.verdict = self._refusal()
            for text in unserved(self.record.spec):
                self._tools.events.warning(self.record.pod, "HostPortNotServed", text)
        keeping = self._tools.tasks.spawn(self._keep(), f"volumes of {self.record.name}")
        try:
            while True:
                self._news.clear()
                plan = pod_plan(self.record, self._tools.clock.now())
                if plan.is_over and self._opening is None and self._starting is None:
                    return
                self._carry_out(plan)
                self._reporter.tell()
                await self._rest(plan)
        finally:
            keeping.cancel()

    async def _rest(self, plan: Plan) -> None:
        """Wait until something happens, or it is time to look again."""
        if plan.verdict is not None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(plan.look_again):
                await self._news.wait()

    def _has_lived(self) -> bool:
        return any(record.has_run for record in self.record.containers)

    def _refusal(self) -> Waiting | None:
        """Return why this Pod is not taken; what was refused before it began is a Pod that failed."""
        refusal = pod_refusal(self.record.spec)
        if refusal is None:
            try:
                check_pod(self._sandbox_spec())
            except Refused as refused:
                reason = "SysctlForbidden" if "sysctl" in str(refused) else "InvalidHostname"
                refusal = Waiting(reason, f"Pod was rejected: {refused}")
            except BadHostname as bad:
                refusal = Waiting("InvalidHostname", f"Pod was rejected: {bad}")
        if refusal is not None:
            self._tools.events.warning(self.record.pod, refusal.reason, refusal.message)
        return refusal

    def _carry_out(self, plan: Plan) -> None:
        if plan.verdict is not None:
            self.record.verdict = plan.verdict
            self._tools.events.normal(self.record.pod, plan.verdict.reason, plan.verdict.message)
            return
        if self._is_ending():
            for task in (self._opening, self._starting):
                if task is not None:
                    task.cancel()
        if plan.open_sandbox and self._opening is None:
            self._opening = self._tools.tasks.spawn(self._open(), f"sandbox of {self.record.name}")
            self._opening.add_done_callback(self._opened)
        for name, waiting in plan.waits:
            self._show_backoff(name, waiting)
        for stop in plan.stop:
            self._stop(stop)
        if plan.start and self._starting is None:
            self._begin(plan.start)

    def _is_ending(self) -> bool:
        return self.record.is_deleted or self.record.verdict is not None or self.record.is_ended

    def _show_backoff(self, name: str, waiting: Waiting) -> None:
        record = self.record.container(name)
        if record.waiting != waiting:
            record.waiting = waiting
            text = f"Back-off restarting failed container {name} in pod {self.record.name}"
            self._tools.events.warning(self.record.pod, "BackOff", text, Named(name, record.kind))

    def _stop(self, stop: Stop) -> None:
        record = self.record.container(stop.name)
        record.is_stopping = True
        grace = float(self._grace() if stop.grace is None else stop.grace)
        work = self._life(stop.name).stop(stop.message, grace)
        self._tools.spawn(work, f"end of {stop.name} of {self.record.name}")

    def _grace(self) -> float:
        """Return how many seconds a container gets to end."""
        meta, spec = self.record.pod["metadata"], self.record.spec
        grace = meta.get("deletionGracePeriodSeconds") if self.record.is_deleted else None
        if grace is None:
            grace = spec.get("terminationGracePeriodSeconds")
        grace = DEFAULT_GRACE if grace is None else grace
        return float(grace) if self._shortest is None else min(float(grace), self._shortest)

    def _hasten(self, grace: float) -> None:
        self._shortest = grace if self._shortest is None else min(grace, self._shortest)
        for life in self._lives.values():
            if life.record.is_stopping:
                life.hasten(grace)

    def _begin(self, name: str) -> None:
        record = self.record.container(name)
        record.begin(self._tools.clock.now())
        if record.kind == "container":
            self.record.is_initialized = True
        task = self._tools.tasks.spawn(self._life(name).start(), f"start of {name} of {self.record.name}")
        self._starting = task
        task.add_done_callback(self._started)

    # Both also happen to a task that was cancelled before it came to do anything.

    def _started(self, _task: "asyncio.Task[None]") -> None:
        self._starting = None
        for record in self.record.containers:
            record.is_starting = False
        self._news.set()

    def _opened(self, _task: "asyncio.Task[None]") -> None:
        self._opening = None
        self._news.set()

    def _life(self, name: str) -> ContainerLife:
        record = self.record.container(name)
        life = self._lives.get(name)
        if life is None:
            life = self._lives[name] = ContainerLife(record, self._ground, self._news.set)
        return life

    def _resize(self, before: Limits) -> None:
        """Give containers that run what their manifest says now; those that cannot take it are restarted."""
        differing = [record for record in self.record.containers if record.has_other_resources]
        for record in differing:
            assert record.run is not None, "what does not run has no resources"
            if _needs_restart(record.spec, record.run.resources, record.spec.get("resources") or {}):
                record.wish = Wish(f"Container {record.name} resize requires restart")
        in_place = [record for record in differing if record.wish is None]
        problem, self.record.resize_problem = self.record.resize_problem, ""
        if not in_place:
            return
        try:
            self._resize_in_place(in_place, before)
        except OSError as refusal:
            text = f"resources of {', '.join(one.name for one in in_place)} cannot be changed: {refusal}"
            self.record.resize_problem = text
            if text != problem:
                self._tools.events.warning(self.record.pod, "ResizeError", text)

    def _resize_in_place(self, records: Sequence[ContainerRecord], before: Limits) -> None:
        runtime, uid, after = self._tools.runtime, self._ground.uid, pod_limits(self.record.spec)
        # The kernel wants the Pod never to have less than a container of it, whichever of them grows or shrinks.
        runtime.resize(uid, "", wider(before, after))
        for record in records:
            limits = container_limits(record.spec)
            used = runtime.usage(uid, record.name).working_set
            if limits.memory is not None and used > limits.memory:
                raise OSError(f"{record.name} uses {used} bytes of memory and is to have {limits.memory}")
            runtime.resize(uid, record.name, limits)
            assert record.run is not None, "only containers that run are resized"
            record.run = record.run._replace(resources=record.spec.get("resources") or {})
        runtime.resize(uid, "", after)

    # --- the sandbox

    async def _open(self) -> None:
        """Make volumes, namespaces and a link for the Pod; what fails is told and tried again later.

        Who cancels this is about to end the Pod, and lets go of what there is by then.
        """
        record = self.record
        try:
            if self._ground.sandbox is not None:
                await self._leave_lost_sandbox()
                if is_finished(record):
                    return  # what ran in it is not to run again
            await self._ground.volumes.prepare()
            await self._open_sandbox()
        except VolumeProblem as problem:
            self._tools.events.warning(record.pod, "FailedMount", str(problem))
            self._try_later()
        except Exception as trouble:
            await self._close_sandbox()
            log.debug("sandbox of %s", record.name, exc_info=True)
            text = f"Failed to create pod sandbox: {trouble}"
            self._tools.events.warning(record.pod, "FailedCreatePodSandBox", text)
            self._try_later()
        else:
            self._failures = 0
            record.sandbox_retry_at = None
            record.begin_anew()

    def _try_later(self) -> None:
        pause = min(_FIRST_PAUSE * 2.0**self._failures, _LONGEST_PAUSE)
        self._failures = min(self._failures + 1, 20)
        self.record.sandbox_retry_at = self._tools.clock.now() + timedelta(seconds=pause)

    async def _open_sandbox(self) -> None:
        ground, record, facts = self._ground, self.record, self._facts
        spec = self._sandbox_spec()
        ground.hostname = spec.hostname
        sandbox = await self._tools.runtime.open_sandbox(ground.uid, spec, pod_limits(record.spec))
        ground.sandbox = sandbox
        self._watching = self._tools.tasks.spawn(self._watch(sandbox), f"namespaces of {record.name}")
        if spec.host_network:
            record.addresses = facts.host_ips
        else:
            record.addresses = await self._tools.network.attach(ground.uid, sandbox.network)
        ground.etc_mounts = await self._tools.offload(self._write_etc)

    async def _watch(self, sandbox: Sandbox) -> None:
        """Have a new sandbox made when this one has been killed: nothing could be started in it any more."""
        await sandbox.ended()
        if self.record.has_sandbox and not self._is_ending():
            text = "Pod sandbox changed, it will be killed and re-created."
            self._tools.events.normal(self.record.pod, "SandboxChanged", text)
        self.record.has_sandbox = False
        self._news.set()

    async def _leave_lost_sandbox(self) -> None:
        for life in self._lives.values():
            life.kill()
        await asyncio.gather(*(life.ended() for life in self._lives.values()))
        await self._close_sandbox()

    def _sandbox_spec(self) -> PodSpec:
        spec = self.record.spec
        sysctls = (spec.get("securityContext") or {}).get("sysctls") or ()
        return PodSpec(
            hostname=self._names().hostname,
            host_network=bool(spec.get("hostNetwork")),
            share_process_namespace=bool(spec.get("shareProcessNamespace")),
            sysctls={one["name"]: one["value"] for one in sysctls},
        )

    def _names(self) -> PodNames:
        meta, facts = self.record.pod["metadata"], self._facts
        return pod_names(
            self.record.spec,
            meta["name"],
            meta["namespace"],
            domain=facts.domain,
            node_hostname=facts.name,
        )

    def _write_etc(self) -> tuple[Mount, ...]:
        """Write the Pod's own files of /etc. Blocks."""
        spec, meta, facts = self.record.spec, self.record.pod["metadata"], self._facts
        names = self._names()
        resolution = pod_resolution(
            spec,
            meta["namespace"],
            cluster_dns=facts.cluster_dns,
            domain=facts.domain,
            node=facts.resolution,
        )
        directory = self._ground.directory / "etc"
        directory.mkdir(parents=True, exist_ok=True)
        hosts = pod_hosts(spec, self.record.addresses, names, node_hosts=facts.hosts)
        return write_etc_files(directory, hosts, write_resolution(resolution), f"{names.hostname}\n")

    async def _close_sandbox(self) -> None:
        ground = self._ground
        sandbox, ground.sandbox = ground.sandbox, None
        self.record.has_sandbox = False
        if self._watching is not None:
            self._watching.cancel()
        try:
            await self._tools.runtime.remove(ground.uid)
        except SandboxError as trouble:
            self._tools.events.warning(self.record.pod, "FailedKillPod", f"error killing pod: {trouble}")
        if sandbox is not None:
            await sandbox.close()
        if not self.record.spec.get("hostNetwork"):
            await self._tools.network.detach(ground.uid)

    # --- while it lives, and after

    async def _keep(self) -> None:
        """Keep volumes up to date, and see to it that none grows above its limit."""
        volumes, clock = self._ground.volumes, self._tools.clock
        next_refresh = clock.monotonic() + REFRESH_EVERY
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY):
                    await self._refresh_due.wait()
                    next_refresh = clock.monotonic()
            self._refresh_due.clear()
            if self.record.resize_problem:
                self._resize(pod_limits(self.record.spec))
                self._news.set()
            if not self.record.has_sandbox:
                continue
            if volumes.has_limits and (text := await self._tools.offload(volumes.overflow)):
                self.record.verdict = Waiting("Evicted", text)
                self._tools.events.warning(self.record.pod, "Evicted", text)
                self._hasten(EVICTION_GRACE)
                self._news.set()
                return
            if volumes.needs_refresh and clock.monotonic() >= next_refresh:
                next_refresh = clock.monotonic() + REFRESH_EVERY
                try:
                    await volumes.refresh()
                except VolumeProblem as problem:
                    self._tools.events.warning(self.record.pod, "FailedMount", str(problem))

    async def _end(self) -> None:
        """Let go of what only a living Pod needs."""
        await asyncio.gather(*(life.ended() for life in self._lives.values()))
        await self._close_sandbox()
        self._ground.gpus.release(self._ground.uid)
        if not self._is_stopped:
            await self._ground.volumes.remove()

    async def _remove(self) -> None:
        """Remove everything of the Pod, and let the API server forget it."""
        pod = self.record.pod
        # A start that was cancelled may have left a thread behind that still makes a directory.
        for _ in range(_REMOVAL_TRIES):
            try:
                await self._tools.offload(remove_tree, self._ground.directory)
            except OSError as trouble:
                log.warning("files of %s: %s", self.record.name, trouble)
            if not self._ground.directory.exists():
                break
            await self._tools.clock.sleep(_REMOVAL_PAUSE)
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        while not self._reporter.is_gone:
            try:
                await self._tools.client.delete(PODS.url_of(pod), options)
            except (errors.NotFound, errors.Conflict):
                break  # gone already, or another one has its name
            except (errors.ApiError, OSError, TimeoutError) as trouble:
                log.warning("removal of %s: %s; trying again", self.record.name, trouble)
                await self._tools.clock.sleep(1.0)
            else:
                break
        for task in self._tasks:
            task.cancel()

    def _newest(self) -> tuple[Object, Object]:
        now = self._tools.clock.now()
        return self.record.pod, pod_status(self.record, self._facts.host_ips, now)


def _annotated(pod: Object) -> tuple[object, object]:
    meta = pod["metadata"]
    return meta.get("annotations"), meta.get("labels")


def _needs_restart(container: Object, before: Object, after: Object) -> bool:
    """Tell whether a change of resources is one that the container wants to be restarted for."""
    for policy in container.get("resizePolicy") or ():
        name = policy["resourceName"]
        if policy.get("restartPolicy") == "RestartContainer" and any(
            (before.get(field) or {}).get(name) != (after.get(field) or {}).get(name)
            for field in ("requests", "limits")
        ):
            return True
    return False
