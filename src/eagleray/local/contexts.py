"""Entries of ours in a user's kubeconfig: a cluster, a user and a context of one name, put in and taken out.

    add(file, Context("eagleray", owner="/home/me/.local/share/eagleray", server=…, authority=…, token=…), user)
    remove(file, "eagleray", owner="/home/me/.local/share/eagleray", user)

Everything else of the file stays, except for comments. The entries carry a mark that names their owner, so that those
of anybody else are neither written over nor removed.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from eagleray.local.users import User, give, make_directory
from kubewire.yamltext import YamlError, decode, load

_MARK: Final = "eagleray.io/local"
_LISTS: Final = ("clusters", "users", "contexts")
# What no reader of YAML takes for anything but text; the rest is quoted.
_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./:@+=-]*")
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})

Fields = dict[str, Any]


class ContextError(Exception):
    """The kubeconfig was left as it is; the message says why, and what helps."""


class Context(NamedTuple):
    """A way into a cluster. `owner` tells ours from others of the same name: the directory of the cluster."""

    name: str
    owner: str
    server: str
    authority: str
    token: str


def kubeconfig_file(environ: Mapping[str, str], user: User) -> Path:
    """Return the file that kubectl would write: the first of `$KUBECONFIG`, else the one in the user's home."""
    first = next((path for path in environ.get("KUBECONFIG", "").split(":") if path), "")
    return Path(first).absolute() if first else user.home / ".kube" / "config"


def add(file: Path, context: Context, user: User, *, make_current: bool = True) -> None:
    """Put entries into a file, which is made if need be; those of the same owner are replaced."""
    with _edited(file, user) as config:
        entries = {kind: _entries(config, kind, file) for kind in _LISTS}
        for kind, found in entries.items():
            if any(_named(one, context.name) and _owner(one, kind) != context.owner for one in found):
                raise ContextError(
                    f"{file}: {kind} has an entry {context.name!r} that is not ours; "
                    "give the cluster another --name, or leave the file alone with --no-context"
                )
        before = str(config.get("current-context") or "")
        mark: Fields = {"owner": context.owner}
        if make_current and before and before != context.name:
            mark["previous-context"] = before
        elif earlier := _mark_of(entries["contexts"], context.name).get("previous-context"):
            mark["previous-context"] = earlier
        made = {
            "clusters": {
                "server": context.server,
                "certificate-authority-data": context.authority,
            },
            # The token is valid as long as the cluster is there; a certificate would expire in this copy.
            "users": {"token": context.token},
            "contexts": {"cluster": context.name, "user": context.name},
        }
        for kind, fields in made.items():
            marked = {**fields, "extensions": [{"name": _MARK, "extension": mark}]}
            kept = [one for one in entries[kind] if not _named(one, context.name)]
            config[kind] = [*kept, {"name": context.name, kind[:-1]: marked}]
        if make_current:
            config["current-context"] = context.name


def remove(file: Path, name: str, owner: str, user: User) -> bool:
    """Take the entries of an owner out of a file; returns whether there were any.

    If the context is the current one, the one before it is made current again, if it is still there.
    """
    if not file.exists():
        return False
    with _edited(file, user) as config:
        found = False
        previous = ""
        for kind in _LISTS:
            entries = _entries(config, kind, file)
            ours = [one for one in entries if _named(one, name) and _owner(one, kind) == owner]
            if not ours:
                continue
            found = True
            previous = previous or str(_mark(ours[0], kind).get("previous-context") or "")
            config[kind] = [one for one in entries if one not in ours]
        if found and config.get("current-context") == name:
            known = [one.get("name") for one in _entries(config, "contexts", file)]
            config["current-context"] = previous if previous in known else ""
    return found


# --- the file


@contextmanager
def _edited(file: Path, user: User) -> Iterator[Fields]:
    """Give a file's content to be changed; it is written back in one step, or removed if nothing is left of it."""
    file = file.resolve()  # a link stays a link
    try:
        make_directory(file.parent, user, 0o700)
        with _locked(file):
            config = _read(file)
            before = _written(config)
            yield config
            after = _written(config)
            if after != before and _says_nothing(config):
                file.unlink(missing_ok=True)
            elif after != before:
                _write(file, after, user)
    except OSError as bad:
        raise ContextError(f"{file}: {bad.strerror or bad}") from bad


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Keep others from writing the file meanwhile, as kubectl does: by a file beside it that must not be there yet."""
    lock = file.with_name(f"{file.name}.lock")
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        raise ContextError(
            f"{file}: another program is writing it; if none is, remove {lock} and try again"
        ) from None
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _read(file: Path) -> Fields:
    try:
        content = load(decode(file.read_bytes()))
    except FileNotFoundError:
        content = None
    except YamlError as bad:
        raise ContextError(f"{file}: {bad}") from bad
    if content is None:
        return {"apiVersion": "v1", "kind": "Config"}
    if not isinstance(content, dict):
        raise ContextError(f"{file}: this is no kubeconfig")
    return content


def _says_nothing(config: Fields) -> bool:
    """Tell whether a file would be as good as none, such as one that was made for our entries alone."""
    return not any(value for name, value in config.items() if name not in ("apiVersion", "kind"))


def _write(file: Path, text: str, user: User) -> None:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as writer:
            writer.write(text)
            writer.flush()
            os.fsync(writer.fileno())
        if file.exists() and os.geteuid() == 0:
            owner = file.stat()
            os.chown(draft, owner.st_uid, owner.st_gid)
        else:
            give(draft, user)
        draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


class _Dumper(yaml.SafeDumper):
    """Writes text so that every reader takes it for text: `1e3` is a number to kubectl and none to PyYAML."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - whatever it is
        """Write the same value in two places twice: a reader need not know of aliases."""
        return True


def _shown_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _shown_text)


def _written(config: Fields) -> str:
    return yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31)


# --- entries


def _entries(config: Fields, kind: str, file: Path) -> list[Fields]:
    found = config.get(kind) or []
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ContextError(f"{file}: {kind} must be a list of entries")
    return found


def _named(entry: Fields, name: str) -> bool:
    return bool(entry.get("name") == name)


def _mark(entry: Fields, kind: str) -> Fields:
    fields = entry.get(kind[:-1])
    extensions = fields.get("extensions") if isinstance(fields, dict) else None
    for extension in extensions if isinstance(extensions, list) else ():
        if isinstance(extension, dict) and extension.get("name") == _MARK:
            mark = extension.get("extension")
            return mark if isinstance(mark, dict) else {}
    return {}


def _owner(entry: Fields, kind: str) -> str:
    return str(_mark(entry, kind).get("owner") or "")


def _mark_of(contexts: list[Fields], name: str) -> Fields:
    return next((_mark(one, "contexts") for one in contexts if _named(one, name)), {})
