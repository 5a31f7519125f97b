"""The formats of texts that Kubernetes enforces in custom resources, as tests of a text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_DATE_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})\Z", re.ASCII)
_GO_DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)\Z", re.ASCII)
_WORDED_DURATION = re.compile(r"\d+\s*([A-Za-zµ]+)")
# The last word of each line also stands for all words that begin with it: `hours`, `minutes`.
_DURATION_UNITS = (
    ("ns", "nano"),
    ("us", "µs", "micro"),
    ("ms", "milli"),
    ("s", "sec"),
    ("m", "min"),
    ("h", "hr", "hour"),
    ("d", "day"),
    ("w", "week", "wk"),
)


def format_test(name: str) -> Callable[[str], bool] | None:
    """Return the test for a format, or None for a format that Kubernetes does not know and hence ignores."""
    return _TESTS.get(name.replace("-", ""))


def is_date(text: str) -> bool:
    """Whether the text is a day such as 2026-02-28."""
    if not _DATE.match(text):
        return False
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= lengths[month - 1]


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z", re.ASCII)


def is_date_time(text: str) -> bool:
    """Whether the text is a point in time such as 2026-02-28T10:00:00Z."""
    day, _, time = text.lower().partition("t")
    match = _DATE_TIME.match(time)
    return match is not None and is_date(day) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_duration(text: str) -> bool:
    """Whether the text is a length of time: `1h30m`, or in words, `2 days`."""
    if _GO_DURATION.match(text):
        return True
    return any(_is_duration_unit(word.lower()) for word in _WORDED_DURATION.findall(text))


def _is_duration_unit(word: str) -> bool:
    return any(word in words or word.startswith(words[-1]) for words in _DURATION_UNITS)


def _is_uri(text: str) -> bool:
    """A URI as Go's url.ParseRequestURI reads one: with a scheme, or an absolute path."""
    if not text or any(character <= " " or character == "\x7f" for character in text):
        return False
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text)
    rest = text[scheme.end() :] if scheme else text
    if not rest.startswith("/") and not (scheme and rest):
        return False
    if re.search(r"%(?![0-9A-Fa-f]{2})", rest.partition("?")[0]):
        return False
    host = re.match(r"//([^/?]*)", rest)
    port = host and re.search(r":([^\]:]*)\Z", host[1].rpartition("@")[2])
    return not port or port[1].isdigit() or not port[1]


def _is_email(text: str) -> bool:
    """An address, alone or after a name as in `Ray <ray@example.com>`."""
    text = text.strip()
    if text.endswith(">"):
        text = text[text.rfind("<") + 1 : -1] if "<" in text else ""
    return (
        re.match(r"(?:[^\s@<>()\[\]:;,\\\"]+|\"[^\"]+\")@(?:[^\s@<>()\[\]:;,\\\"]+|\[[^\]]+\])\Z", text)
        is not None
    )


def _is_hostname(text: str) -> bool:
    if len(text.encode()) > 255:
        return False
    labels = text.split(".")
    if not all(_is_host_label(label) for label in labels):
        return False
    return len(labels) == 1 or len(labels[-1]) >= 2


def _is_host_label(label: str) -> bool:
    """Letters, digits and symbols of any script, with hyphens inside."""
    if not label or len(label.encode()) > 63 or label[0] == "-" or label[-1] == "-":
        return False
    import unicodedata  # hostnames outside of ASCII are rare

    return all(
        character == "-"
        or (character.isascii() and character.isalnum())
        or unicodedata.category(character)[0] in "SL"
        for character in label
    )


def _is_ip(text: str, mark: str) -> bool:
    import ipaddress  # costs as much as a small validation

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return mark in text and "%" not in text


def _is_ipv4(text: str) -> bool:
    return _is_ip(text, ".")


def _is_ipv6(text: str) -> bool:
    return _is_ip(text, ":")


def _is_cidr(text: str) -> bool:
    import ipaddress  # costs as much as a small validation

    address, slash, bits = text.partition("/")
    if not slash or not (bits.isascii() and bits.isdigit()) or "%" in address:
        return False
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _is_isbn10(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{9}[0-9Xx]", digits):
        return False
    numbers = [10 if digit in "Xx" else int(digit) for digit in digits]
    return sum(number * (place + 1) for place, number in enumerate(numbers)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


def _is_isbn(text: str) -> bool:
    return _is_isbn10(text) or _is_isbn13(text)


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    issuers = (
        r"4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|"
        r"(?:2131|1800|35\d{3})\d{11}"
    )
    if not re.fullmatch(issuers, digits):
        return False
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def _is_any(text: str) -> bool:  # noqa: ARG001 - a password may be anything
    return True


def _is_short_name(text: str) -> bool:
    from kubewire.names import dns1123_label  # few schemas ask for names

    return not dns1123_label(text)


def _is_long_name(text: str) -> bool:
    from kubewire.names import dns1123_subdomain  # few schemas ask for names

    return not dns1123_subdomain(text)


def _pattern(expression: str) -> Callable[[str], bool]:
    """Return a test against a regular expression that is compiled when the test is first used."""
    return lambda text: re.fullmatch(expression, text) is not None


_HEX4 = "[0-9a-fA-F]{4}"
_OCTET = r"(?:[01]?[0-9]{1,2}|2[0-4][0-9]|25[0-5])"


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _pattern(rf"[0-9a-fA-F]{{8}}-?{_HEX4}-?{third}-?{fourth}-?[0-9a-fA-F]{{12}}")


_TESTS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(r"[0-9a-fA-F]{24}"),
    "byte": _pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "email": _is_email,
    "hexcolor": _pattern(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": _is_isbn,
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _is_long_name,
    "k8sshortname": _is_short_name,
    "mac": _pattern(
        r"(?i:[0-9a-f]{2}([:-])[0-9a-f]{2}(?:\1[0-9a-f]{2}){4}(?:(?:\1[0-9a-f]{2}){2}|(?:\1[0-9a-f]{2}){14})?"
        r"|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}(?:\.[0-9a-f]{4}|(?:\.[0-9a-f]{4}){7})?)"
    ),
    "password": _is_any,
    "rgbcolor": _pattern(rf"rgb\(\s*{_OCTET}\s*,\s*{_OCTET}\s*,\s*{_OCTET}\s*\)"),
    "ssn": _pattern(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "uri": _is_uri,
    "uuid": _uuid(_HEX4, _HEX4),
    "uuid3": _uuid("3[0-9a-fA-F]{3}", _HEX4),
    "uuid4": _uuid("4[0-9a-fA-F]{3}", "[89abAB][0-9a-fA-F]{3}"),
    "uuid5": _uuid("5[0-9a-fA-F]{3}", "[89abAB][0-9a-fA-F]{3}"),
}
