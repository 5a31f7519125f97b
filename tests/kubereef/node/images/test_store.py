"""The store: whole layers or none, one maker at a time, and nothing removed that is in use."""

import errno
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from kubereef.node.images import Bind, ImageInUse, Progress
from kubereef.node.images import store as store_module
from kubereef.node.images.errors import BuildCancelled, BuildTimedOut, DiskFull
from kubereef.node.images.host import Base
from kubereef.node.images.layers import layer_key
from kubereef.node.images.store import Record, Store
from kubewire.sources import ManualClock
from tests.kubereef.node.images.making import control


def layer(text="hello", size=1):
    """A layer of one file, of about that many KiB."""
    return Base(folders={"/etc": 0o755}, files={"/etc/text": text * size * 200}, links={}, binds=(), owned={})


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(tmp_path, clock):
    return Store(tmp_path / "images", clock)


def keep(store, reference, *layers):
    """Make an image of layers and let go of it again."""
    record = Record(reference, tuple(store.make_layer(each, control()) for each in layers))
    lease = store.lease(record)
    store.write_record(record)
    lease.release()
    return record


def test_a_layer_is_made_once_and_found_by_its_content(store, monkeypatch):
    key = store.make_layer(layer(), control())
    assert (store.layer_path(key) / "etc/text").read_text().startswith("hello")
    monkeypatch.setattr(store_module, "build_layer", lambda *_: pytest.fail("made again"))
    assert store.make_layer(layer(), control()) == key == layer_key(layer())
    assert layer_key(layer("other")) != key


