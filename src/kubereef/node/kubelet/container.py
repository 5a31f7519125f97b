"""One container of a Pod, over all its runs: starting, watching, ending, and reaching into it."""

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from kubereef.kinds.resource import Object
from kubereef.node.images import Image
from kubereef.node.kubelet.actions import perform
from kubereef.node.kubelet.events import Named
from kubereef.node.kubelet.handles import ContainerKind, NotRunning, RunningProcess
from kubereef.node.kubelet.interfaces import Answer, StartedContainer
from kubereef.node.kubelet.logs import ContainerLog, log_tail, rotated
from kubereef.node.kubelet.making import Ground, Made, enter_command, make_container
from kubereef.node.kubelet.probing import Asking, ProbeKind, Probes
from kubereef.node.kubelet.problems import ConfigProblem
from kubereef.node.kubelet.pulling import SHOWN_FOR, ImagePull, back_off
from kubereef.node.kubelet.records import ContainerRecord, Ending, Run, Waiting, Wish
from kubereef.node.kubelet.streams import ContainerStreams, StreamAttachment
from kubereef.node.kubelet.trees import remove_tree
from kubereef.node.sandbox import Exit, NodeEnded, Refused, StartFailed, Stdio, TerminalSize, Usage
from kubewire import errors

log = logging.getLogger(__name__)

CONFIG_RETRY = 10.0
LEAST_GRACE = 2.0  # for the signal, after a hook that took all the time
_OUTPUT_PATIENCE = 2.0
_LONGEST_MESSAGE = 4096
_LOG_LINES, _LOG_BYTES = 80, 2048
_LOGS_KEPT = 2
_KILLED = Exit(137, signal.SIGKILL)


class _Live(NamedTuple):
    """What belongs to a run that has not ended."""

    process: StartedContainer
    streams: ContainerStreams
    made: Made
    image: Image
    run: Run
    oom_kills: int


