"""Whoever wants to hear of changes; one that fails neither stops the teller nor keeps the others from hearing."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)


class Listeners(Generic[T]):
    """Functions that are told of changes with what was and what is; None stands for what is not there."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[T | None, T | None], None]] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def add(self, listener: Callable[[T | None, T | None], None]) -> None:
        self._listeners.append(listener)

    def tell(self, old: T | None, new: T | None) -> None:
        for listener in self._listeners:
            try:
                listener(old, new)
            except Exception:
                log.exception("%r failed over a change", listener)
