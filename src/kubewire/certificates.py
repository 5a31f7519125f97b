"""Certificates: an authority of one's own, what it issues, and when it is time for the next one. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address
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


class Pair(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def of(cls, certificate_pem: bytes, key_pem: bytes) -> "Pair":
        """Return the pair that two PEM texts hold; ValueError if they do not hold one."""
        return cls(x509.load_pem_x509_certificate(certificate_pem), private_key(key_pem))

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


class Issuer:
    """Makes certificates that are valid from now on."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def authority(self, name: str, key: ec.EllipticCurvePrivateKey | None = None) -> Pair:
        """Return an authority. With the key of an earlier one of the same name, what that has signed stays good."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = _subject(Identity(name))
        builder = self._builder(subject, subject, key.public_key(), AUTHORITY_LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        return Pair(builder.sign(key, hashes.SHA256()), key)

    def client(self, authority: Pair, identity: Identity) -> Pair:
        """Return a certificate that lets its owner in as a user with groups."""
        return self._signed(authority, identity, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def serving(self, authority: Pair, identity: Identity, names: Iterable[str]) -> Pair:
        """Return a certificate by which a server shows that it has these names and addresses."""
        return self._signed(authority, identity, ExtendedKeyUsageOID.SERVER_AUTH, names)

    def is_good(self, pair: Pair, authority: Pair, names: Iterable[str] = ()) -> bool:
        """Return whether a pair is one, has these names, was issued by the authority, and is not due."""
        try:
            pair.certificate.verify_directly_issued_by(authority.certificate)
        except Exception:  # noqa: BLE001 - whatever is wrong with the old one, the answer is a new one
            return False
        matches = pair.key.public_key() == pair.certificate.public_key()
        return matches and not self.is_due(pair.certificate) and set(names) <= names_of(pair.certificate)

    def is_due(self, certificate: x509.Certificate) -> bool:
        """Return whether it is time for the next one."""
        return self._clock.now() >= due(certificate)

    def _signed(
        self, authority: Pair, identity: Identity, usage: x509.ObjectIdentifier, names: Iterable[str]
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = authority.certificate.subject
        builder = self._builder(_subject(identity), issuer, key.public_key(), CERTIFICATE_LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
        builder = builder.add_extension(identifier, critical=False)
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


def due(certificate: x509.Certificate) -> datetime:
    """Return when a certificate should be replaced."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return end - (end - begin) * _RENEW_BELOW


def names_of(certificate: x509.Certificate) -> set[str]:
    """Return the names and addresses that a certificate is good for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = (str(address) for address in found.get_values_for_type(x509.IPAddress))
    return {*found.get_values_for_type(x509.DNSName), *addresses}


def private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Return the elliptic-curve key in a PEM text; ValueError if there is another kind of key, or none."""
    try:
        key = load_pem_private_key(pem, None)
    except TypeError as locked:
        raise ValueError(str(locked)) from locked
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("this is not an elliptic-curve key")
    return key


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _subject(identity: Identity) -> x509.Name:
    return x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in identity.groups),
            x509.NameAttribute(NameOID.COMMON_NAME, identity.user),
        ]
    )


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
