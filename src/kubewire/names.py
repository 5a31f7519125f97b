"""Which names Kubernetes accepts, in its own words, and how it makes new ones.

Every check returns the complaints as a list of messages; an empty list means the name is fine.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubewire.sources import Entropy

# No vowels, so that no words appear, and no characters that look like each other.
SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5
MAX_GENERATED_NAME: Final = 63

_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_DIGITS: Final = frozenset("0123456789")
_LOWER_ALNUM: Final = _LOWER | _DIGITS
_DNS_LABEL: Final = _LOWER_ALNUM | {"-"}
_ALNUM: Final = _LOWER_ALNUM | {letter.upper() for letter in _LOWER}
_LABEL_TEXT: Final = _ALNUM | set("-_.")

# The regular expressions are part of the messages; the checks below decide the same without them.
_LABEL_REGEX: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_REGEX: Final = rf"{_LABEL_REGEX}(\.{_LABEL_REGEX})*"
_KEY_REGEX: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_NO_LABEL: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start"
    " and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    f" '{_LABEL_REGEX}')"
)
_NO_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    f" '{_SUBDOMAIN_REGEX}')"
)
_NO_1035_LABEL: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic"
    " character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for"
    " validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_NO_KEY: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    f" '{_KEY_REGEX}')"
)
_NO_LABEL_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must"
    " start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used"
    f" for validation is '({_KEY_REGEX})?')"
)


def dns1123_label(value: str) -> list[str]:
    """Return why the value is no DNS-1123 label, the form of most names (`my-name`)."""
    problems = _too_long(value, 63, "characters")
    if not _is_label(value):
        problems.append("must not contain dots" if _is_subdomain(value) else _NO_LABEL)
    return problems


def dns1123_subdomain(value: str) -> list[str]:
    """Return why the value is no DNS-1123 subdomain: labels joined by dots (`example.com`)."""
    problems = _too_long(value, 253, "characters")
    if not _is_subdomain(value):
        problems.append(_NO_SUBDOMAIN)
    return problems


def dns1035_label(value: str) -> list[str]:
    """Return why the value is no DNS-1035 label, which starts with a letter; Services are named so."""
    problems = _too_long(value, 63, "characters")
    if not (_is_label(value) and value[0] in _LOWER):
        problems.append(_NO_1035_LABEL)
    return problems


def qualified_name(value: str) -> list[str]:
    """Return why the value is no qualified name: a name, or a DNS prefix and a name (`example.com/name`)."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NO_KEY} {with_prefix}"]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _too_long(prefix, 253, "bytes")]
        if not _is_subdomain(prefix):
            problems.append(f"prefix part {_NO_SUBDOMAIN}")
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63, "bytes")]
    if not _is_label_text(name):
        problems.append(f"name part {_NO_KEY}")
    return problems


label_key = qualified_name


def label_value(value: str) -> list[str]:
    """Return why the value may not stand in a label."""
    problems = _too_long(value, 63, "bytes")
    if value and not _is_label_text(value):
        problems.append(_NO_LABEL_VALUE)
    return problems


def port_name(value: str) -> list[str]:
    """Return why the value is no IANA service name, the form of port names."""
    problems = _too_long(value, 15, "characters")
    if not (value and _DNS_LABEL.issuperset(value)):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if _LOWER.isdisjoint(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def generate_name(base: str, entropy: "Entropy") -> str:
    """Return a name as the API server makes it of a `generateName`: the base and five random characters."""
    return base[: MAX_GENERATED_NAME - SUFFIX_LENGTH] + entropy.suffix(SUFFIX_LENGTH)


def _is_label(value: str) -> bool:
    return (
        value != ""
        and value[0] in _LOWER_ALNUM
        and value[-1] in _LOWER_ALNUM
        and _DNS_LABEL.issuperset(value)
    )


def _is_subdomain(value: str) -> bool:
    return all(map(_is_label, value.split(".")))


def _is_label_text(value: str) -> bool:
    return value != "" and value[0] in _ALNUM and value[-1] in _ALNUM and _LABEL_TEXT.issuperset(value)


def _too_long(value: str, limit: int, unit: str) -> list[str]:
    # Lengths are counted in UTF-8, as Go counts them.
    length = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    return [f"must be no more than {limit} {unit}"] if length > limit else []
