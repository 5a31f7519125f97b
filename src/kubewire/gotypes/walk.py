"""What is known while an object is read: where the reader stands, and what it has found so far."""

# A place in the object, from the inside out: the place around it, and the field, key or index that leads on.
Place = tuple["Place | None", "str | int"]

# Go's decoder reports no more than this many fields.
MAX_UNKNOWN = 100
# Structs within structs. Only schemas in schemas get anywhere near; Go itself would stop at 10,000 brackets.
MAX_DEPTH = 200


class Walk:
    """One reading of one object: how deep it is in structs, and the fields it has found unknown."""

    __slots__ = ("depth", "unknown")

    def __init__(self) -> None:
        self.depth = 0
        self.unknown: list[str] = []

    def note_unknown(self, at: Place | None, key: str) -> None:
        """Remember a field that the struct at this place does not have."""
        if len(self.unknown) < MAX_UNKNOWN:
            self.unknown.append(_spelled(at, key))


def _spelled(at: Place | None, key: str) -> str:
    """Return the path of a key as Go's strict decoder spells it; unlike elsewhere, keys are never quoted."""
    steps: list[str | int] = [key]
    while at is not None:
        at, step = at
        steps.append(step)
    spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(steps))
    return spelled[1:]
