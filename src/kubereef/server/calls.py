"""A request on its way through the server, with all that its verb needs."""

from typing import NamedTuple

from kubereef.kinds.registry import Registry
from kubereef.kinds.resource import ResourceType
from kubereef.server.admission import Admission
from kubereef.server.answers import Wish
from kubereef.server.requests import Request, User
from kubereef.server.routing import Target
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubewire.sources import Clock, Entropy


class Surroundings(NamedTuple):
    """What the server gives to every call."""

    store: Store
    registry: Registry
    clock: Clock
    entropy: Entropy
    admission: Admission


class Call(NamedTuple):
    """One request about one resource."""

    around: Surroundings
    request: Request
    target: Target
    resource_type: ResourceType
    user: User
    wish: Wish

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
