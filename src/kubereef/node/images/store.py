"""Layers and images on disk, shared by all processes of this machine.

layers/<key>/tree       a layer's files; its directory appears whole, by a rename, with layer.json written last
images/<name>.json      which layers an image has and how its containers run; its age is the image's last use
unfinished/             layers being made or removed; nothing in there counts, and what nobody works on is removed
locks/                  who makes, uses or removes what; a lock ends with its process
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec

from kubereef.node.images.control import Control
from kubereef.node.images.errors import DiskFull, ImageInUse
from kubereef.node.images.image import Bind, Image, User
from kubereef.node.images.layers import Layer, build_layer, layer_key, layer_title
from kubereef.node.images.locks import Locks
from kubewire.sources import Clock

_FULL = (errno.ENOSPC, errno.EDQUOT)


class LayerNote(msgspec.Struct, frozen=True):
    """What layer.json holds: its presence makes a layer whole."""

    title: str
    size: int


class Record(msgspec.Struct, frozen=True):
    """An image as it is stored: everything of an Image but where its layers are."""

    reference: str
    layers: tuple[str, ...]  # keys of the store, or absolute paths of directories that a recipe named
    binds: tuple[Bind, ...] = ()
    env: dict[str, str] = {}
    user: User = User()
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """A digest of what the image is made of and how it runs."""
        return "sha256:" + sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


class Stored(NamedTuple):
    """An image of the store, for lists."""

    reference: str
    digest: str
    size: int
    last_used: float  # seconds since 1970
    in_use: bool


class Present(NamedTuple):
    """An image of the store, by all its names, as a node tells of it."""

    names: tuple[str, ...]
    size: int


class Lease:
    """As long as it is held, no process removes the image. Ends with `release`, or with this process."""

    def __init__(self) -> None:
        self._descriptors: list[int] = []

    def add(self, descriptor: int) -> None:
        """Take over a lock, to be let go of with the others."""
        self._descriptors.append(descriptor)

    def release(self) -> None:
        """Let go; a second time does nothing."""
        while self._descriptors:
            os.close(self._descriptors.pop())


class Store:
    """The images and layers under one directory. Every method blocks; none needs an event loop."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._clock = clock
        self._layers = directory / "layers"
        self._images = directory / "images"
        self._unfinished = directory / "unfinished"
        for folder in (self._layers, self._images, self._unfinished, directory / "locks"):
            folder.mkdir(parents=True, exist_ok=True)
        self._locks = Locks(directory / "locks")
        self.clean()

    def has_layer(self, key: str) -> bool:
        """Whether a layer is there and whole."""
        return self._note_file(key).is_file()

    def layer_path(self, key: str) -> Path:
        """Where a layer's files are."""
        return Path(key) if key.startswith("/") else self._layers / key / "tree"

    def make_layer(self, layer: Layer, control: Control, needs: int = 0) -> str:
        """Make a layer unless it is there, one process at a time; return its key."""
        key = layer_key(layer)
        # Whoever made it goes on holding it for its use, so what ends the wait is the layer, not only the lock.
        while not self.has_layer(key):
            held = self._locks.alone(key)
            if held is None:
                control.tell("waiting", "another process makes this image")
                control.wait()
                continue
            try:
                if not self.has_layer(key):
                    self._require_room(needs)
                    self._remove_tree(self._layers / key)
                    with _disk_errors(self._layers):
                        self._build(key, layer, control)
            finally:
                os.close(held)
        return key

    def hold_layer(self, key: str, lease: Lease) -> None:
        """Have a lease hold one layer as well, unless it is being removed at this moment."""
        descriptor = self._locks.share(key)
        if descriptor is not None:
            lease.add(descriptor)

    def write_record(self, record: Record) -> None:
        """Store an image under its reference; the caller holds a lease of it."""
        file = self._record_file(record.reference)
        name = f"{_hex(record.digest)}."  # the lease keeps `clean` away from it
        with tempfile.NamedTemporaryFile(prefix=name, dir=self._unfinished, delete=False) as new:
            new.write(msgspec.json.encode(record))
            new.flush()
            os.fsync(new.fileno())
        Path(new.name).replace(file)
        self._touch(file)

    def read_record(self, reference: str) -> Record | None:
        """Return a stored image, if it and all its layers are there."""
        record = self._decoded(self._record_file(reference))
        return record if record is not None and self.is_whole(record) else None

    def is_whole(self, record: Record) -> bool:
        """Whether all layers of an image are there."""
        return all(
            Path(key).is_dir() if key.startswith("/") else self.has_layer(key) for key in record.layers
        )

    def lease(self, record: Record) -> Lease | None:
        """Hold an image and its layers; None when one is being removed or is gone already."""
        with ExitStack() as undo:
            lease = Lease()
            undo.callback(lease.release)
            for name in (_hex(record.digest), *_keys(record)):
                descriptor = self._locks.share(name)
                if descriptor is None:
                    return None
                lease.add(descriptor)
            # Only now is it certain that nobody removed something in between.
            if not self.is_whole(record):
                return None
            undo.pop_all()
        with suppress(FileNotFoundError):
            self._touch(self._record_file(record.reference))
        return lease

    def image(self, record: Record) -> Image:
        """Return a stored image with its layers' places, and those binds that this machine still has."""
        return Image(
            reference=record.reference,
            digest=record.digest,
            layers=tuple(self.layer_path(key) for key in record.layers),
            binds=tuple(bind for bind in record.binds if Path(bind.source).exists()),
            env=record.env,
            user=record.user,
            workdir=record.workdir,
            entrypoint=record.entrypoint,
            command=record.command,
            warnings=record.warnings,
            size=sum(self._size(key) for key in _keys(record)),
        )

    def present(self) -> list[Present]:
        """Return what images there are, the largest first; unlike `list` it looks at no lock, so it disturbs nobody."""
        found = [self.image(record) for _, record in self._records() if self.is_whole(record)]
        found.sort(key=lambda image: (-image.size, image.reference))
        return [Present((image.id, image.reference), image.size) for image in found]

    def list(self) -> list[Stored]:
        """Return all images, the one that was used last first."""
        found = []
        for file, record in self._records():
            held = self._locks.alone(_hex(record.digest))
            if held is not None:
                os.close(held)
            size = sum(self._size(key) for key in _keys(record))
            found.append(Stored(record.reference, record.digest, size, file.stat().st_mtime, held is None))
        return sorted(found, key=lambda image: (-image.last_used, image.reference))

    def usage(self) -> int:
        """Return the bytes that all layers take on disk."""
        return sum(self._size(folder.name) for folder in self._layers.iterdir())

    def remove(self, reference: str) -> int:
        """Forget an image and remove the layers that no other has; return the bytes that this freed."""
        file = self._record_file(reference)
        record = self._decoded(file)
        if record is not None and not self._forget(file, record):
            raise ImageInUse(f"{reference} is used by a container; end it first")
        return self._sweep()

    def prune(self, max_age: timedelta | None = None, max_bytes: int | None = None) -> int:
        """Remove images unused for longer than max_age, and then the least recently used until max_bytes hold.

        What a container uses stays. Layers that no image has go as well. Returns the bytes that this freed.
        """
        freed = self.clean() + self._sweep()
        now = self._clock.now().timestamp()
        for file, record in sorted(self._records(), key=lambda entry: entry[0].stat().st_mtime):
            too_old = max_age is not None and now - file.stat().st_mtime > max_age.total_seconds()
            too_much = max_bytes is not None and self.usage() > max_bytes
            if (too_old or too_much) and self._forget(file, record):
                freed += self._sweep()
        return freed

    def clean(self) -> int:
        """Remove what interrupted builds and removals left; return the bytes that this freed."""
        freed = 0
        for left in self._unfinished.iterdir():
            held = self._locks.alone(left.name.partition(".")[0])
            if held is None:
                continue  # somebody works on it
            try:
                freed += _disk_size(left)
                self._remove_tree(left)
            finally:
                os.close(held)
        return freed

    def _build(self, key: str, layer: Layer, control: Control) -> None:
        work = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=self._unfinished))
        try:
            whole = work / "layer"
            tree = whole / "tree"
            tree.mkdir(parents=True)
            tree.chmod(0o755)
            scratch = work / "scratch"
            scratch.mkdir()
            build_layer(layer, tree, scratch, control)
            control.tell("storing", layer_title(layer))
            # After a loss of power a layer is whole or not there: its files reach the disk before its name does.
            os.sync()
            note = LayerNote(layer_title(layer), _disk_size(tree))
            (whole / "layer.json").write_bytes(msgspec.json.encode(note))
            whole.rename(self._layers / key)
        finally:
            self._remove_tree(work)

    def _require_room(self, needs: int) -> None:
        free = shutil.disk_usage(self._layers).free
        if free < needs:
            raise DiskFull(
                f"{self._layers} has {free >> 20} MiB free and this image needs {needs >> 20}; "
                "remove what is not needed, prune images, or put the cache on another disk"
            )

    def _forget(self, file: Path, record: Record) -> bool:
        held = self._locks.alone(_hex(record.digest))
        if held is None:
            return False
        try:
            file.unlink(missing_ok=True)
        finally:
            os.close(held)
        return True

    def _sweep(self) -> int:
        """Remove layers that no image has and nobody makes or uses."""
        kept = {key for _, record in self._records() for key in record.layers}
        freed = 0
        for folder in self._layers.iterdir():
            if folder.name in kept:
                continue
            held = self._locks.alone(folder.name)
            if held is None:
                continue
            try:
                freed += self._size(folder.name)
                # First out of sight, so that a removal cut short does not look like a layer.
                gone = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=self._unfinished))
                folder.rename(gone / "layer")
                self._remove_tree(gone)
            finally:
                os.close(held)
        return freed

    def _records(self) -> Iterator[tuple[Path, Record]]:
        for file in sorted(self._images.glob("*.json")):
            record = self._decoded(file)
            if record is not None:
                yield file, record

    def _decoded(self, file: Path) -> Record | None:
        try:
            return msgspec.json.decode(file.read_bytes(), type=Record)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None  # an image of another version counts as absent, and its layers as unused

    def _record_file(self, reference: str) -> Path:
        return self._images / f"{sha256(reference.encode()).hexdigest()[:40]}.json"

    def _note_file(self, key: str) -> Path:
        return self._layers / key / "layer.json"

    def _size(self, key: str) -> int:
        try:
            return msgspec.json.decode(self._note_file(key).read_bytes(), type=LayerNote).size
        except (OSError, msgspec.MsgspecError):
            return 0  # being removed at this moment

    def _touch(self, file: Path) -> None:
        now = self._clock.now().timestamp()
        os.utime(file, (now, now))

    def _remove_tree(self, folder: Path) -> None:
        if folder.is_dir():
            shutil.rmtree(folder)
        else:
            folder.unlink(missing_ok=True)


@contextmanager
def _disk_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(
                f"no room left on the disk of {place}; prune images or use another disk"
            ) from error
        raise
    except DiskFull as full:
        raise DiskFull(f"{full} ({place}); prune images or use another disk") from full


def _keys(record: Record) -> Iterable[str]:
    return [key for key in record.layers if not key.startswith("/")]


def _hex(digest: str) -> str:
    return digest.partition(":")[2][:40]


def _disk_size(tree: Path) -> int:
    seen: set[tuple[int, int]] = set()
    total = 0
    for directory, _, files in os.walk(tree):
        for name in files:
            facts = os.lstat(Path(directory, name))
            if facts.st_nlink == 1 or (facts.st_dev, facts.st_ino) not in seen:
                seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_blocks * 512
    return total
