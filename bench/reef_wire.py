"""What the benchmarks of Kubereef speak through: processes to speak to, and a client that costs next to nothing.

Client and server share the machine, so a client with the comforts of a library would be most of what is measured.
"""

import asyncio
import contextlib
import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

CONNECTIONS = 16


class Process:
    """A server in a process of its own; ready once this is made, ended with the block."""

    def __init__(self, module: str, directory: Path, *options: str) -> None:
        # As for a user: compiled once, then read from the cache.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, "--data-dir", str(directory), *options],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = re.search(r"ready at https://127\.0\.0\.1:(\d+)", line)
        if found is None:
            raise RuntimeError(f"{module} did not become ready: {line}")
        self.port = int(found[1])
        self.trust = ssl.create_default_context(cafile=directory / "ca.crt")
        user = yaml.safe_load((directory / "admin.kubeconfig").read_text())["users"][0]["user"]
        self.token = str(user["token"])

    @property
    def memory(self) -> int:
        """How many bytes of memory it has now."""
        return self._status("VmRSS")

    @property
    def peak_memory(self) -> int:
        """How many bytes of memory it has had at most."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(rf"{name}:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) * 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _why: BaseException | None, _where: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


class Connection:
    """One connection that is kept; requests go out one after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> None:
        self.reader = reader
        self._writer = writer
        self._head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    @classmethod
    async def to(cls, server: Process) -> Self:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, ssl=server.trust, server_hostname="localhost", limit=2**20
        )
        return cls(reader, writer, server.token)

    def send(self, method: str, path: str, body: bytes = b"") -> None:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)

    async def answer(self) -> bytes:
        """Return the body of the next answer, which must be a success of known length."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(f"refused: {head.decode(errors='replace')}{await self.reader.read(500)!r}")
        length = re.search(rb"content-length: (\d+)", head.lower())
        assert length is not None
        return await self.reader.readexactly(int(length[1]))

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ssl.SSLError):  # a watch is cut off in the middle of what it has to say
            await self._writer.wait_closed()


async def rate(server: Process, requests: Iterable[tuple[str, str, bytes]]) -> float:
    """Send requests over 16 connections as fast as they are answered; return how many were answered per second."""
    connections = [await Connection.to(server) for _ in range(CONNECTIONS)]
    waiting = iter(requests)
    count = 0

    async def work(connection: Connection) -> None:
        nonlocal count
        for request in waiting:
            connection.send(*request)
            await connection.answer()
            count += 1

    loop = asyncio.get_running_loop()
    started = loop.time()
    await asyncio.gather(*map(work, connections))
    elapsed = loop.time() - started
    await asyncio.gather(*(connection.close() for connection in connections))
    return count / elapsed
