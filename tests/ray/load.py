"""A steady load of requests from inside the cluster, and what became of every single one.

    with Load(reef, directory, "http://s-serve-svc:8000/") as load:
        ...                     # whatever must not disturb anybody
        load.reach(3000)
    assert load.failures == []

The load is a Pod that runs this very file, so it finds and reaches the service as any client in the cluster does. It
sends requests by the clock, however long the answers take, over connections that it keeps; one that has become old is
closed after an answer, as pools of clients and load balancers do. Nothing is sent twice: what fails is a failure.
"""

import asyncio
import json
import shutil
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

PER_SECOND = 50
MOST_AGE = 5.0  # seconds after which a connection is used no more
LONGEST = 120.0  # seconds that an answer may take, which is a long time even on a busy machine
PLACE = "/load"
_RECORDS, _STOP = "records", "stop"
_numbers = count(1)


class Request(NamedTuple):
    """What became of a request: what it was answered, or why it failed."""

    at: float  # when it was sent, in seconds since the epoch
    took: float
    said: str = ""
    failure: str = ""


# --- in the Pod


class Broken(Exception):
    """A request that got no answer, or not the one that was hoped for."""


class Connection:
    """A connection that is kept from one request to the next."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._opened = time.monotonic()

    @property
    def is_fit(self) -> bool:
        """Whether another request may be sent: it is not old, and the other side has not hung up."""
        is_open = not self._reader.at_eof() and self._reader.exception() is None
        return is_open and time.monotonic() - self._opened < MOST_AGE

    async def ask(self, host: str, path: str) -> tuple[str, bool]:
        """Return the text of an answer, and whether the other side keeps the connection; Broken if there is none."""
        head = b""
        try:
            self._writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            head = await self._reader.readuntil(b"\r\n\r\n")
            status, *lines = head.decode().removesuffix("\r\n\r\n").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            body = await self._body(headers)
        except (OSError, asyncio.IncompleteReadError) as problem:
            when = "within the answer" if head else "before the answer"
            raise Broken(f"broken off {when}: {type(problem).__name__}") from None
        code, text = status.split()[1], body.decode()
        if code != "200":
            raise Broken(f"answered {code}: {text[:200]}")
        return text, headers.get("connection") != "close"

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", 0)))
        body = b""
        while length := int(await self._reader.readline() or b"-1", 16):
            if length < 0:
                raise asyncio.IncompleteReadError(body, None)
            body += await self._reader.readexactly(length)
            await self._reader.readline()
        await self._reader.readline()
        return body

    def close(self) -> None:
        self._writer.close()


class Client:
    """Sends requests over connections that it keeps, and tells of each."""

    def __init__(self, url: str, tell) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._path = parts.path or "/"
        self._tell = tell
        self._idle: list[Connection] = []

    async def send(self) -> None:
        """Send one request and tell what became of it."""
        at, began = time.time(), time.monotonic()
        said = failure = ""
        try:
            async with asyncio.timeout(LONGEST):
                said = await self._answer()
        except Broken as problem:
            failure = str(problem)
        except TimeoutError:
            failure = f"no answer in {LONGEST:.0f} s"
        self._tell(Request(at, time.monotonic() - began, said, failure))

    async def _answer(self) -> str:
        connection = self._kept() or await self._opened()
        is_kept = False
        try:
            said, is_kept = await connection.ask(self._host, self._path)
        finally:
            if is_kept and connection.is_fit:
                self._idle.append(connection)
            else:
                connection.close()
        return said

    def _kept(self) -> Connection | None:
        """Return the connection that has been idle longest, so that all of them are used."""
        while self._idle:
            connection = self._idle.pop(0)
            if connection.is_fit:
                return connection
            connection.close()
        return None

    async def _opened(self) -> Connection:
        try:
            return Connection(*await asyncio.open_connection(self._host, self._port))
        except OSError as problem:
            raise Broken(f"no connection: {problem}") from None


async def generate(url: str, place: Path) -> None:
    """Send requests at their rate until the file is there that says stop, and write down what became of them."""
    with (place / _RECORDS).open("a", buffering=1) as records:
        client = Client(url, lambda request: records.write(json.dumps(request) + "\n"))
        began = time.monotonic()
        async with asyncio.TaskGroup() as under_way:
            for number in count():
                await asyncio.sleep(began + number / PER_SECOND - time.monotonic())
                if number % PER_SECOND == 0 and (place / _STOP).exists():
                    return
                under_way.create_task(client.send())


# --- in the test


class Load:
    """The Pod that sends, for as long as the context lasts, and what has become of its requests so far."""

    def __init__(self, reef, directory: Path, url: str) -> None:
        self._reef = reef
        self._name = f"load-{next(_numbers)}"
        self._directory = directory / self._name
        self._url = url

    def __enter__(self):
        self._directory.mkdir()
        shutil.copy(__file__, self._directory / "load.py")
        container = {
            "name": "load",
            "image": "python:3.11",
            "command": ["python3", f"{PLACE}/load.py", self._url, PLACE],
            "volumeMounts": [{"name": "load", "mountPath": PLACE}],
            "resources": {
                "requests": {"cpu": "1"}
            },  # so that it keeps to its clock while Ray starts beside it
        }
        volume = {"name": "load", "hostPath": {"path": str(self._directory)}}
        spec = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [volume],
        }
        self._reef.create({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": self._name}, "spec": spec})
        try:
            self.reach(1)
        except BaseException:
            self._reef.delete("Pod", self._name)
            raise
        return self

    def __exit__(self, kind, *_why):
        try:
            if kind is None:
                (self._directory / _STOP).touch()
                phase, said = self._reef.ended(self._name)
                assert phase == "Succeeded", said
        finally:
            self._reef.delete("Pod", self._name)

    @property
    def requests(self) -> list[Request]:
        """All that are over, in the order in which that came about."""
        file = self._directory / _RECORDS
        if not file.exists():
            return []
        # The last line may not be whole yet.
        return [Request(*json.loads(line)) for line in file.read_text().split("\n")[:-1]]

    @property
    def failures(self) -> list[Request]:
        return [request for request in self.requests if request.failure]

    def answers(self, since: float = 0.0) -> Counter[str]:
        """Return how often each answer was given to requests that were sent since a time."""
        return Counter(one.said for one in self.requests if one.at >= since and not one.failure)

    def reach(self, number: int) -> None:
        """Wait until as many requests are over."""

        def is_reached():
            assert self._reef.status("Pod", self._name).get("phase") != "Failed", self._reef.log(self._name)
            return len(self.requests) >= number

        self._reef.until(is_reached, f"{number} requests to {self._url} are over")

    def told(self, what: str) -> str:
        """Return the numbers in words, with what failed how often, and when that began."""
        requests, failures = self.requests, self.failures
        slowest = max((one.took for one in requests), default=0.0)
        numbers = f"{len(requests)} requests, {len(failures)} failed; slowest {slowest:.1f} s; {dict(self.answers())}"
        first = min((one.at for one in requests), default=0.0)
        kinds = Counter(one.failure for one in failures)
        examples = {one.failure: one.at - first for one in reversed(failures)}
        return "\n".join(
            [
                f"{what}: {numbers}",
                *(f"  {kinds[why]} from {at:.1f} s on: {why}" for why, at in examples.items()),
            ]
        )


if __name__ == "__main__":
    asyncio.run(generate(sys.argv[1], Path(sys.argv[2])))
