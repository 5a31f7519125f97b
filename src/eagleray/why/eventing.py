"""What events tell of steps that were refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Object = dict[str, Any]


def last_time(event: Object) -> str:
    """Return when an event happened, or happened again."""
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("eventTime") or "")


def open_failures(events: Sequence[Object], remedies: Mapping[str, str], since: str = "") -> Iterator[str]:
    """Yield the failures of some kinds that nothing has remedied, as their events tell them; oldest event first.

    `remedies` has for the reason of each failure that of the event by which it is over; `since` is in whole seconds.
    """
    latest = {str(event["reason"]): event for event in events}
    for reason, remedy in remedies.items():
        event, done = latest.get(reason), latest.get(remedy)
        if event is None or last_time(event)[: len(since) - 1] < since[:-1]:
            continue
        if done is None or last_time(done) < last_time(event):
            note = str(event.get("note", ""))
            yield f"{reason}: {note}{way_out(note)}"


def way_out(refusal: str) -> str:
    """Return what helps against a refusal of the API server, to be added to it; nothing if that is not known."""
    if "exceeded quota" in refusal or "failed quota" in refusal:
        return "; raise the ResourceQuota of the namespace, ask for less, or free what others hold"
    if "forbidden" in refusal.lower():
        return (
            "; an admission policy or missing rights refuse it: change the template, the policy or the rights"
        )
    return ""
