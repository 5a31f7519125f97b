"""Samples of the reference, put into a world of ours, each in a namespace of its own."""

from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from eagleray.runtime.events import GATHERING_SECONDS
from kubereef.node.scripted import NodeShape
from kubewire import errors
from kubewire.yamltext import load_all
from tests.conftest import REPOSITORY
from tests.eagleray.gateways import GATEWAY_KINDS, ScriptedGateways
from tests.eagleray.golden.normalise import recording
from tests.eagleray.golden.standin import RunningEverywhere
from tests.eagleray.world import PATHS, world_of

# Large enough for every sample at once, with the labels that some of them ask for.
NODES = (
    NodeShape(
        capacity={
            "cpu": "1000",
            "memory": "4000Gi",
            "pods": "1000",
            "google.com/tpu": "100",
            "nvidia.com/gpu": "100",
        },
        labels={
            "cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice",
            "cloud.google.com/gke-tpu-topology": "2x2x2",
        },
    ),
)


class Due(NamedTuple):
    """Which recordings of a folder are due: those of samples of some kinds, made by an operator with some flags.

    Where `ray_answers`, dashboards say of every job and of every Serve application that it runs, and Gateways are taken
    on; elsewhere nobody answers.
    """

    kinds: tuple[str, ...]
    flags: tuple[str, ...] = ()
    ray_answers: bool = False

    @property
    def variables(self):
        """Where nobody answers, jobs would be given up before a test has seen enough of them."""
        return {} if self.ray_answers else {"RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS": "3600"}

    @property
    def prefixes(self):
        return tuple(PREFIXES[kind] for kind in self.kinds)


PREFIXES = {
    "RayCluster": "ray-cluster.",
    "RayJob": "ray-job.",
    "RayService": "ray-service.",
    "RayCronJob": "ray-cronjob.",
}

# The folders beside the reference's samples. Other kinds of alpha-gates need gates whose features come later.
DUE = {
    "golden": Due(kinds=("RayCluster", "RayJob", "RayService")),
    "golden/with-ray": Due(kinds=("RayJob", "RayService"), ray_answers=True),
    "golden/alpha-gates": Due(kinds=("RayJob",), flags=("--feature-gates=SidecarSubmitterRestart=true",)),
}

# What the world's API server does not serve; nothing that an operator makes depends on it.
UNSERVED = frozenset(("StatefulSet",))

# Whose events are the operator's.
OUR_VOICES = frozenset(f"{kind}-controller" for kind in ("raycluster", "rayjob", "rayservice", "raycronjob"))

REFERENCE = REPOSITORY.parent / "shared" / "data" / "upstream"

QUIET_SECONDS = 5
LONGEST_UNREST = 60


class Sample:
    """A sample with what the reference was recorded to make of it, and its namespace in the world."""

    def __init__(self, name, documents, recorded, folder="golden"):
        self.name = name
        self.folder = folder
        self.documents = documents
        self.recorded = recorded
        self.namespace = f"ns-of-{Path(name).stem.replace('.', '-')}"

    @property
    def applied(self):
        """Kind and name of the documents that the reference's API server took, and ours serves."""
        return {
            (entry["kind"], entry["name"])
            for entry in self.recorded["applied"]
            if entry["result"] == "created" and entry["kind"] not in UNSERVED
        }


def names_of(reference):
    """Return the names of the samples that are due, with their folder; none if the reference material is missing."""
    return [
        f"{folder}/{file.name}"
        for folder, due in DUE.items()
        for file in sorted((reference / folder).glob("*.yaml"))
        if file.name.startswith(due.prefixes)
    ]


def cases_of(reference, part=""):
    """Return the names with a part in them as cases; one that is skipped, with the reason, if there are none."""
    reason = "the reference material is not beside this checkout (../shared/data/upstream)"
    missing = [pytest.param("", marks=pytest.mark.skip(reason=reason), id="missing")]
    return [name for name in names_of(reference) if part in name] or missing


