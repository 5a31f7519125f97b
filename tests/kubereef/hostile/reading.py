"""What was written is read again: by name, in lists, by a watch, and in every form that a client can ask for."""

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

from tests.kubereef.hostile.aims import Attack
from tests.kubereef.hostile.judging import Answer, Finding
from tests.kubereef.hostile.surface import Surface

Object = dict[str, Any]
Ask = Callable[[Attack], Awaitable[Answer]]

_FORMS = (
    "application/json",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/yaml",
)
_PARTS = ("status", "scale", "binding", "ephemeralcontainers", "resize", "finalize", "token", "eviction")
# What is answered by a part that shows something other than the object it belongs to.
_OF_PARTS = ("Scale", "TokenRequest", "Binding", "Eviction", "Status")


def written_object(attack: Attack, answer: Answer) -> tuple[str, Object] | None:
    """Return where an object is and what it is, if a request has written one."""
    is_write = attack.method in ("POST", "PUT", "PATCH") and answer.status in (200, 201)
    if not is_write or "dryRun" in attack.target or not answer.media_type.startswith("application/json"):
        return None
    obj = json.loads(answer.body)
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or not metadata.get("uid") or not metadata.get("name"):
        return None  # a review or a binding
    if obj["kind"].startswith("PartialObjectMetadata"):
        return None
    path = attack.path.rstrip("/")
    head, _, last = path.rpartition("/")
    if last in _PARTS:
        return (head, obj) if obj["kind"] not in _OF_PARTS else None
    return (path, obj) if attack.method != "POST" else (f"{path}/{quote(metadata['name'], safe='')}", obj)


async def read_back(ask: Ask, path: str, obj: Object, *, alone: bool) -> str:
    """Return why an object that a write was answered with cannot be read, or nothing.

    Somebody who is `alone` finds exactly what was answered; where controllers run, it may have been changed since.
    """
    answer = await ask(Attack("reading", "GET", path))
    if answer.status == 404 and (_is_ending(obj) or (not alone and may_be_collected(obj))):
        return ""
    if answer.status != 200:
        return f"what was written cannot be read: {answer.status} {answer.body[:300]!r}"
    found = json.loads(answer.body)
    is_same = version_of(found) == version_of(obj)
    # What follows from a definition is written into its status right after the write that led to it.
    alone = alone and obj["kind"] != "CustomResourceDefinition"
    if found != obj and (alone or is_same) and not _is_ending(obj):
        return f"another object is read than was written: {answer.body[:600]!r}"
    for form in _FORMS[1:]:
        answer = await ask(Attack("reading", "GET", path, (("Accept", form),)))
        if answer.status != 200 and not (answer.status == 404 and not alone):
            return f"what was written cannot be read as {form}: {answer.status} {answer.body[:300]!r}"
    return ""


def _is_ending(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def may_be_collected(obj: Object) -> bool:
    """Tell whether a controller may delete an object: it is ending, has owners, or is something that runs to an end."""
    is_run = obj.get("kind", "") in ("Job", "Pod")
    return _is_ending(obj) or bool(obj["metadata"].get("ownerReferences")) or is_run


async def versions(ask: Ask, surface: Surface) -> dict[str, int]:
    """Return the resource version of each stored object."""
    found = {}
    for path in _collections(surface):
        answer = await ask(Attack("reading", "GET", path))
        for item in json.loads(answer.body).get("items", ()):
            found[_name(path, item)] = version_of(item)
    return found


async def everything(ask: Ask, surface: Surface) -> tuple[dict[str, Object], list[Finding]]:
    """Return all stored objects by kind and name, and what is wrong with how lists, gets and watches show them."""
    stored: dict[str, Object] = {}
    findings: list[Finding] = []
    for path in _collections(surface):
        listing = Attack("reading", "GET", path)
        answer = await ask(listing)
        if answer.status != 200:
            findings.append(Finding(f"a list fails: {answer.status} {answer.body[:300]!r}", listing))
            continue
        items = json.loads(answer.body)["items"]
        here = {_name(path, item): item for item in items}
        stored.update(here)
        if (watched := await _watched(ask, path)) != {name: version_of(item) for name, item in here.items()}:
            findings.append(Finding(f"a watch from 0 shows other objects than the list: {watched}", listing))
        for item in items:
            getting = Attack("reading", "GET", _path(path, item))
            answer = await ask(getting)
            if answer.status != 200 or version_of(json.loads(answer.body)) != version_of(item):
                findings.append(Finding(f"a listed object cannot be read: {answer.status}", getting))
        for form in _FORMS[1:]:
            in_form = listing._replace(headers=(("Accept", form.replace("Metadata;", "MetadataList;")),))
            answer = await ask(in_form)
            if answer.status != 200:
                findings.append(Finding(f"a list fails: {answer.status} {answer.body[:300]!r}", in_form))
    return stored, findings


def _collections(surface: Surface) -> list[str]:
    return [one.path for one in surface.lists if "{namespace}" not in one.path]


async def _watched(ask: Ask, path: str) -> dict[str, int]:
    """Return the version of each object that a watch from 0 begins with."""
    query = "watch=true&resourceVersion=0&sendInitialEvents=true&allowWatchBookmarks=true"
    query += "&resourceVersionMatch=NotOlderThan"
    answer = await ask(Attack("reading", "GET", f"{path}?{query}", until=b"k8s.io/initial-events-end"))
    assert answer.status == 200, answer
    events = [json.loads(line) for line in answer.body.splitlines()]
    return {_name(path, one["object"]): version_of(one["object"]) for one in events if one["type"] == "ADDED"}


def version_of(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _name(path: str, obj: Object) -> str:
    return f"{path} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _path(collection: str, obj: Object) -> str:
    """Return where an object is that was found in a list of all namespaces."""
    head, _, plural = collection.rpartition("/")
    namespace = obj["metadata"].get("namespace")
    place = f"{head}/namespaces/{namespace}" if namespace else head
    return f"{place}/{plural}/{quote(obj['metadata']['name'], safe='')}"
