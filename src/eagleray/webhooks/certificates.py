"""Where the serving certificate comes from: files that somebody renews, or a Secret that the operator itself keeps.

Both give a `Serving`, again whenever they are asked, and raise `Unusable` if there is none to be had; the message says
why, and what to do.
"""

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from eagleray.kube.client import Client
from eagleray.kube.resources import SECRETS, Key, Object
from kubewire import errors
from kubewire.certificates import Identity, Issuer, Pair, names_of

SECRET_NAME: Final = "webhook-server-cert"  # noqa: S105 - the name of an object

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
AUTHORITY: Final = "ca.crt"
AUTHORITY_KEY: Final = "ca.key"

_AUTHORITY_NAME: Final = "eagleray-webhooks-ca"
_SERVING_NAME: Final = "eagleray-webhooks"
# Replicas that start together are in each other's way once; more often than this somebody else is at work.
_TRIES: Final = 5
_MOST_OTHER_NAMES: Final = 100
# A certificate with all its issuers is a few kilobytes.
_LONGEST_FILE: Final = 1024 * 1024


class Unusable(Exception):
    """There is no certificate to serve with; the message says why, and the way out."""


class Serving(NamedTuple):
    """What a server shows, as PEM. Without an `authority`, whoever made the certificate has it trusted."""

    certificate: bytes
    key: bytes
    authority: bytes = b""


class Source(Protocol):
    """Where certificates come from."""

    async def current(self) -> Serving:
        """Return what to serve with now."""
        ...


class Directory:
    """The files `tls.crt` and `tls.key` of a directory, as a mounted Secret has them."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def is_there(self) -> bool:
        return (self._path / CERTIFICATE).is_file() and (self._path / KEY).is_file()

    async def current(self) -> Serving:
        try:
            return Serving(_read(self._path / CERTIFICATE), _read(self._path / KEY))
        except OSError as bad:
            raise Unusable(f"{bad.filename or self._path}: {bad.strerror or bad}") from bad


class KeptSecret:
    """A certificate in a Secret that all replicas share: the first one makes it, whoever finds it due renews it.

    A Secret without the key of its authority was made by somebody else. It is served as it is, and never written.
    """

    def __init__(self, client: Client, key: Key, names: Sequence[str], issuer: Issuer) -> None:
        self._client = client
        self._key = key
        self._names = tuple(names)
        self._issuer = issuer

    async def current(self) -> Serving:
        for _ in range(_TRIES):
            secret = await self._read()
            data = _data(secret, self._key)
            if data and AUTHORITY_KEY not in data:
                return self._foreign(data)
            wanted = self._brought_up_to_date(data)
            if wanted != data:
                try:
                    await self._write(secret, wanted)
                except (errors.AlreadyExists, errors.Conflict):
                    continue  # another replica was faster; what it has made is as good
            return Serving(wanted[CERTIFICATE], wanted[KEY], wanted[AUTHORITY])
        raise Unusable(f"Secret {self._key} is changed by others all the time; find out who writes it")

    async def _read(self) -> Object | None:
        try:
            return await self._client.get(SECRETS, *self._key)
        except errors.NotFound:
            return None

    async def _write(self, secret: Object | None, data: dict[str, bytes]) -> None:
        encoded = {name: base64.b64encode(value).decode("ascii") for name, value in data.items()}
        if secret is not None:
            await self._client.replace(SECRETS, {**secret, "data": encoded})
            return
        metadata = {"namespace": self._key.namespace, "name": self._key.name}
        await self._client.create(
            SECRETS, {"metadata": metadata, "type": "kubernetes.io/tls", "data": encoded}
        )

    def _foreign(self, data: dict[str, bytes]) -> Serving:
        if not {CERTIFICATE, KEY} <= data.keys():
            raise Unusable(
                f"Secret {self._key} holds something else than a certificate; delete it to have one made"
            )
        return Serving(data[CERTIFICATE], data[KEY], data.get(AUTHORITY, b""))

    def _brought_up_to_date(self, data: dict[str, bytes]) -> dict[str, bytes]:
        """Return what should be in the Secret: what is there, as long as that is good."""
        wanted = dict(data)
        authority = self._authority(wanted)
        present = self._pair(data, CERTIFICATE, KEY) if {CERTIFICATE, KEY} <= data.keys() else None
        if present is None or not self._issuer.is_good(present, authority, self._names):
            made = self._issuer.serving(
                authority, Identity(_SERVING_NAME), self._names_beside(present, authority)
            )
            wanted |= {CERTIFICATE: made.certificate_pem, KEY: made.key_pem}
        return wanted

    def _names_beside(self, present: Pair | None, authority: Pair) -> list[str]:
        """Return our names and those of a certificate that is good but for them.

        Somebody else in this namespace may serve by these; two that drop each other's would never come to rest.
        """
        if present is None or not self._issuer.is_good(present, authority):
            return list(self._names)
        others = sorted(names_of(present.certificate).difference(self._names))
        return [*self._names, *others[:_MOST_OTHER_NAMES]]

    def _authority(self, wanted: dict[str, bytes]) -> Pair:
        """Return the authority; one that is made anew is put among what is wanted."""
        present = self._pair(wanted, AUTHORITY, AUTHORITY_KEY) if wanted else None
        if present is not None and not self._issuer.is_due(present.certificate):
            return present
        # With the old key, so that API servers which trust the old certificate trust what it signs.
        made = self._issuer.authority(_AUTHORITY_NAME, present.key if present else None)
        wanted |= {AUTHORITY: made.certificate_pem, AUTHORITY_KEY: made.key_pem}
        return made

    def _pair(self, data: dict[str, bytes], certificate: str, key: str) -> Pair:
        try:
            return Pair.of(data.get(certificate, b""), data.get(key, b""))
        except ValueError as bad:
            raise Unusable(
                f"Secret {self._key}: {certificate} or {key} cannot be read: {bad};"
                " delete the Secret to have a new one made"
            ) from bad


def serving_names(namespace: str, service: str, domain: str) -> tuple[str, ...]:
    """Return the names under which a Service is called, and those of a server on the API server's own machine."""
    inside = f"{service}.{namespace}.svc"
    return (inside, service, f"{service}.{namespace}", f"{inside}.{domain}", "localhost", "127.0.0.1", "::1")


def _data(secret: Object | None, key: Key) -> dict[str, bytes]:
    found: dict[str, Any] = (secret or {}).get("data") or {}
    try:
        # A Secret may be there from the start, with nothing in it, because rights can name only what exists.
        return {name: base64.b64decode(value, validate=True) for name, value in found.items() if value}
    except (binascii.Error, TypeError, ValueError) as bad:
        raise Unusable(f"Secret {key} is not what Secrets are: {bad}; delete it to have one made") from bad


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LONGEST_FILE)
