"""Who is at the other end of a TLS connection."""

import hashlib
import ssl
from typing import Any, NamedTuple

from kubereef.server.requests import AUTHENTICATED, User

_CREDENTIAL = "authentication.kubernetes.io/credential-id"


class Peer(NamedTuple):
    """The owner of a client certificate, and until when the certificate is good. Without one there is no user."""

    user: User | None = None
    expires: float = 0.0


def peer_of(connection: ssl.SSLObject | None) -> Peer:
    """Return whom the certificate of a connection stands for: its common name, in its organisations as groups."""
    certificate: Any = connection.getpeercert() if connection is not None else None
    raw = connection.getpeercert(binary_form=True) if connection is not None else None
    if not certificate or raw is None:
        return Peer()
    names: list[str] = []
    groups: list[str] = []
    for part in certificate["subject"]:
        for kind, value in part:
            if kind == "commonName":
                names.append(value)
            elif kind == "organizationName":
                groups.append(value)
    if not names:
        return Peer()
    extra = {_CREDENTIAL: (f"X509SHA256={hashlib.sha256(raw).hexdigest()}",)}
    user = User(names[-1], tuple(dict.fromkeys((*groups, AUTHENTICATED))), "", extra)
    return Peer(user, ssl.cert_time_to_seconds(certificate["notAfter"]))
