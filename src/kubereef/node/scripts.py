"""How Pods live on scripted nodes, as data: steps, each so many seconds after the one before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Running:
    """The containers, or the named one, start `after` so many seconds; ready at once unless said otherwise."""

    after: float = 0.0
    ready: bool = True
    container: str = ""


@dataclass(frozen=True, slots=True)
class Ready:
    """The containers that run become ready."""

    after: float = 0.0
    container: str = ""


@dataclass(frozen=True, slots=True)
class NotReady:
    """The containers that run stop being ready."""

    after: float = 0.0
    container: str = ""


@dataclass(frozen=True, slots=True)
class Fails:
    """The containers end with an exit code, and are started again if the Pod's restart policy says so."""

    after: float = 0.0
    exit_code: int = 1
    reason: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class Succeeds:
    """The containers end well."""

    after: float = 0.0
    container: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """The containers wait for something before they start, such as an image that cannot be pulled."""

    after: float = 0.0
    reason: str = "ImagePullBackOff"
    message: str = ""
    container: str = ""


@dataclass(frozen=True, slots=True)
class Evicted:
    """The node throws the Pod out: it fails as a whole."""

    after: float = 0.0
    reason: str = "Evicted"
    message: str = "The node was low on resource: memory."


Step = Running | Ready | NotReady | Fails | Succeeds | Waits | Evicted


@dataclass(frozen=True, slots=True)
class Script:
    """How Pods with certain labels live: all of them, or the `nth` that comes to a node, counted from 1."""

    when: Mapping[str, str] = field(default_factory=dict)
    nth: int | None = None
    steps: Sequence[Step] = (Running(),)
    # Begin the steps anew when they are done, as long as the Pod is not over.
    repeat: bool = False
    # How long the containers take to end when they are asked to, and how they end if they get that long.
    stops_after: float = 0.0
    stop_code: int = 0
