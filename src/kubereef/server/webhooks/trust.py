"""By which certificates a webhook is known, and what is wrong with one that is not, in the API server's words."""

import ssl
from functools import lru_cache

_PLAIN_HTTP = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
# OpenSSL's numbers for certificates that nobody trusted vouches for: signed by somebody else of the same name,
# self-signed, or with a part of the chain missing.
_UNKNOWN_AUTHORITY = (7, 18, 19, 20, 21)
_EXPIRED = (9, 10)
_WRONG_NAME = (62, 64)


class BadAuthorities(Exception):
    """A bundle of certificates that cannot be read."""


@lru_cache(64)
def trusting(authorities: bytes) -> ssl.SSLContext:
    """Return how to speak TLS to somebody whom these certificates vouch for; without any, those of the machine do."""
    try:
        context = ssl.create_default_context(cadata=authorities.decode() if authorities else None)
    except (ssl.SSLError, ValueError):
        raise BadAuthorities("unable to load root certificates: unable to parse bytes as PEM block") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As in Go: whatever is in the bundle is trusted, be it a root or not, and the fine print of roots is not read.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False
    return context


def words_of(problem: ssl.SSLError, host: str) -> str:
    """Return what is wrong with a TLS connection to a host."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: {_complaint(problem, host)}"
    if problem.reason in _PLAIN_HTTP:
        return "http: server gave HTTP response to HTTPS client"
    return f"tls: {(problem.reason or str(problem)).replace('_', ' ').lower()}"


def _complaint(problem: ssl.SSLCertVerificationError, host: str) -> str:
    code = problem.verify_code
    if code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if code in _EXPIRED:
        return "certificate has expired or is not yet valid"
    if code in _WRONG_NAME:
        return f"certificate is not valid for {host}"
    return problem.verify_message
