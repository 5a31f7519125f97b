"""The cluster's certificates: an authority of its own, and what it issues for the server and the administrator.

They are made on first start, kept in files that only the owner can read, and made anew before they expire.
"""

import os
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewire.sources import Clock, Entropy

AUTHORITY_LIFE = timedelta(days=3650)
CERTIFICATE_LIFE = timedelta(days=365)
# A certificate is replaced once less than this part of its life is left.
_RENEW_BELOW = 1 / 3
# Clocks differ a little between machines, so a certificate is valid a moment before it was made.
_BACKDATED = timedelta(minutes=5)

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class BadCredentials(Exception):
    """A file that the cluster needs holds something else; the message says which, and what to do."""


class Pair(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return private_pem(self.key)


class Identity(NamedTuple):
    """Whom a certificate stands for."""

    user: str
    groups: tuple[str, ...] = ()


class Certificates:
    """The certificates in a directory. `refresh` makes what is missing, wrong or about to expire."""

    def __init__(self, directory: Path, names: Iterable[str], clock: Clock, entropy: Entropy) -> None:
        self.directory = directory
        self._names = tuple(dict.fromkeys((*LOCAL_NAMES, *SERVICE_NAMES, *names)))
        self._clock = clock
        self._entropy = entropy

    @property
    def authority_path(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def server_paths(self) -> tuple[Path, Path]:
        """The files of the serving certificate and its key."""
        return self.directory / "server.crt", self.directory / "server.key"

    @property
    def kubelet_client_paths(self) -> tuple[Path, Path]:
        """The files of the certificate, and its key, by which the server shows itself to kubelets."""
        return self.directory / "kubelet-client.crt", self.directory / "kubelet-client.key"

    def refresh(self) -> bool:
        """Bring the files up to date; tells whether any was written."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        authority, is_new = self._authority()
        serve = partial(self.serving, authority, Identity("kube-apiserver"), self._names)
        written = [is_new, self._issued("server", authority, serve, self._names)]
        written += [
            self._issued(name, authority, partial(self.client, authority, identity), ())
            for name, identity in _CLIENTS.items()
        ]
        return any(written)

    def seconds_to_renewal(self) -> float:
        """Return how long until the first of the certificates is due."""
        due = min(_due(self._read(name).certificate) for name in ("ca", "server", *_CLIENTS))
        return max(0.0, (due - self._clock.now()).total_seconds())

    def pair(self, name: str) -> Pair:
        """Return one of `ca`, `server`, `admin` and `kubelet-client`."""
        return self._read(name)

    def client(self, authority: Pair, identity: Identity) -> Pair:
        """Return a certificate that lets its owner in as a user with groups."""
        return self._signed(authority, _subject(identity), ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def serving(self, authority: Pair, identity: Identity, names: Iterable[str]) -> Pair:
        """Return a certificate by which a server shows that it has these names and addresses."""
        return self._signed(authority, _subject(identity), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def _authority(self) -> tuple[Pair, bool]:
        try:
            present = self._read("ca")
        except FileNotFoundError:
            return self._write("ca", self._self_signed(ec.generate_private_key(ec.SECP256R1()))), True
        except ValueError as bad:
            # Clients trust the old one, so a new one is not made behind their backs.
            path = self.authority_path
            raise BadCredentials(
                f"{path} or its key cannot be read: {bad}; remove {path} to have a new authority made"
            ) from bad
        if self._is_due(present.certificate):
            # The key stays, so that what it has signed stays good.
            return self._write("ca", self._self_signed(present.key)), True
        return present, False

    def _issued(self, name: str, authority: Pair, make: Callable[[], Pair], names: Iterable[str]) -> bool:
        try:
            present = self._read(name)
        except (FileNotFoundError, ValueError):
            present = None
        if present is not None and self._is_good(present, authority, names):
            return False
        self._write(name, make())
        return True

    def _is_good(self, pair: Pair, authority: Pair, names: Iterable[str]) -> bool:
        try:
            pair.certificate.verify_directly_issued_by(authority.certificate)
        except Exception:  # noqa: BLE001 - whatever is wrong with the old one, the answer is a new one
            return False
        matches = pair.key.public_key() == pair.certificate.public_key()
        return matches and not self._is_due(pair.certificate) and set(names) <= _names_of(pair.certificate)

    def _is_due(self, certificate: x509.Certificate) -> bool:
        return self._clock.now() >= _due(certificate)

    def _self_signed(self, key: ec.EllipticCurvePrivateKey) -> Pair:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubereef")])
        builder = self._builder(name, name, key.public_key(), AUTHORITY_LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        return Pair(builder.sign(key, hashes.SHA256()), key)

    def _signed(
        self, authority: Pair, subject: x509.Name, usage: x509.ObjectIdentifier, names: Iterable[str]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, authority.certificate.subject, key.public_key(), CERTIFICATE_LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if alternatives := [_general_name(name) for name in names]:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return Pair(builder.sign(authority.key, hashes.SHA256()), key)

    def _builder(
        self, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta
    ) -> x509.CertificateBuilder:
        now = self._clock.now()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key)
            # A serial number is positive and has at most twenty bytes.
            .serial_number(int.from_bytes(self._entropy.token(19), "big") + 1)
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + life)
        )

    def _read(self, name: str) -> Pair:
        certificate = x509.load_pem_x509_certificate((self.directory / f"{name}.crt").read_bytes())
        key = read_private_key(self.directory / f"{name}.key")
        return Pair(certificate, key)

    def _write(self, name: str, pair: Pair) -> Pair:
        # The key goes first: a certificate without its key would be taken for a whole pair.
        write_private(self.directory / f"{name}.key", pair.key_pem)
        write_private(self.directory / f"{name}.crt", pair.certificate_pem)
        return pair


_CLIENTS = {
    "admin": Identity("kubernetes-admin", ("system:masters",)),
    "kubelet-client": Identity("kube-apiserver-kubelet-client"),
}


def _subject(identity: Identity) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in identity.groups),
            x509.NameAttribute(NameOID.COMMON_NAME, identity.user),
        ]
    )


def read_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the elliptic-curve key in a PEM file; ValueError if there is another kind of key."""
    key = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} does not hold an elliptic-curve key")
    return key


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def write_private(path: Path, data: bytes) -> None:
    """Put data into a file that only its owner can read, in one step: a reader sees the old file or the new one."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _due(certificate: x509.Certificate) -> datetime:
    """Return when a certificate should be replaced."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return end - (end - begin) * _RENEW_BELOW


def _names_of(certificate: x509.Certificate) -> set[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = (str(address) for address in found.get_values_for_type(x509.IPAddress))
    return {*found.get_values_for_type(x509.DNSName), *addresses}


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
