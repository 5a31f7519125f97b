"""One real node for all tables; every Pod of them is made at once, and then looked at one by one."""

import json
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.kubereef.node.machine.realnode import (
    PODS,
    NodeReef,
    Refused,
    host_devices,
    host_traces,
    left_since,
    require_node,
)
from tests.kubereef.node.pods.table import Entry, differences, filled, read_table

TABLES = ("life", "probes", "world", "network", "security")
PATIENCE = 110.0  # a Python is copied first, which takes a few seconds, or many on a busy machine
LOOK_EVERY = 0.2
NODE = "kubereef"
# A /dev of the machine's own devices and two GPUs, which only the Kubereef that is started in it sees.
WITH_GPUS = """
set -e
mount -t tmpfs -o mode=0755 dev "$0/dev"
for name in null zero full random urandom tty ptmx; do cp -a /dev/$name "$0/dev/$name"; done
for name in nvidia0 nvidia1 nvidiactl; do mknod -m 666 "$0/dev/$name" c 1 3; done
for name in pts shm; do mkdir "$0/dev/$name"; mount --rbind /dev/$name "$0/dev/$name"; done
mount --rbind "$0/dev" /dev
exec "$@"
"""
RECIPES = """
recipes:
  - image: example.com/python
    tag: '3(?P<minor>\\.\\d+)?'
    python: {prefix: /opt/python, version: "3{minor}"}
    env: {PATH: "/opt/python/bin:/usr/bin:/bin"}
  - image: example.com/own
    directory: own
"""


class Reef(NodeReef):
    """A node whose machine has GPUs and recipes of its own, with the Pods of all tables."""

    def __init__(self, directory: Path) -> None:
        self.deadline = 0.0
        self.recipes = directory / "recipes"
        (self.recipes / "own" / "own").mkdir(parents=True)
        (self.recipes / "own" / "own" / "word").write_text("my own\n")
        (self.recipes / "own.yaml").write_text(RECIPES)
        self.images = directory / "cache" / "images"
        self.kept = directory / "kept"
        self.kept.mkdir(mode=0o777)
        (directory / "dev").mkdir()
        wrapper = ("unshare", "--mount", "--propagation", "private", "sh", "-c", WITH_GPUS, str(directory))
        super().__init__(
            directory / "data",
            "--in-memory",
            *("--resource", "example.com/thing=2"),
            *("--recipes", str(self.recipes), "--image-cache", str(directory / "cache")),
            wrapper=wrapper,
        )
        self.refused: dict[str, str] = {}
        self.found: dict[str, list[str]] = {}  # what was not right when a Pod was last looked at
        self.done: set[str] = set()
        self.is_over = threading.Event()
        self._seen: dict[str, dict[str, Any]] = {}

    def values(self, entry: Entry) -> dict[str, str]:
        """What the braces in a table stand for."""
        pod = self._seen.get(entry.name, {})
        return {
            "name": entry.name,
            "node": NODE,
            "kept": str(self.kept),
            "data": str(self.directory),
            "recipes": str(self.recipes),
            "uid": pod.get("metadata", {}).get("uid", ""),
            "ip": pod.get("status", {}).get("podIP", ""),
        }

    def make(self, entry: Entry) -> str:
        """Make an entry's objects and its Pod; return why that was refused."""
        try:
            for one in entry.objects:
                request = filled(one, self.values(entry))
                self.send("POST", request["path"], request["body"])
            self.send("POST", PODS, filled(entry.pod, self.values(entry)))
        except Refused as refusal:
            return str(refusal)
        return ""

    def look(self) -> dict[str, dict[str, Any]]:
        """Return all Pods as they are now."""
        self.is_over.wait(LOOK_EVERY)
        self._seen = {pod["metadata"]["name"]: pod for pod in self.send("GET", PODS)["items"]}
        return self._seen

    def problems(self, entry: Entry) -> list[str]:
        """Return in words what of an entry is not as it should be (yet)."""
        pod, expected, values = self._seen.get(entry.name, {}), entry.expected, self.values(entry)
        if "gone" in expected:
            word = self.kept / entry.name
            said = word.read_text() if word.exists() else ""
            found = [f"it is there: {pod['status'].get('phase')}"] if pod else []
            return found or differences(expected["gone"], said, values, "last word")
        found = differences(expected.get("pod", {}), pod, values)
        if found:
            return found
        for name, want in expected.get("logs", {}).items():
            found += differences(want, self.log(entry.name, f"container={name}"), values, f"log of {name}")
        if wanted := expected.get("events"):
            path = f"/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D{entry.name}"
            told = [(one["reason"], one["message"]) for one in self.send("GET", path)["items"]]
            for reason, message in wanted:
                if not any(reason == r and not differences(message, m, values) for r, m in told):
                    found.append(f"no event {reason} {message!r} among {json.dumps(told, indent=1)}")
        return found

    def observe(self, entries: list[Entry]) -> None:
        """Look at all Pods until each was once as it should be, and do to them what is to be done on the way."""
        to_do = {entry.name for entry in entries if entry.when is not None}
        for entry in entries:
            self.found[entry.name] = ["nobody has looked yet"]
        left = [entry for entry in entries if not self.refused[entry.name]]
        right_since: dict[str, float] = {}
        while left and not self.is_over.is_set():
            pods = self.look()
            for entry in tuple(left):
                if entry.name in to_do:
                    if not differences(entry.when, pods.get(entry.name, {}), self.values(entry)):
                        to_do.discard(entry.name)
                        self._act(entry)
                    continue
                self.found[entry.name] = self.problems(entry)
                if self.found[entry.name]:
                    right_since.pop(entry.name, None)
                elif time.monotonic() - right_since.setdefault(entry.name, time.monotonic()) >= entry.lasts:
                    left.remove(entry)
                    self.done.add(entry.name)

    def _act(self, entry: Entry) -> None:
        for one in entry.then:
            request = filled(one, self.values(entry))
            self.send(request["method"], request["path"], request.get("body"))


@pytest.fixture(scope="session")
def pods():
    directory = Path(tempfile.mkdtemp(prefix="pods-"))
    require_node(directory)
    entries = [entry for name in TABLES for entry in read_table(name)]
    traces, devices = host_traces(), host_devices()
    try:
        with Reef(directory) as reef:
            with ThreadPoolExecutor(8) as many:
                reef.refused = dict(zip((e.name for e in entries), many.map(reef.make, entries), strict=True))
            reef.deadline = time.monotonic() + PATIENCE
            with ThreadPoolExecutor(1) as one:
                watching = one.submit(reef.observe, entries)
                try:
                    yield reef
                finally:
                    reef.is_over.set()
                watching.result()
            assert reef.stop() == ""
        assert not left_since(traces)
        assert host_devices() == devices
    finally:
        shutil.rmtree(directory)
