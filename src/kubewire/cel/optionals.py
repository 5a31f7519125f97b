"""Optionals: values that may be missing, as `oldSelf` is under `optionalOldSelf`."""

from kubewire.cel.errors import EvaluationError
from kubewire.cel.library import function, method
from kubewire.cel.values import NONE, OptionalValue, Timestamp, Value


@function("optional.of", "A -> optional(A)")
def optional_of(value: Value) -> OptionalValue:
    return OptionalValue(value)


@function("optional.none", "-> optional(A)")
def optional_none() -> OptionalValue:
    return NONE


@function("optional.ofNonZeroValue", "A -> optional(A)")
def optional_of_non_zero(value: Value) -> OptionalValue:
    """Return an optional that is empty for 0, false, null and whatever has no content."""
    zero = not value or (isinstance(value, Timestamp) and value.nanoseconds == 0)
    return NONE if zero else OptionalValue(value)


@method("hasValue", "optional(A) -> bool")
def has_value(optional: OptionalValue) -> bool:
    return optional.present


@method("value", "optional(A) -> A")
def value_of(optional: OptionalValue) -> Value:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


@method("or", "optional(A), optional(A) -> optional(A)")
def either(optional: OptionalValue, alternative: OptionalValue) -> OptionalValue:
    """Return the first that has a value; the compiler evaluates the alternative only when it is needed."""
    return optional if optional.present else alternative


@method("orValue", "optional(A), A -> A")
def value_or(optional: OptionalValue, alternative: Value) -> Value:
    """Return the value or the alternative; the compiler evaluates that only when it is needed."""
    return optional.value if optional.present else alternative
