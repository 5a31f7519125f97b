"""What a scheduler adds to the Pods of a manifest, and that it changes nothing else about them."""

import json

import pytest
import yaml

from tests.eagleray.schedulers.standins import SCHEDULERS, asking, gang_world
from tests.eagleray.world import raycluster

pytestmark = pytest.mark.usefixtures("virtual_time")

LABELS = {
    "ray.io/gang-scheduling-enabled": "true",
    "ray.io/priority-class-name": "p",
    "volcano.sh/queue-name": "q",
    "yunikorn.apache.org/queue": "q",
    "yunikorn.apache.org/app-id": "a",
    "kai.scheduler/queue": "q",
}
# The labels and annotations that are a scheduler's, of all Pods of a cluster `c` with these labels.
MARKS = {
    "volcano": {
        "volcano.sh/queue-name",
        "ray.io/priority-class-name",
        "scheduling.k8s.io/group-name",
        "volcano.sh/task-spec",
    },
    "yunikorn": {
        "queue",
        "applicationId",
        "yunikorn.apache.org/task-group-name",
        "yunikorn.apache.org/task-groups",
    },
    "scheduler-plugins": {"scheduling.x-k8s.io/pod-group"},
    "kai-scheduler": {"kai.scheduler/queue"},
    "kubernetes-was": set(),
}
FIELDS = {"schedulerName", "schedulingGroup"}


async def pods_of(manifest, scheduler):
    """Return the Pods that the operator asks for, in the order in which it does."""
    async with gang_world(scheduler) as (world, _):
        await world.create(json.loads(json.dumps(manifest)))
        await world.ready(manifest["metadata"]["name"])
        pods = world.bodies("create", "pods")
        for pod in pods:  # names and uids are of chance
            del pod["metadata"]["name"]
            del pod["metadata"]["ownerReferences"][0]["uid"]
        return pods


def without_marks(pod):
    """Return a Pod without what a scheduler added, and the names of that."""
    metadata, spec = dict(pod["metadata"]), dict(pod["spec"])
    ours = set().union(*MARKS.values())
    found = set()
    for part in ("labels", "annotations"):
        values = metadata.get(part) or {}
        found |= ours & set(values)
        metadata[part] = {name: value for name, value in values.items() if name not in ours}
    found |= {field for field in FIELDS if spec.pop(field, None) is not None}
    return {**pod, "metadata": metadata, "spec": spec}, found


async def compare(manifest, scheduler, expected):
    plain = await pods_of(manifest, "")
    scheduled = await pods_of(manifest, scheduler)
    assert plain
    for one, other in zip(plain, scheduled, strict=True):
        bare, marks = without_marks(other)
        assert bare == without_marks(one)[0]
        assert marks - {"schedulerName"} == expected


@pytest.mark.parametrize("scheduler", SCHEDULERS)
async def test_a_scheduler_adds_its_marks_and_nothing_else(scheduler):
    manifest = raycluster(workers=[{"replicas": 2, **asking(cpu="1")}], metadata={"labels": LABELS})
    groups = {"schedulingGroup"} if scheduler == "kubernetes-was" else set()
    await compare(manifest, scheduler, MARKS[scheduler] | groups)


@pytest.mark.parametrize(
    ("sample", "scheduler"),
    [("ray-cluster.volcano-scheduler.yaml", "volcano"), ("ray-cluster.yunikorn-scheduler.yaml", "yunikorn")],
)
async def test_the_samples_that_name_a_scheduler_get_its_marks_and_nothing_else(sample, scheduler, reference):
    """Without a scheduler they become what the reference makes of them, as the recordings show."""
    manifests = list(yaml.safe_load_all((reference / "samples" / sample).read_text()))
    manifest = next(one for one in manifests if one and one["kind"] == "RayCluster")
    optional = {"volcano.sh/queue-name", "ray.io/priority-class-name"} - set(
        manifest["metadata"].get("labels") or {}
    )
    await compare(manifest, scheduler, MARKS[scheduler] - optional)
