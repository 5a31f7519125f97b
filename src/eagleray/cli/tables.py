"""Rows and times as commands print them."""

from collections.abc import Iterator, Sequence
from datetime import timedelta


def span(time: timedelta) -> str:
    """Return how long a time is, in its largest unit."""
    seconds = max(0, round(time.total_seconds()))
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def table(rows: Sequence[tuple[str, ...]], skip: int) -> Iterator[str]:
    """Yield rows as lines with their columns aligned, without the first `skip` columns."""
    shown = [row[skip:] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "   ".join(cells).rstrip()


def size(number: int) -> str:
    """Return how many bytes there are, in a unit that a reader takes in at once."""
    amount, units = float(number), iter(("B", "KiB", "MiB", "GiB"))
    unit = next(units)
    for larger in units:
        if amount < 1000:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if amount >= 10 or unit == "B" else f"{amount:.1f} {unit}"
