"""Certificates that one makes oneself: whom they are good for, who vouches for them, and for how long."""

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubewire.certificates import CERTIFICATE_LIFE, Identity, Issuer, Pair, due, names_of, private_key
from kubewire.sources import ManualClock, SeededEntropy

DAY = timedelta(days=1)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def issuer(clock):
    return Issuer(clock, SeededEntropy(1))


@pytest.fixture
def authority(issuer):
    return issuer.authority("authority")


@pytest.fixture
def serving(issuer, authority):
    return issuer.serving(authority, Identity("server"), ["a.example.org", "127.0.0.1"])


def usages(pair):
    return list(pair.certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_a_serving_certificate_is_good_for_its_names_and_for_serving(issuer, authority, serving):
    assert names_of(serving.certificate) == {"a.example.org", "127.0.0.1"}
    assert usages(serving) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert issuer.is_good(serving, authority, ["127.0.0.1"])
    assert not issuer.is_good(serving, authority, ["b.example.org"])


def test_a_client_certificate_tells_user_and_groups(issuer, authority):
    pair = issuer.client(authority, Identity("me", ("us", "them")))
    assert pair.certificate.subject.rfc4514_string() == "CN=me,O=them,O=us"
    assert usages(pair) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert names_of(pair.certificate) == set()


def test_another_authority_does_not_vouch_for_it(issuer, serving):
    assert not issuer.is_good(serving, issuer.authority("authority"), [])


def test_the_key_of_another_pair_does_not_fit(issuer, authority, serving):
    other = issuer.serving(authority, Identity("other"), [])
    assert not issuer.is_good(Pair(serving.certificate, other.key), authority, [])


def test_a_certificate_is_due_in_the_last_third_of_its_life(clock, issuer, authority, serving):
    clock.advance((CERTIFICATE_LIFE * 2 / 3 - DAY).total_seconds())
    assert issuer.is_good(serving, authority, [])
    clock.advance((2 * DAY).total_seconds())
    assert issuer.is_due(serving.certificate)
    assert not issuer.is_good(serving, authority, [])
    assert due(serving.certificate) < clock.now() < serving.certificate.not_valid_after_utc


def test_an_authority_that_keeps_its_key_vouches_for_what_was_issued_before(issuer, authority, serving):
    renewed = issuer.authority("authority", authority.key)
    assert renewed.certificate != authority.certificate
    assert issuer.is_good(serving, renewed, [])


def test_a_pair_is_the_same_after_it_was_written_down(serving):
    again = Pair.of(serving.certificate_pem, serving.key_pem)
    assert again.certificate == serving.certificate
    assert again.key_pem == serving.key_pem


def locked():
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))


def of_another_kind():
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "pem",
    [
        pytest.param(lambda: b"", id="nothing"),
        pytest.param(lambda: b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n", id="no key"),
        pytest.param(locked, id="a key behind a password"),
        pytest.param(of_another_kind, id="a key of another kind"),
    ],
)
def test_what_is_no_key_of_ours_is_a_value_error(pem):
    with pytest.raises(ValueError, match=r"."):
        private_key(pem())
