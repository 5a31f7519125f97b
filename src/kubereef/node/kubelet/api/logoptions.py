"""What a request for a log asks for."""

from collections.abc import Mapping
from datetime import timedelta

from kubereef.node.kubelet.api.logs import LogOptions
from kubewire.sources import Clock
from kubewire.times import TimeError, parse_time

_STREAMS = {"": "", "All": "", "Stdout": "stdout", "Stderr": "stderr"}


class BadOption(Exception):
    """An option that means nothing; the message says which."""


def read_options(query: Mapping[str, str], clock: Clock) -> tuple[LogOptions, bool]:
    """Return what is wanted, and whether it is the log of the run before the present one."""
    since = None
    seconds = _number(query, "sinceSeconds")
    if seconds is not None:
        since = clock.now() - timedelta(seconds=min(seconds, 10**9))
    elif text := query.get("sinceTime"):
        try:
            since = parse_time(text)
        except TimeError as bad:
            raise BadOption(f"sinceTime: {bad}") from None
    stream = query.get("stream", "")
    if stream not in _STREAMS:
        raise BadOption(f"stream: {stream[:50]!r} is none of All, Stdout and Stderr")
    options = LogOptions(
        follow=_flag(query, "follow"),
        tail_lines=_number(query, "tailLines"),
        since=since,
        timestamps=_flag(query, "timestamps"),
        limit_bytes=_number(query, "limitBytes"),
        stream=_STREAMS[stream],
    )
    return options, _flag(query, "previous")


def _flag(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() not in ("false", "0")


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadOption(f"{name}: {text[:50]!r} is not a number that is zero or more")
    return int(text)
