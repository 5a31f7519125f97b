"""The functions an expression may call: a declaration is a name, a signature and a Python function.

    @method("startsWith", "string, string -> bool", cost=traversal)
    def starts_with(text: str, prefix: str) -> bool: ...

Modules of functions are read when an expression first calls something that is not an operator.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from kubewire.cel.types import CelType, parse_type, split_types
from kubewire.cel.values import Value

Implementation = Callable[..., Value]
F = TypeVar("F", bound=Implementation)
# The price of a call, from its arguments; None stands for the flat price of one.
Price = Callable[..., int]

_MODULES = (
    "functions", "strings", "formatting", "lists", "regexes", "optionals", "urls", "quantities", "networks",
    "semantic_versions", "named_formats",
)  # fmt: skip
_OVERLOADS: "dict[str, list[Overload]]" = {}
_loaded = False

# What Kubernetes offers and this package does not, so that a rule is refused with the true reason.
UNSUPPORTED = frozenset({"authorizer"})


class Overload:
    """One signature of a function; the signature is read when an expression first asks for it."""

    __slots__ = ("_signature", "_types", "implementation", "is_method", "price", "with_run")

    def __init__(
        self,
        signature: str,
        implementation: Implementation,
        price: Price | None,
        *,
        is_method: bool,
        with_run: bool,
    ) -> None:
        self._signature = signature
        self._types: tuple[tuple[CelType, ...], CelType] | None = None
        self.implementation = implementation
        self.price = price
        self.is_method = is_method
        self.with_run = with_run

    def _read(self) -> tuple[tuple[CelType, ...], CelType]:
        if self._types is None:
            parameters, _, result = self._signature.partition("->")
            self._types = tuple(parse_type(part) for part in split_types(parameters)), parse_type(result)
        return self._types

    @property
    def parameters(self) -> tuple[CelType, ...]:
        return self._read()[0]

    @property
    def result(self) -> CelType:
        return self._read()[1]


def function(
    name: str, *signatures: str, cost: Price | None = None, with_run: bool = False
) -> Callable[[F], F]:
    """Declare a function under a name, which may have dots in it; `with_run` passes it the run first."""
    return _declare(name, signatures, cost, is_method=False, with_run=with_run)


def method(
    name: str, *signatures: str, cost: Price | None = None, with_run: bool = False
) -> Callable[[F], F]:
    """Declare a method; its first parameter is what it is called on."""
    return _declare(name, signatures, cost, is_method=True, with_run=with_run)


def _declare(
    name: str, signatures: tuple[str, ...], price: Price | None, *, is_method: bool, with_run: bool
) -> Callable[[F], F]:
    def register(implementation: F) -> F:
        _OVERLOADS.setdefault(name, []).extend(
            Overload(text, implementation, price, is_method=is_method, with_run=with_run)
            for text in signatures
        )
        return implementation

    return register


def overloads_of(name: str) -> "list[Overload]":
    """Return every overload of a function or operator, in the order of declaration."""
    global _loaded  # noqa: PLW0603 - read once for the process; a second reading would declare everything twice
    found = _OVERLOADS.get(name)
    if found is None and not _loaded:
        _loaded = True
        for module in _MODULES:
            import_module(f"kubewire.cel.{module}")
        found = _OVERLOADS.get(name)
    return found or []
