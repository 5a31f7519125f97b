"""What a plan is made of: actions as values, in stages, so that it can be read, printed and tested before it acts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from eagleray.kube.requests import Selection
from eagleray.kube.resources import Object, Ref, Resource


class Say(NamedTuple):
    """An event to be told about the object whose plan this is."""

    reason: str
    action: str
    note: str
    kind: Literal["Normal", "Warning"] = "Normal"


class Said(NamedTuple):
    """What is told when an action is done, and when it fails; the error is added to the second, after a comma or colon.

    `mark` names the failure for whoever computes the status.
    """

    done: Say | None = None
    failed: Say | None = None
    mark: str = ""


SILENT = Said()


class Create(NamedTuple):
    """A child to make. If its name is taken by somebody else's object, an `optional` one is told of and let be."""

    resource: Resource
    obj: Object
    said: Said = SILENT
    optional: bool = False


class Replace(NamedTuple):
    """An object to become another, provided that it is still the one that was observed."""

    resource: Resource
    obj: Object
    said: Said = SILENT


class Patch(NamedTuple):
    """A change of an object, as a merge patch, provided that it is still the one that was observed."""

    resource: Resource
    ref: Ref
    change: Mapping[str, Any]
    said: Said = SILENT


class Delete(NamedTuple):
    """This very object has to go."""

    resource: Resource
    ref: Ref
    said: Said = SILENT


class DeleteAll(NamedTuple):
    """Whatever is selected has to go, by one request."""

    resource: Resource
    selection: Selection
    said: Said = SILENT


class Tell(NamedTuple):
    """Nothing to do but to tell."""

    say: Say


class Refuse(NamedTuple):
    """The plan cannot go on: it fails here, with this message; the event says the whole of it."""

    message: str
    say: Say | None = None


Action = Create | Replace | Patch | Delete | DeleteAll | Tell | Refuse


class Stage(NamedTuple):
    """Actions under one name. They are independent of each other; the next stage begins when all are done.

    A stage that `may_fail` ends the plan early, and that is all that comes of its failure.
    """

    name: str
    actions: Sequence[Action] = ()
    may_fail: bool = False


def described(stages: Sequence[Stage]) -> Iterator[str]:
    """Yield a line for each action of a plan, for people."""
    for stage in stages:
        for action in stage.actions:
            yield f"{stage.name}: {_description(action)}"


def _description(action: Action) -> str:
    match action:
        case Create(resource, obj):
            return f"create {resource.kind} {_place(obj['metadata'])}"
        case Replace(resource, obj):
            return f"replace {resource.kind} {_place(obj['metadata'])}"
        case Patch(resource, ref, change):
            return f"patch {resource.kind} {ref.key}: {dict(change)}"
        case Delete(resource, ref, said):
            why = f" ({said.done.note})" if said.done else ""
            return f"delete {resource.kind} {ref.key}{why}"
        case DeleteAll(resource, selection, said):
            why = f" ({said.done.note})" if said.done else ""
            return f"delete all {resource.plural} in {selection.namespace} with {selection.labels}{why}"
        case Tell(say):
            return f"tell {say.kind} {say.reason}: {say.note}"
        case Refuse(message):
            return f"stop: {message}"


def _place(metadata: Mapping[str, Any]) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
