"""What it takes to reach a cluster: where it is, how to know it, and who to be there."""

import logging
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

from eagleray.kube.transport import NotSent
from kubewire.sources import Clock

log = logging.getLogger(__name__)

# Tokens of service accounts are renewed long before they expire, at 80 % of an hour; a minute of delay is nothing.
_READ_AGAIN_AFTER = 60.0


class ConfigError(ValueError):
    """Settings by which no cluster can be reached; the message names the place and a way out."""


class CredentialsError(NotSent):
    """Credentials cannot be had at the moment, so that there is nobody to send a request as."""


class Pair(NamedTuple):
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes


class Identity(NamedTuple):
    """What is shown to the server: headers, and a certificate for the connection."""

    headers: tuple[tuple[str, str], ...] = ()
    pair: Pair | None = None


class Credentials(Protocol):
    """Who to be."""

    async def current(self) -> Identity:
        """Return what to show now; CredentialsError if it cannot be had."""
        ...

    def refused(self, identity: Identity) -> bool:
        """Know that the server did not accept this; tells whether asking again may give something else."""
        ...


class Source(Protocol):
    """Bytes that may be others the next time."""

    def read(self) -> bytes: ...

    def forget(self) -> None:
        """Look again at the next reading."""
        ...


class Fixed:
    """Bytes that stay."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self) -> bytes:
        return self._data

    def forget(self) -> None:
        """There is nothing else."""


class FileSource:
    """The content of a file that others renew: read again every minute; what was read last stays if that fails."""

    __slots__ = ("_clock", "_data", "_path", "_read_at")

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._data = b""
        self._read_at: float | None = None

    def read(self) -> bytes:
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _READ_AGAIN_AFTER:
            try:
                # Whoever writes it anew may have emptied it a moment ago.
                self._data = self._path.read_bytes() or self._data
            except OSError as bad:
                if not self._data:
                    raise CredentialsError(f"{self._path}: {bad.strerror or bad}") from bad
                log.warning("%s: %s; going on with what was read before", self._path, bad.strerror or bad)
            self._read_at = now
        return self._data

    def forget(self) -> None:
        self._read_at = None


class UserCredentials:
    """A token, or a name with a password, and a certificate: each of them may be missing."""

    def __init__(
        self,
        token: Source | None = None,
        password: tuple[str, str] | None = None,
        pair: tuple[Source, Source] | None = None,
    ) -> None:
        self._token = token
        self._password = password
        self._pair = pair

    async def current(self) -> Identity:
        return Identity(
            self._headers(), Pair(self._pair[0].read(), self._pair[1].read()) if self._pair else None
        )

    def refused(self, identity: Identity) -> bool:
        for source in (self._token, *(self._pair or ())):
            if source is not None:
                source.forget()
        pair = Pair(self._pair[0].read(), self._pair[1].read()) if self._pair else None
        return identity != Identity(self._headers(), pair)

    def _headers(self) -> tuple[tuple[str, str], ...]:
        if self._token is not None:
            return bearer(self._token.read().decode("utf-8", "replace"))
        if self._password is not None:
            return (("authorization", f"Basic {b64encode(':'.join(self._password).encode()).decode()}"),)
        return ()


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Return the headers that show a token."""
    text = token.strip()
    if not text or not text.isascii() or any(character.isspace() for character in text):
        # What it is instead is not told: it may be half a secret.
        raise CredentialsError("the token is empty or holds characters that no token has")
    return (("authorization", f"Bearer {text}"),)


class Impersonation(NamedTuple):
    """Whom to act as."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        headers = [("impersonate-user", self.user)] if self.user else []
        headers += [("impersonate-uid", self.uid)] if self.uid else []
        headers += [("impersonate-group", group) for group in self.groups]
        headers += [
            (f"impersonate-extra-{quote(name.lower(), safe='')}", value)
            for name, values in self.extra.items()
            for value in values
        ]
        return tuple(headers)


class Access(NamedTuple):
    """All that it takes to reach a cluster. Without an authority, the machine's own ones vouch for the server."""

    server: str
    credentials: Credentials
    authority: Source | None = None
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    namespace: str = "default"
    impersonation: Impersonation = Impersonation()
