"""Attackers at work on a server, and everything that is checked while they are and afterwards."""

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.kubereef.hostile.aims import JSON, Aim, Attack
from tests.kubereef.hostile.attacks import attacks
from tests.kubereef.hostile.connections import rudeness
from tests.kubereef.hostile.examples import WIDGETS
from tests.kubereef.hostile.inprocess import InProcess
from tests.kubereef.hostile.judging import Answer, Finding, problem_of
from tests.kubereef.hostile.reading import (
    Ask,
    everything,
    may_be_collected,
    read_back,
    version_of,
    versions,
    written_object,
)
from tests.kubereef.hostile.surface import Surface, surface_of
from tests.kubereef.hostile.wire import Address, Connection, Cut
from tests.reef.process import Kubereef

ATTACKERS = 4
# One in so many attacks over HTTPS is on a connection rather than by a request.
_RUDE = 16

# How many bytes more a server may have after all attacks than after the first quarter of them.
MAX_GROWTH = 48 * 1024 * 1024

# What controllers delete by themselves, by the beginning of the name under which it is noted.
_RUNS = ("/api/v1/pods ", "/apis/batch/v1/jobs ")
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KEEPS_LOG = ("sh", "-c", 'log="$1"; shift; exec "$@" 2>>"$log"', "sh")


class Tally:
    """What has happened so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.accepted = 0
        self.answers: Counter[tuple[str, int]] = Counter()
        self.findings: list[Finding] = []
        self.slowest = (0.0, "")

    def take(self, attack: Attack, answer: Answer) -> None:
        """Count an answer, and note what is wrong with it."""
        self.requests += 1
        self.answers[attack.family, answer.status] += 1
        self.slowest = max(
            self.slowest, (answer.seconds, f"{attack.family}: {attack.method} {attack.path[:100]}")
        )
        if problem := problem_of(answer):
            self.findings.append(Finding(problem, attack))

    async def take_write(self, ask: Ask, attack: Attack, answer: Answer, *, alone: bool) -> None:
        """Read again what an answer says was written."""
        written = written_object(attack, answer)
        if written is None:
            return
        self.accepted += 1
        if problem := await read_back(ask, *written, alone=alone):
            self.findings.append(Finding(problem, attack))


async def attack_in_process(requests: int, seed: int) -> Tally:
    """Attack a server of this process, where nobody but the attackers writes."""
    tally = Tally()
    place = InProcess()
    await place.cluster.start()
    surface = await _prepared(place.ask, place.get)
    each = requests // ATTACKERS
    for number in range(ATTACKERS):
        for attack in islice(attacks(surface, seed, number), each):
            answer = await place.ask(attack)
            tally.take(attack, answer)
            await tally.take_write(place.ask, attack, answer, alone=True)
    _, findings = await everything(place.ask, surface)
    tally.findings += findings
    await place.cluster.stop()
    return tally


class Outcome(NamedTuple):
    """What came of attacks over HTTPS: memory in bytes after the first of them and after all, and the server's log."""

    tally: Tally
    warm: int
    memory: int
    log: str

    @property
    def growth(self) -> int:
        return self.memory - self.warm


