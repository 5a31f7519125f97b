"""Small checks that many parts of a Pod share. Each yields what is wrong with one value, in Kubernetes' words."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

from kubereef.kinds.resource import Object
from kubewire import names
from kubewire.fielderrors import FieldError, invalid, not_supported, required
from kubewire.paths import FieldPath

Problems = Iterator[FieldError]

MAX_INT32 = 2**31 - 1

_HIGHEST_PORT = 65535
_MODES = range(0o1000)
_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"

_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_DOMAIN = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_UNDERSCORED_LABEL = re.compile(_UNDERSCORED)
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
_HEADER = re.compile("[-A-Za-z0-9]+")

# Says what is wrong with a text, complaint by complaint, as the functions of `kubewire.names` do.
NameCheck = Callable[[str], Iterable[str]]


def named(at: FieldPath, value: str, check: NameCheck) -> Problems:
    """Yield what a check of names says of a value."""
    for complaint in check(value):
        yield invalid(at, value, complaint)


def needed_name(at: FieldPath, value: str | None, check: NameCheck) -> Problems:
    """As `named`, for a value that must be there."""
    if value:
        yield from named(at, value, check)
    else:
        yield required(at)


def needed(obj: Object, at: FieldPath, *fields: str) -> Problems:
    """Yield the fields that an object lacks."""
    for field in fields:
        if not obj.get(field):
            yield required((*at, field))


def one_of(at: FieldPath, value: object, choices: Collection[str]) -> Problems:
    """Yield that a value is none of the choices; an absent one is asked for."""
    if not value:
        yield required(at)
    elif value not in choices:
        yield not_supported(at, value, choices)


def within(at: FieldPath, value: int, lowest: int, highest: int) -> Problems:
    """Yield that a number is outside of a range."""
    if not lowest <= value <= highest:
        yield invalid(at, value, f"must be between {lowest} and {highest}, inclusive")


def port_number(at: FieldPath, value: int) -> Problems:
    yield from within(at, value, 1, _HIGHEST_PORT)


def port(at: FieldPath, value: int | str) -> Problems:
    """Yield why something is neither the number nor the name of a port."""
    if isinstance(value, int):
        yield from port_number(at, value)
    else:
        yield from named(at, value, names.port_name)


def user_id(at: FieldPath, value: int | None) -> Problems:
    """Yield why a number is no id of a user or group; none at all is fine."""
    if value is not None:
        yield from within(at, value, 0, MAX_INT32)


def not_negative(at: FieldPath, value: int) -> Problems:
    if value < 0:
        yield invalid(at, value, "must be greater than or equal to 0")


def file_mode(at: FieldPath, mode: int | None) -> Problems:
    if mode is not None and mode not in _MODES:
        yield invalid(at, mode, _MODE_TEXT)


def no_backsteps(at: FieldPath, path: str) -> Problems:
    """Yield that a path leads upwards somewhere."""
    if ".." in path.split("/"):
        yield invalid(at, path, "must not contain '..'")


def descending_path(at: FieldPath, path: str) -> Problems:
    """Yield why a path may leave the folder it is relative to."""
    if path.startswith("/"):
        yield invalid(at, path, "must be a relative path")
    yield from no_backsteps(at, path)


def local_path(at: FieldPath, path: str) -> Problems:
    """As `descending_path`; besides, names with two leading dots belong to the kubelet."""
    yield from descending_path(at, path)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(at, path, "must not start with '..'")


def labels(at: FieldPath, given: dict[str, str] | None) -> Problems:
    """Yield what is wrong with labels, or with what is written like labels."""
    for key, value in (given or {}).items():
        yield from named(at, key, names.label_key)
        yield from named(at, value, names.label_value)


def label_selector(at: FieldPath, selector: Object | None) -> Problems:
    """Yield what is wrong with a selector of labels."""
    if selector is None:
        return
    yield from labels((*at, "matchLabels"), selector.get("matchLabels"))
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _selector_expression((*at, "matchExpressions", index), expression)


def _selector_expression(at: FieldPath, expression: Object) -> Problems:
    operator = expression.get("operator", "")
    values = expression.get("values") or []
    yield from in_or_exists((*at, "values"), operator, values)
    if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
        yield invalid((*at, "operator"), operator, "not a valid selector operator")
    yield from named((*at, "key"), expression.get("key", ""), names.label_key)
    yield from label_values((*at, "values"), values)


def in_or_exists(at: FieldPath, operator: str, values: list[str]) -> Problems:
    """Yield that an operator lacks the values it needs, or has some that it cannot use."""
    if operator in ("In", "NotIn") and not values:
        yield required(at, "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield FieldError("FieldValueForbidden", at, f"Forbidden: {detail}")


def label_values(at: FieldPath, values: list[str]) -> Problems:
    for index, value in enumerate(values):
        yield from named((*at, index), value, names.label_value)


def address(at: FieldPath, text: str) -> Problems:
    """Yield why a text is no address of the internet protocol, or one that programs read in different ways."""
    found = read_address(text)
    if found is None:
        yield invalid(at, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif not isinstance(found, IPv6Address) and _is_padded(text):
        yield invalid(at, text, "must not have leading 0s")
    elif isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        yield invalid(at, text, "must not be an IPv4-mapped IPv6 address")


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text means; numbers may be padded with zeros, which mean nothing."""
    if "%" in text:  # a zone says which of a machine's own links is meant
        return None
    try:
        return ip_address(text if ":" in text else _unpadded(text))
    except ValueError:
        return None


def _unpadded(text: str) -> str:
    return ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in text.split("."))


def _is_padded(text: str) -> bool:
    return _unpadded(text) != text


def environment_name(value: str) -> Iterator[str]:
    """Yield why a text cannot name a variable of the environment."""
    if not (value.isascii() and value.isprintable()) or "=" in value:
        yield "a valid environment variable name must consist only of printable ASCII characters other than '='"


def config_key(value: str) -> Iterator[str]:
    """Yield why a text cannot be a key of a ConfigMap or Secret."""
    if len(value) > 253:
        yield "must be no more than 253 characters"
    if not _CONFIG_KEY.fullmatch(value):
        yield (
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
            " (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
        )
    if value in (".", ".."):
        yield f"must not be '{value}'"
    elif value.startswith(".."):
        yield "must not start with '..'"


def header_name(value: str) -> Iterator[str]:
    """Yield why a text cannot name a header."""
    if not _HEADER.fullmatch(value):
        yield (
            "a valid HTTP header must consist of alphanumeric characters or '-'"
            " (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
        )


def search_domain(value: str) -> Iterator[str]:
    """Yield why a text is no domain in which names are looked up; unlike elsewhere, underscores are fine."""
    if len(value) > 253:
        yield "must be no more than 253 characters"
    if not all(_UNDERSCORED_LABEL.fullmatch(label) for label in value.split(".")):
        yield (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.',"
            " and must start and end with an alphanumeric character (e.g. 'example.com', regex used for"
            f" validation is '{_UNDERSCORED_DOMAIN}')"
        )
