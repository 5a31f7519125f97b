"""`eagleray explain PATH`: what a kind or a field is for, without a cluster."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from eagleray.rayapi.declare import Kind, Version
    from eagleray.rayapi.reference import Entry, UnknownFieldError

# Imports stand inside the functions: the help of all commands must not wait for the kinds' declarations.

HELP = "describe a Ray kind or one of its fields"

_INDENT = "  "
_WIDEST = 120
_NARROWEST = 40


class _NoSuchTopicError(Exception):
    """What was asked for does not exist; the message says so to the user."""


def configure(parser: "argparse.ArgumentParser") -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "path",
        nargs="?",
        metavar="PATH",
        help="a kind, or a field in it: raycluster.spec.workerGroupSpecs; without it, the kinds are listed",
    )
    parser.add_argument(
        "--api-version",
        metavar="VERSION",
        help="the version to describe, such as ray.io/v1alpha1; by default the one that is stored",
    )
    parser.add_argument(
        "--recursive", action="store_true", help="show the fields of the fields, too, as a tree"
    )


def run(arguments: "argparse.Namespace") -> int:
    """Print the description; return 1 if there is no such kind, version or field."""
    import shutil

    width = max(_NARROWEST, min(shutil.get_terminal_size().columns, _WIDEST))
    try:
        if arguments.path is None:
            lines = list(_overview(width))
        else:
            lines = list(_topic(arguments.path, arguments.api_version, arguments.recursive, width))
    except _NoSuchTopicError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _overview(width: int) -> "Iterator[str]":
    from eagleray.rayapi.kinds import KINDS

    yield "KINDS:"
    for kind in KINDS:
        yield f"{_INDENT}{kind.singular}  <{', '.join(version.api_version for version in kind.versions)}>"
        yield from _wrapped(kind.versions[0].doc, 2, width)


def _topic(path: str, api_version: str | None, recursive: bool, width: int) -> "Iterator[str]":
    from eagleray.rayapi.reference import UnknownFieldError, entries_inside, entries_of_kind, find

    name, *steps = path.split(".")
    kind = _kind(name)
    version = _version(kind, api_version)
    yield f"KIND:     {version.kind}"
    yield f"VERSION:  {version.api_version}"
    if version.deprecation:
        yield f"WARNING:  {version.api_version} is deprecated; use {kind.versions[0].api_version}"
    doc, facts, entries = version.doc, "", entries_of_kind(version)
    if steps:
        try:
            entry = find(version, steps)
        except UnknownFieldError as unknown:
            raise _NoSuchTopicError(_unknown_field(kind, unknown)) from None
        yield f"FIELD:    {_headline(entry)}"
        doc, facts, entries = entry.doc, _facts(entry), entries_inside(entry.inside)
    if doc or facts:
        yield from ("", "DESCRIPTION:")
        yield from _wrapped(doc, 1, width)
        yield from _wrapped(facts, 1, width)
    if entries:
        yield from ("", "FIELDS:")
        yield from _tree(entries, 1) if recursive else _list(entries, width)


def _kind(name: str) -> "Kind":
    from eagleray.rayapi.kinds import KINDS, kind_named

    kind = kind_named(name)
    if kind is None:
        names = [known.singular for known in KINDS]
        raise _NoSuchTopicError(f'there is no kind "{name}"; {_nearest(name, names)}')
    return kind


def _version(kind: "Kind", api_version: str | None) -> "Version":
    if api_version is None:
        return kind.versions[0]
    for version in kind.versions:
        if api_version == version.api_version:
            return version
    known = " and ".join(version.api_version for version in kind.versions)
    raise _NoSuchTopicError(f'{kind.name} has no version "{api_version}", only {known}')


def _unknown_field(kind: "Kind", unknown: "UnknownFieldError") -> str:
    above = ".".join([kind.singular, *unknown.above])
    if not unknown.known:
        return f'{above} has no fields, so there is no "{unknown.name}" in it'
    return f'{above} has no field "{unknown.name}"; {_nearest(unknown.name, unknown.known)}'


def _nearest(name: str, known: "Sequence[str]") -> str:
    """Return a question for the known name that is most like this one, or the list if none is."""
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f'did you mean "{by_lower[close[0]]}"?' if close else f"there are: {', '.join(known)}"


def _list(entries: "Sequence[Entry]", width: int) -> "Iterator[str]":
    for position, entry in enumerate(entries):
        if position and entry.doc:
            yield ""
        yield _INDENT + _headline(entry)
        yield from _wrapped(entry.doc, 2, width)
        yield from _wrapped(_facts(entry), 2, width)


def _tree(entries: "Sequence[Entry]", depth: int) -> "Iterator[str]":
    from eagleray.rayapi.reference import entries_inside

    for entry in entries:
        yield _INDENT * depth + _headline(entry)
        yield from _tree(entries_inside(entry.inside), depth + 1)


def _headline(entry: "Entry") -> str:
    required = "  -required-" if entry.required else ""
    return f"{entry.name}  <{entry.type}>{required}"


def _facts(entry: "Entry") -> str:
    facts = []
    if entry.choices:
        facts.append(f"One of: {', '.join(entry.choices)}.")
    if entry.default is not None:
        facts.append(f"Default: {entry.shown_default}")
    return " ".join(facts)


def _wrapped(text: str, depth: int, width: int) -> "list[str]":
    import textwrap

    indent = _INDENT * depth
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
