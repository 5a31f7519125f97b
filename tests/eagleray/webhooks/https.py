"""Questions to a webhook server of this machine, asked over HTTPS as an API server does."""

import asyncio
import json
import ssl
from contextlib import asynccontextmanager

import aiohttp

from eagleray.runtime.addresses import Address

ANY_PORT = Address("127.0.0.1", 0)


def trusting(authority, *, name="webhook-service.default.svc"):
    """Return what makes a client believe servers with certificates of this authority, by this name."""
    return ssl.create_default_context(cadata=authority.decode()), name


class Asker:
    """Asks one server; each question has a connection of its own."""

    def __init__(self, port, trust):
        self._port = port
        self._context, self._name = trust

    async def post(self, path, body, **headers):
        """Return the status and the body of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with (
            self._session() as session,
            session.post(
                f"https://127.0.0.1:{self._port}{path}",
                data=data,
                headers={"Content-Type": "application/json", **headers},
                ssl=self._context,
                server_hostname=self._name,
            ) as answer,
        ):
            return answer.status, await answer.text()

    async def get(self, path):
        async with (
            self._session() as session,
            session.get(
                f"https://127.0.0.1:{self._port}{path}", ssl=self._context, server_hostname=self._name
            ) as answer,
        ):
            return answer.status, await answer.text()

    async def connect(self):
        """Return a connection on which anything can be said."""
        return await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._context, server_hostname=self._name
        )

    async def certificate(self):
        """Return the certificate that the server shows, as DER."""
        _, writer = await self.connect()
        try:
            return writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        finally:
            writer.close()

    @asynccontextmanager
    async def _session(self):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session:
            yield session
