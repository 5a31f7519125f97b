"""The initializing timeout: how long a service may take to serve for the first time, and what becomes of it then."""

from datetime import datetime, timedelta
from typing import NamedTuple

from eagleray.manifests.rayservice import RayService
from eagleray.rayapi.rules.rayservice import TIMEOUT_ANNOTATION
from eagleray.rayservice.look import READY, Look
from eagleray.runtime.actions import Say
from kubewire.times import SECOND, DurationError, format_go_duration, parse_go_duration, parse_time

INITIALIZING, TIMED_OUT = "Initializing", "InitializingTimeout"
_LONGEST = timedelta.max // timedelta(seconds=1) // 2


class Timeout(NamedTuple):
    """A timeout that has passed: what the condition says, and the event."""

    message: str
    say: Say


def timeout_of(service: RayService) -> int | None:
    """Return the nanoseconds of the annotation, a Go duration or whole seconds; None if there is no such limit."""
    text = service.annotations.get(TIMEOUT_ANNOTATION, "")
    try:
        return max(parse_go_duration(text), 0) or None
    except DurationError:
        is_number = text.isascii() and text.removeprefix("+").isdecimal() and len(text) < 20
        seconds = min(int(text), _LONGEST) if is_number else 0
        return seconds * SECOND or None


def timeout_due(look: Look) -> datetime | None:
    """Return when the timeout ends the service; None while it does not apply."""
    ready = look.condition(READY)
    timeout = timeout_of(look.service)
    if timeout is None or ready.get("status") != "False" or ready.get("reason") != INITIALIZING:
        return None
    since = parse_time(ready["lastTransitionTime"])
    try:
        return since + timedelta(microseconds=timeout // 1000)
    except OverflowError:
        return None  # after the end of all calendars


def timed_out(look: Look) -> Timeout | None:
    """Return what is told of a service that took too long; None if it has time, or no limit."""
    due, timeout = timeout_due(look), timeout_of(look.service)
    if due is None or timeout is None or look.now < due:
        return None
    since = parse_time(look.condition(READY)["lastTransitionTime"])
    spent = (look.now - since) // timedelta(microseconds=1) * 1000
    message = (
        "RayService failed to become ready within the configured timeout of"
        f" {format_go_duration(timeout)}. Time spent initializing: {format_go_duration(spent)}"
    )
    return Timeout(message, Say("RayServiceInitializingTimeout", "Reconcile", message, "Warning"))


def is_timed_out(look: Look) -> bool:
    """Tell whether the service has been given up; only suspending and resuming it begins anew."""
    ready = look.condition(READY)
    return ready.get("status") == "False" and ready.get("reason") == TIMED_OUT
