"""Admission: what the cluster as a whole has to say about a write, after who may do it and before it is done."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.requests import User
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire import errors


class Attempt(NamedTuple):
    """A write under way. `old` is what it replaces; `subresource` is empty for the object itself."""

    operation: str  # CREATE, UPDATE or DELETE
    resource_type: ResourceType
    namespace: str
    name: str
    obj: Object
    old: Object | None
    user: User
    subresource: str = ""
    dry_run: bool = False


# A step changes the object of the attempt, raises an ApiError to refuse it, and returns warnings.
Step = Callable[[Store, Attempt], list[str]]
# A wait lets something come that a creation needs and that is on its way; it neither changes nor refuses.
Wait = Callable[[Store, Attempt], Awaitable[None]]


class Admission:
    """The steps that every write passes: those that change the object, those that judge it, and what it is given."""

    def __init__(
        self,
        mutating: tuple[Step, ...] = (),
        validating: tuple[Step, ...] = (),
        waits: tuple[Wait, ...] = (),
        settling: tuple[Step, ...] = (),
    ) -> None:
        self.mutating = mutating
        self.validating = validating
        self.waits = waits
        # What takes something for the object, such as an address: nothing may wait between these and the write.
        self.settling = settling

    async def wait(self, store: Store, attempt: Attempt) -> None:
        for wait in self.waits:
            await wait(store, attempt)

    def mutate(self, store: Store, attempt: Attempt) -> list[str]:
        return [warning for step in self.mutating for warning in step(store, attempt)]

    def validate(self, store: Store, attempt: Attempt) -> list[str]:
        return [warning for step in self.validating for warning in step(store, attempt)]

    def settle(self, store: Store, attempt: Attempt) -> list[str]:
        return [warning for step in self.settling for warning in step(store, attempt)]


def namespace_lifecycle(store: Store, attempt: Attempt) -> list[str]:
    """Refuse new content for a namespace that is not there or on its way out."""
    if attempt.operation != "CREATE" or not attempt.resource_type.namespaced:
        return []
    record = store.latest(Key("namespaces", "", attempt.namespace))
    if record is None:
        raise errors.not_found("namespaces", attempt.namespace)
    if record.object()["metadata"].get("deletionTimestamp"):
        because = (
            f"unable to create new content in namespace {attempt.namespace} because it is being terminated"
        )
        refusal = errors.forbidden(
            attempt.resource_type.plural, attempt.name, because, group=attempt.resource_type.group
        )
        cause = errors.Cause(
            "NamespaceTerminating", f"namespace {attempt.namespace} is being terminated", "metadata.namespace"
        )
        assert refusal.details is not None
        refusal.details = refusal.details._replace(causes=(cause,))
        raise refusal
    return []