async def attack_over_https(directory: Path, requests: int, seed: int) -> Outcome:
    """Attack a process of its own, controllers and all; then read all that is stored, now and after a restart."""
    log, data = directory / "log", directory / "data"
    tally = Tally()
    with Kubereef(data, "--no-node", wrapper=(*_KEEPS_LOG, str(log))) as server:
        address = Address(server.port, server.trust, server.token)
        async with Connection(address) as connection:
            surface = await _prepared(connection.ask, connection.get)
            attackers = [Attacker(address, surface, seed, number, tally) for number in range(ATTACKERS)]
            each = requests // ATTACKERS
            await asyncio.gather(*(attacker.work(each // 4) for attacker in attackers))
            warm = memory_of(server.pid)
            await asyncio.gather(*(attacker.work(each - each // 4) for attacker in attackers))
            memory = memory_of(server.pid)
            surface = await surface_of(connection.get)
            await _until_quiet(connection, surface)
            stored, findings = await everything(connection.ask, surface)
            tally.findings += findings
        server.stop()
    # On the same port, since the `kubernetes` Service tells it.
    with Kubereef(data, "--no-controllers", port=server.port, wrapper=(*_KEEPS_LOG, str(log))) as server:
        async with Connection(Address(server.port, server.trust, server.token)) as connection:
            again, findings = await everything(connection.ask, surface)
            tally.findings += [*findings, *_differences(stored, again)]
        server.stop()
    return Outcome(tally, warm, memory, log.read_text())


class Attacker:
    """Sends what its seed and number say, one request after the other."""

    def __init__(self, address: Address, surface: Surface, seed: int, number: int, tally: Tally) -> None:
        self._address = address
        self._attacks = attacks(surface, seed, number)
        self._rude = Aim(surface, seed, number)
        self._tally = tally

    async def work(self, requests: int) -> None:
        """Send so many requests, and read again what they wrote."""
        async with Connection(self._address) as connection:
            for count in range(requests):
                if count % _RUDE == 0:
                    await self._be_rude(connection)
                    continue
                attack = next(self._attacks)
                try:
                    answer = await connection.ask(attack)
                except (Cut, TimeoutError) as bad:
                    self._tally.findings.append(Finding(f"{bad!r}", attack))
                    continue
                self._tally.take(attack, answer)
                await self._tally.take_write(connection.ask, attack, answer, alone=False)

    async def _be_rude(self, connection: Connection) -> None:
        """Do something to a connection; whatever comes of it, no answer may be a fault of the server's."""
        what = rudeness(self._rude, connection)
        came = await connection.raw(what.portions, ends=what.ends)
        self._tally.requests += 1
        if came.startswith((b"HTTP/1.1 50", b"HTTP/1.0 50")):
            sent = b"".join(one for one in what.portions if isinstance(one, bytes))
            self._tally.findings.append(Finding(f"{came[:1000]!r}", Attack(what.name, "", "", (), sent)))


def memory_of(pid: int) -> int:
    """Return how many bytes of memory a process has."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _prepared(ask: Ask, get: Callable[[str], Awaitable[dict[str, Any]]]) -> Surface:
    """Make what the attackers begin with, and return what is offered then."""
    accounts = "/api/v1/namespaces/{}/serviceaccounts"
    places = [f"hostile-{number}" for number in range(ATTACKERS)]
    await _make(ask, _DEFINITIONS, WIDGETS)
    for place in places:
        await _make(ask, "/api/v1/namespaces", {"metadata": {"name": place}})
        await _make(ask, accounts.format(place), {"metadata": {"name": "default"}})
    return await surface_of(get)


async def _make(ask: Ask, path: str, obj: dict[str, Any]) -> None:
    answer = await ask(Attack("preparing", "POST", path, (("Content-Type", JSON),), json.dumps(obj).encode()))
    assert answer.status in (201, 409), answer  # a controller may have been faster


async def _until_quiet(connection: Connection, surface: Surface) -> None:
    """Wait until the controllers have done what they had to; what they do without end is not waited for."""
    before: dict[str, int] = {}
    for _ in range(20):
        found = await versions(connection.ask, surface)
        if found == before:
            return
        before = found
        await asyncio.sleep(0.3)


def _differences(stored: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    """Return what is not after a restart as it was before, except what controllers did until the end."""
    found = []
    for name, obj in stored.items():
        if (after := again.get(name)) is None:
            is_wrong = not (may_be_collected(obj) or name.startswith(_RUNS) or _namespace_ends(again, obj))
        else:
            age = version_of(after) - version_of(obj)
            is_wrong = age < 0 or (age == 0 and after != obj)
        if is_wrong:
            problem = f"{name} is another after a restart: {obj!r:.500} {after!r:.500}"
            found.append(Finding(problem, Attack("restart", "", "")))
    return found


def _namespace_ends(stored: dict[str, Any], obj: dict[str, Any]) -> bool:
    """Tell whether the namespace of an object is gone or going, and takes the object along."""
    name = obj["metadata"].get("namespace")
    namespace = stored.get(f"/api/v1/namespaces /{name}")
    return bool(name) and (namespace is None or "deletionTimestamp" in namespace["metadata"])


def complaints(log: str) -> list[str]:
    """Return what a server's log tells of faults of its own, each with its lines."""
    records = re.split(r"(?m)^(?=\d{4}-\d\d-\d\d )", log)
    return [one for one in records if "Traceback" in one or " ERROR " in one or " CRITICAL " in one]
