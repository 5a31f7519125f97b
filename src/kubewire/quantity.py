"""Resource quantities (`500m`, `1.5Gi`, `2e3`): exact numbers that print as Kubernetes prints them."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal

from kubewire.gotext import INT64_MAX, parse_int64

Family = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

# Kubernetes sets no such bounds; without them a few bytes (`1e2000000000`) would ask for gigabytes.
MAX_TEXT: Final = 256
MAX_EXPONENT: Final = 1000

_NANO: Final = 9  # amounts are whole multiples of 10**-9, the finest that Kubernetes keeps
_ONE: Final = 10**_NANO
_BINARY_CAP: Final = INT64_MAX * _ONE

_DIGITS: Final = "0123456789"
_SUFFIX_LETTERS: Final = "eEinumkKMGTP"
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = ("", *_BINARY)

_WRONG_FORMAT: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """A text that is no quantity; the message is the API server's."""


class Quantity:
    """An exact, immutable amount and the family of suffixes it is written in.

    Quantities compare, hash and add by amount: `Quantity.parse("1") == Quantity.parse("1000m")`.
    `str()` gives what apimachinery prints: the canonical form in the quantity's own family.
    """

    __slots__ = ("_family", "_nano", "_text")

    _nano: int
    _family: Family
    _text: str | None  # the text it was parsed from, if apimachinery would print that unchanged

    def __init__(self, nano: int = 0, family: Family = "DecimalSI", text: str | None = None) -> None:
        """Make a quantity of `nano` times 10**-9; users mostly want `parse` or `of`."""
        self._nano = nano
        self._family = family
        self._text = text

    @classmethod
    def of(cls, value: object) -> "Quantity":
        """Return the quantity that a manifest's value means: a string, or a plain number as in `cpu: 1`."""
        if not isinstance(value, str | int | float):
            raise QuantityError(_WRONG_FORMAT)
        if isinstance(value, int) and value.bit_length() > 4 * MAX_TEXT:
            raise QuantityError(f"quantities have at most {MAX_TEXT} characters")
        return cls.parse(str(value).strip())

    @classmethod
    def parse(cls, text: str) -> "Quantity":
        """Return the quantity that the text means.

        More precision than nano is rounded away from zero, and binary quantities are capped at
        2**63-1, both as Kubernetes does. Unlike there, a text without any digit (`Gi`) is not zero.
        """
        if len(text) > MAX_TEXT:
            raise QuantityError(f"quantities have at most {MAX_TEXT} characters")
        return _parsed(text)

    @property
    def nano(self) -> int:
        """The amount in units of 10**-9, exact."""
        return self._nano

    @property
    def family(self) -> Family:
        """The kind of suffixes it prints with."""
        return self._family

    def value(self) -> int:
        """Return the amount as an integer, fractions rounded away from zero."""
        return _shifted_signed(self._nano, -_NANO)

    def milli_value(self) -> int:
        """Return the amount in thousandths as an integer, fractions rounded away from zero."""
        return _shifted_signed(self._nano, -6)

    def __float__(self) -> float:
        try:
            return self._nano / _ONE
        except OverflowError:
            return float("inf") if self._nano > 0 else float("-inf")

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        if self._nano == 0:
            return "0"
        whole, rest = divmod(self._nano, _ONE)
        # Small and fractional amounts would lose precision with binary suffixes.
        if self._family == "BinarySI" and rest == 0 and not -1024 < whole < 1024:
            amount, steps = _without_factor(whole, 1024, len(_BINARY_SUFFIX) - 1)
            return f"{amount}{_BINARY_SUFFIX[steps]}"
        exponents = self._family == "DecimalExponent"
        # DecimalSI ends at E. apimachinery drops the suffix of larger round amounts, so that 1000E
        # prints as 1; here they keep their value.
        amount, steps = _without_factor(self._nano, 1000, 10**6 if exponents else 9)
        exponent = 3 * steps - _NANO
        if exponents:
            return f"{amount}e{exponent}" if exponent else str(amount)
        return f"{amount}{_DECIMAL_SUFFIX[exponent]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __hash__(self) -> int:
        return hash(self._nano)

    def __bool__(self) -> bool:
        return self._nano != 0

    def __eq__(self, other: object) -> bool:
        return self._nano == other._nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._nano < other._nano if isinstance(other, Quantity) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._nano <= other._nano if isinstance(other, Quantity) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._nano > other._nano if isinstance(other, Quantity) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._nano >= other._nano if isinstance(other, Quantity) else NotImplemented

    def __add__(self, other: object) -> "Quantity":
        """Return the exact sum, in the family of the first addend that is not zero."""
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self._nano + other._nano, self._family if self._nano else other._family)

    def __sub__(self, other: object) -> "Quantity":
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self._nano - other._nano, self._family if self._nano else other._family)

    def __neg__(self) -> "Quantity":
        return Quantity(-self._nano, self._family)

    def __mul__(self, factor: object) -> "Quantity":
        return Quantity(self._nano * factor, self._family) if isinstance(factor, int) else NotImplemented

    __rmul__ = __mul__


