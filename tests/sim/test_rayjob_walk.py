"""An hour in the life of RayJobs of all modes in which nothing works reliably, again and again."""

import asyncio
from random import Random

import pytest

from kubereef.node.scripts import Running, Script
from kubewire import errors
from kubewire.times import parse_time
from tests.eagleray.dashboard.scripted import (
    ANSWER_HANGS,
    ANSWER_LOST,
    CONNECT_HANGS,
    HANGS,
    REFUSES,
    SERVER_ERROR,
    WRONG_JSON,
    slow,
)
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.world import rayjob, world_of
from tests.sim.process import Process, Wire

HOUR = 3600.0
# One in so many requests to the API server and news from it meets a fault.
FAULTS_PER_REQUEST = 1 / 30
MOST_JOBS = 8
MODES = ("K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
DASHBOARD_FAULTS = (
    ANSWER_HANGS,
    ANSWER_LOST,
    CONNECT_HANGS,
    HANGS,
    REFUSES,
    SERVER_ERROR,
    WRONG_JSON,
    slow(1.5),
)
# After so long every job has been looked at, whatever was held back or had to start anew.
SEEN_AFTER = 120.0
# Longer than any timeout, and than all retries of one job.
CALM = 2400.0
SLOW = Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=2),), stops_after=3)
SUBMITTER_STARTS = Script({"ray.io/originated-from-crd": "RayJob"}, steps=(Running(after=2),))


class Walk:
    """What users, nodes, heads and the network do, by chance."""

    def __init__(self, world, ray, process, seed):
        self.world = world
        self.ray = ray
        self.process = process
        self.random = Random(seed)
        self.made = 0
        self.faults = 0
        self.beaten = 0
        self.submitted = set()

    def chance(self, faults):
        if self.random.random() >= FAULTS_PER_REQUEST:
            return ""
        self.faults += 1
        return self.random.choice(faults)

    async def step(self):
        act = self.random.choice(
            (
                self.make_job,
                self.make_job,
                self.kill_head,
                self.restart_head,
                self.kill_submitter,
                self.spoil_dashboard,
                self.heal_dashboards,
                self.lose_table,
                self.kill_operator,
                self.nothing,
            )
        )
        await self.restart_what_gave_up()
        try:
            await act()
            await self.submit_by_hand()
        except (errors.NotFound, errors.Conflict):
            self.beaten += 1  # somebody was faster: as good as another walk
        await self.world.pass_time(self.random.choice((0.1, 1, 5, 20, 60, 200)))

    async def restart_what_gave_up(self):
        """Do as a kubelet does: an operator that cannot start ends, and is started again."""
        if self.process.running is not None and self.process.running.done():
            await self.process.start()

    async def make_job(self):
        if self.made >= MOST_JOBS:
            return
        self.made += 1
        mode = self.random.choice(MODES)
        # A user's own job may be lost before anybody has seen it, and is then waited for.
        if mode == "InteractiveMode":
            limits = {"activeDeadlineSeconds": 900}
        else:
            limits = {"backoffLimit": self.random.choice((0, 1, 2))}
        ends = {"shutdownAfterJobFinishes": self.random.choice((True, False))}
        job = rayjob(f"j{self.made}", submissionMode=mode, cluster={"workers": []}, **limits, **ends)
        await self.world.create(job)

    async def submit_by_hand(self):
        """Do as a user does whose job waits for it."""
        for job in await self.world.list("RayJob"):
            status, name = job.get("status") or {}, job["metadata"]["name"]
            head = self.world.dashboards.heads.get(host_of(status.get("rayClusterName", "")))
            if status.get("jobDeploymentStatus") == "Waiting" and head and name not in self.submitted:
                self.submitted.add(name)
                head.submit(f"{name}-by-hand")
                await self.world.patch("RayJob", name, {"spec": {"jobId": f"{name}-by-hand"}})

    async def kill_head(self):
        if heads := await self.world.list("Pod", "ray.io/node-type=head"):
            self.faults += 1
            await self.world.delete("Pod", self.random.choice(heads)["metadata"]["name"])

    async def restart_head(self):
        """Have Ray's container start again in its place, where that is allowed."""
        heads = [
            pod
            for pod in await self.world.list("Pod", "ray.io/node-type=head")
            if pod["spec"]["restartPolicy"] != "Never" and pod["status"].get("containerStatuses")
        ]
        if heads:
            self.faults += 1
            pod = self.random.choice(heads)
            statuses = pod["status"]["containerStatuses"]
            statuses[0]["restartCount"] += 1
            change = {"status": {"containerStatuses": statuses}}
            await self.world.patch("Pod", pod["metadata"]["name"], change, part="/status")

    async def kill_submitter(self):
        if pods := await self.world.list("Pod", "batch.kubernetes.io/job-name"):
            self.faults += 1
            await self.world.delete("Pod", self.random.choice(pods)["metadata"]["name"])

    async def spoil_dashboard(self):
        if hosts := sorted(self.world.dashboards.heads):
            self.faults += 1
            self.world.dashboards.fault(self.random.choice(hosts), self.random.choice(DASHBOARD_FAULTS))

    async def heal_dashboards(self):
        for host in sorted(self.world.dashboards.heads):
            self.world.dashboards.heal(host)

    async def lose_table(self):
        """Have a head forget its jobs and go on. A submitter Job could submit again before anybody has noticed."""
        jobs = [
            job for job in await self.world.list("RayJob") if job["spec"]["submissionMode"] != "K8sJobMode"
        ]
        hosts = [host_of((job.get("status") or {}).get("rayClusterName", "")) for job in jobs]
        if present := [host for host in hosts if host in self.world.dashboards.heads]:
            self.faults += 1
            self.world.dashboards.heads[self.random.choice(present)].forget_jobs()

    async def kill_operator(self):
        self.faults += 1
        self.process.kill()
        await self.world.pass_time(self.random.choice((0, 5, 60)))
        await self.process.start()

    async def nothing(self):
        """Let time pass."""

    # --- what must never be

    async def wrongs(self):
        """Say what must not be so at any time."""
        found = [f"{job} was executed again" for job in self.ray.ledger.repeated]
        for job in await self.world.list("RayJob"):
            since = parse_time(job["metadata"]["creationTimestamp"])
            is_new = (self.world.clock.now() - since).total_seconds() < SEEN_AFTER
            if not is_new and not _tells(job):
                found.append(f"{job['metadata']['name']} does not say what it waits for: {job.get('status')}")
        return found

    async def is_over(self):
        await self.restart_what_gave_up()
        await self.submit_by_hand()
        jobs = await self.world.list("RayJob")
        return all(
            (job.get("status") or {}).get("jobDeploymentStatus") in ("Complete", "Failed") for job in jobs
        )


