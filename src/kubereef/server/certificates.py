"""The cluster's certificates: an authority of its own, and what it issues for the server and the administrator.

They are made on first start, kept in files that only the owner can read, and made anew before they expire.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from kubewire.certificates import Identity, Issuer, Pair, due, private_key, private_pem
from kubewire.sources import Clock, Entropy

__all__ = [
    "LOCAL_NAMES",
    "SERVICE_NAMES",
    "BadCredentials",
    "Certificates",
    "Identity",
    "private_pem",
    "read_private_key",
    "write_private",
]

_AUTHORITY = "kubereef"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
SERVICE_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


class BadCredentials(Exception):
    """A file that the cluster needs holds something else; the message says which, and what to do."""


class Certificates:
    """The certificates in a directory. `refresh` makes what is missing, wrong or about to expire."""

    def __init__(self, directory: Path, names: Iterable[str], clock: Clock, entropy: Entropy) -> None:
        self.directory = directory
        self._names = tuple(dict.fromkeys((*LOCAL_NAMES, *SERVICE_NAMES, *names)))
        self._clock = clock
        self._issuer = Issuer(clock, entropy)

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
        first = min(due(self._read(name).certificate) for name in ("ca", "server", *_CLIENTS))
        return max(0.0, (first - self._clock.now()).total_seconds())

    def pair(self, name: str) -> Pair:
        """Return one of `ca`, `server`, `admin` and `kubelet-client`."""
        return self._read(name)

    def client(self, authority: Pair, identity: Identity) -> Pair:
        """Return a certificate that lets its owner in as a user with groups."""
        return self._issuer.client(authority, identity)

    def serving(self, authority: Pair, identity: Identity, names: Iterable[str]) -> Pair:
        """Return a certificate by which a server shows that it has these names and addresses."""
        return self._issuer.serving(authority, identity, names)

    def _authority(self) -> tuple[Pair, bool]:
        try:
            present = self._read("ca")
        except FileNotFoundError:
            return self._write("ca", self._issuer.authority(_AUTHORITY)), True
        except ValueError as bad:
            # Clients trust the old one, so a new one is not made behind their backs.
            path = self.authority_path
            raise BadCredentials(
                f"{path} or its key cannot be read: {bad}; remove {path} to have a new authority made"
            ) from bad
        if self._issuer.is_due(present.certificate):
            # The key stays, so that what it has signed stays good.
            return self._write("ca", self._issuer.authority(_AUTHORITY, present.key)), True
        return present, False

    def _issued(self, name: str, authority: Pair, make: Callable[[], Pair], names: Iterable[str]) -> bool:
        try:
            present = self._read(name)
        except (FileNotFoundError, ValueError):
            present = None
        if present is not None and self._issuer.is_good(present, authority, names):
            return False
        self._write(name, make())
        return True

    def _read(self, name: str) -> Pair:
        certificate = (self.directory / f"{name}.crt").read_bytes()
        return Pair.of(certificate, (self.directory / f"{name}.key").read_bytes())

    def _write(self, name: str, pair: Pair) -> Pair:
        # The key goes first: a certificate without its key would be taken for a whole pair.
        write_private(self.directory / f"{name}.key", pair.key_pem)
        write_private(self.directory / f"{name}.crt", pair.certificate_pem)
        return pair


_CLIENTS = {
    "admin": Identity("kubernetes-admin", ("system:masters",)),
    "kubelet-client": Identity("kube-apiserver-kubelet-client"),
}


def read_private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Return the elliptic-curve key in a PEM file; ValueError if there is another kind of key."""
    return private_key(path.read_bytes())


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
