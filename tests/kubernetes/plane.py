"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler as processes.

    with Plane(directory, programs()) as plane:
        … plane.kubeconfig …                 # its administrator's
        plane.kill("kube-apiserver")
        plane.start("kube-apiserver")

Everything it writes is in its directory, its ports are the kernel's choice, and it ends with this process.
"""

import ctypes
import functools
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kubewire.certificates import Identity, Issuer, Pair
from kubewire.sources import SystemClock, SystemEntropy

BUILD = Path(__file__).parents[2] / "scripts" / "control-plane" / "build"
PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
SERVICE_NETWORK = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"  # of the API server itself
PATIENCE = 120.0
_GRACE = 20.0
_PARENT_DEATH_SIGNAL = 1
# Nobody can say what these two may ask for in a moment, and a limit would be what is measured.
_UNHURRIED = ("--kube-api-qps=2000", "--kube-api-burst=4000")


class NotHere(Exception):
    """The machine lacks what a control plane is built with; the message says what."""


@functools.cache
def programs(*more: str) -> Path:
    """Return the directory of the programs, built if they were not; `more` are parts beyond the control plane."""
    if shutil.which("go") is None:
        raise NotHere("a real control plane is built from its Go modules, and there is no Go")
    run = subprocess.run([BUILD, "kubernetes", "etcd", *more], stdout=subprocess.PIPE, text=True, check=True)
    return Path(run.stdout.strip())


class Plane:
    """Owns the processes and files of one control plane. `flags` are further ones, by the part that takes them."""

    def __init__(
        self, directory: Path, binaries: Path, flags: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.directory = directory
        self._binaries = binaries
        self._flags = flags or {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._issuer = Issuer(SystemClock(), SystemEntropy())
        self._authority = self._issuer.authority("kubernetes")
        self._etcd, self._etcd_peer, self.port, *self._secure = free_ports(5)
        self._commands: dict[str, Callable[[], list[str]]] = {
            "etcd": self._etcd_command,
            "kube-apiserver": self._apiserver_command,
            "kube-controller-manager": self._controllers_command,
            "kube-scheduler": self._scheduler_command,
        }

    # --- life

    def __enter__(self) -> Self:
        self._write_files()
        try:
            for part in PARTS:
                self.start(part)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, part: str) -> None:
        """Start a part with what it has kept; the API server is waited for."""
        command = [str(self._binaries / part), *self._commands[part](), *self._flags.get(part, ())]
        with self.log(part).open("ab") as log:
            self._processes[part] = subprocess.Popen(
                command,
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        if part == "kube-apiserver":
            self._until_ready()

    def kill(self, part: str) -> None:
        """End a part as kill -9 does."""
        process = self._processes.pop(part)
        process.kill()
        process.wait()

    def stop(self) -> None:
        """End all parts, those that need others first."""
        for part in reversed([part for part in PARTS if part in self._processes]):
            end(self._processes.pop(part))

    def pid(self, part: str) -> int:
        return self._processes[part].pid

    # --- ways in

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate by which the API server is known."""
        return self.directory / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.directory / "admin.kubeconfig"

    def log(self, part: str) -> Path:
        return self.directory / f"{part}.log"

    def kubeconfig_of(self, name: str, user: str, *groups: str) -> Path:
        """Write the kubeconfig of a user, who shows a certificate."""
        pair = self._issuer.client(self._authority, Identity(user, groups))
        self._write_pair(name, pair)
        return self._write_kubeconfig(
            name,
            {
                "client-certificate": str(self.directory / f"{name}.crt"),
                "client-key": str(self.directory / f"{name}.key"),
            },
        )

    def kubeconfig_with(self, name: str, token_file: Path) -> Path:
        """Write a kubeconfig that reads its token from a file, as a Pod does."""
        return self._write_kubeconfig(name, {"tokenFile": str(token_file)})

    # --- files

    def _write_files(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.authority.write_bytes(self._authority.certificate_pem)
        self._write_private("ca.key", self._authority.key_pem)
        own = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", SERVICE_ADDRESS)
        names = ("localhost", "127.0.0.1", *own)
        self._write_pair("server", self._issuer.serving(self._authority, Identity("kube-apiserver"), names))
        self._write_pair(
            "to-kubelets", self._issuer.client(self._authority, Identity("apiserver", ("system:masters",)))
        )
        signing = self._issuer.authority("service accounts").key
        self._write_private("tokens.key", self._issuer.authority("service accounts", signing).key_pem)
        public = signing.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (self.directory / "tokens.pub").write_bytes(public)
        self.kubeconfig_of("admin", "admin", "system:masters")
        self.kubeconfig_of("controllers", "system:kube-controller-manager", "system:masters")
        self.kubeconfig_of("scheduler", "system:kube-scheduler")

    def _write_pair(self, name: str, pair: Pair) -> None:
        (self.directory / f"{name}.crt").write_bytes(pair.certificate_pem)
        self._write_private(f"{name}.key", pair.key_pem)

    def _write_private(self, name: str, content: bytes) -> None:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)

    def _write_kubeconfig(self, name: str, user: dict[str, Any]) -> Path:
        cluster = {"server": self.url, "certificate-authority": str(self.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "plane",
            "clusters": [{"name": "plane", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": name}}],
        }
        path = self.directory / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    # --- commands

    def _etcd_command(self) -> list[str]:
        clients, peers = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._etcd_peer}"
        return [
            "--name=plane",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=plane={peers}",
            "--log-level=warn",
            # What survives a power cut is not what is tested here, and disks are slow.
            "--unsafe-no-fsync",
        ]

    def _apiserver_command(self) -> list[str]:
        here = self.directory
        return [
            f"--etcd-servers=http://127.0.0.1:{self._etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            # Nobody reaches the server through its Service, whose endpoints may not be loopback addresses.
            "--endpoint-reconciler-type=none",
            "--advertise-address=192.0.2.1",
            f"--tls-cert-file={here / 'server.crt'}",
            f"--tls-private-key-file={here / 'server.key'}",
            f"--client-ca-file={self.authority}",
            f"--kubelet-client-certificate={here / 'to-kubelets.crt'}",
            f"--kubelet-client-key={here / 'to-kubelets.key'}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-key-file={here / 'tokens.pub'}",
            f"--service-account-signing-key-file={here / 'tokens.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={SERVICE_NETWORK}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
        ]

    def _controllers_command(self) -> list[str]:
        here = self.directory
        return [
            f"--kubeconfig={here / 'controllers.kubeconfig'}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._secure[0]}",
            "--controllers=*",
            f"--root-ca-file={self.authority}",
            f"--cluster-signing-cert-file={self.authority}",
            f"--cluster-signing-key-file={here / 'ca.key'}",
            f"--service-account-private-key-file={here / 'tokens.key'}",
            *_UNHURRIED,
        ]

    def _scheduler_command(self) -> list[str]:
        return [
            f"--kubeconfig={self.directory / 'scheduler.kubeconfig'}",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._secure[1]}",
            *_UNHURRIED,
        ]

    # --- waiting

    def _until_ready(self) -> None:
        """Wait until the API server says that it is ready."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.directory / "admin.crt", self.directory / "admin.key")
        end = time.monotonic() + PATIENCE
        while True:
            code = self._processes["kube-apiserver"].poll()
            if code is not None:
                raise RuntimeError(f"kube-apiserver ended with {code}: {self._last_words('kube-apiserver')}")
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=5):
                    return
            except (urllib.error.URLError, OSError) as failure:
                if time.monotonic() > end:
                    raise TimeoutError(f"kube-apiserver is not ready after {PATIENCE:g} s") from failure
            time.sleep(0.1)

    def _last_words(self, part: str) -> str:
        return "\n".join(self.log(part).read_text(errors="replace").splitlines()[-5:])


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process as it likes to be ended; one that does not is killed."""
    process.terminate()
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)


def free_ports(count: int) -> list[int]:
    """Return ports of loopback that nobody listens at now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
