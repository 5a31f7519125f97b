"""What is refused when an expression is compiled although its types are right: literals that can only fail."""

from collections.abc import Iterator, Sequence

from kubewire.cel.errors import CelError
from kubewire.cel.lexer import compile_error
from kubewire.cel.syntax import Call, ListLiteral, Literal, MapLiteral, Node

# Where the argument stands that must be well formed if it is a literal.
_CHECKED = {"duration": 0, "timestamp": 0, "matches": 1, "find": 1, "findAll": 1}


def check_literals(nodes: Sequence[Node], uniform: Sequence[ListLiteral | MapLiteral], source: str) -> None:
    """Refuse malformed durations, timestamps and patterns, and lists and maps of mixed types; the first is named."""
    problems = [*_malformed(nodes), *_mixed(uniform)]
    if problems:
        offset, message = min(problems)
        raise compile_error(message, source, offset)


def _malformed(nodes: Sequence[Node]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, Call) and node.function in _CHECKED:
            argument = node.operands[_CHECKED[node.function]]
            if isinstance(argument, Literal) and (problem := _problem(node, argument)):
                yield argument.offset, problem
        elif isinstance(node, Call) and node.function == "format":
            yield from _misformatted(node)


def _misformatted(node: Call) -> Iterator[tuple[int, str]]:
    """Count the clauses of a literal template against a literal list of arguments."""
    from kubewire.cel.formatting import template_problem  # read already, since it declares the function

    template, arguments = node.operands
    if isinstance(template, Literal) and isinstance(arguments, ListLiteral) and not arguments.optional:
        problem = template_problem(template.value, len(arguments.items))
        if problem is not None:
            yield node.offset, problem


def _problem(call: Call, argument: Literal) -> str | None:
    try:
        if call.function not in ("duration", "timestamp"):
            from kubewire.cel.regex import pattern_of  # regular expressions are rare enough to be read late

            pattern_of(argument.value)
        else:
            call.overloads[0].implementation(argument.value)
    except CelError as error:
        # Kubernetes stops here; the reason helps, above all where a pattern is fine for RE2 but too large for us.
        reason = "" if call.function in ("duration", "timestamp") else f": {error.message}"
        return f"invalid {call.function} argument{reason}"
    return None


def _mixed(literals: Sequence[ListLiteral | MapLiteral]) -> Iterator[tuple[int, str]]:
    for literal in literals:
        if isinstance(literal, ListLiteral):
            yield from _different(literal.items, literal.optional)
        else:
            yield from _different([key for key, _ in literal.entries], frozenset())
            yield from _different([value for _, value in literal.entries], literal.optional)


def _different(nodes: list[Node], optional: frozenset[int]) -> Iterator[tuple[int, str]]:
    types = [node.type.parameters[0] if at in optional else node.type for at, node in enumerate(nodes)]
    for node, found in zip(nodes, types, strict=True):
        if found != types[0]:
            yield node.offset, f"expected type '{types[0]}' but found '{found}'"
