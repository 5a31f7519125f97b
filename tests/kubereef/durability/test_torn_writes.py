"""A log that ends in the middle of a write holds every write before it, and nothing of that one."""

import shutil
from random import Random

import pytest

from kubereef.store.journal import Entry, SqliteJournal
from kubereef.store.records import Key

WRITES = 60


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A directory as a kill leaves it, and what it held after each revision."""
    directory = tmp_path_factory.mktemp("recorded")
    copy = tmp_path_factory.mktemp("copy") / "data"
    journal = SqliteJournal(directory)
    random = Random(5)
    state: dict[Key, tuple[int, bytes]] = {}
    states: dict[int, dict[Key, tuple[int, bytes]]] = {1: {}}
    revision = 1
    for _ in range(WRITES):
        group = []
        for _ in range(random.randrange(1, 4)):
            revision += 1
            key = Key("configmaps", "default", f"n{random.randrange(8)}")
            data = (
                None
                if key in state and random.random() < 0.3
                else random.randbytes(random.randrange(1, 9000))
            )
            group.append(Entry(key, revision, data))
            if data is None:
                del state[key]
            else:
                state[key] = (revision, data)
        journal.commit(group)
        states[revision] = dict(state)
    shutil.copytree(directory, copy)
    journal.close()
    return copy, states


def loaded(directory):
    journal = SqliteJournal(directory)
    revision, records = journal.load()
    found = {record.key: (record.revision, record.data) for record in records}
    journal.close()
    return revision, found


@pytest.mark.parametrize("seed", range(25))
def test_a_torn_log_leaves_the_state_after_some_whole_commit(recorded, tmp_path, seed):
    directory, states = recorded
    copy = tmp_path / "data"
    shutil.copytree(directory, copy)
    log = copy / "state.db-wal"
    whole = log.read_bytes()
    log.write_bytes(whole[: Random(seed).randrange(len(whole))])
    revision, found = loaded(copy)
    assert revision in states
    assert found == states[revision]


def test_the_whole_log_leaves_the_last_state(recorded, tmp_path):
    directory, states = recorded
    shutil.copytree(directory, tmp_path / "data")
    revision, found = loaded(tmp_path / "data")
    assert (revision, found) == (max(states), states[max(states)])
