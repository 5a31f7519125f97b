"""The operator's log: JSON or console lines with the object and pass they belong to, on stderr and in a file."""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TextIO

from eagleray.runtime.logfiles import RotatingFile
from eagleray.runtime.redaction import redacted, redacted_value
from kubewire.sources import Clock

Encoder = Literal["json", "console"]
TimeEncoding = Literal["iso8601", "rfc3339", "rfc3339nano", "epoch", "millis", "nano"]

# Above every level that Python knows: no line is that grave, so nothing gets a stack trace.
NEVER = logging.CRITICAL + 10

_LEVEL_NAMES = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warn"}


class LogOptions(NamedTuple):
    """What is logged, how and where to."""

    level: int = logging.INFO
    stack_level: int = logging.ERROR
    encoder: Encoder = "json"
    file: str = ""
    file_encoder: Encoder = "json"
    time_encoding: TimeEncoding = "iso8601"


_about: ContextVar[Mapping[str, object]] = ContextVar("about", default={})  # noqa: B039 - never changed in place


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """Add fields to every line that is logged inside, also by tasks that are started there."""
    token = _about.set({**_about.get(), **fields})
    try:
        yield
    finally:
        _about.reset(token)


def fields(**values: object) -> dict[str, Any]:
    """Return what to pass as `extra` for one line with fields: `log.info("…", extra=fields(step="pods"))`."""
    return {"fields": values}


class Logs:
    """The log of a process, from `open` to `close`."""

    def __init__(self, logger: logging.Logger, handlers: list[logging.Handler]) -> None:
        self._logger = logger
        self._handlers = handlers
        self._level_before = logger.level

    @classmethod
    def open(
        cls,
        options: LogOptions,
        clock: Clock,
        stream: TextIO | None = None,
        logger: logging.Logger | None = None,
    ) -> Self:
        """Let lines flow to stderr and, if asked for, to a file as well; raises OSError if that cannot be written.

        The file gets nothing below info, whatever the level.
        """
        to_stream = logging.StreamHandler(stream or sys.stderr)
        to_stream.setFormatter(LineFormatter(options.encoder, options))
        handlers: list[logging.Handler] = [to_stream]
        if options.file:
            to_file = RotatingFile(Path(options.file), clock)
            to_file.setFormatter(LineFormatter(options.file_encoder, options))
            to_file.setLevel(logging.INFO)
            handlers.append(to_file)
        logs = cls(logger or logging.getLogger(), handlers)
        for handler in handlers:
            logs._logger.addHandler(handler)
        logs._logger.setLevel(options.level)
        return logs

    def close(self) -> None:
        """Stop logging and close the file."""
        for handler in self._handlers:
            self._logger.removeHandler(handler)
            handler.close()
        self._logger.setLevel(self._level_before)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_why: object) -> None:
        self.close()


class LineFormatter(logging.Formatter):
    """Writes a record as one JSON line, or as a console line with tabs between its parts. Secrets are taken out."""

    def __init__(self, encoder: Encoder, options: LogOptions) -> None:
        super().__init__()
        self._encoder = encoder
        self._stack_level = options.stack_level
        self._time_encoding = options.time_encoding

    def format(self, record: logging.LogRecord) -> str:
        head: dict[str, object] = {
            "level": _LEVEL_NAMES.get(record.levelno, "error"),
            "ts": encoded_time(record.created, self._time_encoding),
            "logger": record.name,
            "msg": redacted(record.getMessage()),
        }
        details = {**_about.get(), **getattr(record, "fields", {})}
        rest = {name: redacted_value(value, name) for name, value in details.items()}
        error = record.exc_info[1] if record.exc_info else None
        stack = ""
        if error is not None:
            rest.setdefault("error", redacted(_said(error)))
            if record.levelno >= self._stack_level:
                stack = redacted("".join(traceback.format_exception(error))).rstrip()
        if self._encoder == "json":
            return _json({**head, **rest, **({"stacktrace": stack} if stack else {})})
        parts = [str(part) for part in head.values()]
        if rest:
            parts.append(_json(rest))
        line = "\t".join(part.replace("\n", "\\n") for part in parts)
        return f"{line}\n{stack}" if stack else line


def encoded_time(seconds: float, encoding: TimeEncoding) -> str | float | int:
    """Return a time since 1970 as the encodings of Go's zap write it."""
    if encoding == "epoch":
        return seconds
    if encoding == "millis":
        return seconds * 1e3
    if encoding == "nano":
        return round(seconds * 1e9)
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    if encoding == "iso8601":
        return f"{moment.isoformat(timespec='milliseconds')}Z"
    return f"{moment.isoformat(timespec='seconds' if encoding == 'rfc3339' else 'microseconds')}Z"


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _json(values: Mapping[str, object]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
