"""`kill -9` under load: what was acknowledged is there, and nothing else is."""

import asyncio
from random import Random

from tests.kubereef.durability.clients import MAPS, Api, Follower, Ledger, Writer
from tests.reef.process import Kubereef

KILLS = 50
WRITERS = 8


async def test_no_acknowledged_write_is_lost_and_no_watch_has_a_gap(tmp_path):
    random = Random(20)
    ledger, follower = Ledger(), Follower()
    writers = [Writer(number, ledger, Random(number)) for number in range(WRITERS)]
    for life in range(KILLS + 1):
        with Kubereef(tmp_path, "--no-controllers") as server:
            async with Api(server) as api:
                began = await check(api, ledger, follower)
                known = len(ledger.versions)
                # Now and then nobody writes: then the watch has seen everything and can go on where it was.
                await live(server, api, writers if life % 5 else [], follower, random)
                assert all(version > began for version in ledger.versions[known:])
    assert len(ledger.versions) > KILLS * WRITERS, "the load was too small to show anything"
    assert len(set(ledger.versions)) == len(ledger.versions), "two writes got the same resource version"
    assert follower.resumed
    assert follower.told_to_list


async def check(api, ledger, follower):
    """Compare the store of a server that has just started with what clients know; return its version."""
    version, stored = await api.stored()
    assert version >= max([follower.seen, *ledger.versions]), "somebody saw what was not durable"
    assert ledger.settle(stored) == []
    return version


async def live(server, api, writers, follower, random):
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
