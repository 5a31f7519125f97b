"""What the verbs of the server call: has somebody outside something to say about this request?"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kubereef.kinds.resource import Object, ResourceType
from kubereef.server.admission import Attempt
from kubereef.server.listing import number
from kubereef.server.media import decoded
from kubereef.server.requests import Request
from kubereef.server.webhooks.subjects import Subject
from kubewire.cel import EvaluationError

if TYPE_CHECKING:
    from kubereef.server.calls import Call

# How long a request may take in all, whatever it asks for.
_LONGEST = 34.0
_OPTIONS = "meta.k8s.io/v1"
_OF_DELETIONS = (
    "gracePeriodSeconds",
    "preconditions",
    "orphanDependents",
    "propagationPolicy",
    "dryRun",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
)


def are_asked(call: "Call") -> bool:
    """Tell whether there is anybody who could be asked about a call."""
    webhooks = call.around.webhooks
    return webhooks is not None and webhooks.is_any


async def mutated(call: "Call", attempt: Attempt, again: Callable[[], object] = lambda: None) -> None:
    """Let webhooks change the object of a write; `again` does once more what the server itself does to it."""
    if call.around.webhooks is not None:
        await call.around.webhooks.mutate(_subject(call, attempt), _warning(call), again)


async def validated(call: "Call", attempt: Attempt) -> None:
    """Let webhooks judge a write."""
    if call.around.webhooks is not None:
        await call.around.webhooks.validate(_subject(call, attempt), _warning(call))


async def admitted(
    call: "Call",
    object_type: ResourceType,
    obj: Object | None,
    *,
    operation: str = "CREATE",
    old: Object | None = None,
    name: str = "",
    dry_run: bool = False,
) -> None:
    """Let webhooks change and judge what is sent to a part of an object, or done to it, and not kept as it is."""
    webhooks = call.around.webhooks
    if webhooks is None or not webhooks.is_any:
        return
    if operation == "CREATE" and obj is not None and call.namespace:
        obj["metadata"].setdefault("namespace", call.namespace)
    subject = Subject(
        operation,
        call.resource_type,
        object_type,
        call.target.subresource,
        call.target.namespace,
        name or call.target.name,
        obj,
        old,
        None if operation == "CONNECT" else options_of(call.request, operation),
        call.user,
        dry_run,
        _until(call),
    )
    await webhooks.mutate(subject, _warning(call))
    await webhooks.validate(subject, _warning(call))


def unasked(call: "Call") -> "Call":
    """Return a call about whose writes no webhook is asked, because they were asked about what it comes from."""
    return call._replace(around=call.around._replace(webhooks=None))


def _warning(call: "Call") -> Callable[[str], None]:
    """Return what keeps a warning, to be told with the answer, whatever that is."""

    def warn(text: str) -> None:
        # What cannot stand in a header is not told, as with Kubernetes.
        if text and text.isprintable():
            call.warnings.append(text)

    return warn


def _subject(call: "Call", attempt: Attempt) -> Subject:
    is_deletion = attempt.operation == "DELETE"
    # A namespace counts as being in itself.
    own = attempt.name if attempt.resource_type.resource == "namespaces" else ""
    return Subject(
        attempt.operation,
        attempt.resource_type,
        attempt.resource_type,
        attempt.subresource,
        attempt.namespace or own,
        attempt.name,
        None if is_deletion else attempt.obj,
        attempt.old,
        options_of(call.request, attempt.operation),
        attempt.user,
        attempt.dry_run,
        _until(call),
    )


def options_of(request: Request, operation: str) -> Object:
    """Return the options of a write as webhooks are shown them."""
    if operation == "DELETE":
        return {"kind": "DeleteOptions", "apiVersion": _OPTIONS, **_deletion(request)}
    # A patch is an update to those who are asked, whatever its own options are.
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    options: Object = {"kind": kind, "apiVersion": _OPTIONS}
    if "dryRun" in request.query:
        options["dryRun"] = request.query["dryRun"]
    for field in ("fieldManager", "fieldValidation"):
        if value := request.parameter(field):
            options[field] = value
    return options


def _deletion(request: Request) -> Object:
    if request.body:
        # It is all that counts, even if it says nothing.
        body = decoded(request).value
        given = body if isinstance(body, dict) else {}
        return {field: given[field] for field in _OF_DELETIONS if given.get(field) is not None}
    options: Object = {}
    if (seconds := number(request, "gracePeriodSeconds")) is not None:
        options["gracePeriodSeconds"] = seconds
    if "orphanDependents" in request.query:
        options["orphanDependents"] = request.flag("orphanDependents")
    if policy := request.parameter("propagationPolicy"):
        options["propagationPolicy"] = policy
    if "dryRun" in request.query:
        options["dryRun"] = request.query["dryRun"]
    return options


def _until(call: "Call") -> float:
    """Return when a request has taken too long: by its own timeout, or at the latest that the server allows."""
    return call.wish.moment.now + _seconds(call.request.parameter("timeout"))


def _seconds(text: str) -> float:
    if not text:
        return _LONGEST
    from kubewire.cel.times import parse_duration  # here, because hardly a request has a timeout

    try:
        wished = parse_duration(text) / 1e9
    except EvaluationError:
        return _LONGEST
    return min(wished, _LONGEST) if wished > 0 else _LONGEST
