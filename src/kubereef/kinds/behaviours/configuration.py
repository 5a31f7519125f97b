"""ConfigMaps and Secrets: data under keys that can be files. Both can be frozen for good."""

import base64
import json

from kubereef.kinds.behaviours.checks import listed, unchanged
from kubereef.kinds.behaviours.podspec_validation.checks import Problems, config_key, named
from kubereef.kinds.columns import AGE, NAME, count, text
from kubereef.kinds.resource import Behaviour, Object
from kubewire import fielderrors
from kubewire.badjson import complaint
from kubewire.paths import Key

_MAX_SIZE = 1024 * 1024
_OPAQUE = "Opaque"
_ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the name of a type
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_FROZEN = "field is immutable when `immutable` is set"
# What a Secret of a type must hold; what stands under the keys of the second kind must be JSON.
_REQUIRED_KEYS = {"kubernetes.io/tls": ("tls.crt", "tls.key")}
_JSON_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
# Of these at least one must be there.
_BASIC_AUTH = ("username", "password")
_SSH_KEY = "ssh-privatekey"


def _config_map(config: Object) -> Problems:
    data, binary = config.get("data") or {}, config.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        yield from named(("data", Key(key)), key, config_key)
        if key in binary:
            yield fielderrors.invalid(("data", Key(key)), key, "duplicate of key present in binaryData")
        size += len(value.encode())
    for key, value in binary.items():
        yield from named(("binaryData", Key(key)), key, config_key)
        size += _decoded_size(value)
    if size > _MAX_SIZE:
        yield fielderrors.too_long((), _MAX_SIZE, "[]")


def _frozen(new: Object, old: Object, fields: tuple[str, ...]) -> Problems:
    """Yield what changed although it was frozen."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield fielderrors.forbidden(("immutable",), _FROZEN)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield fielderrors.forbidden((field,), _FROZEN)


def _secret_defaults(secret: Object) -> None:
    if not secret.get("type"):
        secret["type"] = _OPAQUE
    # What is given as plain text is written over what is given encoded, and is never read back.
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def _secret_keeps_type(new: Object, old: Object) -> None:
    # An old writer may not know that there are types.
    if not new.get("type"):
        new["type"] = old.get("type", _OPAQUE)


def _secret(secret: Object) -> Problems:
    data = secret.get("data") or {}
    for key in data:
        yield from named(("data", Key(key)), key, config_key)
    if sum(map(_decoded_size, data.values())) > _MAX_SIZE:
        yield fielderrors.too_long(("data",), _MAX_SIZE)
    kind = secret.get("type", _OPAQUE)
    if kind == _ACCOUNT_TOKEN and not (secret["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
        yield fielderrors.required(("metadata", "annotations", Key(_ACCOUNT_NAME)))
    if kind in _JSON_KEYS:
        yield from _json_file(data, _JSON_KEYS[kind])
    if kind == "kubernetes.io/basic-auth" and not any(key in data for key in _BASIC_AUTH):
        for key in _BASIC_AUTH:
            yield fielderrors.required(("data", Key(key)))
    if kind == "kubernetes.io/ssh-auth" and not data.get(_SSH_KEY):
        yield fielderrors.required(("data", Key(_SSH_KEY)))
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield fielderrors.required(("data", Key(key)))


def _json_file(data: Object, key: str) -> Problems:
    at = ("data", Key(key))
    if key not in data:
        yield fielderrors.required(at)
        return
    content = base64.b64decode(data[key]).decode(errors="replace")
    try:
        json.loads(content)
    except (ValueError, RecursionError) as bad:
        # The value is a secret; messages must not show it.
        because = complaint(content, bad) if isinstance(bad, ValueError) else "exceeded max depth"
        yield fielderrors.invalid(at, "<secret contents redacted>", because)


def _secret_update(new: Object, old: Object) -> Problems:
    yield from unchanged(("type",), new.get("type", _OPAQUE), old.get("type", _OPAQUE))
    yield from _frozen(new, old, ("data",))


def _decoded_size(text_of: str) -> int:
    """Return how many bytes base64 stands for."""
    return len(text_of) * 3 // 4 - text_of[-2:].count("=")


CONFIG_MAPS = Behaviour(
    validate=listed(_config_map),
    validate_update=lambda new, old: list(_frozen(new, old, ("data", "binaryData"))),
    columns=(NAME, count("Data", "data", "binaryData"), AGE),
)
SECRETS = Behaviour(
    defaults=_secret_defaults,
    prepare_update=_secret_keeps_type,
    validate=listed(_secret),
    validate_update=listed(_secret_update),
    selectable={"type": lambda secret: secret.get("type", "")},
    columns=(NAME, text("Type", "type"), count("Data", "data"), AGE),
)
