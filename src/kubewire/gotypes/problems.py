"""Why an object cannot be read."""


class DecodeError(ValueError):
    """A value that does not fit the Go type; the message is the one that Go's decoder gives.

    `conversion` is what Kubernetes says instead when it fills in the type from a map, as it does after a strategic
    merge patch.
    """

    def __init__(self, message: str, conversion: str = "") -> None:
        super().__init__(message)
        self.conversion = conversion or message


class Mismatch(Exception):
    """A JSON value that Go's type cannot hold. The structs around it tell where it stands as it passes them.

    The shape is the kind of the type, such as `struct` or `int32`, and nothing for types that decode themselves.
    """

    def __init__(self, value: object, go_type: str, shape: str = "", *, shows_number: bool = False) -> None:
        super().__init__(value, go_type)
        self._value = value
        self._go_type = go_type
        self._shape = shape
        self._shows_number = shows_number
        self._struct = ""
        self._fields: list[str] = []

    def within(self, struct: str, field: str) -> None:
        """Note the struct and its field that the value is in; Go names the innermost struct."""
        self._struct = self._struct or struct
        self._fields.append(field)

    def error(self) -> DecodeError:
        """Return the error in Go's words."""
        return DecodeError(self._message(), self._conversion())

    def _message(self) -> str:
        path = ".".join(reversed(self._fields))
        target = f"Go struct field {self._struct}.{path}" if self._struct else "Go value"
        given = kind_of(self._value)
        if given == "number" and self._shows_number:
            given = f"number {self._value}"
        return f"json: cannot unmarshal {given} into {target} of type {self._go_type}"

    def _conversion(self) -> str:
        source = _GO_KINDS.get(type(self._value), "interface")
        if not self._shape:
            return f"json: cannot unmarshal {kind_of(self._value)} into Go value of type {self._go_type}"
        if self._shape == "struct":
            return f"cannot restore struct from: {source}"
        if self._shape in ("map", "slice"):
            return f"cannot restore {self._shape} from {source}"
        if source in ("int64", "float64") and self._shape in ("int32", "int64", "float64"):
            return f"cannot convert {source} to {self._go_type}"
        if source == "int64" and self._shape == "string":
            return f"cannot convert int64 to {self._go_type}"
        return f"unrecognized type: {self._shape}"


_GO_KINDS: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    dict: "map",
    list: "slice",
}


def kind_of(value: object) -> str:
    """Return what Go calls the kind of a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"
