"""An hour of a cluster's life in which everything changes and nothing works reliably, again and again."""

import asyncio
import itertools
from collections import Counter
from random import Random

import pytest

from kubereef.node.scripts import Running, Script
from kubewire import errors
from tests.eagleray.world import NAMESPACE, PATHS, raycluster, world_of
from tests.sim.process import Process, Wire
from tests.sim.states import counted_pods

HOUR = 3600.0
# One in so many requests and news meets a fault.
FAULTS_PER_REQUEST = 1 / 25
# How long what an edit asks for may lag behind: news that are held back, an operator that starts anew.
LAG = 90.0
# Longer than the longest pause before a group that keeps failing is tried again.
CALM = 600.0
SLOW = Script({"app.kubernetes.io/name": "kuberay"}, steps=(Running(after=2),), stops_after=5)
GROUPS = {"single": 1, "double": 2}  # hosts of a replica


def cluster():
    workers = [
        {"groupName": name, "replicas": 1, "numOfHosts": hosts, "maxReplicas": 4}
        for name, hosts in GROUPS.items()
    ]
    return raycluster(workers=workers, upgradeStrategy={"type": "Recreate"})


class Walk:
    """What a user, the nodes and the network do to a cluster, by chance."""

    def __init__(self, world, seed):
        self.world = world
        self.random = Random(seed)
        self.faults = 0
        self.beaten = 0
        self._desired = {name: [(0.0, hosts)] for name, hosts in GROUPS.items()}

    def chance(self, faults):
        if self.random.random() >= FAULTS_PER_REQUEST:
            return ""
        self.faults += 1
        return self.random.choice(faults)

    async def step(self):
        act = self.random.choice(
            (self.edit, self.edit, self.delete_pod, self.fail_pod, self.suspend, self.nothing)
        )
        try:
            await act()
        except (errors.NotFound, errors.Conflict):
            self.beaten += 1  # somebody was faster: as good as another walk
        await self.world.pass_time(self.random.choice((0.1, 1, 5, 20, 60, 120, 300)))

    async def edit(self):
        """Change a number of replicas, a group's suspension, or the head's template."""
        found = await self.world.get("RayCluster", "c")
        what = self.random.choice(("replicas", "replicas", "suspend", "template"))
        group = self.random.choice(found["spec"]["workerGroupSpecs"])
        if what == "replicas":
            group["replicas"] = self.random.randint(0, 3)
        elif what == "suspend":
            group["suspend"] = not group.get("suspend", False)
        else:
            image = f"rayproject/ray:2.{self.random.randint(50, 55)}.0"
            found["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"] = image
        await self.world.api.replace(f"{PATHS['RayCluster'].format(NAMESPACE)}/c", found)
        self._wants(group)

    async def suspend(self):
        await self.world.patch_spec("c", {"suspend": self.random.choice((True, False, False))})

    async def delete_pod(self):
        if pods := await self.world.pods():
            await self.world.delete("Pod", self.random.choice(pods)["metadata"]["name"])

    async def fail_pod(self):
        if pods := await self.world.pods():
            name = self.random.choice(pods)["metadata"]["name"]
            evicted = {"phase": "Failed", "reason": "Evicted", "message": "out of memory"}
            await self.world.patch("Pod", name, {"status": evicted}, part="/status")

    async def nothing(self):
        """Let time pass."""

    def _wants(self, group):
        pods = group["replicas"] * GROUPS[group["groupName"]]
        self._desired[group["groupName"]].append((asyncio.get_running_loop().time(), pods))

    # --- what must never be

    def too_many_workers(self, pods):
        """Say which group has more workers than any spec has asked for of late, those on their way out aside."""
        alive = Counter(
            pod["metadata"]["labels"].get("ray.io/group")
            for pod in pods
            if not pod["metadata"].get("deletionTimestamp")
        )
        since = asyncio.get_running_loop().time() - LAG
        return [
            f"{alive[name]} workers of {name}, where {most} were asked for"
            for name in GROUPS
            if alive[name] > (most := self._most(name, since))
        ]

    def _most(self, group, since):
        """Return the largest number of Pods that a group was to have at some time since."""
        wanted = self._desired[group]
        in_force = [pods for (_, pods), (ends, _) in itertools.pairwise(wanted) if ends >= since]
        return max([*in_force, wanted[-1][1]])


def twice_the_same_place(pods):
    """Say which place in a group is taken twice."""
    places = Counter(
        tuple(
            pod["metadata"]["labels"].get(label)
            for label in ("ray.io/group", "ray.io/worker-group-replica-index", "ray.io/replica-host-index")
        )
        for pod in pods
        if pod["metadata"]["labels"].get("ray.io/node-type") == "worker"
    )
    return [f"{place} is taken {number} times" for place, number in places.items() if number > 1]


async def is_as_described(world):
    found = await world.get("RayCluster", "c")
    status = found["status"]
    if status["observedGeneration"] != found["metadata"]["generation"]:
        return False
    pods = await world.pods()
    if found["spec"].get("suspend"):
        return not pods and status["state"] == "suspended"
    wanted = {
        group["groupName"]: 0 if group.get("suspend") else group["replicas"] * group["numOfHosts"]
        for group in found["spec"]["workerGroupSpecs"]
    }
    have = Counter(pod["metadata"]["labels"]["ray.io/group"] for pod in pods)
    return (
        status["state"] == "ready"
        and have == Counter({"headgroup": 1, **wanted})
        and all(pod["status"]["phase"] == "Running" for pod in pods)
        and status.get("readyWorkerReplicas", 0) == sum(wanted.values())
    )


@pytest.mark.parametrize("seed", range(30))
async def test_a_random_walk_breaks_nothing_and_ends_as_described(seed, tell_faults):
    async with world_of(operator=False, seed=seed, scripts=(SLOW,)) as world:
        wire = Wire(world.simulated.server)
        process = Process(world, wire, (), seed=seed)
        walk = Walk(world, seed)
        await process.start()
        restarting = asyncio.create_task(process.restart_when_killed(), name="restarting")
        try:
            async with counted_pods(world, NAMESPACE) as pods:
                pods.checks += [walk.too_many_workers, twice_the_same_place]
                await world.create(cluster())
                wire.chance = walk.chance
                ends = world.clock.monotonic() + HOUR
                while world.clock.monotonic() < ends:
                    await walk.step()
                    assert not pods.wrong
                wire.chance = None
                await world.until(lambda: is_as_described(world), CALM, step=5)
                assert not pods.wrong
        finally:
            restarting.cancel()
            await asyncio.gather(restarting, return_exceptions=True)
            await process.end()
    assert walk.faults
    tell_faults(f"random walk {seed:2}: {walk.faults} faults, {pods.numbers[0]} Pods")
