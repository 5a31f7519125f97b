"""Whether to send a request again, and when: pure decisions."""

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, NotSent, TransportError
from kubewire.sources import Entropy

if TYPE_CHECKING:
    from datetime import datetime

# Answers that say: I have not done it. All others above 499 leave open how far the server, or one behind it, came.
_NOT_DONE = 429
_BUSY = 503


class Patience(NamedTuple):
    """How long to try. One try may take `attempt` seconds, the request with all its tries `total`."""

    attempt: float = 30.0
    total: float = 90.0
    tries: int = 8
    first_pause: float = 0.1
    longest_pause: float = 10.0
    # A server that asks for more is not waited for: the caller has better things to do.
    longest_asked: float = 60.0


class Backoff:
    """Growing pauses with jitter: each lies between half of what it could be and all of it."""

    __slots__ = ("_entropy", "_first", "_longest", "_next")

    def __init__(self, entropy: Entropy, first: float, longest: float) -> None:
        self._entropy = entropy
        self._first = first
        self._longest = longest
        self._next = first

    def pause(self) -> float:
        """Return how long to wait now; the next time it is longer."""
        most = self._next
        self._next = min(2 * most, self._longest)
        return self._entropy.uniform(most / 2, most)

    def reset(self) -> None:
        """Begin with short pauses again."""
        self._next = self._first


def may_repeat(request: Request, outcome: Answer | TransportError) -> bool:
    """Whether a try that ended like this may be followed by another of the same request.

    What was certainly not done may always be done again; where nobody knows, something must make the repeat safe.
    """
    if isinstance(outcome, NotSent):
        return True
    if isinstance(outcome, Answer):
        if outcome.status == _NOT_DONE or (outcome.status == _BUSY and "retry-after" in outcome.headers):
            return True
        if outcome.status < 500:
            return False
    return bool(request.repeatable)


def asked_pause(answer: Answer, now: "datetime") -> float:
    """Return how many seconds the server asks to wait (`Retry-After`: seconds or a date); 0 if it does not."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:
        return 0.0
    return max(0.0, (moment - now).total_seconds())