def test_a_build_that_fails_leaves_nothing(store, tmp_path, monkeypatch):
    def half(_layer, tree, _scratch, _control):
        (tree / "half").write_text("x")
        raise BuildTimedOut("late")

    monkeypatch.setattr(store_module, "build_layer", half)
    with pytest.raises(BuildTimedOut):
        store.make_layer(layer(), control())
    assert not store.has_layer(layer_key(layer()))
    assert not list((tmp_path / "images/unfinished").iterdir())
    assert not list((tmp_path / "images/layers").iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_an_error_of_its_own(store, monkeypatch, number):
    def full(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(store_module, "build_layer", full)
    with pytest.raises(DiskFull, match="prune"):
        store.make_layer(layer(), control())


def test_a_layer_is_not_begun_without_the_room_it_needs(store):
    with pytest.raises(DiskFull, match="MiB free"):
        store.make_layer(layer(), control(), needs=1 << 60)


def test_a_directory_without_its_note_is_no_layer_and_is_made_again(store):
    key = store.make_layer(layer(), control())
    (store.layer_path(key).parent / "layer.json").unlink()
    (store.layer_path(key) / "etc/text").write_text("damaged")
    assert not store.has_layer(key)
    store.make_layer(layer(), control())
    assert (store.layer_path(key) / "etc/text").read_text().startswith("hello")


_KILLED_MIDWAY = """
import sys, threading, time
from pathlib import Path
from kubereef.node.images import store as store_module
from kubereef.node.images.store import Store
from kubewire.sources import SystemClock
from tests.kubereef.node.images.making import control
from tests.kubereef.node.images.test_store import layer

def endless(_layer, tree, _scratch, _control):
    (tree / "half").write_text("x")
    print("building", flush=True)
    time.sleep(60)

store_module.build_layer = endless
Store(Path(sys.argv[1]), SystemClock()).make_layer(layer(), control())
"""


@pytest.fixture
def other_process(tmp_path):
    """Another process that is in the middle of making the layer."""
    here = Path(__file__).parents[4]
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED_MIDWAY, str(tmp_path / "images")], stdout=subprocess.PIPE, cwd=here
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"building\n"
        yield process
        process.kill()


def test_while_another_process_makes_a_layer_this_one_waits_for_it(other_process, tmp_path, clock):
    store = Store(tmp_path / "images", clock)
    assert len(list((tmp_path / "images/unfinished").iterdir())) == 1, (
        "a new store leaves what is being made alone"
    )
    reports: list[Progress] = []
    cancelled = threading.Event()
    threading.Timer(0.3, cancelled.set).start()
    with pytest.raises(BuildCancelled):
        store.make_layer(layer(), control(reports, cancelled))
    assert "waiting" in {report.stage for report in reports}


def test_a_builder_that_was_killed_is_cleaned_up_after_and_its_layer_made_anew(
    other_process, tmp_path, clock
):
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    assert list((tmp_path / "images/unfinished").iterdir())
    store = Store(tmp_path / "images", clock)
    assert not list((tmp_path / "images/unfinished").iterdir())
    key = store.make_layer(layer(), control())
    assert not (store.layer_path(key) / "half").exists()


def test_an_image_needs_all_its_layers(store):
    record = keep(store, "a", layer("one"), layer("two"))
    assert store.read_record("a") == record
    (store.layer_path(record.layers[1]).parent / "layer.json").unlink()
    assert store.read_record("a") is None
    assert store.lease(record) is None


def test_images_are_listed_the_last_used_first_with_size_and_use(store, clock):
    first = keep(store, "first", layer("one", 100))
    clock.advance(60)
    keep(store, "second", layer("two"))
    lease = store.lease(first)
    listed = store.list()
    assert [(image.reference, image.in_use) for image in listed] == [("first", True), ("second", False)]
    assert listed[0].size > listed[1].size > 0
    assert store.usage() == sum(image.size for image in listed)
    lease.release()
    assert not any(image.in_use for image in store.list())


def test_what_is_there_is_told_with_all_names_the_largest_first_and_disturbs_nobody(store):
    small = keep(store, "registry.test/small:1", layer("one"))
    large = keep(store, "registry.test/large:2", layer("two", 100))
    lease = store.lease(small)
    told = store.present()
    assert [one.names for one in told] == [
        (f"registry.test/large@{large.digest}", "registry.test/large:2"),
        (f"registry.test/small@{small.digest}", "registry.test/small:1"),
    ]
    assert told[0].size > told[1].size > 0
    lease.release()
    (store.layer_path(small.layers[0]).parent / "layer.json").unlink()
    assert [one.names[1] for one in store.present()] == ["registry.test/large:2"]


def test_an_image_in_use_is_not_removed(store):
    record = keep(store, "a", layer())
    lease = store.lease(record)
    with pytest.raises(ImageInUse):
        store.remove("a")
    assert store.prune(max_age=timedelta(0), max_bytes=0) == 0
    assert store.read_record("a") == record
    lease.release()
    assert store.remove("a") > 0
    assert store.read_record("a") is None
    assert store.usage() == 0


def test_a_shared_layer_stays_with_the_image_that_is_left(store):
    shared = layer("shared")
    keep(store, "a", layer("one"), shared)
    kept = keep(store, "b", layer("two"), shared)
    store.remove("a")
    assert store.read_record("b") == kept
    assert not store.has_layer(layer_key(layer("one")))


def test_a_layer_that_a_removed_image_lends_to_a_running_one_stays(store):
    record = keep(store, "a", layer())
    other = Record("b", record.layers, workdir="/x")
    lease = store.lease(other)
    store.remove("a")
    assert store.is_whole(other)
    lease.release()


def test_prune_removes_what_was_not_used_for_long(store, clock):
    keep(store, "old", layer("one"))
    clock.advance(3600)
    keep(store, "new", layer("two"))
    assert store.prune(max_age=timedelta(minutes=30)) > 0
    assert [image.reference for image in store.list()] == ["new"]


def test_using_an_image_makes_it_young_again(store, clock):
    record = keep(store, "old", layer("one"))
    clock.advance(3600)
    store.lease(record).release()
    store.prune(max_age=timedelta(minutes=30))
    assert store.read_record("old") == record


def test_prune_removes_the_least_recently_used_until_the_rest_fits(store, clock):
    for name in ("first", "second", "third"):
        keep(store, name, layer(name, 100))
        clock.advance(60)
    sizes = {image.reference: image.size for image in store.list()}
    store.prune(max_bytes=sizes["second"] + sizes["third"])
    assert {image.reference for image in store.list()} == {"second", "third"}


def test_prune_removes_layers_without_an_image(store):
    key = store.make_layer(layer(), control())
    assert store.prune() > 0
    assert not store.has_layer(key)


def test_an_image_of_another_version_counts_as_absent(store, tmp_path):
    keep(store, "a", layer())
    (record,) = (tmp_path / "images/images").iterdir()
    record.write_text("{")
    assert store.read_record("a") is None
    assert store.list() == []


def test_binds_that_the_machine_no_longer_has_are_left_out(store, tmp_path):
    here, gone = (Bind(str(tmp_path / name), f"/{name}") for name in ("images", "gone"))
    record = Record("a", (store.make_layer(layer(), control()),), binds=(here, gone))
    assert store.image(record).binds == (here,)
