"""A request on its way through the server, with all that its verb needs."""

from collections.abc import Callable
from typing import NamedTuple

from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import ResourceType
from kubereef.server.admission import Admission
from kubereef.server.answers import Wish
from kubereef.server.requests import Request, User
from kubereef.server.routing import Target
from kubereef.server.webhooks.asking import Webhooks
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire.sources import Clock, Entropy


def _allow(_user: User, _target: Target) -> None:
    """Refuse nobody, where access is nobody's concern."""


class Surroundings(NamedTuple):
    """What the server gives to every call. Unless it `tracks` them, the owners of fields are known only to appliers."""

    store: Store
    registry: Registry
    clock: Clock
    entropy: Entropy
    admission: Admission
    tracks: bool = True
    # Refuses a user what a request turned out to be, such as an apply that creates.
    authorize: Callable[[User, Target], None] = _allow
    # Those outside who are asked about writes, if anybody is.
    webhooks: Webhooks | None = None


class Call(NamedTuple):
    """One request about one resource."""

    around: Surroundings
    request: Request
    target: Target
    resource_type: ResourceType
    user: User
    wish: Wish
    # What the client is told besides the answer, even if that is a refusal.
    warnings: list[str]

    @property
    def store(self) -> Store:
        return self.around.store

    @property
    def key(self) -> Key:
        return self.key_of(self.target.name)

    def key_of(self, name: str) -> Key:
        return Key(self.resource_type.storage, self.namespace, name)

    @property
    def namespace(self) -> str:
        """The namespace of the object; a namespace itself, like all that is cluster-wide, is in none."""
        return self.target.namespace if self.resource_type.namespaced else ""
