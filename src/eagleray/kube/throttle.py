"""Limits on how many requests are sent: a token bucket for each resource."""

from eagleray.kube.transport import NotSent
from kubewire.sources import Clock


class TokenBucket:
    """Lets `burst` requests pass at once and `qps` a second from then on, in the order in which they came."""

    __slots__ = ("_burst", "_clock", "_filled_at", "_qps", "_tokens")

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._clock = clock
        self._qps = qps
        self._burst = max(burst, 1)
        self._tokens = float(self._burst)
        self._filled_at = clock.monotonic()

    def reserve(self) -> float:
        """Take a token, which may be one of the future; return in how many seconds it is there."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._qps)

    def give_back(self) -> None:
        """Return a token that was reserved and not used."""
        self._tokens = min(self._burst, self._tokens + 1)


class Throttle:
    """Holds requests back: each resource has a bucket of its own, so that a flood of one delays no other."""

    def __init__(self, clock: Clock, qps: float, burst: int) -> None:
        self._clock = clock
        self._qps = qps
        self._burst = burst
        self._buckets: dict[str, TokenBucket] = {}

    async def wait(self, resource: str, at_most: float) -> float:
        """Return once a request may go, with the seconds that took. A rate of 0 or less is no limit.

        A request that would have to wait longer than `at_most` seconds is not sent.
        """
        if self._qps <= 0:
            return 0.0
        bucket = self._buckets.get(resource)
        if bucket is None:
            bucket = self._buckets[resource] = TokenBucket(self._clock, self._qps, self._burst)
        seconds = bucket.reserve()
        if seconds > at_most:
            bucket.give_back()
            raise NotSent(
                f"{resource}: held back by the client's own limit of {self._qps:g} requests a second for longer"
                f" than {at_most:g} s; raise qps and burst, or send less"
            )
        if seconds:
            try:
                await self._clock.sleep(seconds)
            except BaseException:
                bucket.give_back()
                raise
        return seconds
