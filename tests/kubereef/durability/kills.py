"""A server that is killed under load again and again, and clients that compare what it stored with what it told."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.kubereef.durability.clients import MAPS, Api, Follower, Ledger, Writer
from tests.reef.process import Kubereef

WRITERS = 8


class Outcome(NamedTuple):
    """How much a run has shown."""

    writes: int  # that were acknowledged, deletions aside
    resumed: int  # watches that went on where they were
    told_to_list: int  # watches whose past the new server did not know


def silent(_life: int, _writes: int) -> None:
    """Tell nobody how far a run has come."""


async def survive(
    directory: Path, kills: int, seed: int, tell: Callable[[int, int], None] = silent
) -> Outcome:
    """Kill a server so many times under load. AssertionError if a write was lost or a watch had a gap."""
    random = Random(seed)
    ledger, follower = Ledger(), Follower()
    writers = [Writer(number, ledger, Random(f"{seed}/{number}")) for number in range(WRITERS)]
    for life in range(kills + 1):
        with Kubereef(directory, "--no-controllers") as server:
            async with Api(server) as api:
                began = await _check(api, ledger, follower)
                known = len(ledger.versions)
                # Now and then nobody writes: then the watch has seen everything and can go on where it was.
                await _live(server, api, writers if life % 5 else [], follower, random)
                assert all(version > began for version in ledger.versions[known:])
        tell(life, len(ledger.versions))
    assert len(set(ledger.versions)) == len(ledger.versions), "two writes got the same resource version"
    return Outcome(len(ledger.versions), follower.resumed, follower.told_to_list)


async def _check(api: Api, ledger: Ledger, follower: Follower) -> int:
    """Compare the store of a server that has just started with what clients know; return its version."""
    version, stored = await api.stored()
    assert version >= max([follower.seen, *ledger.versions]), "somebody saw what was not durable"
    assert ledger.settle(stored) == []
    return version


async def _live(
    server: Kubereef, api: Api, writers: list[Writer], follower: Follower, random: Random
) -> None:
    """Let the clients work for a while, then kill the server."""
    following = asyncio.create_task(follower.follow(api))
    # One write that everybody waits for: when the follower has it, it must have all that came before.
    status, marker = await api.send("POST", MAPS, {"metadata": {"generateName": "marker-"}})
    assert status == 201
    await follower.catch_up(int(marker["metadata"]["resourceVersion"]))
    await api.send("DELETE", f"{MAPS}/{marker['metadata']['name']}")
    version, stored = await api.stored()
    await follower.catch_up(version)
    assert follower.copy == stored
    working = [asyncio.create_task(writer.work(api)) for writer in writers]
    await asyncio.sleep(random.uniform(0.02, 0.25))
    server.kill()
    await asyncio.gather(following, *working)
