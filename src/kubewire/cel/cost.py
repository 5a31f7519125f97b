"""What an evaluation costs, counted as Kubernetes counts it, and where it is stopped.

A variable, a selected field and most calls cost 1; what walks a string or a list costs by its size; literals
are free. Work that Kubernetes does not charge for but that takes time here, such as copying lists, is counted
apart, against a limit that only hostile expressions reach.
"""

from kubewire.cel.errors import CostExceeded
from kubewire.cel.values import Value

PER_RULE_LIMIT = 1_000_000
PER_OBJECT_LIMIT = 10_000_000
LABOUR_LIMIT = 5_000_000  # steps; a few seconds at most

LIST_COST = 10
MAP_COST = 30


class Budget:
    """What all evaluations for one object may cost together, and each of them alone."""

    __slots__ = ("per_rule", "remaining")

    def __init__(self, limit: int = PER_OBJECT_LIMIT, per_rule: int = PER_RULE_LIMIT) -> None:
        self.remaining = limit
        self.per_rule = per_rule

    def spend(self, cost: int) -> None:
        """Take a cost off; raises CostExceeded when less than that is left."""
        if cost > self.remaining:
            self.remaining = 0
            raise CostExceeded(
                "validation failed due to running out of cost budget, no further validation rules will be run",
                of_budget=True,
            )
        self.remaining -= cost


class Run:
    """The state of one evaluation: its variables and what it has cost so far."""

    __slots__ = ("cost", "labour", "limit", "slots")

    def __init__(self, slots: list[Value], limit: int) -> None:
        self.slots = slots
        self.limit = limit
        self.cost = 0
        self.labour = 0

    def charge(self, cost: int) -> None:
        """Add to the cost; whatever can repeat or grow goes through here, so that it is stopped in time."""
        self.cost += cost
        if self.cost > self.limit:
            raise too_expensive()

    def work(self, amount: int) -> None:
        """Count steps that Kubernetes does not charge for."""
        self.labour += amount
        if self.labour > LABOUR_LIMIT:
            raise too_expensive()


def too_expensive() -> CostExceeded:
    return CostExceeded("operation cancelled: actual cost limit exceeded")


def tenth(size: int) -> int:
    """Return the price of walking a string or list of this size."""
    return -(-size // 10)


def size_of(value: Value) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def traversal(value: Value, *_: Value) -> int:
    """The price of walking the first argument once."""
    return tenth(size_of(value))


def double_traversal(value: Value, *_: Value) -> int:
    """The price of walking the first argument and writing as much."""
    return tenth(2 * size_of(value))


def deep_traversal(value: Value, *_: Value) -> int:
    """The price of looking at everything inside the first argument; what is less than 1 is free here."""
    if isinstance(value, str | bytes):
        return len(value) // 10
    return sum(map(deep_traversal, value)) if isinstance(value, list) else 1


def smaller_traversal(left: Value, right: Value) -> int:
    """The price of comparing two values."""
    return tenth(min(size_of(left), size_of(right)))


def joint_traversal(left: Value, right: Value) -> int:
    """The price of copying two values into one."""
    return tenth(size_of(left) + size_of(right))


def search_price(text: str, part: str) -> int:
    """The price of looking for one string in another."""
    return tenth(len(text)) * tenth(len(part))


def match_price(text: str, pattern: str) -> int:
    """The price of matching a regular expression; four characters of it count as one step."""
    return tenth(1 + len(text)) * -(-len(pattern) // 4)