class ContainerLife:
    """One container; it is a `handles.ContainerHandle`. What it has been through is in its record."""

    def __init__(self, record: ContainerRecord, ground: Ground, wake: Callable[[], None]) -> None:
        self.record = record
        self._ground = ground
        self._tools = ground.tools
        self._wake = wake
        self._live: _Live | None = None
        self._unused: Image | None = None  # an image that is held for a run that has not begun
        self._probes: Probes | None = None
        self._deadline = 0.0
        self._hurry = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    # --- what the HTTPS API sees

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def kind(self) -> ContainerKind:
        return self.record.kind

    @property
    def spec(self) -> Object:
        return self.record.spec

    @property
    def address(self) -> str:
        return self._ground.address

    @property
    def is_running(self) -> bool:
        return self._live is not None

    def log_file(self, *, previous: bool = False) -> Path | None:
        record = self.record
        number = self._number()
        # Between two runs the one that ended last is both the present and the previous one.
        if previous and not (record.run is None and record.ending is not None and record.waiting is not None):
            number -= 1
        if not record.has_run and self._live is None:
            return None
        return self._log_place(number) if number >= 0 else None

    async def ended(self) -> None:
        await self._idle.wait()

    async def enter(
        self, argv: Sequence[str], stdio: Stdio, terminal: TerminalSize | None = None
    ) -> RunningProcess:
        live = self._require_live()
        return await live.process.enter(enter_command(live.made, tuple(argv), terminal), stdio)

    def attach(self) -> StreamAttachment:
        return self._require_live().streams.attach()

    def usage(self) -> Usage:
        return self._tools.runtime.usage(self._ground.uid, self.name)

    def _require_live(self) -> _Live:
        if self._live is None:
            raise NotRunning(f"container {self.name} is not running")
        return self._live

    # --- starting

    async def start(self) -> None:
        """Try once to start; the record, which `begin` was called on, tells what came of it."""
        try:
            image = await ImagePull(self._pod, self.record, self._tools).pull()
            if image is None:
                failed = self.record.waiting
                assert failed is not None, "a pull that fails says why"
                self._tools.spawn(self._back_off_later(failed), f"back-off of {self.name}")
                return
            self._unused = image
            await self._start_with(image)
        except Exception as trouble:
            log.exception("container %s of %s", self.name, self._ground.record.name)
            self._wait("CreateContainerError", str(trouble) or type(trouble).__name__)
        finally:
            if self._unused is not None:
                self._tools.images.release(self._unused)
                self._unused = None
            self.record.is_starting = False
            self._wake()

    async def _back_off_later(self, failed: Waiting) -> None:
        await self._tools.clock.sleep(SHOWN_FOR)
        back_off(self._pod, self.record, failed, self._tools)
        self._wake()

    async def _start_with(self, image: Image) -> None:
        record = self.record
        number = self._number() + 1 if record.has_run else 0
        try:
            made = await make_container(self._ground, record, image, number)
        except (ConfigProblem, errors.ApiError) as problem:
            self._wait("CreateContainerConfigError", str(problem))
            return
        streams = ContainerStreams(
            ContainerLog(self._log_place(number), self._tools.clock),
            has_stdin=bool(record.spec.get("stdin")),
            has_terminal=bool(record.spec.get("tty")),
            stdin_once=bool(record.spec.get("stdinOnce")),
        )
        run = self._new_run(image, made)
        kills = self.usage().oom_kills
        assert self._ground.sandbox is not None, "containers start after their sandbox"
        try:
            process = await self._tools.runtime.start(
                self._ground.uid, self.name, self._ground.sandbox, made.spec, made.limits, streams.stdio
            )
        except Refused as refusal:
            streams.close()
            self._wait("CreateContainerError", str(refusal))
            return
        except StartFailed as failure:
            streams.close()
            self._fail_to_start(failure, run)
            return
        except BaseException:
            streams.close()
            raise
        streams.begin(process)
        live = _Live(process, streams, made, image, run._replace(started=self._tools.clock.now()), kills)
        self._event("Created", f"Created container: {self.name}")
        self._event("Started", f"Started container {self.name}")
        await self._begin(live, number)

    async def _begin(self, live: _Live, number: int) -> None:
        """Take over a process that runs; its hook comes before anybody is told that it does."""
        self._live = live
        self._unused = None  # the run has it now, and lets it go when it ends
        self._idle.clear()
        self._hurry.clear()
        watching = self._tools.tasks.spawn(self._watch(live), f"container {self.name}")
        try:
            failure = await self._post_start()
        except asyncio.CancelledError:
            live.process.signal(signal.SIGKILL)
            raise
        if self._live is not live:
            return  # it has ended already
        self.record.start(live.run)
        if failure:
            self._event("FailedPostStartHook", "PostStartHook failed", is_warning=True)
            self._event("Killing", "FailedPostStartHook")
            live.process.signal(signal.SIGKILL)
            await asyncio.shield(watching)
            self.record.waiting = Waiting("PostStartHookError", failure)
            return
        self._probes = Probes(
            self.record.spec, Asking(self._ask, self._tell_unhealthy, self._conclude), self._tools.clock
        )
        self._probes.begin()
        await self._tools.offload(self._forget_logs_before, number - _LOGS_KEPT + 1)

    def _new_run(self, image: Image, made: Made) -> Run:
        security = made.identity.security
        return Run(
            container_id=f"kubereef://{self._tools.entropy.token(32).hex()}",
            image=self.record.spec.get("image") or "",
            image_id=image.id,
            started=self._tools.clock.now(),
            resources=self.record.spec.get("resources") or {},
            user=(security.uid, security.gid, security.groups),
        )

    async def _post_start(self) -> str:
        """Run the hook, if there is one; return what went wrong."""
        hook = (self.record.spec.get("lifecycle") or {}).get("postStart")
        if not hook:
            return ""
        answer = await self._perform(hook, None)
        return "" if answer.passed else (answer.output or "PostStartHook failed")

    def _wait(self, reason: str, message: str) -> None:
        """Be unable to start for now."""
        later = self._tools.clock.now() + timedelta(seconds=CONFIG_RETRY)
        self.record.wait(Waiting(reason, message), later)
        self._event("Failed", f"Error: {message}", is_warning=True)

    def _fail_to_start(self, failure: StartFailed, run: Run) -> None:
        ending = Ending(
            failure.exit_code,
            failure.reason,
            self._tools.clock.now(),
            None,
            failure.message,
            run.container_id,
        )
        self.record.fail_to_start(ending, Waiting("RunContainerError", failure.message))
        self.record.image_id = run.image_id
        self._event("Created", f"Created container: {self.name}")
        self._event("Failed", f"Error: {failure.message}", is_warning=True)

    # --- running

    async def _watch(self, live: _Live) -> None:
        """Wait for the end of a run, and record it."""
        try:
            ended = await live.process.wait()
        except NodeEnded:
            ended = _KILLED  # with everything else, this process soon included
        probes, self._probes = self._probes, None
        if probes is not None:
            await probes.end()
        await live.streams.finish(_OUTPUT_PATIENCE)
        is_oom = ended.code != 0 and self.usage().oom_kills > live.oom_kills
        reason = "OOMKilled" if is_oom else "Completed" if ended.code == 0 else "Error"
        message = await self._tools.offload(self._last_words, live.made, ended.code != 0)
        record = self.record
        if record.run is None:
            record.start(live.run)  # it ended before its hook did
        record.end(
            Ending(
                ended.code,
                reason,
                self._tools.clock.now(),
                live.run.started,
                message,
                live.run.container_id,
            )
        )
        live.process.close()
        self._tools.images.release(live.image)
        self._live = None
        try:
            await self._tools.offload(remove_tree, live.made.writable)
        except OSError as trouble:
            log.warning("files of %s of %s: %s", self.name, self._ground.record.name, trouble)
        self._idle.set()
        self._wake()

    def _last_words(self, made: Made, has_failed: bool) -> str:
        """Return the termination message. Blocks."""
        with made.message_file.open("rb") as file:
            message = file.read(_LONGEST_MESSAGE).decode(errors="replace")
        made.message_file.unlink()
        policy = self.record.spec.get("terminationMessagePolicy")
        if not message and has_failed and policy == "FallbackToLogsOnError":
            return log_tail(self._log_place(self._number()), _LOG_LINES, _LOG_BYTES)
        return message

    async def _ask(self, probe: Object, patience: float) -> Answer:
        return await self._perform(probe, patience)

    def _tell_unhealthy(self, kind: ProbeKind, answer: Answer) -> None:
        verb = "errored" if answer.is_error else "failed"
        self._event("Unhealthy", f"{kind.capitalize()} probe {verb}: {answer.output}", is_warning=True)

    def _conclude(self, kind: ProbeKind, probe: Object, passed: bool) -> None:
        """Take over what a probe has found."""
        record = self.record
        if kind == "readiness":
            record.is_ready = passed
        elif kind == "startup" and passed:
            record.is_started = True
        elif not passed:
            grace = probe.get("terminationGracePeriodSeconds")
            record.wish = Wish(f"Container {self.name} failed {kind} probe", grace)
        self._wake()

    async def _perform(self, action: Object, patience: float | None) -> Answer:
        return await perform(self, action, patience, self._tools.prober, self._tools.clock)

    # --- ending

    async def stop(self, message: str, grace: float) -> None:
        """End the present run: its hook, a signal, and after `grace` seconds in all one that nobody survives."""
        live = self._live
        if live is None:
            return
        self.record.is_stopping = True
        self._event("Killing", message)
        if self._probes is not None:
            self._probes.stop_restarting()
        self._deadline = self._tools.clock.monotonic() + grace
        self._hurry.clear()
        hook = (self.record.spec.get("lifecycle") or {}).get("preStop")
        if hook and grace > 0 and not await self._within_grace(self._pre_stop(hook, grace)):
            self._event("FailedPreStopHook", "PreStopHook failed", is_warning=True)
        if self._left() < LEAST_GRACE and grace > 0 and hook:
            self._deadline = self._tools.clock.monotonic() + LEAST_GRACE
        if grace > 0:
            live.process.signal(self._stop_signal())
            await self._within_grace(self._until_ended())
        live.process.signal(signal.SIGKILL)
        await self._idle.wait()

    def hasten(self, grace: float) -> None:
        """Give a run that is being ended less time than it was told."""
        sooner = self._tools.clock.monotonic() + grace
        if sooner < self._deadline:
            self._deadline = sooner
            self._hurry.set()

    def kill(self) -> None:
        """End the present run at once."""
        if self._live is not None:
            self._live.process.signal(signal.SIGKILL)

    async def _pre_stop(self, hook: Object, grace: float) -> bool:
        return (await self._perform(hook, grace)).passed

    async def _until_ended(self) -> bool:
        await self._idle.wait()
        return True

    async def _within_grace(self, work: Coroutine[Any, Any, bool]) -> bool:
        """Return what the work returns; False if the grace period, or what is left of it, is over first."""
        task = asyncio.ensure_future(work)
        idle = asyncio.ensure_future(self._idle.wait())
        try:
            while not task.done() and not idle.done() and self._left() > 0:
                self._hurry.clear()
                hurry = asyncio.ensure_future(self._hurry.wait())
                await asyncio.wait(
                    (task, idle, hurry), timeout=self._left(), return_when=asyncio.FIRST_COMPLETED
                )
                hurry.cancel()
            return task.result() if task.done() else idle.done()
        finally:
            for each in (task, idle):
                each.cancel()
            await asyncio.gather(task, idle, return_exceptions=True)

    def _left(self) -> float:
        return self._deadline - self._tools.clock.monotonic()

    def _stop_signal(self) -> int:
        wanted = (self.record.spec.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
        known = signal.Signals.__members__
        return int(known.get(wanted, signal.SIGTERM))

    # --- small things

    @property
    def _pod(self) -> Object:
        return self._ground.record.pod

    def _event(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        tell = self._tools.events.warning if is_warning else self._tools.events.normal
        tell(self._pod, reason, message, Named(self.name, self.kind))

    def _number(self) -> int:
        """The number of the present or last run, counted from 0."""
        record = self.record
        is_between = self._live is not None and record.run is None and record.has_run
        return record.restarts + 1 if is_between else record.restarts

    def _log_place(self, number: int) -> Path:
        return self._ground.directory / "logs" / self.name / f"{number}.log"

    def _forget_logs_before(self, number: int) -> None:
        folder = self._ground.directory / "logs" / self.name
        for file in folder.glob("*.log"):
            if file.stem.isdigit() and int(file.stem) < number:
                for part in (file, *rotated(file)):
                    part.unlink(missing_ok=True)
