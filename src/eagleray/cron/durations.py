"""Durations as Go writes them, `1h30m` or `1.5h`, which is what follows `@every`."""

_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # with the micro sign
    "\u03bcs": 1_000,  # with the Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LARGEST = 2**63 - 1
_DIGITS = "0123456789"


def nanoseconds(text: str) -> int | None:
    """Return the nanoseconds of a Go duration, or None when it is not one or does not fit into 64 bits."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text.startswith(("-", "+")) else text
    if rest == "0":
        return 0
    if not rest:
        return None
    total = 0
    while rest:
        whole, rest = _take_digits(rest)
        fraction = ""
        if rest.startswith("."):
            fraction, rest = _take_digits(rest[1:])
        unit, rest = _take_unit(rest)
        if unit not in _NANOSECONDS or not (whole or fraction):
            return None
        total += _scaled(whole, fraction, _NANOSECONDS[unit])
    return sign * total if total <= _LARGEST + (sign < 0) else None


def _take_digits(text: str) -> tuple[str, str]:
    rest = text.lstrip(_DIGITS)
    return text[: len(text) - len(rest)], rest


def _take_unit(text: str) -> tuple[str, str]:
    """Split off what stands before the next digit or dot."""
    end = next((index for index, letter in enumerate(text) if letter == "." or letter in _DIGITS), len(text))
    return text[:end], text[end:]


def _scaled(whole: str, fraction: str, unit: int) -> int:
    """Return `whole.fraction` units in nanoseconds, the fraction rounded as Go's floating point rounds it."""
    numerator = 0
    scale = 1.0
    for digit in fraction:
        longer = numerator * 10 + int(digit)
        if longer > _LARGEST + 1:
            break  # Go, too, stops reading where the digits no longer fit
        numerator = longer
        scale *= 10
    return int(whole or "0") * unit + int(numerator * (unit / scale))
