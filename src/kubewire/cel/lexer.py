"""Text into tokens: identifiers, numbers, strings and signs, each with the offset it starts at."""

from typing import NamedTuple

from kubewire.cel.errors import CompileError
from kubewire.cel.literals import read_text, text_problem
from kubewire.cel.names import KEYWORDS
from kubewire.cel.values import MAX_INT, MAX_UINT, UInt, Value

MAX_LENGTH = 100_000

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_DIGITS = frozenset("0123456789")
_HEX_DIGITS = _DIGITS | frozenset("abcdefABCDEF")
_WORD = _LETTERS | _DIGITS
_SPACE = frozenset(" \t\n\r\f")
_LONG_SIGNS = frozenset({"==", "!=", "<=", ">=", "&&", "||"})
_SIGNS = frozenset("<>!?:,.()[]{}+-*/%")
_QUOTES = frozenset("'\"")


class Token(NamedTuple):
    """One word of an expression; `kind` is `identifier`, `literal`, `end`, or the keyword or sign itself."""

    kind: str
    value: Value
    offset: int


def compile_error(message: str, source: str, offset: int) -> CompileError:
    """Return an error that points at an offset of the source."""
    line = source.count("\n", 0, offset) + 1
    column = offset - (source.rfind("\n", 0, offset) + 1) + 1
    return CompileError(message, line, column, source)


def tokens_of(source: str) -> list[Token]:
    """Return all tokens, the last one of kind `end`; raises CompileError where no token can be read."""
    if len(source) > MAX_LENGTH:
        raise CompileError(
            f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_LENGTH}"
        )
    return _Lexer(source).run()


class _Lexer:
    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.tokens: list[Token] = []

    def run(self) -> list[Token]:
        source, length = self.source, len(self.source)
        while self.at < length:
            character = source[self.at]
            if character in _SPACE:
                self.at += 1
            elif source.startswith("//", self.at):
                end = source.find("\n", self.at)
                self.at = length if end < 0 else end
            elif character in _LETTERS:
                self._word()
            elif character in _DIGITS or (character == "." and source[self.at + 1 : self.at + 2] in _DIGITS):
                self._number()
            elif character in _QUOTES:
                self._text(self.at, "")
            else:
                self._sign()
        self.tokens.append(Token("end", None, length))
        return self.tokens

    def _word(self) -> None:
        source, start = self.source, self.at
        end = start + 1
        while end < len(source) and source[end] in _WORD:
            end += 1
        word = source[start:end]
        if source[end : end + 1] in _QUOTES and word.lower() in ("r", "b", "br"):
            self._text(end, word.lower())
            return
        self.tokens.append(Token(word if word in KEYWORDS else "identifier", word, start))
        self.at = end

    def _sign(self) -> None:
        sign = self.source[self.at : self.at + 2]
        if sign not in _LONG_SIGNS:
            sign = sign[0]
            if sign not in _SIGNS:
                raise self._error(f"Syntax error: token recognition error at: '{sign}'")
        self.tokens.append(Token(sign, sign, self.at))
        self.at += len(sign)

    def _digits(self, at: int, allowed: frozenset[str] = _DIGITS) -> int:
        while at < len(self.source) and self.source[at] in allowed:
            at += 1
        return at

    def _number(self) -> None:
        source, start = self.source, self.at
        if source[start : start + 2] in ("0x", "0X") and source[start + 2 : start + 3] in _HEX_DIGITS:
            end = self._digits(start + 2, _HEX_DIGITS)
            self._integer(source[start + 2 : end], 16, end)
            return
        end = self._digits(start)
        whole = True
        if source[end : end + 1] == "." and source[end + 1 : end + 2] in _DIGITS:
            end, whole = self._digits(end + 1), False
        if source[end : end + 1] in ("e", "E"):
            sign = 1 if source[end + 1 : end + 2] in ("+", "-") else 0
            if source[end + 1 + sign : end + 2 + sign] in _DIGITS:
                end, whole = self._digits(end + 1 + sign), False
        if whole:
            self._integer(source[start:end], 10, end)
            return
        number = float(source[start:end])
        if number == float("inf"):
            raise self._error("invalid double literal")
        self._literal(number, end)

    def _integer(self, digits: str, base: int, end: int) -> None:
        unsigned = self.source[end : end + 1] in ("u", "U")
        # Python refuses to read very long digit strings; anything above twenty digits is out of range anyway.
        significant = digits.lstrip("0") or "0"
        number = int(significant, base) if len(significant) <= 20 else MAX_UINT + 1
        if unsigned:
            if number > MAX_UINT:
                raise self._error("invalid uint literal")
            self._literal(UInt(number), end + 1)
            return
        # One more than the largest is allowed here: the parser needs it after a minus sign.
        if number > MAX_INT + 1:
            raise self._error("invalid int literal")
        self._literal(number, end)

    def _text(self, quote_at: int, prefix: str) -> None:
        """Read a string or bytes literal whose opening quote stands at an offset."""
        source, raw = self.source, "r" in prefix
        quote = source[quote_at]
        triple = source.startswith(quote * 3, quote_at)
        fence = quote * 3 if triple else quote
        begin = at = quote_at + len(fence)
        while not source.startswith(fence, at):
            if at >= len(source) or (not triple and source[at] in "\r\n"):
                raise self._error(f"Syntax error: token recognition error at: '{source[self.at : at][:20]}'")
            at += 2 if source[at] == "\\" and not raw else 1
        body = source[begin:at]
        if problem := text_problem(body, raw=raw, as_bytes="b" in prefix):
            raise self._error(problem)
        self._literal(read_text(body, raw=raw, as_bytes="b" in prefix), at + len(fence))

    def _literal(self, value: Value, end: int) -> None:
        self.tokens.append(Token("literal", value, self.at))
        self.at = end

    def _error(self, message: str) -> CompileError:
        return compile_error(message, self.source, self.at)
