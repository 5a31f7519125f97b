"""Objects, revisions, history and watchers."""

import asyncio
import multiprocessing
import sqlite3
import threading

import pytest

from kubereef.store.errors import Compacted, Conflict, FutureRevision, InUse, Unusable, WriteFailed
from kubereef.store.history import History
from kubereef.store.journal import SqliteJournal
from kubereef.store.records import Key
from kubereef.store.store import Store
from kubereef.store.watchers import QUEUE_BYTES, QUEUE_LIMIT, CutOff


def key(name, namespace="default", resource="configmaps"):
    return Key(resource, namespace, name)


def thing(name, **data):
    return {"metadata": {"name": name}, "data": data}


async def create(store, name, namespace="default", resource="configmaps", **data):
    return await store.put(key(name, namespace, resource), thing(name, **data), None).done()


async def change(store, name, **data):
    return await store.put(key(name), thing(name, **data), store.latest(key(name))).done()


async def delete(store, name):
    return await store.remove(key(name), thing(name), store.latest(key(name))).done()


class SlowJournal:
    """A journal in memory that commits when it is told to, or fails."""

    def __init__(self):
        self.groups = []
        self.open = threading.Event()
        self.open.set()
        self.fail = False

    def load(self):
        return 1, iter(())

    def commit(self, entries):
        self.open.wait(5)
        if self.fail:
            raise WriteFailed("the disk is full")
        self.groups.append([entry.key.name for entry in entries])

    def close(self):
        pass


@pytest.fixture
def journal():
    return SlowJournal()


async def test_a_written_object_is_read_back_with_its_version():
    store = Store()
    record = await create(store, "a", k="v")
    assert record.object() == {"metadata": {"name": "a", "resourceVersion": "2"}, "data": {"k": "v"}}
    assert store.revision == record.revision == 2
    assert store.get(key("a")) is record


async def test_records_come_in_the_order_of_their_keys_and_of_one_namespace_if_asked():
    store = Store()
    for namespace, name in [("b", "x"), ("a", "z"), ("ab", "y"), ("a", "b")]:
        await create(store, name, namespace)
    await create(store, "other", "a", "secrets")
    assert [r.key[1:] for r in store.records("configmaps")] == [
        ("a", "b"),
        ("a", "z"),
        ("ab", "y"),
        ("b", "x"),
    ]
    assert [r.key.name for r in store.records("configmaps", "a")] == ["b", "z"]


async def test_a_write_that_does_not_build_on_the_latest_record_is_a_conflict():
    store = Store()
    old = await create(store, "a")
    await change(store, "a", n=1)
    with pytest.raises(Conflict):
        store.put(key("a"), thing("a"), old)
    with pytest.raises(Conflict):
        store.put(key("a"), thing("a"), None)


async def test_an_old_moment_can_be_listed():
    store = Store()
    await create(store, "a", n=1)
    moment = (await create(store, "b")).revision
    await change(store, "a", n=2)
    await delete(store, "b")
    await create(store, "c")
    await create(store, "s", resource="secrets")
    assert [r.object()["data"] for r in store.records_at("configmaps", None, moment)] == [{"n": 1}, {}]
    assert [r.key.name for r in store.records("configmaps")] == ["a", "c"]


async def test_a_moment_before_the_history_is_refused_and_so_is_the_future():
    store = Store(history=History(1, max_changes=2))
    for name in "abcd":
        await create(store, name)
    with pytest.raises(Compacted) as refusal:
        store.records_at("configmaps", None, 2)
    assert refusal.value.oldest == 3
    with pytest.raises(FutureRevision):
        store.records_at("configmaps", None, 99)


async def test_the_history_is_bounded_in_bytes_too():
    store = Store(history=History(1, max_bytes=1000))
    for name in "abcd":
        await create(store, name, text="x" * 300)
    with pytest.raises(Compacted):
        store.watch("configmaps", 2)
    store.watch("configmaps", 4)


async def test_a_watcher_hears_what_it_missed_and_what_comes():
    store = Store()
    begin = (await create(store, "a")).revision
    await change(store, "a", n=1)
    await create(store, "s", resource="secrets")
    watcher = store.watch("configmaps", begin)
    await delete(store, "a")
    heard = await watcher.next()
    assert [(c.type, c.revision) for c in heard] == [("MODIFIED", 3), ("DELETED", 5)]
    assert heard[1].previous is heard[0].record


async def test_a_waiting_watcher_wakes_up():
    store = Store()
    watcher = store.watch("configmaps", store.revision)
    waiting = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    await create(store, "a")
    assert [c.key.name for c in await waiting] == ["a"]


async def test_a_closed_watcher_gets_what_is_left_and_then_nothing():
    store = Store()
    watcher = store.watch("configmaps", store.revision)
    await create(store, "a")
    watcher.close()
    await create(store, "b")
    assert [c.key.name for c in await watcher.next()] == ["a"]
    assert await watcher.next() == []


