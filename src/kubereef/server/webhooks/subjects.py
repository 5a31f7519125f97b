"""What webhooks are asked about."""

from typing import NamedTuple

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.requests import User
from kubereef.store.records import decode, encode


class Subject(NamedTuple):
    """An operation on a resource, or on a part of it.

    `object_type` is the kind of the objects: that of the resource, or of what a part takes, such as a Scale. Mutating
    webhooks change `obj` in place. Objects are without apiVersion and kind, as everywhere in the server.
    """

    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    resource_type: ResourceType
    object_type: ResourceType
    subresource: str
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    options: Object | None
    user: User
    dry_run: bool
    # When the request has taken too long, as the clock shows it.
    until: float

    @property
    def is_whole(self) -> bool:
        """Whether the objects are of the resource's own kind, and so have its versions."""
        return self.object_type is self.resource_type

    def shown(self, obj: Object | None, version: ResourceType) -> Object | None:
        """Return an object as a version of its kind shows it, for whoever may do with it what they like."""
        if obj is None:
            return None
        if version is not self.object_type and self.is_whole:
            obj = version.from_stored(copied(self.resource_type.to_stored(copied(obj))))
        return {"apiVersion": version.api_version, "kind": version.kind, **obj}

    def taken_back(self, obj: Object, version: ResourceType) -> Object:
        """Return an object of a version in that of the request."""
        if version is self.object_type or not self.is_whole:
            return obj
        return self.resource_type.from_stored(copied(version.to_stored(obj)))


def copied(obj: Object) -> Object:
    copy: Object = decode(encode(obj))
    return copy
