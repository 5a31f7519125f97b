"""The two things that moving a program needs of its file: which libraries it wants, and where it looks for them.

Only the dynamic section is read, with bounds on everything, and the search path is replaced in place, where it
fits; a file that is no ELF program is left alone.
"""

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

_MAGIC = b"\x7fELF"
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_MAX_ENTRIES = 4096


class Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


class Dynamic(NamedTuple):
    """A program's wishes to the dynamic linker."""

    needed: tuple[str, ...] = ()
    search_path: str = ""
    search_path_offset: int = 0


def read_dynamic(path: Path) -> Dynamic:
    """Return what a program or library asks of the dynamic linker; nothing for other files."""
    try:
        with path.open("rb") as file:
            if file.read(4) != _MAGIC:
                return Dynamic()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _dynamic(data)
    except (struct.error, IndexError, OverflowError):
        return Dynamic()  # cut short or deliberately odd: not a file that Python was built of


def replace_search_path(path: Path, new: str) -> bool:
    """Make a program look for its libraries in `new` instead; False when the old entry is too short for it."""
    found = read_dynamic(path)
    raw = new.encode()
    if not found.search_path or len(raw) > len(found.search_path.encode()):
        return False
    with path.open("r+b") as file:
        file.seek(found.search_path_offset)
        file.write(raw.ljust(len(found.search_path.encode()), b"\0"))
    return True


def _dynamic(data: mmap.mmap) -> Dynamic:
    wide = data[4] == 2
    order = "<" if data[5] == 1 else ">"
    segments = _segments(data, wide, order)
    entry = struct.Struct(order + ("qQ" if wide else "iI"))
    tags: list[tuple[int, int]] = []
    for segment in segments:
        if segment.kind != _PT_DYNAMIC:
            continue
        for index in range(min(segment.size // entry.size, _MAX_ENTRIES)):
            tag, value = entry.unpack_from(data, segment.offset + index * entry.size)
            if tag == 0:
                break
            tags.append((tag, value))
    strings = next((_offset(segments, value) for tag, value in tags if tag == _DT_STRTAB), None)
    if strings is None:
        return Dynamic()
    needed = tuple(_text(data, strings + value) for tag, value in tags if tag == _DT_NEEDED)
    for tag, value in tags:
        if tag in (_DT_RPATH, _DT_RUNPATH):
            return Dynamic(needed, _text(data, strings + value), strings + value)
    return Dynamic(needed)


def _segments(data: mmap.mmap, wide: bool, order: str) -> list[Segment]:
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 32 if wide else 28)
    entry_size, count = struct.unpack_from(order + "HH", data, 54 if wide else 42)
    segments = []
    for index in range(min(count, _MAX_ENTRIES)):
        at = table + index * entry_size
        if wide:
            kind, _, offset, address, _, size = struct.unpack_from(order + "IIQQQQ", data, at)
        else:
            kind, offset, address, _, size = struct.unpack_from(order + "IIIII", data, at)
        segments.append(Segment(kind, offset, address, size))
    return segments


def _offset(segments: list[Segment], address: int) -> int | None:
    for segment in segments:
        if segment.kind == _PT_LOAD and segment.address <= address < segment.address + segment.size:
            return address - segment.address + segment.offset
    return None


def _text(data: mmap.mmap, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)
    return data[at:end].decode(errors="replace") if end > at else ""
