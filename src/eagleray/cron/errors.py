"""What is wrong with a schedule or a time zone, said so that its author can mend it."""

_LONGEST_QUOTE = 60


class InvalidSchedule(ValueError):
    """A schedule that cannot be read; the message names the field, what is wrong with it and the way out."""


class UnknownZone(ValueError):
    """A time zone that the zone database does not hold; the message proposes one that it does."""


def quoted(text: str) -> str:
    """Return the text in quotes for a message, on one line and cut to a readable length."""
    if len(text) > _LONGEST_QUOTE:
        text = text[:_LONGEST_QUOTE] + "…"
    return '"' + repr(text)[1:-1] + '"'
