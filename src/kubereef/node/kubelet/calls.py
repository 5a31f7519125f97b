"""The calls that probes and hooks make over the network."""

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from kubereef.kinds.resource import Object
from kubereef.node.kubelet.interfaces import Answer

if TYPE_CHECKING:
    import aiohttp

_USER_AGENT = "kube-probe/1.36"
_MOST_REDIRECTS = 10
_MOST_BODY = 10 * 1024


class NetworkCalls:
    """Calls from the node's own network, where every Pod's address is reached."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def http_get(self, address: str, port: int, action: Object, patience: float | None) -> Answer:
        """Send the request of an `httpGet` action; any answer from 200 to 399 passes."""
        scheme = (action.get("scheme") or "HTTP").lower()
        host = f"[{address}]" if ":" in address else address
        path = action.get("path") or "/"
        url = f"{scheme}://{host}:{port}{path if path.startswith('/') else '/' + path}"
        headers = {header["name"]: header.get("value") or "" for header in action.get("httpHeaders") or ()}
        for name, value in (("User-Agent", _USER_AGENT), ("Accept", "*/*")):
            if name.lower() not in {given.lower() for given in headers}:
                headers[name] = value
        session = self._session or self._open()  # the first takes a while, which is not the Pod's fault
        try:
            async with asyncio.timeout(patience):
                return await _get(session, url, headers)
        except TimeoutError:
            return Answer(False, f'Get "{url}": context deadline exceeded (Client.Timeout exceeded)')

    async def tcp_connect(self, address: str, port: int, patience: float | None) -> Answer:
        """Connect and hang up."""
        where = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        try:
            async with asyncio.timeout(patience):
                _, writer = await asyncio.open_connection(address, port)
        except TimeoutError:
            return Answer(False, f"dial tcp {where}: i/o timeout")
        except OSError as refusal:
            return Answer(False, f"dial tcp {where}: connect: {_in_words(refusal)}")
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return Answer(True)

    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp  # a tenth of a second to import, and many nodes never probe by HTTP

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # a kubelet checks no certificates of Pods
        connector = aiohttp.TCPConnector(ssl=context, force_close=True, limit=0)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session


async def _get(session: "aiohttp.ClientSession", url: str, headers: dict[str, str]) -> Answer:
    from aiohttp import ClientError  # whoever has a session has imported it

    first = urlsplit(url)
    try:
        for _ in range(_MOST_REDIRECTS):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                target = answer.headers.get("Location")
                if answer.status not in (301, 302, 303, 307, 308) or not target:
                    body = (await answer.content.read(_MOST_BODY)).decode(errors="replace")
                    if 200 <= answer.status < 400:
                        return Answer(True, body)
                    return Answer(False, f"HTTP probe failed with statuscode: {answer.status}")
            url = urljoin(url, target)
            if urlsplit(url).hostname != first.hostname:
                return Answer(True, "Probe terminated redirects")  # to others it does not go
    except (ClientError, OSError) as trouble:
        return Answer(False, f'Get "{url}": {_in_words(trouble)}')
    return Answer(False, f'Get "{url}": stopped after {_MOST_REDIRECTS} redirects')


def _in_words(trouble: Exception) -> str:
    number = getattr(trouble, "os_error", trouble)
    text = getattr(number, "strerror", None)
    if isinstance(number, ConnectionRefusedError) or "refused" in str(trouble).lower():
        return "connection refused"
    return str(text or trouble).lower()
