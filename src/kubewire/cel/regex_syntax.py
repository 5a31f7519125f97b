"""Regular expressions as RE2 writes them, into a tree; what RE2 refuses (lookaround, backreferences) is refused."""

from typing import NamedTuple

from kubewire.cel.errors import EvaluationError

MAX_PATTERN = 10_000
MAX_REPEAT = 1000
MAX_NESTING = 50

Range = tuple[int, int]
_LAST = 0x10FFFF


class Characters(NamedTuple):
    """Any one character out of these ranges."""

    ranges: tuple[Range, ...]


class Assertion(NamedTuple):
    """A place between characters: `begin`, `end`, `line begin`, `line end`, `boundary` or `no boundary`."""

    kind: str


class Sequence(NamedTuple):
    """One part after the other."""

    parts: "tuple[Tree, ...]"


class Choice(NamedTuple):
    """One of the parts, the earlier ones first."""

    parts: "tuple[Tree, ...]"


class Repeat(NamedTuple):
    """A part several times; without an upper end when `most` is None."""

    part: "Tree"
    least: int
    most: int | None
    greedy: bool


Tree = Characters | Assertion | Sequence | Choice | Repeat

EMPTY = Sequence(())
_DIGIT: tuple[Range, ...] = ((48, 57),)
_WORD: tuple[Range, ...] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: tuple[Range, ...] = ((9, 10), (12, 13), (32, 32))
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_NAMED_CLASSES: dict[str, tuple[Range, ...]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)), "alpha": ((65, 90), (97, 122)), "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)), "cntrl": ((0, 31), (127, 127)), "digit": _DIGIT, "graph": ((33, 126),),
    "lower": ((97, 122),), "print": ((32, 126),), "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)), "upper": ((65, 90),), "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}  # fmt: skip
_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_PLACES = {"A": "begin", "z": "end", "b": "boundary", "B": "no boundary"}
_PUNCTUATION = frozenset("\\.+*?()|[]{}^$-/!\"#%&',:;<=>@_`~ ")


