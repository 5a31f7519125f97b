"""Formats by name: `format.dns1123Label().validate(self)` is empty, or what is wrong with a text."""

from collections.abc import Callable
from functools import partial

from kubewire import names
from kubewire.cel.cost import tenth
from kubewire.cel.library import function, method
from kubewire.cel.types import NAMED_FORMAT
from kubewire.cel.values import NONE, OptionalValue, held_by
from kubewire.formats import format_test


class NamedFormat:
    """A format and how large the expression is that tests it, which is what a test costs by."""

    __slots__ = ("name", "problems", "size")

    def __init__(self, name: str, problems: Callable[[str], list[str]], size: int) -> None:
        self.name = name
        self.problems = problems
        self.size = size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFormat) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


held_by(NAMED_FORMAT, NamedFormat)


def _as_prefix(test: Callable[[str], list[str]], text: str) -> list[str]:
    """Test what a suffix will follow: a hyphen at the end is none yet."""
    return test(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


def _by_test(name: str, problem: str, text: str) -> list[str]:
    test = format_test(name)
    return [] if test is None or test(text) else [problem]


# The sizes are those of the expressions that Kubernetes tests with.
_FORMATS = {
    known.name: known
    for known in (
        NamedFormat("dns1123Label", names.dns1123_label, 30),
        NamedFormat("dns1123Subdomain", names.dns1123_subdomain, 60),
        NamedFormat("dns1035Label", names.dns1035_label, 30),
        NamedFormat("qualifiedName", names.qualified_name, 60),
        NamedFormat("dns1123LabelPrefix", partial(_as_prefix, names.dns1123_label), 30),
        NamedFormat("dns1123SubdomainPrefix", partial(_as_prefix, names.dns1123_subdomain), 60),
        NamedFormat("dns1035LabelPrefix", partial(_as_prefix, names.dns1035_label), 30),
        NamedFormat("labelValue", names.label_value, 40),
        NamedFormat("uri", partial(_by_test, "uri", "invalid URI for request"), 1053),
        NamedFormat("uuid", partial(_by_test, "uuid", "does not match the UUID format"), 79),
        NamedFormat("byte", partial(_by_test, "byte", "invalid base64"), 83),
        NamedFormat("date", partial(_by_test, "date", "invalid date"), 96),
        NamedFormat("datetime", partial(_by_test, "datetime", "invalid datetime"), 96),
    )
}


for _known in _FORMATS.values():
    function(f"format.{_known.name}", "-> namedformat")(partial(lambda found: found, _known))


@function("format.named", "string -> optional(namedformat)")
def named(name: str) -> OptionalValue:
    found = _FORMATS.get(name)
    return NONE if found is None else OptionalValue(found)


def _price(tested: NamedFormat, text: str) -> int:
    return max(1, tenth(len(text) + 1) * -(-tested.size // 4))


@method("validate", "namedformat, string -> optional(list(string))", cost=_price)
def validate(tested: NamedFormat, text: str) -> OptionalValue:
    problems = tested.problems(text)
    return OptionalValue(problems) if problems else NONE
