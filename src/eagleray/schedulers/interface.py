"""What a batch scheduler does for a Ray object."""

from collections.abc import Sequence
from typing import Any, Protocol

from eagleray.kube.resources import Resource
from eagleray.runtime.actions import Action

Object = dict[str, Any]


class Scheduler(Protocol):
    """A batch scheduler, seen from the controllers."""

    def watches(self) -> Sequence[Resource]:
        """Return the resources whose objects it makes, so that a change of one of them wakes its owner."""
        ...

    def submit(self, owner: Object) -> Sequence[Action]:
        """Return what has to happen before the Pods of an object are made; it is asked in every pass."""
        ...

    def decorate(self, owner: Object, group: str, pod: Object) -> None:
        """Mark a Pod, which is not yet made, as one of a group of its owner."""
        ...

    def clean_up(self, owner: Object) -> Sequence[Action]:
        """Return what has to happen when an object has ended or is suspended."""
        ...


class NoScheduler:
    """The scheduler of Kubernetes itself, which asks for nothing."""

    def watches(self) -> Sequence[Resource]:
        return ()

    def submit(self, owner: Object) -> Sequence[Action]:  # noqa: ARG002 - others look at it
        return ()

    def decorate(self, owner: Object, group: str, pod: Object) -> None:
        """Leave the Pod as it is."""

    def clean_up(self, owner: Object) -> Sequence[Action]:  # noqa: ARG002 - others look at it
        return ()