async def test_a_slow_watcher_is_cut_off_and_others_are_not():
    store = Store()
    slow = store.watch("configmaps", store.revision)
    quick = store.watch("configmaps", store.revision)
    heard = 0
    for number in range(QUEUE_LIMIT + 1):
        await create(store, f"n{number}")
        heard += len(await quick.next())
    with pytest.raises(CutOff):
        await slow.next()
    assert heard == QUEUE_LIMIT + 1


async def test_a_watcher_is_cut_off_before_it_holds_more_than_the_history_may():
    store = Store()
    slow = store.watch("configmaps", store.revision)
    quick = store.watch("configmaps", store.revision)
    size = QUEUE_BYTES // 16
    for number in range(17):
        obj = {"metadata": {"name": f"n{number}"}, "data": {"k": "x" * size}}
        await store.put(Key("configmaps", "default", f"n{number}"), obj, None).done()
        assert len(await quick.next()) == 1
    with pytest.raises(CutOff):
        slow.drain()
    assert store.watcher_count == 1


async def test_writes_that_gather_during_a_commit_are_one_group(journal):
    store = Store(journal)
    journal.open.clear()
    first = store.put(key("a"), thing("a"), None)
    await asyncio.sleep(0)
    rest = [store.put(key(name), thing(name), None) for name in "bcd"]
    journal.open.set()
    for write in (first, *rest):
        await write.done()
    assert journal.groups == [["a"], ["b", "c", "d"]]
    await store.close()


async def test_a_write_is_seen_by_writers_at_once_and_by_readers_when_it_is_durable(journal):
    store = Store(journal)
    watcher = store.watch("configmaps", store.revision)
    journal.open.clear()
    write = store.put(key("a"), thing("a"), None)
    assert store.latest(key("a")) is write.record
    assert store.get(key("a")) is None
    assert store.revision == 1
    again = store.put(key("a"), thing("a", n=1), write.record)
    journal.open.set()
    await again.done()
    assert store.get(key("a")) is again.record
    assert [c.type for c in await watcher.next()] == ["ADDED", "MODIFIED"]
    await store.close()


async def test_a_failed_commit_fails_everything_that_was_built_on_it_and_the_next_write_works(journal):
    store = Store(journal)
    await create(store, "kept")
    journal.fail = True
    journal.open.clear()
    first = store.put(key("a"), thing("a"), None)
    await asyncio.sleep(0)
    second = store.put(key("a"), thing("a", n=1), first.record)
    journal.open.set()
    for write in (first, second):
        with pytest.raises(WriteFailed, match="disk is full"):
            await write.done()
    assert store.latest(key("a")) is None
    journal.fail = False
    record = await create(store, "a")
    assert record.revision > second.record.revision
    assert [r.key.name for r in store.records("configmaps")] == ["a", "kept"]
    await store.close()


async def test_what_was_answered_is_there_after_a_restart(tmp_path):
    store = Store(SqliteJournal(tmp_path))
    await create(store, "a", n=1)
    await create(store, "b")
    await change(store, "a", n=2)
    await delete(store, "b")
    last = store.revision
    await store.close()

    store = Store(SqliteJournal(tmp_path))
    assert [r.object()["data"] for r in store.records("configmaps")] == [{"n": 2}]
    assert store.revision == last
    assert (await create(store, "c")).revision > last
    with pytest.raises(Compacted):
        store.watch("configmaps", last - 1)
    await store.close()


async def test_an_object_made_and_removed_in_one_group_is_gone_after_a_restart(tmp_path):
    store = Store(SqliteJournal(tmp_path))
    made = store.put(key("a"), thing("a"), None)
    gone = store.remove(key("a"), thing("a"), made.record)
    await gone.done()
    await store.close()
    store = Store(SqliteJournal(tmp_path))
    assert list(store.records("configmaps")) == []
    await store.close()


def _try_to_open(path, answers):
    try:
        SqliteJournal(path).close()
        answers.put("opened")
    except InUse as refusal:
        answers.put(str(refusal))


def test_a_second_process_is_refused(tmp_path):
    journal = SqliteJournal(tmp_path)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_try_to_open, args=(tmp_path, answers))
    process.start()
    assert "another process uses" in answers.get(timeout=20)
    process.join(20)
    journal.close()
    SqliteJournal(tmp_path).close()


def test_a_file_of_a_newer_release_is_refused(tmp_path):
    SqliteJournal(tmp_path).close()
    database = sqlite3.connect(tmp_path / "state.db")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(Unusable, match="newer release"):
        SqliteJournal(tmp_path)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    (tmp_path / "state.db").write_text("not a database at all, but somebody's notes" * 50)
    with pytest.raises(Unusable, match="cannot be used"):
        SqliteJournal(tmp_path)
    assert "somebody's notes" in (tmp_path / "state.db").read_text()


def test_the_files_are_the_owners_alone(tmp_path):
    journal = SqliteJournal(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "state.db").stat().st_mode & 0o777 == 0o600
    journal.close()
