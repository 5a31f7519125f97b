"""The yardstick: a server on the same library, with the same certificates, that only sends back what it got."""

import argparse
import asyncio
from pathlib import Path

from aiohttp import web

from kubereef.server.credentials import Credentials
from kubewire.sources import SystemClock, SystemEntropy


async def _echo(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=await request.read(), content_type="application/json")


async def _serve(directory: Path) -> None:
    credentials = Credentials(directory, ["127.0.0.1"], SystemClock(), SystemEntropy())
    server = web.Server(_echo, access_log=None)
    listener = await asyncio.get_running_loop().create_server(
        server, "127.0.0.1", 0, ssl=credentials.server_tls
    )
    url = f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    credentials.write_kubeconfig(url)
    print(f"ready at {url}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path, required=True)
    asyncio.run(_serve(parser.parse_args().data_dir))
