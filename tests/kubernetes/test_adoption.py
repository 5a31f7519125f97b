"""On a real control plane: what another operator left is taken over as it is, by our operator as a process."""

import asyncio
import tempfile
from pathlib import Path

import pytest
import yaml

from eagleray.manifests.settings import VERSION
from eagleray.raycluster.podplan import VERSION_ANNOTATION
from tests.eagleray.gateways import GATEWAY_KINDS, ScriptedGateways, gateway_crd
from tests.eagleray.golden.adopt import leave_behind
from tests.eagleray.golden.examples import EXAMPLES, example, recreating
from tests.eagleray.golden.samples import REFERENCE, Sample, cases_of, contents, read_samples, until_quiet
from tests.eagleray.ray import host_of
from tests.kubernetes.conftest import define
from tests.kubernetes.land import JOB_LASTS, client_of
from tests.kubernetes.namespaces import Namespace
from tests.kubernetes.operators import Operator

RECREATING = "-recreating"
CLUSTERS = cases_of(REFERENCE, "golden/ray-cluster.")
JOBS = cases_of(REFERENCE, "with-ray/ray-job.")
SERVICES = cases_of(REFERENCE, "with-ray/ray-service.")
OWN_CLUSTERS = tuple(f"{name}{how}" for name in EXAMPLES for how in ("", RECREATING))
LONGEST = 300.0


class Takeover:
    """The objects of a sample's namespace before and after our operator came, and what it wrote there."""

    def __init__(self, before, after, writes):
        self.before = {_key(obj): obj for obj in before}
        self.after = {_key(obj): obj for obj in after}
        self.asked = writes

    @property
    def writes(self):
        return [f"{one.verb} {one.what}" for one in self.asked]

    def of(self, kind):
        """Return the objects of a kind, as they were and as they are, by name."""
        return {
            name: (obj, self.after.get((kind, name))) for (of, name), obj in self.before.items() if of == kind
        }

    @property
    def running(self):
        """The uids of Ray's Pods, which ran before."""
        return {uid for uid in map(_uid_of_ray_pod, self.before.values()) if uid}

    @property
    def still_running(self):
        return {uid for uid in map(_uid_of_ray_pod, self.after.values()) if uid}


def _key(obj):
    return obj["kind"], obj["metadata"]["name"]


def _uid_of_ray_pod(obj):
    is_ray = obj["kind"] == "Pod" and "ray.io/node-type" in (obj["metadata"].get("labels") or {})
    return obj["metadata"]["uid"] if is_ray and obj["status"]["phase"] == "Running" else ""


class Adoption:
    """Puts what another operator left onto the plane, and lets ours come."""

    def __init__(self, settled, samples):
        self.plane, self.land, self.audit, self.account = settled
        self.samples = samples
        self.executed = []  # the jobs that were started before our operator came
        self.operator = None
        self.taken = {}  # what happened, by sample

    async def take_over(self, directory):
        """Have our operator come, and see what it does; it runs from here on."""
        api = client_of(self.plane)
        try:
            world = Namespace(api, "default")
            await define(api, *map(gateway_crd, GATEWAY_KINDS))
            await asyncio.gather(*(Namespace(api, sample.namespace).make() for sample in self.samples))
            earlier = len(self.land.dashboards.ledger.started)
            self.land.ray.lasts = None
            async with ScriptedGateways(world):
                await leave_behind(world, self.samples)
                await self._live(world)
                await until_quiet(world)
                before = [(await contents(world, sample.namespace))[0] for sample in self.samples]
                self.executed = self.land.dashboards.ledger.started[earlier:]
                mark = self.audit.mark()
                await self._start(api, directory)
                await until_quiet(world)
                self.taken = {
                    sample.name: Takeover(
                        objects,
                        (await contents(world, sample.namespace))[0],
                        self.audit.writes(mark, sample.namespace),
                    )
                    for sample, objects in zip(self.samples, before, strict=True)
                }
        finally:
            self.land.ray.lasts = JOB_LASTS
            await api.close()

    async def _live(self, world):
        """Have the heads run what another operator has submitted to them, and serve what it has handed to them."""
        heads = self.land.dashboards.heads
        for sample in self.samples:
            for job in await world.list("RayJob", "", sample.namespace):
                status = job["status"]
                head = heads[host_of(status["rayClusterName"], sample.namespace)]
                heads.setdefault(status["dashboardURL"], head)  # a Service may have a name of its own
                if status.get("jobStatus") and status["jobId"] not in head.jobs:
                    head.submit(status["jobId"])
            for service in await world.list("RayService", "", sample.namespace):
                name = service["status"]["activeServiceStatus"]["rayClusterName"]
                head = heads[host_of(name, sample.namespace)]
                for app in yaml.safe_load(service["spec"]["serveConfigV2"])["applications"]:
                    healthy = {one["name"]: "HEALTHY" for one in app.get("deployments", ())}
                    head.set_application(app["name"], "RUNNING", **healthy)
                    head.applications[app["name"]]["deployed_app_config"] = app

    async def _start(self, api, directory):
        token = directory / "token"
        token.write_text(await self.account.token(api))
        self.operator = Operator(
            self.account.kubeconfig(token),
            directory / "operator.log",
            "--use-kubernetes-proxy",
            "--enable-leader-election=false",
        )
        await asyncio.to_thread(self.operator.until_ready)

    async def end_jobs(self, places):
        """Have all jobs end well; returns how far the RayJobs of these namespaces get that run one."""
        for head in self.land.dashboards.heads.values():
            for job_id in head.jobs:
                head.set_status(job_id, "SUCCEEDED")
        api = client_of(self.plane)
        try:
            world = Namespace(api, "default")

            async def states():
                statuses = [
                    job["status"] for place in places for job in await world.list("RayJob", "", place)
                ]
                return [status["jobDeploymentStatus"] for status in statuses if status.get("jobStatus")]

            async def have_ended():
                return "Running" not in await states()

            await world.until(have_ended, about=states)
            return await states()
        finally:
            await api.close()

    async def end(self):
        """Take away what there is."""
        if self.operator is not None:
            self.operator.kill()
        api = client_of(self.plane)
        try:
            await asyncio.gather(*(Namespace(api, sample.namespace).remove() for sample in self.samples))
        finally:
            await api.close()


