"""The way to a Kubereef of this process: requests become calls, and no byte goes over a wire."""

from collections.abc import AsyncGenerator
from typing import cast
from urllib.parse import parse_qs, urlencode

from eagleray.kube.requests import Request
from eagleray.kube.transport import Answer, LocalTransport, Reply
from kubereef.server.core import Server
from kubereef.server.requests import ADMINISTRATOR, User
from kubereef.server.requests import Request as ServerRequest


def transport_to(server: Server, user: User = ADMINISTRATOR) -> LocalTransport:
    """Return a transport to a server of this process."""

    async def call(request: Request) -> Reply:
        query = parse_qs(urlencode(request.query), keep_blank_values=True)
        asked = ServerRequest(request.method, request.path, query, dict(request.headers), request.body, user)
        response = await server.handle(asked)
        headers = {name.lower(): value for name, value in response.headers}
        # A server's streams are generators, which a reader that hangs up closes.
        chunks = cast("AsyncGenerator[bytes, None] | None", response.stream)
        return Reply(Answer(response.status, response.body, headers), chunks)

    return LocalTransport(call)
