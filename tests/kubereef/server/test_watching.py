"""Watches, as far as the scenarios of the conformance tests do not show them."""

import asyncio
from itertools import count, pairwise
from typing import Any, cast

from kubereef.server.selection import MAX_CACHED
from kubereef.server.watching import BOOKMARK_INTERVAL, _events
from kubereef.store.records import Change, Key, Record
from kubereef.store.store import Store
from kubereef.store.watchers import Watcher

CM = "/api/v1/namespaces/default/configmaps"


async def test_a_watch_that_shows_none_of_many_changes_is_told_how_far_they_have_come(simulated_cluster):
    """Clients take a watch that says nothing for long for dead; others' changes must not keep it silent."""
    client = simulated_cluster.client
    await client.create(CM, {"metadata": {"name": "other"}})

    async def change_often():
        for number in count():
            await asyncio.sleep(BOOKMARK_INTERVAL / 4)
            await client.patch(f"{CM}/other", {"data": {"number": str(number)}})

    changing = asyncio.create_task(change_often())
    options = (
        f"labelSelector=app%3Dmine&allowWatchBookmarks=true&timeoutSeconds={2.5 * BOOKMARK_INTERVAL:.0f}"
    )
    heard = [(asyncio.get_running_loop().time(), event) async for event in client.watch(f"{CM}?{options}")]
    changing.cancel()
    assert [event["type"] for _, event in heard] == ["BOOKMARK"] * 3, "two in between, and one at the end"
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for _, event in heard]
    assert all(earlier < later for earlier, later in pairwise(versions))
    assert all(later - earlier <= BOOKMARK_INTERVAL for (earlier, _), (later, _) in pairwise(heard))


class AnyFeed:
    """Tells of changes and of how far they have come, in a word."""

    bookmarks = True

    def added(self, _records):
        return []

    def lines(self, _changes):
        return [b"change"]

    def bookmark(self, _revision):
        return b"bookmark"


async def test_a_change_that_comes_when_a_bookmark_is_due_is_told_before_it(virtual_time):
    """Whoever begins again at a bookmark is never told what came before it."""
    watcher, feed = Watcher("configmaps", lambda _: None), cast(Any, AnyFeed())
    change = Change("ADDED", Record(Key("configmaps", "default", "a"), 2, b"{}"), None)
    asyncio.get_running_loop().call_later(BOOKMARK_INTERVAL, watcher.deliver, [change])
    told = _events(Store(), feed, watcher, [], 1.5 * BOOKMARK_INTERVAL, None)
    assert [line async for line in told] == [b"change", b"bookmark"]


async def test_ever_new_selections_leave_nothing_with_the_changes_they_look_at(simulated_cluster):
    """A change is kept for long, and anybody may make up a selector."""
    client, store = simulated_cluster.client, simulated_cluster.cluster.store
    start = store.revision
    await client.create(CM, {"metadata": {"name": "a", "labels": {"n": "7"}}})
    [change] = [one for one in store.history.since(start) if one.key.name == "a"]
    for number in range(2 * MAX_CACHED):
        url = f"{CM}?labelSelector=n%3D{number}&resourceVersion={start}&timeoutSeconds=1"
        heard = [event["type"] async for event in client.watch(url)]
        assert heard == (["ADDED"] if number == 7 else [])
    assert len(change.cache) == MAX_CACHED
