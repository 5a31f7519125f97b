"""What a benchmark tells."""

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured number in words, and whether it is within its bound."""

    name: str
    shown: str
    bound: str
    within: bool

    def text(self) -> str:
        return f"{self.name:<44} {self.shown} ({self.bound})  {'ok' if self.within else 'MISSED'}"
