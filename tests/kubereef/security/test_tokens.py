"""Tokens: fixed ones in a file, signed ones for service accounts."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubereef.server.certificates import BadCredentials
from kubereef.server.requests import User
from kubereef.server.tokens import BadToken, Claims, Signer, StaticTokens, administrator_token

CLAIMS = Claims("ns", "robot", "uid-1", ("api",), 1000, 4600, "id-1", {"pod": ("p", "uid-2")}, 2000)
SIGNER = Signer.fresh()
TOKEN = SIGNER.token(CLAIMS)


def encoded(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_token_gives_back_what_it_was_made_of():
    assert SIGNER.claims(TOKEN) == CLAIMS


def test_a_token_says_what_the_tokens_of_kubernetes_say():
    payload = TOKEN.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims == {
        "aud": ["api"],
        "exp": 4600,
        "iat": 1000,
        "iss": "https://kubernetes.default.svc.cluster.local",
        "jti": "id-1",
        "kubernetes.io": {
            "namespace": "ns",
            "pod": {"name": "p", "uid": "uid-2"},
            "serviceaccount": {"name": "robot", "uid": "uid-1"},
            "warnafter": 2000,
        },
        "nbf": 1000,
        "sub": "system:serviceaccount:ns:robot",
    }


HEADER, PAYLOAD, SIGNATURE = TOKEN.split(".")
FORGED = encoded({**CLAIMS.payload(), "sub": "system:serviceaccount:kube-system:root"})


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("", id="nothing"),
        pytest.param("a.b.c", id="three words"),
        pytest.param("a.b", id="two parts"),
        pytest.param(f"{TOKEN}.x", id="four parts"),
        pytest.param(f"{HEADER}.{FORGED}.{SIGNATURE}", id="other claims under an old signature"),
        pytest.param(f"{encoded({'alg': 'none'})}.{PAYLOAD}.", id="no signature, and says so"),
        pytest.param(f"{encoded({'alg': 'HS256'})}.{PAYLOAD}.{SIGNATURE}", id="another algorithm"),
        pytest.param(Signer.fresh().token(CLAIMS), id="the key of another cluster"),
        pytest.param(f"{HEADER}.{PAYLOAD}.{SIGNATURE[:-4]}", id="a signature cut short"),
        pytest.param(f"{HEADER}.{PAYLOAD}.{'A' * 86}", id="a signature of zeros"),
        pytest.param(f"{HEADER}.{PAYLOAD} .{SIGNATURE}", id="blanks inside"),
        pytest.param("é.é.é", id="letters that no token has"),
        pytest.param("\udcff.\udcff.\udcff", id="bytes that are no text"),
        pytest.param(f"{HEADER}.{'A' * 100_000}.{SIGNATURE}", id="longer than any token"),
    ],
)
def test_what_this_cluster_did_not_sign_is_refused(token):
    with pytest.raises(BadToken):
        SIGNER.claims(token)


def test_a_token_of_another_issuer_is_refused_even_if_the_key_is_ours(monkeypatch):
    monkeypatch.setattr("kubereef.server.tokens.ISSUER", "https://elsewhere.example")
    token = SIGNER.token(CLAIMS)
    assert SIGNER.claims(token) == CLAIMS
    monkeypatch.undo()
    with pytest.raises(BadToken, match="issued by somebody else"):
        SIGNER.claims(token)


@given(st.binary(max_size=200), st.integers(0, 2))
def test_nonsense_in_any_part_is_refused_and_nothing_else_happens(data, place):
    parts = [HEADER, PAYLOAD, SIGNATURE]
    parts[place] = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    if parts != [HEADER, PAYLOAD, SIGNATURE]:
        with pytest.raises(BadToken):
            SIGNER.claims(".".join(parts))


def test_a_kept_key_reads_the_tokens_it_signed_before(tmp_path):
    path = tmp_path / "sa.key"
    token = Signer.kept(path).token(CLAIMS)
    assert Signer.kept(path).claims(token) == CLAIMS
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_public_key_can_be_had_without_the_private_one():
    (key,) = SIGNER.public_keys()["keys"]
    assert key["kty"] == "EC"
    assert "d" not in key
    assert key["kid"] == SIGNER.key_id


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text('t1,alice,1,"devs,ops"\n\nt2,root,2,"system:masters"\nt3,bob,3\n')
    return path


def test_fixed_tokens_are_read_as_the_api_server_reads_them(token_file):
    tokens = StaticTokens.read(token_file)
    assert tokens.user("t1") == User("alice", ("devs", "ops", "system:authenticated"), "1")
    assert tokens.user("t3") == User("bob", ("system:authenticated",), "3")
    assert tokens.user("t4") is None
    assert tokens.user("") is None


def test_the_administrators_token_is_the_one_of_the_masters(token_file, tmp_path):
    assert administrator_token(token_file) == "t2"
    assert administrator_token(tmp_path / "none.csv") is None


def test_a_line_without_a_user_is_pointed_at(tmp_path):
    path = tmp_path / "tokens.csv"
    path.write_text("t1,alice,1\nt2\n")
    with pytest.raises(BadCredentials, match=r"line 2: token, user and uid are needed"):
        StaticTokens.read(path)


def test_a_signing_key_that_cannot_be_read_is_pointed_at(tmp_path):
    path = tmp_path / "sa.key"
    path.write_text("nonsense")
    with pytest.raises(BadCredentials, match=r"sa\.key cannot be read: .*; remove it to have a new key made"):
        Signer.kept(path)