# --- which ones


def _own(name):
    """Return one of our own examples, so that there is something without the reference's."""
    if name == "job":
        left = yaml.safe_load((Path(__file__).parent / "left" / "job.yaml").read_text())
        manifest = left.pop("manifest")
        applied = [{"kind": "RayJob", "name": "voyage", "result": "created"}]
        return Sample(f"own-{name}", manifest, {**left, "applied": applied})
    sample = example(name.removesuffix(RECREATING))
    chosen = recreating(sample) if name.endswith(RECREATING) else sample
    return Sample(f"own-{name}", chosen.documents, chosen.recorded)


@pytest.fixture(scope="module")
def samples():
    samples = read_samples(REFERENCE)
    chosen = [samples[name] for name in (*CLUSTERS, *JOBS, *SERVICES) if name in samples]
    return {sample.name: sample for sample in (*chosen, *map(_own, OWN_CLUSTERS), _own("job"))}


@pytest.fixture(scope="module")
def adoption(settled, samples):
    with tempfile.TemporaryDirectory() as directory:
        adoption = Adoption(settled, list(samples.values()))
        try:
            settled.land.run(adoption.take_over(Path(directory)), LONGEST)
            yield adoption
        finally:
            settled.land.run(adoption.end())


# --- clusters


@pytest.mark.parametrize("name", [*CLUSTERS, *(f"own-{name}" for name in EXAMPLES)])
def test_nothing_is_written_over_a_cluster_that_another_operator_left(name, samples, adoption):
    takeover = adoption.taken[name]
    recorded = samples[name].recorded
    assert len(takeover.running) == _ray_pods(recorded["created"])
    assert takeover.still_running == takeover.running
    # One that was rejected runs nothing: that this generation was looked at is news, and so is the reason.
    assert takeover.writes == ([] if recorded["created"] else ["patch rayclusters/status", "create events"])


@pytest.mark.parametrize("name", [f"own-{name}{RECREATING}" for name in EXAMPLES])
def test_of_a_cluster_that_recreates_only_the_head_is_stamped_anew(name, adoption):
    takeover = adoption.taken[name]
    assert takeover.still_running == takeover.running
    assert takeover.writes == ["patch pods"]
    ((before, after),) = (
        pods for pods in takeover.of("Pod").values() if pods[0]["metadata"] != pods[1]["metadata"]
    )
    assert after["spec"] == before["spec"]
    stamps = before["metadata"]["annotations"]
    assert after["metadata"]["annotations"] == {**stamps, VERSION_ANNOTATION: VERSION}


# --- jobs


@pytest.mark.case("OP-83")
@pytest.mark.parametrize("name", [*JOBS, "own-job"])
def test_of_a_running_job_that_another_operator_left_only_the_status_is_written(name, samples, adoption):
    takeover = adoption.taken[name]
    assert takeover.still_running == takeover.running
    assert len(takeover.running) == _ray_pods(samples[name].recorded["created"]) > 0
    assert set(takeover.writes) == {"patch rayjobs/status"}
    ((before, after),) = takeover.of("RayJob").values()
    assert after["spec"] == before["spec"]
    kept = before["status"].keys() - {"rayJobInfo"}  # the stand-in's job began when it was put there
    assert {field: after["status"][field] for field in kept} == {
        field: before["status"][field] for field in kept
    }
    assert after["status"].keys() - before["status"].keys() == {"conditions", "observedGeneration"}


def test_no_job_is_submitted_again_and_those_that_end_are_complete(samples, adoption):
    executed = adoption.executed
    assert len(set(executed)) == len(executed)
    places = {sample.namespace for name, sample in samples.items() if name in (*JOBS, "own-job")}
    states = adoption.land.run(adoption.end_jobs(places), LONGEST)
    assert states == ["Complete"] * len(executed) != []
    assert adoption.land.dashboards.ledger.started[-len(executed) :] == executed


# --- services


@pytest.mark.case("RS-66")
@pytest.mark.parametrize("name", SERVICES)
def test_of_a_service_that_the_reference_left_only_the_cluster_is_stamped_anew(name, samples, adoption):
    takeover = adoption.taken[name]
    assert takeover.still_running == takeover.running
    assert len(takeover.running) == _ray_pods(samples[name].recorded["created"]) > 0
    # Serve is handed what it has already, through the API server.
    assert set(takeover.writes) == {"patch rayclusters", "update services/proxy", "create events"}
    ((before, after),) = takeover.of("RayService").values()
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])
    ((before, after),) = takeover.of("RayCluster").values()
    stamps = before["metadata"]["annotations"]
    assert after["metadata"]["annotations"] == {**stamps, VERSION_ANNOTATION: VERSION}
    assert (after["spec"], after["status"]) == (before["spec"], before["status"])


def _ray_pods(objects):
    """Return how many Pods are Ray's; a sample may bring others."""
    return sum(
        obj["kind"] == "Pod" and "ray.io/node-type" in obj["metadata"].get("labels", {}) for obj in objects
    )
