"""The latest observations, as many and for as long as is allowed."""

from collections import OrderedDict
from typing import NamedTuple

from eagleray.dashboard.questions import Observation, Question


class _Kept(NamedTuple):
    observation: Observation
    touched: float


class ObservationCache:
    """Observations by question. Beyond its size the one that was touched (made or read) longest ago goes first;
    one that nobody has touched for its age goes too."""

    def __init__(self, size: int, age: float) -> None:
        self._size = size
        self._age = age
        self._kept: OrderedDict[Question, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, question: Question, observation: Observation, now: float) -> None:
        """Keep what was observed, in place of what was before."""
        self._kept[question] = _Kept(observation, now)
        self._kept.move_to_end(question)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        self.sweep(now)

    def get(self, question: Question, now: float) -> Observation | None:
        """Return what was observed last, if it is still kept."""
        self.sweep(now)
        kept = self._kept.get(question)
        if kept is None:
            return None
        self._kept[question] = kept._replace(touched=now)
        self._kept.move_to_end(question)
        return kept.observation

    def drop(self, question: Question) -> None:
        """Forget what was observed."""
        self._kept.pop(question, None)

    def sweep(self, now: float) -> None:
        """Forget what nobody has touched for too long."""
        while self._kept and next(iter(self._kept.values())).touched <= now - self._age:
            self._kept.popitem(last=False)
