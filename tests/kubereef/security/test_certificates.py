"""Certificates are made, kept private, and renewed before they expire."""

import stat
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from kubereef.server.certificates import BadCredentials, Certificates, Identity, write_private
from kubewire.sources import ManualClock, SeededEntropy


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def certificates(tmp_path, clock):
    made = Certificates(tmp_path / "pki", ["10.96.0.1"], clock, SeededEntropy(1))
    assert made.refresh()
    return made


def names(certificate):
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}


def test_the_directory_and_every_file_are_their_owners_alone(certificates):
    assert stat.S_IMODE(certificates.directory.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in certificates.directory.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", "admin.key"} <= set(modes)


def test_a_directory_that_others_could_enter_is_closed(tmp_path, clock):
    (tmp_path / "pki").mkdir(mode=0o755)
    Certificates(tmp_path / "pki", [], clock, SeededEntropy(1)).refresh()
    assert stat.S_IMODE((tmp_path / "pki").stat().st_mode) == 0o700


def test_the_serving_certificate_is_good_for_every_way_to_the_server(certificates):
    assert names(certificates.pair("server").certificate) == {
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "10.96.0.1",
    }


def test_the_administrator_is_one_of_the_masters(certificates):
    subject = certificates.pair("admin").certificate.subject
    assert [one.value for one in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == [
        "system:masters"
    ]
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "kubernetes-admin"


def test_what_is_good_is_left_alone(certificates, clock):
    before = certificates.pair("server")
    clock.advance(timedelta(days=200).total_seconds())
    assert not certificates.refresh()
    assert certificates.pair("server").certificate == before.certificate


def test_a_certificate_is_renewed_in_the_last_third_of_its_life(certificates, clock):
    before = certificates.pair("server").certificate
    authority = certificates.pair("ca").certificate
    seconds = certificates.seconds_to_renewal()
    assert 240 * 86400 < seconds < 250 * 86400
    clock.advance(seconds + 1)
    assert certificates.refresh()
    after = certificates.pair("server").certificate
    assert after.not_valid_after_utc > before.not_valid_after_utc
    assert certificates.pair("admin").certificate.not_valid_before_utc > before.not_valid_before_utc
    after.verify_directly_issued_by(authority)
    assert not certificates.refresh()


def test_a_renewed_authority_keeps_its_key_so_that_what_it_signed_stays_good(certificates, clock):
    before = certificates.pair("ca")
    clock.advance(timedelta(days=3000).total_seconds())
    assert certificates.refresh()
    after = certificates.pair("ca")
    assert after.certificate != before.certificate
    assert after.certificate.public_key() == before.certificate.public_key()
    certificates.pair("server").certificate.verify_directly_issued_by(after.certificate)


def test_one_more_name_makes_a_new_serving_certificate(certificates, clock):
    more = Certificates(certificates.directory, ["10.96.0.1", "reef.example"], clock, SeededEntropy(2))
    assert more.refresh()
    assert "reef.example" in names(more.pair("server").certificate)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda pki: (pki / "server.crt").write_text("nonsense"), id="it cannot be read"),
        pytest.param(lambda pki: (pki / "server.key").unlink(), id="its key is gone"),
        pytest.param(
            lambda pki: write_private(pki / "server.key", (pki / "admin.key").read_bytes()),
            id="its key is another's",
        ),
    ],
)
def test_a_damaged_serving_certificate_is_made_anew(certificates, damage):
    damage(certificates.directory)
    assert certificates.refresh()
    pair = certificates.pair("server")
    assert pair.key.public_key() == pair.certificate.public_key()


def test_a_damaged_authority_is_not_replaced_behind_the_backs_of_those_who_trust_it(certificates):
    certificates.authority_path.write_text("nonsense")
    with pytest.raises(
        BadCredentials, match=r"ca\.crt or its key cannot be read: .* to have a new authority made"
    ):
        certificates.refresh()
    certificates.authority_path.unlink()
    assert certificates.refresh()


def test_a_certificate_of_another_authority_is_replaced(certificates, tmp_path, clock):
    other = Certificates(tmp_path / "other", ["10.96.0.1"], clock, SeededEntropy(3))
    other.refresh()
    for name in ("server.crt", "server.key"):
        write_private(certificates.directory / name, (other.directory / name).read_bytes())
    assert certificates.refresh()
    certificates.pair("server").certificate.verify_directly_issued_by(certificates.pair("ca").certificate)


def test_a_client_certificate_names_its_user_and_groups(certificates):
    made = certificates.client(certificates.pair("ca"), Identity("alice", ("devs", "ops"))).certificate
    assert made.subject.rfc4514_string() == "CN=alice,O=ops,O=devs"


def test_a_file_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "secret"
    write_private(path, b"one")
    write_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert [one.name for one in tmp_path.iterdir()] == ["secret"]
