"""The objects that tell a scheduler of a gang: what is read of them, and how they are made, changed and taken away."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from eagleray.kube.cache import Cache
from eagleray.kube.resources import Ref, Resource
from eagleray.manifests.stored import Stored
from eagleray.runtime.actions import Action, Create, Delete, Patch, Refuse, Said, Say, Stage

Object = dict[str, Any]

STEP = "scheduler"
FAILED = "FailedToSubmitBatchScheduler"


class OwnerView(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerView, ...] = ()


class Made(msgspec.Struct, frozen=True):
    """An object of a scheduler, without its status, which the scheduler writes and nobody here reads."""

    metadata: Metadata
    spec: dict[str, Any] = {}

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def place(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    def belongs_to(self, owner: Stored) -> bool:
        return any(one.uid == owner.uid for one in self.metadata.owner_references)


class Making:
    """Finds, makes and changes a scheduler's objects of one resource; failures are told with the scheduler's name."""

    def __init__(self, scheduler: str, resource: Resource, cache: Cache[Made]) -> None:
        self._scheduler = scheduler
        self._resource = resource
        self.cache = cache

    def find(self, namespace: str, name: str) -> Made | None:
        return self.cache.get((namespace, name))

    def own(self, owner: Stored, name: str) -> Made | None:
        """Return an object of this name that belongs to an owner; None if there is none, or it is somebody else's."""
        found = self.find(owner.namespace, name)
        return found if found is not None and found.belongs_to(owner) else None

    def create(self, metadata: Object, **parts: Object) -> Stage:
        """Return the creation of an object with these parts, such as `spec`."""
        about = {"apiVersion": self._resource.api_version, "kind": self._resource.kind}
        place = f"{metadata['namespace']}/{metadata['name']}"
        said = self._said("Create", place)
        return _stage(Create(self._resource, {**about, "metadata": metadata, **parts}, said))

    def change(self, found: Made, spec: Mapping[str, Any]) -> Action:
        """Return a change of the spec of this very object, whatever else has become of it."""
        change = {"metadata": {"uid": found.metadata.uid}, "spec": spec}
        return Patch(self._resource, _ref(found), change, self._said("Update", found.place))

    def delete(self, found: Made, *, held_by: str = "") -> Sequence[Stage]:
        """Return the deletion of this very object, and the removal of a finalizer that would hold it."""
        stages = []
        if not found.is_terminating:
            stages.append(_stage(Delete(self._resource, _ref(found), self._said("Delete", found.place))))
        if held_by in found.metadata.finalizers:
            # Only now: whoever put it there would put it back on an object that is to stay.
            left = [name for name in found.metadata.finalizers if name != held_by]
            change = {"metadata": {"uid": found.metadata.uid, "finalizers": left}}
            stages.append(
                _stage(Patch(self._resource, _ref(found), change, self._said("Delete", found.place)))
            )
        return stages

    def taken(self, found: Made) -> Stage:
        """Return the refusal to go on, because somebody else's object has the name of one of ours."""
        owners = found.metadata.owner_references
        owner = next((one for one in owners if one.controller), owners[0] if owners else None)
        whose = f"belongs to {owner.kind} {owner.name}" if owner else "belongs to nobody"
        return self.refuse(
            f"{self._resource.kind} {found.place} has the name that is needed and {whose}; delete or rename it"
        )

    def refuse(self, message: str) -> Stage:
        return refusal(self._scheduler, message)

    def _said(self, action: str, place: str) -> Said:
        note = f"{self._scheduler}: failed to {action.lower()} {self._resource.kind} {place}"
        return Said(failed=Say(FAILED, action, note, "Warning"))


def refusal(scheduler: str, message: str) -> Stage:
    """Return that a scheduler cannot do what it is asked for, and why."""
    told = f"{scheduler}: {message}"
    return _stage(Refuse(told, Say(FAILED, "Create", told, "Warning")))


def _stage(action: Action) -> Stage:
    return Stage(STEP, (action,))


def _ref(found: Made) -> Ref:
    return Ref(found.metadata.namespace, found.metadata.name, found.metadata.uid)
