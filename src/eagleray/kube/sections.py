"""Reading a configuration file field by field; whatever is wrong is named with its file and path."""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from eagleray.kube.access import ConfigError, FileSource, Fixed, Source
from kubewire.paths import FieldPath, show
from kubewire.sources import Clock
from kubewire.yamltext import YamlError, decode, load


class Section:
    """A mapping inside a file."""

    __slots__ = ("_fields", "_path", "file")

    def __init__(self, file: Path, path: FieldPath, fields: Mapping[str, object]) -> None:
        self.file = file
        self._path = path
        self._fields = fields

    @classmethod
    def read(cls, file: Path) -> "Section":
        """Return all of a file; one that is empty has no fields."""
        try:
            value = load(decode(file.read_bytes()))
        except OSError as bad:
            raise ConfigError(f"{file}: {bad.strerror or bad}") from bad
        except YamlError as bad:
            raise ConfigError(f"{file}: {bad}") from bad
        if value is not None and not isinstance(value, Mapping):
            raise ConfigError(f"{file}: this is no kubeconfig but {_what(value)}")
        return cls(file, (), value or {})

    def wrong(self, field: str, problem: str) -> ConfigError:
        """Return the error that says what is wrong with a field."""
        return ConfigError(f"{self.file}: {show((*self._path, field))}: {problem}")

    def has(self, field: str) -> bool:
        return self._fields.get(field) not in (None, "")

    def text(self, field: str, default: str = "") -> str:
        value = self._fields.get(field)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.wrong(field, f"must be text, not {_what(value)}; quote it")
        return value or default

    def needed(self, field: str) -> str:
        """Return a text that must not be missing."""
        if not self.has(field):
            raise self.wrong(field, "is missing")
        return self.text(field)

    def flag(self, field: str) -> bool:
        value = self._fields.get(field)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(field, f"must be true or false, not {_what(value)}")
        return bool(value)

    def texts(self, field: str) -> tuple[str, ...]:
        values = self._list(field)
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(field, "must be a list of texts")
        return tuple(map(str, values))

    def section(self, field: str) -> "Section":
        """Return a mapping inside; one that is missing has no fields."""
        value = self._fields.get(field)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(field, f"must be a mapping, not {_what(value)}")
        return Section(self.file, (*self._path, field), value or {})

    def sections(self, field: str) -> list["Section"]:
        found = []
        for number, value in enumerate(self._list(field)):
            path = (*self._path, field, number)
            if not isinstance(value, Mapping):
                raise ConfigError(f"{self.file}: {show(path)}: must be a mapping, not {_what(value)}")
            found.append(Section(self.file, path, value))
        return found

    def names(self) -> list[str]:
        return list(self._fields)

    def value(self, field: str) -> object:
        """Return a field as it is, whatever it is."""
        return self._fields.get(field)

    def path(self, field: str) -> Path:
        """Return the place of a file; it is relative to the directory of this one."""
        return self.file.parent / Path(self.needed(field)).expanduser()

    def source(self, field: str, clock: Clock) -> Source | None:
        """Return what `<field>-data` holds in base64 or else the file that `<field>` names; None without both."""
        inline = f"{field}-data"
        if self.has(inline):
            try:
                return Fixed(b64decode("".join(self.text(inline).split()), validate=True))
            except (binascii.Error, ValueError) as bad:
                raise self.wrong(inline, f"is not base64: {bad}") from None
        if not self.has(field):
            return None
        path = self.path(field)
        if not path.is_file():
            raise self.wrong(field, f"there is no file {path}")
        return FileSource(path, clock)

    def _list(self, field: str) -> list[object]:
        value = self._fields.get(field)
        if value is not None and not isinstance(value, list):
            raise self.wrong(field, f"must be a list, not {_what(value)}")
        return value or []


def _what(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "a truth value"
    return "text" if isinstance(value, str) else "a number"
