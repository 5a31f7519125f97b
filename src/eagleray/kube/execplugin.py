"""Credentials from a program that the kubeconfig names, kept until they expire or are refused."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from eagleray.kube.access import CredentialsError, Identity, Pair, bearer
from eagleray.kube.sections import Section
from kubewire.sources import Clock
from kubewire.times import TimeError, parse_time

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")
# Under this name of a cluster's extension stands what a plugin is told besides.
_EXTENSION = f"{_GROUP}/exec"
_PATIENCE = 60.0
# A credential that expires while its request is on the way would be refused.
_LEEWAY = timedelta(seconds=10)


class Plugin(NamedTuple):
    """How to run a program, and what to tell it."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    cluster: Mapping[str, object] | None = None
    patience: float = _PATIENCE

    @classmethod
    def of(cls, section: Section, cluster: Section) -> "Plugin":
        """Return the plugin that a kubeconfig's `exec` describes."""
        version = section.needed("apiVersion")
        if version not in _VERSIONS:
            raise section.wrong("apiVersion", f"{version!r} is not supported; use {' or '.join(_VERSIONS)}")
        command = section.needed("command")
        if "/" in command:
            command = str(section.path("command"))
        mode = section.text("interactiveMode", "" if version == _VERSIONS[0] else "IfAvailable")
        if mode not in _MODES:
            raise section.wrong("interactiveMode", f"must be one of {', '.join(_MODES)}")
        if mode == "Always":
            raise section.wrong("interactiveMode", "the plugin wants a terminal, and there is none here")
        environment = tuple((entry.needed("name"), entry.text("value")) for entry in section.sections("env"))
        told = _cluster_info(cluster) if section.flag("provideClusterInfo") else None
        return cls(
            version, command, section.texts("args"), environment, section.text("installHint").strip(), told
        )

    @property
    def info(self) -> str:
        """What the program is told of whom it is asked for."""
        spec: dict[str, object] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        about = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(about).decode()


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str
    api_version: str
    status: _Status | None = None


class ExecCredentials:
    """What a plugin gives. It runs once at a time, and again when its credentials expire or are refused."""

    def __init__(self, plugin: Plugin, environ: Mapping[str, str], clock: Clock) -> None:
        self._plugin = plugin
        self._environ = environ
        self._clock = clock
        self._lock = asyncio.Lock()
        self._held: Identity | None = None
        self._expires: datetime | None = None

    async def current(self) -> Identity:
        async with self._lock:
            if self._held is None or self._is_expired():
                output = await self._run()
                self._held, self._expires = self._understand(output)
            return self._held

    def refused(self, identity: Identity) -> bool:
        if self._held == identity:
            self._held = None
        return True

    def _is_expired(self) -> bool:
        return self._expires is not None and self._clock.now() >= self._expires - _LEEWAY

    async def _run(self) -> bytes:
        plugin = self._plugin
        environ = {**self._environ, **dict(plugin.environment), "KUBERNETES_EXEC_INFO": plugin.info}
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.arguments,
                env=environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as bad:
            hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
            raise self._failed(f"cannot be run: {bad.strerror or bad}{hint}") from bad
        try:
            async with asyncio.timeout(plugin.patience):
                output, complaints = await process.communicate()
        except TimeoutError:
            raise self._failed(f"has not ended within {plugin.patience:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            last = complaints.decode("utf-8", "replace").strip().rpartition("\n")[2][:500]
            raise self._failed(f"ended with code {process.returncode}{f': {last}' if last else ''}")
        return output

    def _understand(self, output: bytes) -> tuple[Identity, datetime | None]:
        """Return the credentials in a plugin's output. No message holds any of it: it is secret."""
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
        except msgspec.DecodeError:
            raise self._failed("has not printed an ExecCredential") from None
        if answer.kind != "ExecCredential" or answer.api_version != self._plugin.api_version:
            raise self._failed(
                f"has printed {answer.kind[:60]} of {answer.api_version[:60]}, not an ExecCredential of"
                f" {self._plugin.api_version}"
            )
        status = answer.status or _Status()
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failed("has given a certificate without a key, or a key without a certificate")
        if not status.token and not status.client_certificate_data:
            raise self._failed("has given neither a token nor a certificate")
        pair = None
        if status.client_certificate_data:
            pair = Pair(status.client_certificate_data.encode(), status.client_key_data.encode())
        try:
            expires = parse_time(status.expiration_timestamp) if status.expiration_timestamp else None
        except TimeError as bad:
            raise self._failed(f"has given an expirationTimestamp that is no time: {bad}") from None
        return Identity(bearer(status.token) if status.token else (), pair), expires

    def _failed(self, problem: str) -> CredentialsError:
        return CredentialsError(f"exec plugin {Path(self._plugin.command).name}: {problem}")


def _cluster_info(cluster: Section) -> Mapping[str, object]:
    """Return what a plugin is told of the cluster that it is asked for."""
    info: dict[str, object] = {"server": cluster.text("server")}
    for field in ("tls-server-name", "insecure-skip-tls-verify", "proxy-url"):
        if cluster.has(field):
            info[field] = cluster.value(field)
    if cluster.has("certificate-authority-data"):
        info["certificate-authority-data"] = cluster.text("certificate-authority-data")
    elif cluster.has("certificate-authority"):
        content = cluster.path("certificate-authority").read_bytes()
        info["certificate-authority-data"] = b64encode(content).decode()
    for extension in cluster.sections("extensions"):
        if extension.text("name") == _EXTENSION:
            info["config"] = extension.value("extension")
    return info
