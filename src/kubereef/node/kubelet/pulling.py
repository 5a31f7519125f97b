"""Pulling a container's image: the events of it, and what the container waits for when it fails."""

from datetime import datetime, timedelta

from kubereef.kinds.resource import Object
from kubereef.node.images import Image, ImageError, Progress, PullPolicy
from kubereef.node.kubelet.events import Named
from kubereef.node.kubelet.interfaces import Tools
from kubereef.node.kubelet.records import FIRST_BACKOFF, LONGEST_BACKOFF, ContainerRecord, Waiting
from kubewire.times import format_go_duration

PULL_FAILED = "ErrImagePull"
BACKING_OFF = "ImagePullBackOff"
# How long ErrImagePull is shown before it becomes ImagePullBackOff; other kubelets take until their next look.
SHOWN_FOR = 2.0
_PROGRESS_EVERY = 15.0
_MILLISECOND = 1_000_000


class ImagePull:
    """One attempt to have a container's image."""

    def __init__(self, pod: Object, record: ContainerRecord, tools: Tools) -> None:
        self._pod = pod
        self._record = record
        self._tools = tools
        self._who = Named(record.name, record.kind)
        self._image: str = record.spec.get("image") or ""
        self._began = tools.clock.monotonic()
        self._is_told = False
        self._stage = ""
        self._last_progress = self._began

    async def pull(self) -> Image | None:
        """Return the image, held until it is released; None if it cannot be had, as the record then says."""
        policy: PullPolicy = self._record.spec.get("imagePullPolicy") or "IfNotPresent"
        if policy == "Always":
            self._tell_start()
        try:
            image = await self._tools.images.pull(self._image, policy, self._tell_progress)
        except ImageError as failure:
            self._fail(failure)
            return None
        events, name = self._tools.events, self._image
        if self._is_told:
            took = format_go_duration(
                int((self._tools.clock.monotonic() - self._began) * 1000) * _MILLISECOND
            )
            events.normal(
                self._pod,
                "Pulled",
                f'Successfully pulled image "{name}" in {took} ({took} including waiting). '
                f"Image size: {image.size} bytes.",
                self._who,
            )
        else:
            events.normal(
                self._pod, "Pulled", f'Container image "{name}" already present on machine', self._who
            )
        for warning in image.warnings:
            events.warning(self._pod, "ImageDiffers", warning, self._who)
        return image

    def _tell_start(self) -> None:
        self._is_told = True
        self._tools.events.normal(self._pod, "Pulling", f'Pulling image "{self._image}"', self._who)

    def _tell_progress(self, progress: Progress) -> None:
        """Tell how far it is, at each new stage and now and then in between."""
        if not self._is_told:
            self._tell_start()
        now = self._tools.clock.monotonic()
        if progress.stage == "waiting":
            return
        if progress.stage == self._stage and now - self._last_progress < _PROGRESS_EVERY:
            return
        self._stage, self._last_progress = progress.stage, now
        percent = "" if progress.percent is None else f" ({progress.percent}%)"
        detail = f" {progress.detail}" if progress.detail else ""
        text = f'Pulling image "{self._image}": {progress.stage}{detail}{percent}'
        self._tools.events.normal(self._pod, "Pulling", text, self._who)

    def _fail(self, failure: ImageError) -> None:
        record, events, message = self._record, self._tools.events, str(failure)
        pause = min(FIRST_BACKOFF * 2.0**record.pull_failures, LONGEST_BACKOFF)
        record.pull_failures = min(record.pull_failures + 1, 10)
        if failure.reason == PULL_FAILED:
            events.warning(self._pod, "Failed", f'Failed to pull image "{self._image}": {message}', self._who)
        else:
            reason = "InspectFailed" if failure.reason == "InvalidImageName" else failure.reason
            events.warning(self._pod, reason, message, self._who)
        events.warning(self._pod, "Failed", f"Error: {failure.reason}", self._who)
        record.wait(Waiting(failure.reason, message), self._later(pause))

    def _later(self, seconds: float) -> datetime:
        return self._tools.clock.now() + timedelta(seconds=seconds)


def back_off(pod: Object, record: ContainerRecord, failed: Waiting, tools: Tools) -> None:
    """Show a pull that has just failed as one that will be tried again later."""
    if record.waiting is not failed or failed.reason != PULL_FAILED:
        return  # something else has happened meanwhile
    text = f'Back-off pulling image "{record.spec.get("image", "")}"'
    record.wait(Waiting(BACKING_OFF, f"{text}: {PULL_FAILED}: {failed.message}"), record.retry_at)
    who = Named(record.name, record.kind)
    tools.events.normal(pod, "BackOff", text, who)
    tools.events.warning(pod, "Failed", f"Error: {BACKING_OFF}", who)
