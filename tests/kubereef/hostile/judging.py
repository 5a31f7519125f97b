"""What is wrong with an answer, whatever was asked."""

import json
import re
from typing import Any, NamedTuple

from tests.kubereef.hostile.aims import Attack

# No request may take longer on a machine that is busy with other things.
PATIENCE = 20.0

# The only answers from 500 on that a client's own fault may have: Kubernetes gives the same, with the same words.
AS_KUBERNETES_DOES = (
    (500, r"^strconv\.ParseUint: parsing ", "an object whose resourceVersion is no number"),
    (500, r"^resourceVersion: Invalid value: ", "a get or watch at a version that is no number"),
    (500, r"^resourceVersion should not be set on objects to be created$", "a new object with a version"),
    (500, r"^failed to create typed patch object ", "an applied configuration that does not fit its kind"),
    (
        500,
        r"^failed to (convert new typed object|merge config)",
        "an applied configuration that leaves no object",
    ),
    (500, r"^unknown patch type: ", "a strategic merge with a directive that is none"),
    (
        500,
        r"^unable to find api field in struct ",
        "a strategic merge of a list in a field that is not there",
    ),
    (500, r"^expected a \[\]interface ", "a strategic merge of a list with what is none"),
    (
        500,
        r"^map: map\[[\s\S]* does not contain declared merge key: ",
        "a strategic merge of nameless elements",
    ),
    (500, r"^value for key \d+ is not a map$", "a strategic merge of what is no object"),
    (500, r"^list element types are not identical: ", "a strategic merge of elements of several kinds"),
    (500, r"^\[?target\.(kind|name): ", "a binding to what is no node"),
    (503, r"^no endpoints available for service ", "a proxy to a service that nobody serves"),
    (503, r"^error trying to reach service: ", "a proxy to a Pod or node that is not there"),
    (504, r"^Too large resource version: ", "a version of the future"),
)


class Answer(NamedTuple):
    """An answer as it came. Of a stream, `body` is its beginning."""

    status: int
    media_type: str
    body: bytes
    seconds: float = 0.0
    is_stream: bool = False


class Finding(NamedTuple):
    """Something that must not be, and the request that shows it."""

    problem: str
    attack: Attack

    def __str__(self) -> str:
        sent = self.attack
        shown = sent.body if len(sent.body) <= 1500 else sent.body[:1500] + b"..."
        request = f"{sent.family}: {sent.method} {sent.target[:500]}"
        return "\n  ".join((self.problem, request, f"{sent.headers!r:.500}", repr(shown)))


def problem_of(answer: Answer) -> str:
    """Return what is wrong with an answer, or nothing."""
    if answer.seconds > PATIENCE:
        return f"it took {answer.seconds:.1f} s"
    if answer.status >= 500 and not _is_as_in_kubernetes(answer):
        return f"{answer.status}: {answer.body[:400]!r}"
    if answer.is_stream or not answer.media_type.startswith("application/json") or not answer.body:
        return ""
    try:
        value = json.loads(answer.body)
    except ValueError as bad:
        return f"the answer is no JSON: {bad}: {answer.body[:300]!r}"
    if answer.status >= 400 and not _is_status(value, answer.status):
        return f"{answer.status} without a Status: {answer.body[:300]!r}"
    return ""


def _is_as_in_kubernetes(answer: Answer) -> bool:
    message = message_of(answer)
    return any(code == answer.status and re.search(text, message) for code, text, _ in AS_KUBERNETES_DOES)


def message_of(answer: Answer) -> str:
    """Return what a Status says."""
    try:
        value = json.loads(answer.body)
    except ValueError:
        return ""
    return str(value.get("message", "")) if isinstance(value, dict) else ""


def _is_status(value: Any, code: int) -> bool:
    return isinstance(value, dict) and value.get("kind") == "Status" and value.get("code") == code
