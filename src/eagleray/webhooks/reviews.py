"""What admission asks about an object, and the answer: a pure function from one AdmissionReview to another.

Only the rules that the reference's webhooks check refuse here; the controllers judge the rest, and tell of it in
events and conditions. An update is refused for what it makes worse: what was wrong with the object before is no more
than a warning, so that whoever switches webhooks on can still change, and get rid of, what is there.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from eagleray.rayapi.problems import Problem, shortened
from eagleray.rayapi.rules import RULES, ValidationConfig, problems_of
from kubewire import errors
from kubewire.fielderrors import FieldError, invalid
from kubewire.paths import FieldPath

Object = dict[str, Any]

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
GROUP: Final = "ray.io"

# Answers are for people: whoever has mended so many will learn of the rest.
_MOST_CAUSES: Final = 20
_MOST_WARNINGS: Final = 10
# The API server cuts longer ones.
_LONGEST_WARNING: Final = 256
_LONGEST_VALUE: Final = 253


class Webhook(NamedTuple):
    """One of the webhooks: what it is called in a configuration, what it judges, and by which rules."""

    name: str
    path: str
    kind: str
    rules: frozenset[str]

    @property
    def skipped(self) -> frozenset[str]:
        """The rules that are left to the controllers."""
        return frozenset(rule.id for rule in RULES[self.kind]) - self.rules


WEBHOOKS: Final = (
    Webhook(
        "vraycluster.kb.io",
        "/validate-ray-io-v1-raycluster",
        "RayCluster",
        frozenset({"raycluster-m1", "raycluster-m2", "raycluster-g1"}),
    ),
    Webhook("vrayjob.kb.io", "/validate-ray-io-v1-rayjob", "RayJob", frozenset({"rayjob-m1", "rayjob-m2"})),
    Webhook(
        "vrayservice.kb.io",
        "/validate-ray-io-v1-rayservice",
        "RayService",
        frozenset({"rayservice-m1", "rayservice-m2", "rayservice-m3"}),
    ),
)


class NotAReview(ValueError):
    """A body that is no AdmissionReview of the version that is spoken here."""


class _Kind(msgspec.Struct):
    group: str = ""
    kind: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    kind: _Kind
    object: Object | None = None
    old_object: Object | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request | None = None


_reviews = msgspec.json.Decoder(_Review)


def answer(webhook: Webhook, body: bytes) -> bytes:
    """Return the AdmissionReview that answers this one; NotAReview if it is none."""
    try:
        review = _reviews.decode(body)
    except (msgspec.DecodeError, RecursionError) as bad:
        raise NotAReview(f"the body is no {KIND}: {bad}") from bad
    if (review.api_version, review.kind) != (API_VERSION, KIND) or review.request is None:
        raise NotAReview(f"only a request of {API_VERSION} {KIND} can be answered")
    response = {"uid": review.request.uid, **_verdict(webhook, review.request)}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _verdict(webhook: Webhook, request: _Request) -> Object:
    if request.operation not in ("CREATE", "UPDATE"):
        return {"allowed": True}
    if (request.kind.group, request.kind.kind) != (GROUP, webhook.kind) or request.object is None:
        about = f"{request.kind.kind or 'nothing'}.{request.kind.group}"
        return _refused(errors.bad_request(f"{webhook.path} judges {webhook.kind}.{GROUP}, not {about}"))
    problems = _problems(webhook, request.object)
    metadata = request.object.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    if request.operation == "UPDATE" and request.old_object is not None:
        # Finalizers are taken off by updates: an object that is being deleted has to be able to go.
        is_going = metadata.get("deletionTimestamp") is not None
        before = set(problems if is_going else _problems(webhook, request.old_object))
        worse = [problem for problem in problems if problem not in before]
    else:
        worse = problems
    if not worse:
        return {"allowed": True, **_warnings(problems)}
    name = metadata.get("name") or metadata.get("generateName")
    fields = [_field_error(problem, request.object) for problem in worse[:_MOST_CAUSES]]
    return _refused(errors.invalid(webhook.kind, name if isinstance(name, str) else "", fields, group=GROUP))


def _problems(webhook: Webhook, obj: Object) -> list[Problem]:
    return problems_of({**obj, "kind": webhook.kind}, ValidationConfig(), skip=webhook.skipped)


def _refused(error: errors.ApiError) -> Object:
    return {"allowed": False, "status": error.status()}


def _warnings(problems: Iterable[Problem]) -> Object:
    texts = [str(problem)[:_LONGEST_WARNING] for problem in problems][:_MOST_WARNINGS]
    return {"warnings": texts} if texts else {}


def _field_error(problem: Problem, obj: Object) -> FieldError:
    """Return a problem as a cause of a refusal; of a group's name, the group as a whole is what is wrong."""
    value, path = _text_at(obj, problem.path), problem.path
    if path[-1:] == ("groupName",):
        path = path[:-1]
    return invalid(path, value, f"{problem.message}; {problem.way_out}")


def _text_at(obj: object, path: FieldPath) -> str:
    """Return what the rules found fault with, which is always a text."""
    for step in path:
        if isinstance(obj, dict):
            obj = obj.get(step)
        elif isinstance(obj, list) and isinstance(step, int) and step < len(obj):
            obj = obj[step]
        else:
            obj = None
    return shortened(obj, _LONGEST_VALUE) if isinstance(obj, str) else ""
