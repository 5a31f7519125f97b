"""What another operator left is taken over as it is: no Pod restarts, no object is replaced."""

import pytest

from eagleray.manifests.settings import VERSION, settings_of
from eagleray.operator import assembly
from eagleray.raycluster.podplan import VERSION_ANNOTATION
from kubereef.simulation import run
from tests.eagleray.golden.adopt import leave_behind
from tests.eagleray.golden.examples import EXAMPLES, example, recreating
from tests.eagleray.golden.samples import (
    REFERENCE,
    by_folder,
    cases_of,
    contents,
    golden_world,
    read_samples,
    until_quiet,
    writes_in,
)
from tests.eagleray.ray import RayOnPods
from tests.eagleray.world import rayjob, world_of

CLUSTERS = cases_of(REFERENCE, "/ray-cluster.")
JOBS = cases_of(REFERENCE, "/ray-job.")
SERVICES = cases_of(REFERENCE, "/ray-service.")

REJECTION = ["patch rayclusters/status", "create events"]

REFERENCE_VERSION = "nightly"
# Past the moment at which a cluster is looked at again although nothing has happened.
RESYNC = 400


class Takeover:
    """The objects of a sample's namespace before and after our operator came, and what it wrote there."""

    def __init__(self, before, after, writes):
        self.before = {_key(obj): obj for obj in before}
        self.after = {_key(obj): obj for obj in after}
        self.writes = writes

    @property
    def changed(self):
        """Kind and name of what is not exactly as it was."""
        keys = self.before.keys() | self.after.keys()
        return sorted(key for key in keys if self.before.get(key) != self.after.get(key))

    @property
    def running(self):
        """The uids of Ray's Pods, which ran before, in order."""
        return [uid for uid in map(_uid_of_ray_pod, self.before.values()) if uid]

    @property
    def still_running(self):
        return [uid for uid in map(_uid_of_ray_pod, self.after.values()) if uid]


def _key(obj):
    return obj["kind"], obj["metadata"]["name"]


def _uid_of_ray_pod(obj):
    is_ray = obj["kind"] == "Pod" and "ray.io/node-type" in (obj["metadata"].get("labels") or {})
    return obj["metadata"]["uid"] if is_ray and obj["status"]["phase"] == "Running" else ""


async def _take_over(samples):
    async with golden_world(samples, operator=False) as world:
        await leave_behind(world, samples)
        await until_quiet(world)
        before = [(await contents(world, sample.namespace))[0] for sample in samples]
        await world.start_operator()
        await until_quiet(world)
        await world.pass_time(RESYNC)
        return {
            sample.name: Takeover(
                objects, (await contents(world, sample.namespace))[0], writes_in(world, sample.namespace)
            )
            for sample, objects in zip(samples, before, strict=True)
        }


def take_over(samples, version=VERSION):
    """Return how an operator of ours of some version took over what another one had left, by sample."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            assembly, "settings_of", lambda options: settings_of(options)._replace(version=version)
        )
        takeovers = [run(_take_over(together)) for together in by_folder(samples)]
    return {name: takeover for some in takeovers for name, takeover in some.items()}


def was_rejected(sample):
    return not sample.recorded["created"]


# --- what the reference was recorded to leave


@pytest.fixture(scope="module")
def samples(reference):
    return read_samples(reference)


@pytest.fixture(scope="module")
def taken(samples):
    return take_over(samples.values())


@pytest.fixture(scope="module")
def taken_recreating(samples):
    return take_over([recreating(samples[name]) for name in CLUSTERS])


@pytest.fixture(scope="module")
def taken_by_same_version(samples):
    return take_over([recreating(samples[name]) for name in CLUSTERS], REFERENCE_VERSION)


@pytest.mark.parametrize("name", CLUSTERS)
def test_nothing_is_written_over_what_the_reference_left(name, samples, taken):
    takeover = taken[name]
    recorded = samples[name].recorded
    assert len(takeover.running) == sum(obj["kind"] == "Pod" for obj in recorded["created"])
    if was_rejected(samples[name]):
        # That this generation was looked at is news, and so is the reason for which it was rejected.
        assert takeover.changed == [_key(obj) for obj in recorded["resources"]]
        assert takeover.writes == REJECTION
    else:
        assert takeover.changed == []
        assert takeover.writes == []


@pytest.mark.parametrize("name", JOBS)
def test_of_a_job_that_the_reference_left_running_only_the_status_is_written(name, samples, taken):
    takeover = taken[name]
    recorded = samples[name].recorded
    ((kind, job),) = takeover.changed
    assert kind == "RayJob"
    assert set(takeover.writes) == {"patch rayjobs/status"}
    assert takeover.still_running == takeover.running
    assert len(takeover.running) == sum(obj["kind"] == "Pod" for obj in recorded["created"]) > 0
    # What is told besides what was known is all that is new; whatever was told stays.
    before, after = takeover.before[kind, job], takeover.after[kind, job]
    assert after["spec"] == before["spec"]
    added = after["status"].keys() - before["status"].keys()
    assert added == {"conditions", "observedGeneration"}
    # The stand-in's job begins when it is first asked about.
    kept = before["status"].keys() - {"rayJobInfo"}
    assert {field: after["status"][field] for field in kept} == {
        field: before["status"][field] for field in kept
    }


@pytest.mark.case("RS-66", "RS-25")
@pytest.mark.parametrize("name", SERVICES)
def test_of_a_service_that_the_reference_left_only_the_cluster_is_stamped_anew(name, samples, taken):
    takeover = taken[name]
    assert takeover.still_running == takeover.running
    assert len(takeover.running) == _ray_pods(samples[name].recorded["created"]) > 0
    assert takeover.after.keys() == takeover.before.keys()
    (service,) = (key for key in takeover.before if key[0] == "RayService")
    before, after = takeover.before[service], takeover.after[service]
    assert after["spec"] == before["spec"]
    assert set(takeover.writes) <= {"patch rayclusters", "patch rayservices/status", "create events"}
    (cluster,) = (key for key in takeover.before if key[0] == "RayCluster")
    assert [key for key in takeover.changed if key != service] == [cluster]
    stamped, stamps = takeover.after[cluster], takeover.before[cluster]["metadata"]["annotations"]
    assert stamped["metadata"]["annotations"] == {**stamps, VERSION_ANNOTATION: VERSION}
    assert stamped["spec"] == takeover.before[cluster]["spec"]
    if before["status"]["activeServiceStatus"].get("rayClusterName"):
        assert after["status"]["conditions"] == before["status"]["conditions"]
        return
    # A first cluster waits for Serve as before; for what is told, which the reference does not.
    ready, upgrading = after["status"]["conditions"]
    assert "connection refused" in ready.pop("message")
    told = before["status"]["conditions"]
    assert [ready, upgrading] == [_without_message(told[0]), told[1]]


def _without_message(condition):
    return {field: value for field, value in condition.items() if field != "message"}


def _ray_pods(objects):
    """Return how many Pods are Ray's; a sample may bring others."""
    return sum(
        obj["kind"] == "Pod" and "ray.io/node-type" in obj["metadata"].get("labels", {}) for obj in objects
    )


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_that_recreates_is_only_stamped_anew(name, samples, taken_recreating):
    takeover = taken_recreating[name]
    if was_rejected(samples[name]):
        assert takeover.writes == REJECTION
        return
    (head,) = takeover.changed
    before, after = takeover.before[head], takeover.after[head]
    assert takeover.writes == ["patch pods"]
    assert takeover.still_running == takeover.running
    # The hash is the reference's, byte for byte, so that the version is all that is new.
    assert after["metadata"]["annotations"] == {
        **before["metadata"]["annotations"],
        VERSION_ANNOTATION: VERSION,
    }


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_hash_of_the_same_version_is_found_to_be_current(name, samples, taken_by_same_version):
    takeover = taken_by_same_version[name]
    assert takeover.still_running == takeover.running
    assert takeover.writes == (REJECTION if was_rejected(samples[name]) else [])


