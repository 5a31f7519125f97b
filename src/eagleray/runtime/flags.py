"""Command lines as Go's flag package reads them, and the usual form: `-x=v`, `--x=v`, `-x v`, `--x v`, `--switch`."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from eagleray.runtime.optionkinds import Kind, OptionError, Wrong, shown

HELP = frozenset(("-h", "-help", "--help"))


def parse_flags(arguments: Sequence[str], kinds: Mapping[str, Kind]) -> dict[str, object]:
    """Return the values of the flags that are given, by their names; of one given twice the last counts.

    As in Go, a switch takes a value only after `=`, and `--` ends the flags. There are no other arguments.
    """
    values: dict[str, object] = {}
    rest = list(reversed(arguments))
    while rest:
        argument = rest.pop()
        if argument == "--" and not rest:
            break
        name, equals, text = argument.lstrip("-").partition("=")
        dashes = len(argument) - len(argument.lstrip("-"))
        if dashes not in (1, 2) or not name:
            raise OptionError(f"{shown(argument)} is not a flag; flags are written --name=value")
        kind = kinds.get(name)
        if kind is None:
            raise OptionError(f"unknown flag --{name[:64]}{did_you_mean(name, kinds, '--')}")
        if not equals:
            if kind.is_switch:
                text = "true"
            elif rest:
                text = rest.pop()
            else:
                raise OptionError(f"--{name} has no value; write --{name}=VALUE")
        try:
            values[name] = kind.from_text(text)
        except Wrong as wrong:
            raise OptionError(f"--{name}: {wrong}") from None
        if kind.is_switch and not equals and rest and not rest[-1].startswith("-"):
            raise OptionError(
                f"{shown(rest[-1])} is not a flag; a switch takes its value after =, as in --{name}={rest[-1][:16]}"
            )
    return values


def did_you_mean(name: str, known: Mapping[str, object], prefix: str = "") -> str:
    """Return `; did you mean …?` with the nearest known name, or nothing if none is near."""
    folded = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name[:64].lower(), folded, n=1, cutoff=0.5)
    return f"; did you mean {prefix}{folded[near[0]]}?" if near else ""
