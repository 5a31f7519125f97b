"""Who gets the next request: a backend by its weight, and of its endpoints the one with the least to do."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Shares(Generic[T]):
    """Deals requests out by weight, smoothly: after as many as the weights' sum each has got exactly its weight."""

    __slots__ = ("_credit", "_items", "_total", "weights")

    def __init__(self, weighted: Iterable[tuple[T, int]]) -> None:
        chosen = [(item, weight) for item, weight in weighted if weight > 0]
        self._items = [item for item, _ in chosen]
        self.weights = tuple(weight for _, weight in chosen)
        self._credit = [0] * len(chosen)
        self._total = sum(self.weights)

    def next(self) -> T | None:
        """Return who gets the next request; None if nobody has any weight."""
        best = -1
        for number, weight in enumerate(self.weights):
            self._credit[number] += weight
            if best < 0 or self._credit[number] > self._credit[best]:
                best = number
        if best < 0:
            return None
        self._credit[best] -= self._total
        return self._items[best]


class Loads(Generic[T]):
    """How many requests each endpoint has at present, and which one is to get the next."""

    __slots__ = ("_counts", "_turn")

    def __init__(self) -> None:
        self._counts: dict[T, int] = {}
        self._turn = 0

    def least(self, endpoints: Sequence[T]) -> T:
        """Return the endpoint with the fewest requests; among equals they take turns."""
        self._turn += 1
        start = self._turn % len(endpoints)
        counts = self._counts
        return min((*endpoints[start:], *endpoints[:start]), key=lambda one: counts.get(one, 0))

    def begin(self, endpoint: T) -> None:
        """Note that a request has gone to an endpoint."""
        self._counts[endpoint] = self._counts.get(endpoint, 0) + 1

    def end(self, endpoint: T) -> None:
        """Note that a request of an endpoint is over."""
        left = self._counts.pop(endpoint) - 1
        if left:
            self._counts[endpoint] = left

    def __getitem__(self, endpoint: T) -> int:
        return self._counts.get(endpoint, 0)
