"""What variables and the end of objects do to an operator that runs jobs and services."""

import asyncio

import pytest

from tests.eagleray.dashboard.scripted import HANGS
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.rayjob.situations import ray_says, reached, running
from tests.eagleray.world import raycluster, rayjob, rayservice, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

KINDS = ("RayCluster", "RayJob", "RayService")
GRACE = "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS"


def env_of(pod):
    return {one["name"]: one.get("value") for one in pod["spec"]["containers"][0]["env"]}


@pytest.mark.case("OP-57")
@pytest.mark.parametrize(
    ("variables", "domain"),
    [({"CLUSTER_DOMAIN": "example.org"}, "example.org"), ({}, "cluster.local")],
    ids=["a domain of one's own", "the usual one"],
)
async def test_addresses_end_in_the_domain_of_the_cluster(variables, domain):
    async with world_of(kinds=KINDS, variables=variables) as world:
        await world.create(rayjob())

        async def has_address():
            status = await world.status("j", "RayJob")
            return status if status.get("dashboardURL") else None

        status = await world.until(has_address)
        name, address = status["rayClusterName"], status["dashboardURL"]
        assert address == f"{name}-head-svc.default.svc.{domain}:8265"
        (worker,) = await world.workers(name)
        assert env_of(worker)["FQ_RAY_IP"] == f"{name}-head-svc.default.svc.{domain}"
        (waiting,) = worker["spec"]["initContainers"]
        assert f"{name}-head-svc.default.svc.{domain}:6379" in waiting["args"][0]


@pytest.mark.case("OP-64")
@pytest.mark.parametrize(
    ("value", "of_ray", "of_submitters"), [("tRuE", "-cl", "-cel"), ("yes", "-c", "-ce"), ("", "-c", "-ce")]
)
async def test_shells_are_login_shells_where_that_is_asked_for(value, of_ray, of_submitters):
    async with running(variables={"ENABLE_LOGIN_SHELL": value}) as (world, _):
        flags = {}
        for pod in await world.list("Pod"):
            kind = pod["metadata"]["labels"].get("ray.io/node-type", "submitter")
            flags[kind] = pod["spec"]["containers"][0]["command"][1]
        assert flags == {"head": of_ray, "worker": of_ray, "submitter": of_submitters}


@pytest.mark.case("OP-66")
@pytest.mark.parametrize(
    ("value", "seconds"), [("5", 5), ("0", 0), ("x", 300), (None, 300)], ids=["5", "0", "no number", "unset"]
)
async def test_a_job_is_over_so_long_after_ray_says_so(value, seconds):
    async with running(variables={} if value is None else {GRACE: value}) as (world, ray):
        ray.held = True
        await ray_says(world, "SUCCEEDED")
        if seconds:
            await world.pass_time(seconds - 0.5)
            (job,) = await world.list("RayJob")
            assert job["status"]["jobDeploymentStatus"] == "Running"
        await reached(world, "Complete", seconds=10)


@pytest.mark.case("OP-79")
@pytest.mark.parametrize(
    ("flags", "seconds"), [((), 2), (("--use-kubernetes-proxy",), 10)], ids=["straight", "through the proxy"]
)
async def test_a_dashboard_that_does_not_answer_is_given_up_in_time(flags, seconds):
    async with running(mode="HTTPMode", flags=flags) as (world, _):
        waited = set()
        send = world.dashboards.send

        async def timed(*arguments, **options):
            began = world.clock.monotonic()
            try:
                return await send(*arguments, **options)
            except asyncio.CancelledError:
                waited.add(round(world.clock.monotonic() - began))
                raise

        world.dashboards.send = timed
        (cluster,) = await world.list("RayCluster")
        world.dashboards.fault(host_of(cluster["metadata"]["name"]), HANGS)
        await world.pass_time(60)
        assert waited == {seconds}


@pytest.mark.case("OP-102")
async def test_nothing_is_told_of_objects_that_are_gone():
    async with world_of(kinds=KINDS, flags=("--enable-metrics",)) as world, RayOnPods(world, lasts=2):
        for obj in (raycluster(), rayjob(), rayservice()):
            await world.create(obj)

        async def are_told():
            told = world.operator.registry.render()
            return all(f'name="{name}"' in told for name in ("c", "j", "s"))

        await world.until(are_told)
        await world.pass_time(60)
        uids = [
            (await world.get(kind, name))["metadata"]["uid"]
            for kind, name in (("RayCluster", "c"), ("RayJob", "j"), ("RayService", "s"))
        ]
        for kind, name in (("RayCluster", "c"), ("RayJob", "j"), ("RayService", "s")):
            await world.delete(kind, name)
        await world.pass_time(120)
        told = world.operator.registry.render()
        assert [uid for uid in uids if uid in told] == []
