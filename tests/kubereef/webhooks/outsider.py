"""A webhook of our own: an HTTPS server that answers reviews as a test says, and remembers what it was asked."""

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Json = dict[str, Any]
# What to answer to a request of a review: a response of a review, or any answer at all.
Answer = Callable[[Json], "Json | web.StreamResponse | Awaitable[Json | web.StreamResponse]"]


def allow(_request: Json) -> Json:
    return {"allowed": True}


def deny(**status: object) -> Answer:
    return lambda _request: {"allowed": False, **({"status": status} if status else {})}


def patching(*operations: Json) -> Answer:
    """Return an answer that allows what it changes."""
    return lambda _request: {"allowed": True, "patchType": "JSONPatch", "patch": patch(*operations)}


def patch(*operations: Json) -> str:
    return base64.b64encode(json.dumps(operations).encode()).decode()


class Outsider:
    """Answers at every path of `answers`; anything else is allowed. `asked` has path and request of every review."""

    def __init__(self, directory: Path, *names: str, subject: str = "a webhook") -> None:
        """Make a webhook whose certificate is for some names, and for a subject."""
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, Json]] = []
        self.connections: set[asyncio.WriteTransport] = set()
        self._arrivals = asyncio.Condition()
        self.authority, self._tls = certificates(directory, *names, subject=subject)
        self.certificate = (directory / "webhook.crt").read_bytes()
        self.port = 0
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def client(self, path: str = "/", **fields: object) -> Json:
        """Return the clientConfig that leads here."""
        bundle = base64.b64encode(self.authority).decode()
        return {"url": self.url + path, "caBundle": bundle, **fields}

    def paths(self) -> list[str]:
        """Return at which paths it was asked, in order."""
        return [path for path, _ in self.asked]

    def requests(self, path: str) -> list[Json]:
        return [request for asked, request in self.asked if asked == path]

    async def has_been_asked(self, times: int = 1) -> None:
        """Return once so many questions have come."""
        async with asyncio.timeout(10), self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.asked) >= times)

    async def start(self) -> None:
        self._runner = web.ServerRunner(web.Server(self._handle, handler_cancellation=True))
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        # TLS says goodbye in its own time, which may be longer than the test has.
        for connection in self.connections:
            connection.abort()
        await asyncio.sleep(0.01)

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if isinstance(http.transport, asyncio.WriteTransport):
            self.connections.add(http.transport)
        review = json.loads(await http.read())
        self.asked.append((http.path, review["request"]))
        async with self._arrivals:
            self._arrivals.notify_all()
        answer = self.answers.get(http.path, allow)(review["request"])
        if not isinstance(answer, dict | web.StreamResponse):
            answer = await answer
        if isinstance(answer, web.StreamResponse):
            return answer
        response = {"uid": review["request"]["uid"], **answer}
        return web.json_response(
            {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        )


@contextmanager
def in_a_thread(outsider: Outsider) -> Iterator[Outsider]:
    """Serve beside a test that has no event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(outsider.start(), loop).result(10)
        yield outsider
    finally:
        asyncio.run_coroutine_threadsafe(outsider.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def certificates(directory: Path, *names: str, subject: str = "a webhook") -> tuple[bytes, ssl.SSLContext]:
    """Return a certificate authority in PEM form, and TLS with a certificate of it for some names and addresses."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _signed("an authority", authority_key, "an authority", authority_key, [], is_authority=True)
    certificate = _signed(subject, key, "an authority", authority_key, list(names), is_authority=False)
    chain, secret = directory / "webhook.crt", directory / "webhook.key"
    chain.write_bytes(_pem(certificate))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(chain, secret)
    return _pem(authority), tls


def _signed(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    names: list[str],
    *,
    is_authority: bool,
) -> x509.Certificate:
    today = datetime(2020, 1, 1, tzinfo=UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today)
        .not_valid_after(today + timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_name, names))), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
