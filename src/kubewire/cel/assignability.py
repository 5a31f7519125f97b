"""Which types fit where, and what the unknown types of a signature turn out to be."""

from kubewire.cel.types import DURATION, DYN, NULL, TIMESTAMP, CelType, ObjectType, TypeParameter


class Inference:
    """What is known so far about the type parameters of one expression."""

    def __init__(self) -> None:
        self._found: dict[str, CelType] = {}
        self._count = 0

    def fresh(self) -> TypeParameter:
        """Return a type parameter of which nothing is known."""
        self._count += 1
        return TypeParameter(f"_var{self._count - 1}")

    def instance(self, types: tuple[CelType, ...]) -> tuple[CelType, ...]:
        """Return the types of a signature with fresh parameters in place of its own."""
        renamed: dict[str, CelType] = {}
        return tuple(self._renamed(each, renamed) for each in types)

    def _renamed(self, each: CelType, renamed: dict[str, CelType]) -> CelType:
        if isinstance(each, TypeParameter):
            if each.name not in renamed:
                renamed[each.name] = self.fresh()
            return renamed[each.name]
        if not each.parameters:
            return each
        return each.rebuilt(tuple(self._renamed(inner, renamed) for inner in each.parameters))

    def accepts(self, wanted: tuple[CelType, ...], given: tuple[CelType, ...]) -> bool:
        """Tell whether given types fit wanted ones; what that teaches is kept only if all of them do."""
        if len(wanted) != len(given):
            return False
        before = dict(self._found)
        if all(self._fits(*pair) for pair in zip(wanted, given, strict=True)):
            return True
        self._found = before
        return False

    def known(self, each: CelType, *, final: bool = False) -> CelType:
        """Return a type with what is known put in; with `final`, what is still unknown becomes dyn."""
        if isinstance(each, TypeParameter):
            found = self._found.get(each.name)
            if found is not None:
                return self.known(found, final=final)
            return DYN if final else each
        if not each.parameters:
            return each
        return each.rebuilt(tuple(self.known(inner, final=final) for inner in each.parameters))

    def joined(self, first: CelType, second: CelType) -> CelType | None:
        """Return the more general of two types that fit each other, or None."""
        return most_general(first, second) if self.accepts((first,), (second,)) else None

    def _fits(self, wanted: CelType, given: CelType) -> bool:
        if wanted == given:
            return True
        if isinstance(given, TypeParameter):
            fits, was_known = self._bind(given, wanted)
            if fits or was_known:
                return fits
        if isinstance(wanted, TypeParameter):
            return self._bind(wanted, given)[0]
        if DYN in (wanted, given):
            return True
        if NULL in (wanted, given):
            return _nullable(given if wanted == NULL else wanted)
        if wanted.name != given.name:
            return False
        if wanted.name == "type":  # any two types can be compared
            return True
        return len(wanted.parameters) == len(given.parameters) and all(
            self._fits(*pair) for pair in zip(wanted.parameters, given.parameters, strict=True)
        )

    def _bind(self, parameter: TypeParameter, other: CelType) -> tuple[bool, bool]:
        """Tell whether a parameter can be this type, and whether something was known of it before."""
        known = self._found.get(parameter.name)
        if known is not None:
            if known == other:
                return True, True
            if not self._fits(known, other):
                return False, True
            general = most_general(known, other)
            if not self._mentions(general, parameter):
                self._found[parameter.name] = general
            return True, True
        if self._mentions(other, parameter):
            return False, False
        self._found[parameter.name] = other
        return True, False

    def _mentions(self, each: CelType, parameter: TypeParameter) -> bool:
        if isinstance(each, TypeParameter):
            if each.name == parameter.name:
                return True
            known = self._found.get(each.name)
            return known is not None and self._mentions(known, parameter)
        return any(self._mentions(inner, parameter) for inner in each.parameters)


def most_general(first: CelType, second: CelType) -> CelType:
    """Return the first type unless the second says less."""
    return first if _says_no_more(first, second) else second


def _says_no_more(first: CelType, second: CelType) -> bool:
    if first == DYN or isinstance(first, TypeParameter):
        return True
    if second == DYN or isinstance(second, TypeParameter):
        return False
    if first.name != second.name or len(first.parameters) != len(second.parameters):
        return first.name == second.name
    return all(_says_no_more(*pair) for pair in zip(first.parameters, second.parameters, strict=True))


def _nullable(each: CelType) -> bool:
    return each in (NULL, TIMESTAMP, DURATION) or isinstance(each, ObjectType)
