"""A directory as Ray takes it: one zip file, the same for the same files, named by what is in it.

    package = packed(Path("."), excludes=("data/",))
    package.uri                                        # gcs://_ray_pkg_<hash>.zip

What .gitignore and .rayignore files leave out stays behind, and so do .git, .venv, venv and __pycache__.
"""

import hashlib
import io
import os
import stat
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from eagleray.cli.ignoring import Rule, read_rules, verdict
from eagleray.cli.tables import size

MOST_BYTES: Final = 100 * 1024 * 1024
"""What Ray's dashboard takes as one request."""

# Much of nothing packs well: this bounds how long it takes to find out.
_MOST_RAW: Final = 4 * 2**30
_MOST_FILES: Final = 200_000
_ALWAYS: Final = (".git/", ".venv/", "venv/", "__pycache__/")
_RULE_FILES: Final = (".gitignore", ".rayignore")
_PORTION: Final = 2**20
_EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
_UNIX: Final = 3


class NotPacked(Exception):
    """The directory cannot be sent; the message says why, and what helps."""


class Package(NamedTuple):
    """A packed directory."""

    name: str
    data: bytes
    files: int

    @property
    def uri(self) -> str:
        return f"gcs://{self.name}"


class _Entry(NamedTuple):
    path: Path
    name: str
    status: os.stat_result


# Rules, and how many steps of a path lead to the directory that they are for.
_Layer = tuple[int, tuple[Rule, ...]]
# A directory, the steps that lead to it, the rules above it, and which directories it is inside of.
_Folder = tuple[Path, tuple[str, ...], dict[str, tuple[_Layer, ...]], frozenset[tuple[int, int]]]


def packed(directory: Path, excludes: Sequence[str] = (), most: int = MOST_BYTES) -> Package:
    """Return a directory's files as one package; raises NotPacked."""
    if not directory.is_dir():
        raise NotPacked(f"{directory} is no directory")
    archive, content = io.BytesIO(), hashlib.sha256()
    raw = files = 0
    largest: list[tuple[int, str]] = []
    try:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as writer:
            for entry in _entries(directory, excludes):
                files += 1
                raw += entry.status.st_size if stat.S_ISREG(entry.status.st_mode) else 0
                largest = sorted([*largest, (entry.status.st_size, entry.name)], reverse=True)[:3]
                if raw > _MOST_RAW or files > _MOST_FILES:
                    raise _too_much(directory, most, largest)
                _add(writer, entry, content)
                if archive.tell() > most:
                    raise _too_much(directory, most, largest)
    except OSError as bad:
        raise NotPacked(f"{bad.filename or directory}: {bad.strerror or bad}") from bad
    except UnicodeEncodeError as bad:
        raise NotPacked(f"{directory}: a file name is no UTF-8: {bad.object!r}") from bad
    if archive.tell() > most:
        raise _too_much(directory, most, largest)
    return Package(f"_ray_pkg_{content.hexdigest()[:32]}.zip", archive.getvalue(), files)


def _add(writer: zipfile.ZipFile, entry: _Entry, content: "hashlib._Hash") -> None:
    is_directory = stat.S_ISDIR(entry.status.st_mode)
    is_program = bool(entry.status.st_mode & stat.S_IXUSR)
    # Neither times nor owners, which differ from checkout to checkout, are part of it.
    info = zipfile.ZipInfo(f"{entry.name}/" if is_directory else entry.name, _EARLIEST)
    info.create_system = _UNIX
    kind = stat.S_IFDIR if is_directory else stat.S_IFREG
    info.external_attr = (kind | (0o755 if is_program or is_directory else 0o644)) << 16
    info.compress_type = zipfile.ZIP_STORED if is_directory else zipfile.ZIP_DEFLATED
    content.update(f"{len(info.filename)}:{info.filename}:{info.external_attr}:".encode())
    if is_directory:
        writer.writestr(info, b"")
        return
    of_file = hashlib.sha256()
    with entry.path.open("rb") as reader, writer.open(info, "w", force_zip64=True) as target:
        while portion := reader.read(_PORTION):
            of_file.update(portion)
            target.write(portion)
    content.update(of_file.digest())


def _too_much(directory: Path, most: int, largest: Sequence[tuple[int, str]]) -> NotPacked:
    named = ", ".join(f"{name} ({size(number)})" for number, name in largest)
    return NotPacked(
        f"{directory} packs to more than {size(most)}, the most that Ray takes; the largest files are {named}: "
        "leave them out by a .rayignore file, which is written like a .gitignore"
    )


# --- what is in it


def _entries(directory: Path, excludes: Sequence[str]) -> Iterator[_Entry]:
    """Yield files and directories in the order of their names; links are followed."""
    fixed: _Layer = (0, read_rules("\n".join((*_ALWAYS, *excludes))))
    top = directory.stat()
    chosen: dict[str, tuple[_Layer, ...]] = dict.fromkeys(_RULE_FILES, ())
    waiting: list[_Folder] = [(directory, (), chosen, frozenset({(top.st_dev, top.st_ino)}))]
    while waiting:
        folder, names, above, inside = waiting.pop()
        layers = {file: (*found, *_layer(folder / file, len(names))) for file, found in above.items()}
        below: list[_Folder] = []
        with os.scandir(folder) as listed:
            present = sorted(listed, key=lambda one: one.name)
        for one in present:
            steps = (*names, one.name)
            is_directory = one.is_dir()
            if not is_directory and not one.is_file():
                continue  # sockets, pipes, and links that lead nowhere
            if _is_left_out((fixed,), steps, is_directory=is_directory) or any(
                _is_left_out(found, steps, is_directory=is_directory) for found in layers.values()
            ):
                continue
            status = one.stat()
            yield _Entry(Path(one.path), "/".join(steps), status)
            if is_directory:
                identity = (status.st_dev, status.st_ino)
                if identity in inside:
                    raise NotPacked(f"{one.path} leads back into a directory that it is in; leave it out")
                below.append((Path(one.path), steps, layers, inside | {identity}))
        waiting.extend(reversed(below))


def _layer(file: Path, depth: int) -> Iterator[_Layer]:
    if file.is_file():
        yield depth, read_rules(file.read_text(encoding="utf-8", errors="replace"))


def _is_left_out(layers: Sequence[_Layer], steps: tuple[str, ...], *, is_directory: bool) -> bool:
    """Tell what the rules say; those of the nearest directory count most."""
    for depth, rules in reversed(layers):
        said = verdict(rules, steps[depth:], is_directory=is_directory)
        if said is not None:
            return said
    return False