# --- our own examples


@pytest.fixture(scope="module")
def examples_taken():
    return take_over([example(name) for name in EXAMPLES])


@pytest.fixture(scope="module")
def recreating_examples_taken():
    return take_over([recreating(example(name)) for name in EXAMPLES])


@pytest.mark.case("OP-83")
@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_is_written_over_what_another_operator_left(name, examples_taken):
    takeover = examples_taken[name]
    assert len(takeover.running) == sum(obj["kind"] == "Pod" for obj in example(name).recorded["created"]) > 0
    assert takeover.changed == []
    assert takeover.writes == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_cluster_of_another_operator_that_recreates_is_only_stamped_anew(name, recreating_examples_taken):
    takeover = recreating_examples_taken[name]
    (head,) = takeover.changed
    assert takeover.writes == ["patch pods"]
    assert takeover.still_running == takeover.running
    before, after = takeover.before[head], takeover.after[head]
    assert after["metadata"]["annotations"] == {
        **before["metadata"]["annotations"],
        VERSION_ANNOTATION: VERSION,
    }


def test_a_worker_that_went_meanwhile_is_replaced_under_the_adopted_head():
    async def live():
        sample = example("plain")
        async with golden_world([sample], operator=False) as world:
            await leave_behind(world, [sample])
            workers = "ray.io/node-type=worker"
            lost, kept = await world.list("Pod", workers, sample.namespace)
            await world.delete("Pod", lost["metadata"]["name"], sample.namespace)
            await world.pass_time(60)
            await world.start_operator()
            await until_quiet(world)
            names = {pod["metadata"]["uid"] for pod in await world.list("Pod", workers, sample.namespace)}
            return kept["metadata"]["uid"] in names, len(names), writes_in(world, sample.namespace)

    kept, workers, writes = run(live())
    assert (kept, workers) == (True, 2)
    assert writes.count("create pods") == 1
    assert not [write for write in writes if write.startswith("delete")]


async def _take_over_jobs(modes):
    """Return what was written over running jobs of another operator, which records less, and how they ended."""
    async with world_of(kinds=("RayCluster", "RayJob")) as world, RayOnPods(world, lasts=None) as ray:
        for mode in modes:
            await world.create(rayjob(mode.lower(), submissionMode=mode))
        await until_quiet(world)
        await world.kill_operator()
        unknown = {"conditions": None, "submission": None, "observedGeneration": None}
        for job in await world.list("RayJob"):
            await world.patch("RayJob", job["metadata"]["name"], {"status": unknown}, part="/status")
        world.faults.sent.clear()
        before = list(ray.ledger.started)
        await world.start_operator()
        await until_quiet(world)
        writes = world.writes()
        for head in world.dashboards.heads.values():
            for job_id in head.jobs:
                head.set_status(job_id, "SUCCEEDED")
        await world.pass_time(60)
        states = [job["status"]["jobDeploymentStatus"] for job in await world.list("RayJob")]
        return writes, states, ray.ledger.started == before


@pytest.mark.case("OP-83")
def test_jobs_that_another_operator_left_running_go_on_to_their_end():
    writes, states, nothing_started = run(_take_over_jobs(("HTTPMode", "K8sJobMode", "SidecarMode")))
    assert set(writes) == {("patch", "rayjobs.ray.io")}
    assert states == ["Complete"] * 3
    assert nothing_started
