"""The secrets of a cluster in its data directory: certificates, tokens, signing key, and a kubeconfig made of them."""

import base64
import ssl
from collections.abc import Iterable
from pathlib import Path

import yaml

from kubereef.server.certificates import Certificates, write_private
from kubereef.server.tokens import Signer, StaticTokens, administrator_token
from kubewire.sources import Clock, Entropy

_TOKEN_BYTES = 32
_CONTEXT = "kubereef"


class Credentials:
    """Makes what is missing in a directory. The files are their owner's alone."""

    def __init__(self, directory: Path, names: Iterable[str], clock: Clock, entropy: Entropy) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        self.directory = directory
        self.certificates = Certificates(directory / "pki", names, clock, entropy)
        self.certificates.refresh()
        self.tokens = self._static_tokens(entropy)
        self.signer = Signer.kept(self.certificates.directory / "sa.key")
        self._publish_authority()
        # The settings of TLS as a server, and as a client of kubelets; renewed certificates are loaded into them.
        self.server_tls = _server_settings()
        self.kubelet_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._load()

    @property
    def authority(self) -> bytes:
        """The certificate by which clients know this cluster, in PEM form."""
        return self.certificates.authority_path.read_bytes()

    @property
    def kubeconfig_path(self) -> Path:
        return self.directory / "admin.kubeconfig"

    def refresh(self) -> bool:
        """Renew what is about to expire; tells whether anything was."""
        if not self.certificates.refresh():
            return False
        self._publish_authority()
        self._load()
        return True

    def write_kubeconfig(self, url: str) -> Path:
        """Write the administrator's kubeconfig for a server at an address."""
        admin = self.certificates.pair("admin")
        user = {
            "client-certificate-data": _base64(admin.certificate_pem),
            "client-key-data": _base64(admin.key_pem),
            "token": administrator_token(self.directory / "tokens.csv"),
        }
        cluster = {"server": url, "certificate-authority-data": _base64(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _CONTEXT, "cluster": cluster}],
            "users": [{"name": "kubernetes-admin", "user": user}],
            "contexts": [{"name": _CONTEXT, "context": {"cluster": _CONTEXT, "user": "kubernetes-admin"}}],
            "current-context": _CONTEXT,
        }
        write_private(self.kubeconfig_path, yaml.safe_dump(config, sort_keys=False).encode())
        return self.kubeconfig_path

    def _static_tokens(self, entropy: Entropy) -> StaticTokens:
        path = self.directory / "tokens.csv"
        if administrator_token(path) is None:
            token = base64.urlsafe_b64encode(entropy.token(_TOKEN_BYTES)).rstrip(b"=").decode()
            before = path.read_bytes() if path.exists() else b""
            line = f'{token},kubernetes-admin,kubernetes-admin,"system:masters"\n'
            write_private(path, before + line.encode())
        return StaticTokens.read(path)

    def _load(self) -> None:
        """Have connections from now on use the present certificates."""
        certificates = self.certificates
        for context, paths in (
            (self.server_tls, certificates.server_paths),
            (self.kubelet_tls, certificates.kubelet_client_paths),
        ):
            context.load_cert_chain(*paths)
            context.load_verify_locations(certificates.authority_path)

    def _publish_authority(self) -> None:
        write_private(self.directory / "ca.crt", self.authority)


def _server_settings() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A client may show a certificate, but need not: it may have a token.
    context.verify_mode = ssl.CERT_OPTIONAL
    context.set_alpn_protocols(["http/1.1"])
    return context


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
