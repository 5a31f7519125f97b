"""A kubeconfig as a node reads it: where the API server is, who vouches for it, and what the node shows it.

A node runs unattended, so its credentials are a certificate or a token. Ways that ask somebody (plugins, passwords) or
that trust anybody are refused, with the field that is in the way.
"""

import binascii
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from kubewire.yamltext import YamlError, decode, load

NODE_PREFIX = "system:node:"
_HTTPS_PORT = 443


class BadKubeconfig(Exception):
    """A kubeconfig that a node cannot use; the message names the file, the field, and what to do."""


class Membership(NamedTuple):
    """What a kubeconfig says. The token is in the file that `token_file` names, or else `token` itself."""

    host: str
    port: int
    server_name: str
    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""
    token: str = ""
    token_file: str = ""

    @property
    def node_name(self) -> str:
        """The name of the node that the certificate is for; empty if it is not a node's."""
        if not self.certificate:
            return ""
        subject = x509.load_pem_x509_certificate(self.certificate).subject
        names = [str(one.value) for one in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        return next((one.removeprefix(NODE_PREFIX) for one in names if one.startswith(NODE_PREFIX)), "")


def read_membership(file: Path, context: str = "") -> Membership:
    """Return what a context of a kubeconfig says, the current one unless one is named; raises BadKubeconfig."""
    try:
        content = load(decode(file.read_bytes()))
    except OSError as bad:
        raise BadKubeconfig(f"{file}: {bad.strerror or bad}") from bad
    except YamlError as bad:
        raise BadKubeconfig(f"{file}: {bad}") from bad
    config = _Fields(file, "", content)
    name = context or config.text("current-context")
    if not name:
        raise config.wrong("current-context", "is not set; set it, or name one with --context")
    chosen = config.named("contexts", name).inner("context")
    cluster = config.named("clusters", chosen.text("cluster")).inner("cluster")
    user = config.named("users", chosen.text("user")).inner("user")
    host, port = _server(cluster)
    membership = Membership(
        host,
        port,
        cluster.text("tls-server-name") or host,
        authority=cluster.data("certificate-authority"),
        certificate=user.data("client-certificate"),
        key=user.data("client-key"),
        token=user.text("token"),
        token_file=str(file.parent / user.text("tokenFile")) if user.text("tokenFile") else "",
    )
    _check_credentials(user, membership)
    return membership


def _server(cluster: "_Fields") -> tuple[str, int]:
    for field in ("insecure-skip-tls-verify", "proxy-url"):
        if cluster.has(field):
            raise cluster.wrong(
                field, "is not for a node; it needs the server itself and its certificate-authority"
            )
    server = cluster.text("server")
    try:
        parts = urlsplit(server)
        host, port = parts.hostname, parts.port or _HTTPS_PORT
    except ValueError as bad:
        raise cluster.wrong("server", f"{server!r} is no address: {bad}") from bad
    if parts.scheme != "https" or not host:
        raise cluster.wrong("server", f"{server!r} is not https://HOST[:PORT]")
    if parts.path.strip("/"):
        raise cluster.wrong("server", f"{server!r} has a path, by which Pods could not reach it")
    return host, port


def _check_credentials(user: "_Fields", found: Membership) -> None:
    for field in ("exec", "auth-provider", "username", "password", "as"):
        if user.has(field):
            raise user.wrong(field, "is not for a node; give it a certificate, a token or a tokenFile")
    if bool(found.certificate) != bool(found.key):
        missing = "client-key" if found.certificate else "client-certificate"
        raise user.wrong(missing, "is missing; a certificate and its key belong together")
    if not (found.certificate or found.token or found.token_file):
        raise user.wrong("client-certificate", "is missing, and there is neither a token nor a tokenFile")
    try:
        _ = found.node_name
    except ValueError as bad:
        raise user.wrong("client-certificate", f"holds no certificate: {bad}") from bad


class _Fields:
    """A mapping inside the file, and its path for messages."""

    def __init__(self, file: Path, path: str, value: object) -> None:
        self._file = file
        self._path = path
        if value is not None and not isinstance(value, Mapping):
            raise BadKubeconfig(f"{file}: {path or 'this'} is no mapping")
        self._fields: Mapping[str, Any] = value or {}

    def wrong(self, field: str, problem: str) -> BadKubeconfig:
        return BadKubeconfig(f"{self._file}: {self._at(field)} {problem}")

    def has(self, field: str) -> bool:
        return self._fields.get(field) not in (None, "", False)

    def text(self, field: str) -> str:
        value = self._fields.get(field)
        if value is not None and not isinstance(value, str):
            raise self.wrong(field, "must be text; quote it")
        return value or ""

    def inner(self, field: str) -> "_Fields":
        return _Fields(self._file, self._at(field), self._fields.get(field))

    def named(self, field: str, name: str) -> "_Fields":
        """Return the entry of a list that has a name."""
        listed = self._fields.get(field)
        if listed is not None and not isinstance(listed, list):
            raise self.wrong(field, "must be a list")
        entries = [_Fields(self._file, f"{field}[{number}]", one) for number, one in enumerate(listed or ())]
        for entry in entries:
            if name and entry.text("name") == name:
                return entry
        known = ", ".join(entry.text("name") for entry in entries) or "none"
        raise self.wrong(field, f"has no {name!r}; there are: {known}")

    def data(self, field: str) -> bytes:
        """Return what `<field>-data` holds in base64, or else the file that `<field>` names; nothing without both."""
        inline = f"{field}-data"
        if text := self.text(inline):
            try:
                return b64decode("".join(text.split()), validate=True)
            except (binascii.Error, ValueError) as bad:
                raise self.wrong(inline, f"is not base64: {bad}") from bad
        if not (place := self.text(field)):
            return b""
        try:
            return (self._file.parent / place).read_bytes()
        except OSError as bad:
            raise self.wrong(field, f"names {place}, which cannot be read: {bad.strerror or bad}") from bad

    def _at(self, field: str) -> str:
        return f"{self._path}.{field}" if self._path else field