class RegexError(EvaluationError):
    """A pattern that RE2 does not read."""

    def __init__(self, reason: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {reason}: `{part}`")


class _Flags(NamedTuple):
    fold: bool = False
    multiline: bool = False
    dot_all: bool = False
    swap_greed: bool = False


_FLAG_NAMES = {"i": "fold", "m": "multiline", "s": "dot_all", "U": "swap_greed"}


def parse_regex(pattern: str) -> Tree:
    """Return the tree of a pattern; raises RegexError."""
    if len(pattern) > MAX_PATTERN:
        raise RegexError("expression too large", pattern[:20] + "…")
    parser = _RegexParser(pattern)
    tree = parser.choice()
    if parser.at < len(pattern):
        raise RegexError("unexpected )", pattern)
    return tree


def inverted(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return all characters that are in none of the ranges."""
    result: list[Range] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    if start <= _LAST:
        result.append((start, _LAST))
    return tuple(result)


def _folded(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """Return the ranges with both cases of every letter in them."""
    result = list(ranges)
    for low, high in ranges:
        if high - low > 2000:  # such a range holds both cases of its letters already, but for ASCII's
            low, high = max(low, 65), min(high, 122)  # noqa: PLW2901 - narrowed for this pass
        for code in range(low, high + 1):
            letter = chr(code)
            result += (
                (ord(other), ord(other)) for other in (letter.lower(), letter.upper()) if len(other) == 1
            )
    return tuple(result)


class _RegexParser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = _Flags()
        self.depth = 0

    def _peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    def _accept(self, text: str) -> bool:
        if self.pattern.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def choice(self) -> Tree:
        parts = [self._sequence()]
        while self._accept("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._peek() not in ("", "|", ")"):
            start = self.at
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part, start))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, part: Tree, start: int) -> Tree:
        """Read the repetitions behind a part; two of them in a row are an error."""
        bounds = self._bounds()
        if bounds is None:
            return part
        greedy = not self._accept("?")
        if self._bounds() is not None:
            raise RegexError("invalid nested repetition operator", self.pattern[start : self.at])
        return Repeat(part, *bounds, greedy is not self.flags.swap_greed)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._accept(sign):
                return bounds
        return self._counted() if self._peek() == "{" else None

    def _counted(self) -> tuple[int, int | None] | None:
        """Read `{n}`, `{n,}` or `{n,m}`; a brace that is none of these stands for itself."""
        end = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(end, 0)].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None
        least, most = int(low[:9]), int(high[:9]) if high else None
        if not comma:
            most = least
        if least > MAX_REPEAT or (most is not None and (most > MAX_REPEAT or most < least)):
            raise RegexError("invalid repeat count", self.pattern[self.at : end + 1])
        self.at = end + 1
        return least, most

    def _atom(self) -> Tree | None:
        character = self._peek()
        if character == "(":
            return self._group()
        if character == "[":
            return Characters(self._class())
        if character == "\\":
            return self._escape()
        if character in ("*", "+", "?"):
            raise RegexError("missing argument to repetition operator", character)
        self.at += 1
        if character == ".":
            return Characters(((0, _LAST),) if self.flags.dot_all else ((0, 9), (11, _LAST)))
        if character == "^":
            return Assertion("line begin" if self.flags.multiline else "begin")
        if character == "$":
            return Assertion("line end" if self.flags.multiline else "end")
        return self._character(ord(character))

    def _character(self, code: int) -> Characters:
        return Characters(self._cased(((code, code),)))

    def _cased(self, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        return _folded(ranges) if self.flags.fold else ranges

    def _group(self) -> Tree | None:
        start, outer = self.at, self.flags
        self.at += 1
        if self._accept("?"):
            named = self._accept("P<") or (
                self._peek() == "<" and self._peek(2) not in ("<=", "<!") and self._accept("<")
            )
            if named:
                self._group_name(start)
            elif not self._flag_letters(start):
                return None  # the flags hold for the rest of the group around
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise RegexError("expression nests too deeply", self.pattern[:20])
        tree = self.choice()
        self.depth -= 1
        if not self._accept(")"):
            raise RegexError("missing closing )", self.pattern)
        self.flags = outer
        return tree

    def _group_name(self, start: int) -> None:
        end = self.pattern.find(">", self.at)
        name = self.pattern[self.at : max(end, self.at)]
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise RegexError("invalid named capture", self.pattern[start : end + 1 if end > 0 else None])
        self.at = end + 1

    def _flag_letters(self, start: int) -> bool:
        """Read `i`, `m-s` and the like; return whether a group follows, false when the flags stand alone."""
        value = True
        changed: dict[str, bool] = {}
        while True:
            letter = self._peek()
            self.at += 1
            if letter in _FLAG_NAMES:
                changed[_FLAG_NAMES[letter]] = value
            elif letter == "-" and value:
                value = False
            elif letter in (":", ")") and letter:
                self.flags = self.flags._replace(**changed)
                return letter == ":"
            else:
                raise RegexError("invalid or unsupported Perl syntax", self.pattern[start : self.at])

    def _escape(self) -> Tree:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in _PLACES and letter:
            self.at += 2
            return Assertion(_PLACES[letter])
        if letter == "Q":
            end = self.pattern.find("\\E", self.at)
            literal = self.pattern[self.at + 2 : end if end >= 0 else None]
            self.at = len(self.pattern) if end < 0 else end + 2
            return Sequence(tuple(self._character(ord(each)) for each in literal))
        if ranges := self._class_escape():
            return Characters(self._cased(ranges))
        return self._character(self._code_escape())

    def _class_escape(self) -> tuple[Range, ...] | None:
        """Read `\\d`, `\\W`, `\\pL` and the like, or nothing."""
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter.lower() in _CLASSES and letter:
            self.at += 2
            ranges = _CLASSES[letter.lower()]
            return inverted(ranges) if letter.isupper() else ranges
        if letter not in ("p", "P") or not letter:
            return None
        start = self.at
        self.at += 2
        if self._accept("{"):
            end = self.pattern.find("}", self.at)
            name = self.pattern[self.at : max(end, self.at)]
            self.at = max(end, self.at) + 1
        else:
            name = self._peek()
            self.at += 1
        from kubewire.cel.regex_unicode import category

        members = category(name.removeprefix("^"))
        if members is None:
            raise RegexError("invalid character class range", self.pattern[start : self.at])
        return inverted(members) if (letter == "P") is not name.startswith("^") else members

    def _code_escape(self) -> int:
        """Read an escape for one character and return its code."""
        start = self.at
        letter = self.pattern[self.at + 1 : self.at + 2]
        self.at += 2
        if not letter:
            raise RegexError("trailing backslash at end of expression", "")
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x":
            return self._hexadecimal(start)
        if letter == "0" or (letter in "1234567" and self._peek() in _OCTAL):
            digits = letter
            while len(digits) < 3 and self._peek() in _OCTAL and self._peek():
                digits += self._peek()
                self.at += 1
            return int(digits, 8)
        if letter in _PUNCTUATION:
            return ord(letter)
        raise RegexError("invalid escape sequence", self.pattern[start : self.at])

    def _hexadecimal(self, start: int) -> int:
        if self._accept("{"):
            end = self.pattern.find("}", self.at)
            digits = self.pattern[self.at : max(end, self.at)]
            self.at = max(end, self.at) + 1
        else:
            digits = self._peek(2)
            self.at += 2
            if len(digits) != 2:
                digits = ""
        if not 1 <= len(digits) <= 8 or not _HEXADECIMAL.issuperset(digits) or int(digits, 16) > _LAST:
            raise RegexError("invalid escape sequence", self.pattern[start : self.at])
        return int(digits, 16)

    def _class(self) -> tuple[Range, ...]:
        """Read `[...]` and return the characters it stands for."""
        start = self.at
        self.at += 1
        negated = self._accept("^")
        ranges: list[Range] = []
        first = True
        while first or not self._accept("]"):
            if self.at >= len(self.pattern):
                raise RegexError("missing closing ]", self.pattern[start:])
            first = False
            ranges += self._class_item(start)
        cased = self._cased(tuple(ranges))
        return inverted(cased) if negated else cased

    def _class_item(self, start: int) -> tuple[Range, ...]:
        if self._peek(2) == "[:":
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at + 2 : max(end, 0)]
            if end > 0 and name.removeprefix("^") in _NAMED_CLASSES:
                self.at = end + 2
                ranges = _NAMED_CLASSES[name.removeprefix("^")]
                return inverted(ranges) if name.startswith("^") else ranges
            if end > 0:
                raise RegexError("invalid character class range", self.pattern[self.at : end + 2])
        if self._peek() == "\\" and (ranges_of_escape := self._class_escape()):
            return ranges_of_escape
        low = high = self._class_character()
        if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
            self.at += 1
            high = self._class_character()
        if high < low:
            raise RegexError("invalid character class range", self.pattern[start : self.at])
        return ((low, high),)

    def _class_character(self) -> int:
        if self._peek() == "\\":
            return self._code_escape()
        if not self._peek():
            raise RegexError("missing closing ]", self.pattern)
        self.at += 1
        return ord(self.pattern[self.at - 1])


_OCTAL = frozenset("01234567")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
