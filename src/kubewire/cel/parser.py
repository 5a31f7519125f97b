"""Tokens into a tree, by precedence; macros become nodes of their own."""

from typing import NoReturn

from kubewire.cel.errors import CompileError
from kubewire.cel.lexer import Token, compile_error, tokens_of
from kubewire.cel.names import RESERVED
from kubewire.cel.syntax import (
    Call,
    Comprehension,
    Conditional,
    Identifier,
    Index,
    ListLiteral,
    Literal,
    Logical,
    MapLiteral,
    Node,
    Select,
)
from kubewire.cel.values import MAX_INT

# Walking a tree takes a few Python frames for each level, so a deep one would exhaust the caller's stack.
# Parentheses, brackets and calls take the most. Rules that people write stay far below both.
MAX_DEPTH = 200
MAX_NESTING = 50

_PRECEDENCE = {
    "||": 1, "&&": 2,
    "<": 3, "<=": 3, ">": 3, ">=": 3, "==": 3, "!=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip
_LITERAL_KEYWORDS = {"true": True, "false": False, "null": None}
_PREDICATE_MACROS = frozenset({"all", "exists", "exists_one", "filter"})
_TWO_VARIABLE_MACROS = frozenset({
    "all", "exists", "existsOne", "exists_one", "transformList", "transformMap", "transformMapEntry",
})  # fmt: skip
_OPTIONAL_MACROS = frozenset({"optMap", "optFlatMap"})


def parse(source: str) -> Node:
    """Return the tree of an expression; raises CompileError with a position when it is not one."""
    parser = _Parser(source)
    root = parser.expression()
    parser.expect("end")
    return root


class _Parser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = tokens_of(source)
        self.at = 0
        self.nesting = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def accept(self, kind: str) -> Token | None:
        return self.take() if self.tokens[self.at].kind == kind else None

    def expect(self, kind: str) -> Token:
        return self.accept(kind) or self._unexpected("<EOF>" if kind == "end" else f"'{kind}'")

    def error(self, message: str, offset: int) -> CompileError:
        return compile_error(message, self.source, offset)

    def _unexpected(self, wanted: str) -> NoReturn:
        token = self.next
        found = "<EOF>" if token.kind == "end" else _shown(self.source, token)
        raise self.error(f"Syntax error: mismatched input '{found}' expecting {wanted}", token.offset)

    def _grown(self, node: Node) -> Node:
        """Return the node unless it makes the tree too deep to walk."""
        if node.depth > MAX_DEPTH:
            raise self.error(f"expression recursion limit exceeded: {MAX_DEPTH}", node.offset)
        return node

    def expression(self) -> Node:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.error(f"expression recursion limit exceeded: {MAX_NESTING}", self.next.offset)
        # A chain of conditionals leans to the right, so it is read flat and joined from its end.
        branches: list[tuple[Token, Node, Node]] = []
        node = self._binary(1)
        while question := self.accept("?"):
            then = self._binary(1)
            self.expect(":")
            branches.append((question, node, then))
            node = self._binary(1)
        for question, condition, then in reversed(branches):
            node = self._grown(Conditional(question.offset, condition, then, node))
        self.nesting -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        """Read operands joined by operators that bind at least as strongly as `lowest`."""
        left = self._operand()
        while (strength := _PRECEDENCE.get(self.next.kind, 0)) >= lowest:
            operator = self.take()
            if strength <= 2:
                left = self._chain(left, operator, strength)
                continue
            right = self._binary(strength + 1)
            left = self._grown(Call(operator.offset, _operator_name(operator.kind), None, [left, right]))
        return left

    def _chain(self, left: Node, operator: Token, strength: int) -> Node:
        operands = [left, self._binary(strength + 1)]
        while self.accept(operator.kind):
            operands.append(self._binary(strength + 1))
        return self._grown(Logical(operator.offset, operator.kind, operands))

    def _operand(self) -> Node:
        """Read a primary with its prefixes and everything attached to it by dots and brackets."""
        prefixes: list[Token] = []
        kind = self.next.kind
        if kind in ("!", "-"):
            while self.next.kind == kind:
                prefixes.append(self.take())
        negative = kind == "-" and self._negates_literal()
        node = self._primary(negated=prefixes.pop() if negative else None)
        while attached := self._attached(node):
            node = self._grown(attached)
        if len(prefixes) % 2 == 0:  # pairs cancel out before types are looked at
            return node
        return self._grown(Call(prefixes[0].offset, f"{kind}_", None, [node]))

    def _negates_literal(self) -> bool:
        token = self.next
        return token.kind == "literal" and type(token.value) in (int, float)

    def _attached(self, operand: Node) -> Node | None:
        if dot := self.accept("."):
            optional = self.accept("?") is not None
            name = self.accept("identifier") or self._unexpected("IDENTIFIER")
            if not optional and (opening := self.accept("(")):
                return self._method(operand, name.value, opening)
            return Select(dot.offset, operand, name.value, optional=optional)
        if bracket := self.accept("["):
            optional = self.accept("?") is not None
            index = self.expression()
            self.expect("]")
            return Index(bracket.offset, operand, index, optional=optional)
        if self.next.kind == "{" and isinstance(operand, Identifier | Select):
            raise self.error("messages cannot be constructed in this expression", self.next.offset)
        return None

    def _primary(self, negated: Token | None) -> Node:
        token = self.take()
        kind = token.kind
        if kind == "literal":
            return self._number_or_text(token, negated)
        if kind == "identifier" or (kind == "." and self.next.kind == "identifier"):
            return self._name(token if kind == "identifier" else self.take())
        if kind == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if kind == "[":
            return self._list(token)
        if kind == "{":
            return self._map(token)
        if kind in _LITERAL_KEYWORDS:
            return Literal(token.offset, _LITERAL_KEYWORDS[kind])
        self.at -= 1
        return self._unexpected("an expression")

    def _number_or_text(self, token: Token, negated: Token | None) -> Node:
        value = token.value
        if negated is not None:
            return Literal(negated.offset, -value)
        if type(value) is int and value > MAX_INT:
            raise self.error("invalid int literal", token.offset)
        return Literal(token.offset, value)

    def _name(self, token: Token) -> Node:
        if token.value in RESERVED:
            raise self.error(f"reserved identifier: {token.value}", token.offset)
        if opening := self.accept("("):
            arguments = self._arguments()
            if token.value == "has" and len(arguments) == 1:
                return self._has(arguments[0], opening)
            return self._grown(Call(opening.offset, token.value, None, arguments))
        return Identifier(token.offset, token.value)

    def _has(self, argument: Node, opening: Token) -> Node:
        if not isinstance(argument, Select) or argument.test or argument.optional:
            raise self.error("invalid argument to has() macro", argument.offset)
        return Select(opening.offset, argument.operand, argument.field, test=True)

    def _method(self, target: Node, name: str, opening: Token) -> Node:
        arguments = self._arguments()
        if name in _PREDICATE_MACROS and len(arguments) == 2:
            variable = self._variable(arguments[0])
            return Comprehension(opening.offset, name, target, variable, arguments[1], None)
        if name == "map" and len(arguments) in (2, 3):
            condition = arguments[1] if len(arguments) == 3 else None
            variable = self._variable(arguments[0])
            return Comprehension(opening.offset, name, target, variable, condition, arguments[-1])
        if name in _OPTIONAL_MACROS and len(arguments) == 2:
            variable = self._variable(arguments[0])
            return Comprehension(opening.offset, name, target, variable, None, arguments[1])
        if name in _TWO_VARIABLE_MACROS and len(arguments) in (3, 4):
            raise self.error(f"the two-variable form of '{name}' is not supported here", opening.offset)
        return Call(opening.offset, name, target, arguments)

    def _variable(self, node: Node) -> str:
        if not isinstance(node, Identifier):
            raise self.error("argument must be a simple name", node.offset)
        return node.name

    def _arguments(self) -> list[Node]:
        """Read what stands between parentheses, the opening one being taken already."""
        arguments: list[Node] = []
        if not self.accept(")"):
            arguments.append(self.expression())
            while self.accept(","):
                arguments.append(self.expression())
            self.expect(")")
        return arguments

    def _list(self, opening: Token) -> Node:
        items: list[Node] = []
        optional: set[int] = set()
        while not self.accept("]"):
            if self.accept("?"):
                optional.add(len(items))
            items.append(self.expression())
            self._separator("]")
        return self._grown(ListLiteral(opening.offset, items, frozenset(optional)))

    def _map(self, opening: Token) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: set[int] = set()
        while not self.accept("}"):
            if self.accept("?"):
                optional.add(len(entries))
            key = self.expression()
            self.expect(":")
            entries.append((key, self.expression()))
            self._separator("}")
        return self._grown(MapLiteral(opening.offset, entries, frozenset(optional)))

    def _separator(self, closing: str) -> None:
        """Take the comma after an element; the last element may be followed by one or by the closing sign."""
        if not self.accept(",") and self.next.kind != closing:
            self._unexpected(f"'{closing}'")


def _operator_name(sign: str) -> str:
    return "@in" if sign == "in" else f"_{sign}_"


def _shown(source: str, token: Token) -> str:
    return source[token.offset :][:20] if token.kind == "literal" else str(token.value)