ZERO: Final = Quantity()


def total(quantities: Iterable[Quantity]) -> Quantity:
    """Return the sum, in the family of the first quantity that is not zero; nothing sums up to zero."""
    return sum(quantities, ZERO)


# The same few texts come again and again, in every Pod of a cluster.
@lru_cache(maxsize=1024)
def _parsed(text: str) -> Quantity:
    negative, whole, fraction, suffix = _split(text)
    family, exponent = _interpret(suffix)
    if not whole and not fraction:
        raise QuantityError(_WRONG_NUMBER)

    digits = int(whole + fraction)
    if family == "BinarySI":
        nano = _shifted(digits << exponent, _NANO - len(fraction))
        nano = min(nano, _BINARY_CAP)
        if 0 < nano < _ONE:
            family = "DecimalSI"
    else:
        nano = _shifted(digits, _NANO + exponent - len(fraction))

    unchanged = text if _prints_unchanged(whole, fraction, suffix) else None
    return Quantity(-nano if negative else nano, family, unchanged)


def _split(text: str) -> tuple[bool, str, str, str]:
    """Return whether the text is negative, its digits before and after the point, and its suffix."""
    if not text:
        raise QuantityError(_WRONG_FORMAT)
    unsigned = text[1:] if text[0] in "+-" else text
    rest = unsigned.lstrip(_DIGITS)
    whole = unsigned[: len(unsigned) - len(rest)]
    fraction = ""
    if rest.startswith("."):
        suffix = rest[1:].lstrip(_DIGITS)
        fraction = rest[1 : len(rest) - len(suffix)]
    else:
        suffix = rest
    after_letters = suffix.lstrip(_SUFFIX_LETTERS)
    exponent = after_letters[1:] if after_letters[:1] in ("+", "-") else after_letters
    if exponent.lstrip(_DIGITS):
        raise QuantityError(_WRONG_FORMAT)
    return text[0] == "-", whole, fraction, suffix


def _interpret(suffix: str) -> tuple[Family, int]:
    """Return the family of a suffix and its power of ten, or of two for binary suffixes."""
    if suffix in _DECIMAL:
        return "DecimalSI", _DECIMAL[suffix]
    if suffix in _BINARY:
        return "BinarySI", _BINARY[suffix]
    exponent = parse_int64(suffix[1:]) if suffix[0] in "eE" else None
    if exponent is None:
        raise QuantityError(_WRONG_SUFFIX)
    if abs(exponent) > MAX_EXPONENT:
        raise QuantityError(f"exponents of quantities lie within -{MAX_EXPONENT} and {MAX_EXPONENT}")
    return "DecimalExponent", exponent


def _prints_unchanged(whole: str, fraction: str, suffix: str) -> bool:
    """Whether apimachinery takes the text for canonical and prints it as it came.

    Its check is quick and coarse, so `+5`, `1.500` and `1E3` survive. Objects it wrote, and hashes
    made of them, hold these texts; this repeats the check with its bounds.
    """
    whole = whole.lstrip("0") or "0"
    family, exponent = _interpret(suffix)
    if family == "BinarySI":
        precise = len(whole) + exponent * 3 // 10 <= 14
        return precise and not fraction and int(whole) % 8 != 0
    digits = whole + fraction
    scale = exponent - len(fraction)
    return (
        len(digits) <= 18
        and scale >= -_NANO
        and scale % 3 == 0
        and digits[0] != "0"
        and not digits.endswith("000")
    )


def _shifted(amount: int, places: int) -> int:
    """Return amount times 10**places for an amount of at least zero, fractions rounded up."""
    if places >= 0:
        return int(amount * 10**places)
    return int(-(-amount // 10**-places))


def _shifted_signed(amount: int, places: int) -> int:
    return _shifted(amount, places) if amount >= 0 else -_shifted(-amount, places)


def _without_factor(amount: int, factor: int, at_most: int) -> tuple[int, int]:
    """Divide by the factor as often as that leaves no rest; return what is left and how often."""
    times = 0
    while times < at_most and amount % factor == 0:
        amount //= factor
        times += 1
    return amount, times
