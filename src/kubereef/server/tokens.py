"""Bearer tokens: fixed ones from a file, and signed ones for service accounts."""

import base64
import binascii
import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kubereef.server.certificates import BadCredentials, private_pem, read_private_key, write_private
from kubereef.server.requests import AUTHENTICATED, User

ISSUER = "https://kubernetes.default.svc.cluster.local"

_ALGORITHM = ec.ECDSA(hashes.SHA256())
_WORD = 32  # bytes of one half of a P-256 signature


class StaticTokens:
    """Users by token. Tokens are kept as digests, so that looking one up takes the same time whatever it is."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {_digest(token): user for token, user in users.items()}

    def user(self, token: str) -> User | None:
        return self._users.get(_digest(token))

    @classmethod
    def read(cls, path: Path) -> "StaticTokens":
        """Return the tokens in a file as kube-apiserver reads them: token, user, uid and quoted groups in each line."""
        return cls(dict(_token_lines(path)))


def administrator_token(path: Path) -> str | None:
    """Return the first token in a file whose user is in system:masters."""
    if not path.exists():
        return None
    return next((token for token, user in _token_lines(path) if "system:masters" in user.groups), None)


def _token_lines(path: Path) -> list[tuple[str, User]]:
    found = []
    with path.open(newline="") as file:
        for number, line in enumerate(csv.reader(file), 1):
            if not line:
                continue
            if len(line) < 3 or not line[0]:
                raise BadCredentials(f"{path}, line {number}: token, user and uid are needed")
            named = tuple(filter(None, line[3].split(","))) if len(line) > 3 else ()
            groups = tuple(dict.fromkeys((*named, AUTHENTICATED)))
            found.append((line[0], User(line[1], groups, line[2])))
    return found


class BadToken(ValueError):
    """A token that is not ours, or no longer good."""


class Claims(NamedTuple):
    """What a service account's token says."""

    namespace: str
    account: str
    account_uid: str
    audiences: tuple[str, ...]
    issued: int
    expires: int
    token_id: str
    # Objects that the token lives and dies with, by claim: pod, secret or node, each with name and uid.
    bound: Mapping[str, tuple[str, str]] = {}
    warn_after: int = 0

    def payload(self) -> dict[str, Any]:
        """Return the claims as they stand in a token."""
        private: dict[str, Any] = {
            "namespace": self.namespace,
            "serviceaccount": {"name": self.account, "uid": self.account_uid},
        }
        for claim, (name, uid) in self.bound.items():
            private[claim] = {"name": name, "uid": uid} if uid else {"name": name}
        if self.warn_after:
            private["warnafter"] = self.warn_after
        return {
            "aud": list(self.audiences),
            "exp": self.expires,
            "iat": self.issued,
            "iss": ISSUER,
            "jti": self.token_id,
            "kubernetes.io": private,
            "nbf": self.issued,
            "sub": f"system:serviceaccount:{self.namespace}:{self.account}",
        }

    @classmethod
    def of(cls, payload: "_Payload") -> "Claims":
        private = payload.private
        bound = {
            claim: (reference.name, reference.uid)
            for claim, reference in (
                ("node", private.node),
                ("pod", private.pod),
                ("secret", private.secret),
            )
            if reference is not None
        }
        return cls(
            private.namespace,
            private.serviceaccount.name,
            private.serviceaccount.uid,
            (payload.aud,) if isinstance(payload.aud, str) else tuple(payload.aud),
            payload.iat,
            payload.exp,
            payload.jti,
            bound,
            private.warnafter,
        )


class _Reference(msgspec.Struct):
    name: str
    uid: str = ""


class _Private(msgspec.Struct):
    namespace: str
    serviceaccount: _Reference
    pod: _Reference | None = None
    secret: _Reference | None = None
    node: _Reference | None = None
    warnafter: int = 0


class _Payload(msgspec.Struct):
    iss: str
    aud: str | list[str]
    exp: int
    iat: int
    nbf: int
    private: _Private = msgspec.field(name="kubernetes.io")
    jti: str = ""


_read_payload = msgspec.json.Decoder(_Payload).decode


class Signer:
    """Makes and reads signed tokens (JWT, ES256) with the cluster's own key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        der = self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.key_id = _text(hashlib.sha256(der).digest())
        self._header = _text(msgspec.json.encode({"alg": "ES256", "kid": self.key_id, "typ": "JWT"}))

    @classmethod
    def fresh(cls) -> "Signer":
        """Return a signer whose key nobody else has and nobody keeps."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def kept(cls, path: Path) -> "Signer":
        """Return the signer with the key in a file, making it if there is none."""
        if not path.exists():
            write_private(path, private_pem(ec.generate_private_key(ec.SECP256R1())))
        try:
            return cls(read_private_key(path))
        except ValueError as bad:
            raise BadCredentials(f"{path} cannot be read: {bad}; remove it to have a new key made") from bad

    def token(self, claims: Claims) -> str:
        """Return a token that states the claims."""
        signed = f"{self._header}.{_text(msgspec.json.encode(claims.payload()))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), _ALGORITHM))
        return f"{signed}.{_text(r.to_bytes(_WORD, 'big') + s.to_bytes(_WORD, 'big'))}"

    def claims(self, token: str) -> Claims:
        """Return what a token states, if it is signed by us; whether it is still good is for the caller to see."""
        parts = token.split(".")
        if len(parts) != 3:
            raise BadToken("not a signed token")
        try:
            # The header needs no reading: the signature covers it, and this key signs in one way only.
            signature = _bytes(parts[2])
            r, s = int.from_bytes(signature[:_WORD], "big"), int.from_bytes(signature[_WORD:], "big")
            signed = f"{parts[0]}.{parts[1]}".encode()
            self._public.verify(encode_dss_signature(r, s), signed, _ALGORITHM)
            payload = _read_payload(_bytes(parts[1]))
        except InvalidSignature:
            raise BadToken("the signature is wrong") from None
        except (msgspec.MsgspecError, binascii.Error, UnicodeError) as bad:
            raise BadToken(f"cannot be read: {bad}") from None
        if payload.iss != ISSUER:
            raise BadToken("issued by somebody else")
        return Claims.of(payload)

    def public_keys(self) -> dict[str, Any]:
        """Return the public key as a JSON Web Key Set, for those who check tokens themselves."""
        numbers = self._public.public_numbers()
        x, y = (_text(number.to_bytes(_WORD, "big")) for number in (numbers.x, numbers.y))
        key = {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}
        return {"keys": [key]}


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    # Strict, so that one token has one spelling.
    return base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