def read_samples(reference):
    """Return the samples that are due, by name."""
    return {name: _read_sample(reference, Path(name)) for name in names_of(reference)}


def _read_sample(reference, name):
    documents = load_all((reference / "samples" / name.name).read_text())
    recorded = yaml.load((reference / name).read_text(), Loader=yaml.CSafeLoader)
    return Sample(str(name), [found.value for found in documents if found.value], recorded, str(name.parent))


@asynccontextmanager
async def golden_world(samples, **options):
    """Give a world for samples of one folder, with an empty namespace for each of them."""
    (folder,) = {sample.folder for sample in samples}
    due = DUE[folder]
    kinds = dict.fromkeys(("RayCluster", *due.kinds, *GATEWAY_KINDS))
    options = {"flags": due.flags, "variables": due.variables, **options}
    async with (
        world_of(nodes=NODES, kinds=tuple(kinds), **options) as world,
        ScriptedGateways(world, accepts=due.ray_answers),
    ):
        if due.ray_answers:
            world.dashboards.heads = RunningEverywhere(world.clock)
        for sample in samples:
            await make_namespace(world, sample.namespace)
        await world.pass_time(1)
        yield world


def by_folder(samples):
    """Return samples as lists, one for each folder: these can live in one world, side by side."""
    folders: dict[str, list[Sample]] = {}
    for sample in samples:
        folders.setdefault(sample.folder, []).append(sample)
    return list(folders.values())


async def make_namespace(world, name):
    await world.api.create(
        "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    )


async def apply(world, sample, *, named_only=False):
    """Create a sample's documents in its namespace, those that the reference's API server took."""
    for document in sample.documents:
        name = document["metadata"].get("name")
        if (document["kind"], name) in sample.applied and (name or not named_only):
            metadata = {**document["metadata"], "namespace": sample.namespace}
            await world.create({**document, "metadata": metadata})


async def contents(world, namespace=""):
    """Return the objects of a namespace, or of all, and the operator's events there.

    What went well is told a moment later.
    """
    await world.pass_time(GATHERING_SECONDS)
    objects = []
    for kind, path in PATHS.items():
        if kind in ("Event", "Lease"):
            continue
        try:
            listed = await world.api.get(_path(path, namespace))
        except errors.NotFound:
            continue  # a kind that this world does not serve
        shape = {"apiVersion": listed["apiVersion"], "kind": kind}
        objects += [{**item, **shape} for item in listed["items"]]
    events = (await world.api.get(_path(PATHS["Event"], namespace)))["items"]
    return objects, [event for event in events if event["reportingController"] in OUR_VOICES]


def _path(path, namespace):
    return path.format(namespace) if namespace else path.replace("/namespaces/{}", "")


def writes_in(world, namespace):
    """Return what the operator has written in a namespace, such as "patch pods" or "create events"."""
    place = f"/namespaces/{namespace}/"
    return [
        f"{request.verb} {_part_of(request.path.rpartition(place)[2])}"
        for request in world.faults.sent
        if request.verb not in ("get", "list", "watch") and place in request.path
    ]


def _part_of(path):
    kind, _, rest = path.partition("/")
    return f"{kind}/status" if rest.endswith("/status") else kind


async def record(world, sample):
    """Return the recording of a sample's namespace."""
    objects, events = await contents(world, sample.namespace)
    return recording(objects, events, namespace=sample.namespace, applied=sample.applied)


async def until_quiet(world, seconds=QUIET_SECONDS):
    """Let time pass until nothing has been written for so long, by anybody; fail if the writing never ends."""
    quiet, before = 0, None
    for _ in range(LONGEST_UNREST):
        objects, events = await contents(world)
        now = {obj["metadata"]["uid"]: obj["metadata"]["resourceVersion"] for obj in (*objects, *events)}
        quiet = quiet + 1 if now == before else 0
        if quiet > seconds:
            return
        before = now
        await world.pass_time(1)
    raise AssertionError(f"something was still written after {LONGEST_UNREST} s")
