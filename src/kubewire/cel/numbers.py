"""Numbers as text, the way Go writes them."""


def double_text(number: float) -> str:
    """Return the shortest text that reads back as this double: `10.5`, `1e+06`, `+Inf`."""
    if number != number:  # only NaN differs from itself
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = _shortest(number)
    point = exponent + 1
    if exponent < -4 or exponent >= 6:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{exponent:+03d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    return f"{sign}{digits[:point]}.{digits[point:]}"


def _shortest(number: float) -> tuple[str, str, int]:
    """Return the sign, the significant digits, and the exponent of the first of them."""
    mantissa, _, exponent = f"{number!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    shown = whole + fraction
    digits = shown.strip("0") or "0"
    leading = len(shown) - len(shown.lstrip("0"))
    if digits == "0":
        return sign, digits, 0
    return sign, digits, int(exponent or "0") + len(whole) - 1 - leading
