"""What a run has come to: the objects without what chance and time put into them, and how many Pods there were."""

import asyncio
import re
from collections import Counter
from contextlib import aclosing, asynccontextmanager

import msgspec

from eagleray.kube.client import Client
from eagleray.kube.requests import Selection
from eagleray.kube.resources import PODS
from kubereef.simulation import settle
from kubewire.sources import SeededEntropy
from tests.eagleray.kube.local import transport_to
from tests.eagleray.world import PATHS

# Of chance and of time: replaced in all texts.
_RANDOM = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "<address>"),
    (re.compile(r"kube-api-access-[a-z0-9]{5}"), "kube-api-access-<any>"),
    (re.compile(r"scripted://[^\"]+"), "<container>"),
    # Of Ray: which start of a head, when a submitter was asked for, and how long the stages of a job took.
    (re.compile(r"session_[0-9_-]+"), "<session>"),
    (re.compile(r" \d{10} \|\|"), " <seconds> ||"),
    (re.compile(r'took: [^"]+'), "<stages>"),
    (re.compile(r"-\d{8}\b"), "-<minute>"),
)
_VERSIONS = ("resourceVersion", "managedFields", "selfLink")


async def state_of(world, namespace, kinds):
    """Return all objects of a namespace in a form in which two runs can be compared, as sorted texts."""
    found = [obj for kind in kinds for obj in await world.list(kind, namespace=namespace)]
    names = {
        obj["metadata"]["name"]: f"{obj['metadata']['generateName']}<any>"
        for obj in found
        if obj["metadata"].get("generateName")
    }
    for obj in found:
        if obj.get("kind") == "RayJob":
            chosen = obj.get("status") or {}
            names |= {chosen[key]: f"<{key}>" for key in ("rayClusterName", "jobId") if key in chosen}
        if obj.get("kind") == "RayService":
            for side in ("activeServiceStatus", "pendingServiceStatus"):
                chosen = (obj.get("status") or {}).get(side) or {}
                names |= {chosen["rayClusterName"]: f"<{side}>"} if "rayClusterName" in chosen else {}
    if any((obj.get("spec") or {}).get("submissionMode") == "SidecarMode" for obj in found):
        names |= {stamp: "<hash of the id>" for obj in found if (stamp := _hash_of(obj))}
    return sorted(_normal(obj, namespace, names) for obj in found)


def _hash_of(obj):
    return (obj["metadata"].get("annotations") or {}).get("ray.io/upgrade-strategy-recreate-hash")


def _normal(obj, namespace, names):
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _VERSIONS}
    text = msgspec.json.encode({**obj, "metadata": metadata}, order="deterministic").decode()
    for name, normal in names.items():
        text = text.replace(name, normal)
    text = text.replace(namespace, "<namespace>")
    for pattern, normal in _RANDOM:
        text = pattern.sub(normal, text)
    return text


def differences(got, want):
    """Return what is only in one of two states."""
    extra, missing = Counter(got) - Counter(want), Counter(want) - Counter(got)
    return [f"only here: {text}" for text in extra] + [f"missing: {text}" for text in missing]


class PodCounts:
    """Counts Pods as the server tells of them, and looks for two heads at once."""

    def __init__(self):
        self.created = set()
        self.deleted = set()
        self.pods = {}
        self.wrong = []
        self.checks = []

    def see(self, kind, pod):
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self.deleted.add(uid)
            self.pods.pop(uid, None)
        else:
            self.created.add(uid)
            self.pods[uid] = pod
        for check in self.checks:
            if trouble := check(self.pods.values()):
                self.wrong.append(trouble)

    @property
    def numbers(self):
        return len(self.created), len(self.deleted)


def one_head(pods):
    """Say what is wrong if a cluster has two heads."""
    heads = Counter(
        pod["metadata"]["labels"].get("ray.io/cluster")
        for pod in pods
        if pod["metadata"].get("labels", {}).get("ray.io/node-type") == "head"
    )
    return [f"{cluster} has {number} heads" for cluster, number in heads.items() if number > 1]


@asynccontextmanager
async def counted_pods(world, namespace):
    """Give the counts of a namespace's Pods from now on."""
    counts = PodCounts()
    counts.checks.append(one_head)
    client = Client(transport_to(world.simulated.server), world.clock, SeededEntropy("counts"))

    async def follow():
        version = ""
        while True:  # a server ends watches from time to time
            watch = client.watch(PODS, Selection(namespace), version=version, with_present=not version)
            async with aclosing(watch) as batches:
                async for batch in batches:
                    for event in batch:
                        obj = msgspec.json.decode(event.object)
                        version = obj["metadata"]["resourceVersion"]
                        if event.type != "BOOKMARK":
                            counts.see(event.type, obj)

    task = asyncio.create_task(follow(), name=f"counting Pods of {namespace}")
    await settle()
    try:
        yield counts
    finally:
        task.cancel()
        ended = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError), f"counting ended early: {ended}"


# A scenario names those that not every world serves; events and EndpointSlices say nothing new.
_OTHERS = ("Event", "Lease", "EndpointSlice", "RayJob", "RayService", "RayCronJob", "Gateway", "HTTPRoute")
KINDS = tuple(kind for kind in PATHS if kind not in _OTHERS)
