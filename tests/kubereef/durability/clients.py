"""Clients that keep a ledger: what they were told is stored, and what they cannot know because no answer came."""

import asyncio
import json
from random import Random
from typing import Any, NamedTuple, Self

import aiohttp

from tests.reef.process import Kubereef

MAPS = "/api/v1/namespaces/default/configmaps"

# How a connection looks from this end when the process at the other end is killed.
CUT = (aiohttp.ClientError, ConnectionError, TimeoutError)


class State(NamedTuple):
    """One stored object, as far as the ledger is concerned."""

    version: int
    value: str


class Api:
    """Requests to one running server over HTTPS."""

    def __init__(self, server: Kubereef, connections: int = 16) -> None:
        self._url = server.url
        connector = aiohttp.TCPConnector(ssl=server.trust, limit=connections)
        self._session = aiohttp.ClientSession(
            connector=connector, headers={"Authorization": f"Bearer {server.token}"}
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_why: object) -> None:
        await self._session.close()

    async def send(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request and return the status and the decoded answer."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body)
        async with self._session.request(
            method, self._url + path, data=data, headers={"Content-Type": kind}
        ) as response:
            return response.status, json.loads(await response.read())

    async def stored(self) -> tuple[int, dict[str, State]]:
        """Return the version of the store and all that is in it."""
        status, answer = await self.send("GET", MAPS)
        assert status == 200, answer
        return int(answer["metadata"]["resourceVersion"]), {
            item["metadata"]["name"]: state_of(item) for item in answer["items"]
        }

    def watch(self, since: int) -> Any:
        """Open a watch of everything after a version."""
        url = f"{self._url}{MAPS}?watch=true&resourceVersion={since}"
        return self._session.get(url, timeout=aiohttp.ClientTimeout(total=None))


def state_of(obj: dict[str, Any]) -> State:
    return State(int(obj["metadata"]["resourceVersion"]), obj.get("data", {}).get("v", ""))


class Ledger:
    """What the writers know. A key in doubt may be as acknowledged last, or as the unanswered write wanted it."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, State] = {}
        self.doubts: dict[str, str | None] = {}
        self.versions: list[int] = []

    def settle(self, stored: dict[str, State]) -> list[str]:
        """Compare with what is stored and return what is wrong; the doubts are gone afterwards."""
        problems = []
        for name in self.acknowledged.keys() | stored.keys():
            known, found = self.acknowledged.get(name), stored.get(name)
            if found != known and not self._explained(name, known, found):
                problems.append(f"{name}: {known} was acknowledged, {found} is stored")
        self.acknowledged = dict(stored)
        self.doubts.clear()
        return problems

    def _explained(self, name: str, known: State | None, found: State | None) -> bool:
        """Tell whether an unanswered write made the difference."""
        if name not in self.doubts:
            return False
        wanted = self.doubts[name]
        if found is None:
            return wanted is None
        return found.value == wanted and (known is None or found.version > known.version)


class Writer:
    """Creates, changes and deletes objects of its own, one request at a time, until the server is gone."""

    def __init__(self, number: int, ledger: Ledger, random: Random) -> None:
        self._number = number
        self._ledger = ledger
        self._random = random
        self._count = 0

    async def work(self, api: Api) -> None:
        while True:
            name = f"w{self._number}-{self._random.randrange(6)}"
            self._count += 1
            value: str | None = f"{self._number}:{self._count}"
            exists = name in self._ledger.acknowledged
            if exists and self._random.random() < 0.25:
                value = None
            self._ledger.doubts[name] = value
            try:
                status, answer = await self._write(api, name, value, exists)
            except CUT:
                return
            assert status in (200, 201), answer
            self._acknowledge(name, value, answer)

    async def _write(self, api: Api, name: str, value: str | None, exists: bool) -> tuple[int, Any]:
        if value is None:
            return await api.send("DELETE", f"{MAPS}/{name}")
        # Long enough for a commit to take several pages, so that a kill can hit the middle of one.
        body = {
            "metadata": {"name": name},
            "data": {"v": value, "padding": "x" * self._random.randrange(9000)},
        }
        if exists:
            return await api.send("PATCH", f"{MAPS}/{name}", {"data": body["data"]})
        return await api.send("POST", MAPS, body)

    def _acknowledge(self, name: str, value: str | None, answer: Any) -> None:
        del self._ledger.doubts[name]
        if value is None:
            del self._ledger.acknowledged[name]
        else:
            state = self._ledger.acknowledged[name] = state_of(answer)
            self._ledger.versions.append(state.version)


class Follower:
    """Keeps a copy of the store by watching it, over all deaths of the server, as an informer does."""

    def __init__(self) -> None:
        self.copy: dict[str, State] = {}
        self.seen = 0
        self.resumed = 0
        self.told_to_list = 0
        self._grown = asyncio.Event()

    async def follow(self, api: Api) -> None:
        """Go on from the last version seen until the server is gone; list anew only when told to."""
        if not self.seen:
            await self._list(api)
        try:
            if not await self._watch(api):
                self.told_to_list += 1
                await self._list(api)
                await self._watch(api)
            else:
                self.resumed += 1
        except CUT:
            return

    async def catch_up(self, version: int) -> None:
        """Wait until a version has been seen."""
        async with asyncio.timeout(20):
            while self.seen < version:
                self._grown.clear()
                await self._grown.wait()

    async def _list(self, api: Api) -> None:
        self.seen, self.copy = await api.stored()
        self._grown.set()

    async def _watch(self, api: Api) -> bool:
        """Take in events until the watch ends; False if the server says that the version is too old."""
        try:
            async with api.watch(self.seen) as response:
                async for line in response.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        assert event["object"]["code"] == 410, event
                        return False
                    self._take(event["type"], event["object"])
        except CUT:
            pass  # killed; the next server goes on from the last version seen
        return True

    def _take(self, kind: str, obj: dict[str, Any]) -> None:
        state = state_of(obj)
        assert state.version > self.seen, f"version {state.version} came after {self.seen}"
        self.seen = state.version
        name = obj["metadata"]["name"]
        if kind == "DELETED":
            del self.copy[name]
        else:
            assert (kind == "ADDED") == (name not in self.copy), f"{kind} of {name}: an event was missed"
            self.copy[name] = state
        self._grown.set()