def _tells(job):
    """Whether one condition of a job is true, and says why."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    true = [one for one in conditions if one["status"] == "True"]
    return len(true) == 1 and bool(true[0]["reason"]) and bool(true[0]["message"])


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(40))
async def test_a_random_walk_executes_nothing_twice_and_ends(seed, tell_faults):
    async with (
        world_of(
            operator=False, seed=seed, scripts=(SLOW, SUBMITTER_STARTS), kinds=("RayCluster", "RayJob")
        ) as world,
        RayOnPods(world, lasts=40) as ray,
    ):
        wire = Wire(world.simulated.server)
        process = Process(world, wire, (), seed=seed)
        walk = Walk(world, ray, process, seed)
        await process.start()
        restarting = asyncio.create_task(process.restart_when_killed(), name="restarting")
        try:
            wire.chance = walk.chance
            ends = world.clock.monotonic() + HOUR
            while world.clock.monotonic() < ends:
                await walk.step()
                assert not await walk.wrongs()
            wire.chance = None
            await walk.heal_dashboards()
            await world.until(walk.is_over, CALM, step=10)
            assert not await walk.wrongs()
        finally:
            restarting.cancel()
            await asyncio.gather(restarting, return_exceptions=True)
            await process.end()
    assert walk.faults
    tell_faults(
        f"RayJob random walk {seed:2}: {walk.made} jobs, {walk.faults} faults, {len(ray.ledger.started)} executions"
    )
