"""How objects of a cache are read: as a whole, or as the few fields that somebody wants to know."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from eagleray.kube.resources import Key, Object, Resource

T = TypeVar("T")


class _Owner(msgspec.Struct, frozen=True):
    uid: str = ""


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    """What a cache itself has to know of an object."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    labels: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def owners(self) -> tuple[str, ...]:
        """The uids of the owners."""
        return tuple(owner.uid for owner in self.owner_references or ())


class _Described(msgspec.Struct, frozen=True):
    metadata: Metadata


_described = msgspec.json.Decoder(_Described)


class View(Generic[T]):
    """Decodes objects into `T`, from the text that the server sent or from an object that is decoded already."""

    def __init__(self, decode: Callable[[msgspec.Raw], T], convert: Callable[[Object], T]) -> None:
        self._decode = decode
        self._convert = convert

    def of_text(self, raw: msgspec.Raw) -> tuple[Metadata, T]:
        return _described.decode(raw).metadata, self._decode(raw)

    def of_object(self, obj: Object) -> tuple[Metadata, T]:
        return msgspec.convert(obj, _Described).metadata, self._convert(obj)


def typed(struct: type[T]) -> View[T]:
    """Read objects as a msgspec Struct; all other fields are skipped and take no memory."""
    return View(msgspec.json.Decoder(struct).decode, lambda obj: msgspec.convert(obj, struct))


def whole(resource: Resource) -> View[Object]:
    """Read objects as they are. In lists the server leaves kind and version out; here they are.

    Only who manages which field is left out: it may take more memory than all the rest, and the server does not need
    to be told.
    """
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    about = {"apiVersion": resource.api_version, "kind": resource.kind}

    def complete(obj: Object) -> Object:
        metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        return {**about, **obj, "metadata": metadata}

    return View(lambda raw: complete(decode(raw)), complete)
