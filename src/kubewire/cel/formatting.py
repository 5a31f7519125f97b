"""`'%s has %d replicas'.format([name, count])`: values put into a text."""

from kubewire.cel.errors import EvaluationError
from kubewire.cel.functions import text_of_bytes
from kubewire.cel.library import method
from kubewire.cel.numbers import double_text
from kubewire.cel.strings import quote
from kubewire.cel.times import duration_text, timestamp_text
from kubewire.cel.values import Duration, Timestamp, TypeValue, UInt, Value, type_name

_MAX_PRECISION = 1000
_MAX_DEPTH = 50
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@method("format", "string, list(dyn) -> string")
def format_text(template: str, arguments: list[Value]) -> str:
    """Return a template with its clauses (%s %d %f %e %b %x %X %o %%) replaced by the arguments in turn."""
    parts: list[str] = []
    at = used = 0
    while (percent := template.find("%", at)) >= 0:
        parts.append(template[at:percent])
        precision, letter, at = _clause(template, percent + 1)
        if letter == "%":
            parts.append("%")
            continue
        if used >= len(arguments):
            raise EvaluationError(f"index {used} out of range")
        parts.append(_formatted(letter, precision, arguments[used]))
        used += 1
    return "".join((*parts, template[at:]))


def _clause(template: str, at: int) -> tuple[int, str, int]:
    """Return the precision and the letter of the clause behind a percent sign, and where it ends."""
    precision = 6
    if template[at : at + 1] == ".":
        end = at + 1
        while template[end : end + 1].isdecimal() and template[end].isascii():
            end += 1
        digits = template[at + 1 : end]
        if not digits or len(digits) > 4 or int(digits) > _MAX_PRECISION:
            raise EvaluationError(f'could not parse formatting clause: bad precision "{digits}"')
        precision, at = int(digits), end
    letter = template[at : at + 1]
    if not letter:
        raise EvaluationError("unexpected end of string")
    if letter not in "%sdfebxXo":
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')
    return precision, letter, at + 1


def _formatted(letter: str, precision: int, value: Value) -> str:
    if letter == "s":
        return _shown(value, 0)
    if letter in "fe":
        return _fixed_or_scientific(letter, precision, value)
    whole = type(value) in (int, UInt)
    if letter in "xX":
        if type(value) is str:
            shown = value.encode().hex()
        elif type(value) is bytes:
            shown = value.hex()
        elif whole:
            shown = format(int(value), "x")
        else:
            raise _unfit("hex", "integers, byte buffers, and strings", value)
        return shown.upper() if letter == "X" else shown
    if letter == "b" and type(value) is bool:
        return "1" if value else "0"
    if not whole:
        kind = {"d": "decimal", "b": "binary", "o": "octal"}[letter]
        raise _unfit(kind, "integers and bools" if letter == "b" else "integers", value)
    return format(int(value), letter)


def _fixed_or_scientific(letter: str, precision: int, value: Value) -> str:
    """Write a double as Kubernetes does, in English: with commas, or as a power of ten."""
    if type(value) is not float:
        raise _unfit("fixed-point" if letter == "f" else "scientific", "doubles", value)
    if value - value != 0:  # an infinity, or not a number
        shown = double_text(value).replace("+Inf", "∞").replace("Inf", "∞")
        return shown if letter == "f" else shown.rjust(6)
    if letter == "f":
        return format(value, f",.{precision}f")
    mantissa, _, exponent = format(value, ".6e").partition("e")
    return f"{mantissa}\u00d710{exponent.removeprefix('+').translate(_RAISED)}"


def _unfit(clause: str, wanted: str, value: Value) -> EvaluationError:
    given = type_name(value)
    return EvaluationError(
        f"error during formatting: {clause} clause can only be used on {wanted}, was given {given}"
    )


def _shown(value: Value, depth: int) -> str:
    """Return a value as %s shows it."""
    if depth > _MAX_DEPTH:
        raise EvaluationError("value is nested too deeply to be formatted")
    held = type(value)
    if held is str:
        return str(value)
    if held in (list, dict):
        return _shown_container(value, depth)
    if held is bytes:
        return text_of_bytes(bytes(value))
    if held is bool:
        return "true" if value else "false"
    if held in (int, UInt):
        return int.__repr__(value)
    return _shown_rarely(value)


def _shown_rarely(value: Value) -> str:
    if type(value) is float:
        return double_text(value)
    if value is None:
        return "null"
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, Duration):
        return duration_text(value)
    if isinstance(value, TypeValue):
        return value.name
    raise _unfit(
        "string",
        "strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
        value,
    )


def _shown_container(value: Value, depth: int) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_as_literal(item, depth + 1) for item in value)}]"
    entries = sorted(
        (_as_literal(key, depth + 1), _as_literal(item, depth + 1)) for key, item in value.items()
    )
    return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"


def _as_literal(value: Value, depth: int) -> str:
    """Return a value as it is written in an expression, as far as there is a way to write it."""
    shown = _shown(value, depth)
    held = type(value)
    if held is float:
        return f'"{shown}"' if value - value != 0 else format(value, ".6f")
    if held in (str, bytes):
        return ("b" if held is bytes else "") + quote(shown)
    if held in (Timestamp, Duration):
        return f"{'timestamp' if held is Timestamp else 'duration'}({quote(shown)})"
    return shown


def template_problem(template: str, count: int) -> str | None:
    """Return why a template cannot be filled with this many arguments, or None."""
    at = wanted = 0
    try:
        while (percent := template.find("%", at)) >= 0:
            _, letter, at = _clause(template, percent + 1)
            wanted += letter != "%"
    except EvaluationError as error:
        return error.message
    if wanted > count:
        return f"index {count} out of range"
    if wanted < count:
        return f"too many arguments supplied to string.format (expected {wanted}, got {count})"
    return None
