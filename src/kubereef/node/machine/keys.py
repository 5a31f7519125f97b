"""The files by which a node and the cluster know each other.

- `ca.crt` is who vouches for the API server; without it, those whom this machine trusts do.
- `client.crt` and `client.key` are what the node shows to the API server, unless it shows a token.
- `client-ca.crt` is who vouches for callers of the kubelet's API; without it they need tokens.
- `serving.crt` and `serving.key` are what the kubelet's API shows to them.
"""

import ssl
from pathlib import Path


def client_tls(keys: Path) -> ssl.SSLContext:
    """Return how to speak to the API server."""
    authority = keys / "ca.crt"
    context = ssl.create_default_context(cafile=str(authority) if authority.exists() else None)
    if (keys / "client.crt").exists():
        context.load_cert_chain(keys / "client.crt", keys / "client.key")
    return context


def kubelet_tls(keys: Path) -> ssl.SSLContext:
    """Return how the kubelet's API is served."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(keys / "serving.crt", keys / "serving.key")
    if (keys / "client-ca.crt").exists():
        context.load_verify_locations(keys / "client-ca.crt")
        context.verify_mode = ssl.CERT_OPTIONAL  # a client may have a token instead
    context.set_alpn_protocols(["http/1.1"])
    return context
