"""The files of volumes made from objects: ConfigMaps, Secrets, the Pod's own fields. Pure functions."""

from collections.abc import Mapping
from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.environment import PodFacts, field_value, resource_value, secret_bytes
from kubereef.node.kubelet.problems import ConfigProblem

DEFAULT_MODE = 0o644


class File(NamedTuple):
    """A file of a volume."""

    data: bytes
    mode: int = DEFAULT_MODE
    owner: int | None = None


Files = dict[str, File]  # by path inside the volume


class NotThere(Exception):
    """An object, or a key of one, that a volume needs does not exist; the message is Kubernetes'."""


def config_map_files(name: str, source: Object, obj: Object | None, mode: int) -> Files:
    """Return the files of a `configMap` volume or projection."""
    content: dict[str, bytes] = {}
    if obj is not None:
        content = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
        content |= {key: secret_bytes(value) for key, value in (obj.get("binaryData") or {}).items()}
    return _chosen("configmap", "config", name, source, None if obj is None else content, mode)


def secret_files(name: str, source: Object, obj: Object | None, mode: int) -> Files:
    """Return the files of a `secret` volume or projection."""
    content = (
        None if obj is None else {key: secret_bytes(value) for key, value in (obj.get("data") or {}).items()}
    )
    return _chosen("secret", "secret", name, source, content, mode)


def downward_files(pod: Object, source: Object, facts: PodFacts, mode: int) -> Files:
    """Return the files of a `downwardAPI` volume or projection."""
    files: Files = {}
    for item in source.get("items") or ():
        if reference := item.get("fieldRef"):
            text = field_value(pod, reference["fieldPath"], facts)
        elif reference := item.get("resourceFieldRef"):
            text = resource_value(pod, reference, None, facts)
        else:
            raise ConfigProblem(f"downwardAPI item {item['path']} names neither a field nor a resource")
        files[item["path"]] = File(text.encode(), _mode(item, mode))
    return files


def _chosen(
    kind: str, word: str, name: str, source: Object, content: Mapping[str, bytes] | None, mode: int
) -> Files:
    is_optional = bool(source.get("optional"))
    if content is None:
        if is_optional:
            return {}
        raise NotThere(f'{kind} "{name}" not found')
    items: list[Object] | None = source.get("items")
    if items is None:
        return {key: File(value, mode) for key, value in content.items()}
    files: Files = {}
    for item in items:
        if item["key"] in content:
            files[item["path"]] = File(content[item["key"]], _mode(item, mode))
        elif not is_optional:
            raise NotThere(f"references non-existent {word} key: {item['key']}")
    return files


def _mode(item: Object, default: int) -> int:
    given = item.get("mode")
    return default if given is None else int(given)
