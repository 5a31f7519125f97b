"""What keeps Pods from running, in words that a user can act on."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eagleray.raycluster.views import ContainerStatus, PodView

# Reasons of waiting containers, by what they are about.
_IMAGE = frozenset(
    (
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    )
)
_CONFIG = frozenset(
    ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CreatePodSandboxError")
)
_CRASH = "CrashLoopBackOff"


class Trouble(NamedTuple):
    """What is wrong with a Pod: the kind of it, the details, and what would help."""

    kind: str
    text: str
    help: str

    @property
    def way(self) -> str:
        """The way in which it fails: Pods that share it fail for the same reason."""
        return self.kind


def trouble_of(pod: PodView) -> Trouble | None:
    """Return what keeps a Pod from running, or ended it; None if nothing is known to."""
    if pod.status.phase == "Failed" or pod.must_go:
        return _ended(pod)
    scheduled = pod.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        if scheduled.reason == "SchedulingGated":
            return Trouble(
                "SchedulingGated", scheduled.message, "whoever set the Pod's scheduling gates removes them"
            )
        return Trouble(
            "Unschedulable",
            scheduled.message,
            "ask for less, free or add nodes, or change selectors and tolerations",
        )
    for status in pod.status.init_container_statuses:
        if found := _container_trouble(status, initial=True):
            return found
    for status in pod.status.container_statuses:
        if found := _container_trouble(status, initial=False):
            return found
    return None


def _ended(pod: PodView) -> Trouble:
    if pod.status.reason:  # the kubelet or a controller ended it as a whole
        help_ = {
            "Evicted": "its node ran out of something: raise requests to what it needs",
            "Preempting": "a Pod of higher priority took its place",
            "NodeShutdown": "its node was shut down",
            "NodeAffinity": "its node no longer matches its affinity",
        }.get(pod.status.reason, "see the Pod's status")
        return Trouble(pod.status.reason, pod.status.message, help_)
    prepared = pod.status.init_container_statuses
    for status in (*prepared, *pod.status.container_statuses):
        ended = status.state.terminated
        # What prepares a Pod is meant to end; of the others, any end may be that of the Pod.
        may_end_well = status in prepared or pod.status.phase == "Failed"
        if ended is not None and (ended.exit_code or not may_end_well):
            return _ending(status.name, ended.reason, ended.message, ended.exit_code)
    return Trouble("Ended", f"its phase is {pod.status.phase}", "see the Pod's logs")


def _container_trouble(status: ContainerStatus, *, initial: bool) -> Trouble | None:
    waiting = status.state.waiting
    if waiting is None:
        ended = status.state.terminated
        if initial and ended is not None and ended.exit_code:
            return _ending(status.name, ended.reason, ended.message, ended.exit_code)
        return None
    words = f"container {status.name}: {waiting.reason}"
    details = f"{words}: {waiting.message}" if waiting.message else words
    if waiting.reason in _IMAGE:
        return Trouble(
            "ImagePull", details, "check the image's name and tag, the registry, and imagePullSecrets"
        )
    if waiting.reason in _CONFIG:
        return Trouble("ContainerConfig", details, "create the Secret, ConfigMap or volume that it names")
    if waiting.reason == _CRASH:
        last = status.last_state.terminated
        if last is None:
            return Trouble("Crash", details, f"see the logs of container {status.name}")
        return _ending(status.name, last.reason, last.message, last.exit_code)
    return None


def _ending(container: str, reason: str, message: str, exit_code: int) -> Trouble:
    more = f": {message.strip()}" if message.strip() else ""
    text = f"container {container} ended with exit code {exit_code} ({reason or 'Error'}){more}"
    if reason == "OOMKilled":
        return Trouble("OutOfMemory", text, f"raise the memory limit of container {container}")
    return Trouble("Crash", text, f"see the logs of container {container}")


class GroupTrouble(NamedTuple):
    """What is wrong with Pods of one group: the first one's trouble speaks for those that share its kind."""

    group: str
    pods: int
    pod: str
    trouble: Trouble

    def __str__(self) -> str:
        several = f"{self.pods} Pods" if self.pods > 1 else f"Pod {self.pod}"
        return f"group {self.group}, {several}: {self.trouble.text or self.trouble.kind}; {self.trouble.help}"


def group_troubles(pods: Iterable[PodView]) -> Sequence[GroupTrouble]:
    """Return what is wrong, by group and kind, in the order of the Pods."""
    found: dict[tuple[str, str], GroupTrouble] = {}
    for pod in pods:
        trouble = None if pod.is_terminating else trouble_of(pod)
        if trouble is None:
            continue
        key = (pod.group, trouble.kind)
        known = found.get(key)
        if known is None:
            found[key] = GroupTrouble(pod.group, 1, pod.name, trouble)
        else:
            found[key] = known._replace(pods=known.pods + 1)
    return list(found.values())
