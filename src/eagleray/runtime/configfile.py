"""The configuration file: `apiVersion: config.ray.io/v1alpha1`, `kind: Configuration`, in YAML or JSON."""

from collections.abc import Mapping
from pathlib import Path

from eagleray.runtime.flags import did_you_mean
from eagleray.runtime.optionkinds import Kind, OptionError, Wrong, shown
from kubewire.yamltext import MAX_BYTES, YamlError, decode, load

API_VERSION = "config.ray.io/v1alpha1"
KIND = "Configuration"

_TYPE = {"apiVersion": API_VERSION, "kind": KIND}


def read_config(path: str, kinds: Mapping[str, Kind]) -> tuple[dict[str, object], list[str]]:
    """Return the values of the fields that a file gives, and a sentence about each field that is unknown."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        content = load(decode(raw))
    except OSError as refusal:
        raise OptionError(f"--config: {path}: {refusal.strerror or refusal}") from None
    except YamlError as bad:
        raise OptionError(f"--config: {path}: {bad}") from None
    if not isinstance(content, dict):
        raise OptionError(
            f"--config: {path}: {shown(content)} is not a {KIND}; it has to begin with apiVersion"
        )
    for field, wanted in _TYPE.items():
        if content.get(field) != wanted:
            found = shown(content[field]) if field in content else "missing"
            raise OptionError(f"--config: {path}: {field}: is {found}; write {wanted}")
    return _fields(path, content, kinds)


def _fields(
    path: str, content: Mapping[str, object], kinds: Mapping[str, Kind]
) -> tuple[dict[str, object], list[str]]:
    values: dict[str, object] = {}
    notices: list[str] = []
    for field, value in content.items():
        if field in _TYPE or value is None:
            continue
        if field not in kinds:
            notices.append(f"{path}: unknown field {field[:64]} is ignored{did_you_mean(field, kinds)}")
            continue
        try:
            values[field] = kinds[field].from_json(value)
        except Wrong as wrong:
            raise OptionError(f"--config: {path}: {field}{wrong.place}: {wrong}") from None
    return values, notices
