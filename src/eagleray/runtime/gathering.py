"""News that can wait are gathered for a moment, and told together: each status that is written wakes its watchers."""

from datetime import datetime

from eagleray.kube.resources import Key
from kubewire.sources import Clock


class Gathering:
    """Since when there are news of which objects that nobody was told yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[Key, datetime] = {}

    def left(self, key: Key, pause: float) -> float:
        """Return how many seconds news of an object have yet to wait; what comes until then is told with them.

        The pause begins with the first of them and not with the last write: where many objects start at once, a pass
        comes round after more than a pause, and everything would be told by itself.
        """
        now = self._clock.now()
        left = pause - (now - self._since.setdefault(key, now)).total_seconds()
        return min(left, pause)  # a clock may be set back

    def told(self, key: Key) -> None:
        """Note that there is nothing left to tell of an object."""
        self._since.pop(key, None)
