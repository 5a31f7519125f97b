"""Files of a volume that would stand at the same place, or one inside another."""

from collections.abc import Iterator
from typing import NamedTuple

from kubereef.kinds.resource import Object
from kubewire.gotext import quote


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def overlapping_paths(volumes: list[Object]) -> Iterator[str]:
    """Yield a warning for every pair of files that get in each other's way."""
    for volume in volumes:
        name = quote(volume.get("name", ""))
        for kind, described in _described(volume):
            files = [_File(item.get("path", ""), "") for item in volume[kind].get("items") or ()]
            yield from _collisions(f"volume {name} ({described})", files)
        projected = volume.get("projected")
        if projected is not None:
            sources = projected.get("sources") or []
            for _ in (source for source in sources if not source):
                yield f"volume {name} (Projected) has no sources provided"
            files = [file for source in sources for file in _projected(source)]
            yield from _collisions(f"volume {name} (Projected)", files)


def _described(volume: Object) -> Iterator[tuple[str, str]]:
    if volume.get("configMap") is not None:
        yield "configMap", f"ConfigMap {quote(volume['configMap'].get('name', ''))}"
    if volume.get("secret") is not None:
        yield "secret", f"Secret {quote(volume['secret'].get('secretName', ''))}"
    if volume.get("downwardAPI") is not None:
        yield "downwardAPI", "DownwardAPI"


def _projected(source: Object) -> list[_File]:
    for kind, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if items := (source.get(kind) or {}).get("items"):
            described = f"{title} {quote(source[kind].get('name', ''))}"
            return [_File(item.get("path", ""), described) for item in items]
    if items := (source.get("downwardAPI") or {}).get("items"):
        return [_File(item.get("path", ""), "DownwardAPI") for item in items]
    token = source.get("serviceAccountToken")
    return [_File(token.get("path", ""), "ServiceAccountToken")] if token is not None else []


# Warnings are for people, and paths for file systems: neither gets any better by being longer.
_MOST_WARNINGS = 100
_LONGEST_PATH = 4096


def _collisions(volume: str, files: list[_File]) -> Iterator[str]:
    """Yield the pairs of files of which one is at the place of the other, or in a folder that is the other."""
    found = 0
    at: dict[str, list[int]] = {}
    below: dict[str, list[int]] = {}
    for index, file in enumerate(files):
        path = file.path.rstrip("/")
        files[index] = file._replace(path=path)
        if not path or len(path) > _LONGEST_PATH:
            continue
        folders = list(_folders(path))
        others = [*at.get(path, ()), *below.get(path, ()), *(one for up in folders for one in at.get(up, ()))]
        for other in sorted(others):
            yield f"{volume}: overlapping paths: {files[index]} with {files[other]}"
            found += 1
            if found == _MOST_WARNINGS:
                return
        at.setdefault(path, []).append(index)
        for folder in folders:
            below.setdefault(folder, []).append(index)


def _folders(path: str) -> Iterator[str]:
    """Yield the folders that a path leads through."""
    end = path.rfind("/")
    while end > 0:
        yield path[:end]
        end = path.rfind("/", 0, end)
