"""Situations that the cases of a RayJob start from, and the questions that they ask."""

from contextlib import asynccontextmanager

from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.world import rayjob, world_of

KINDS = ("RayCluster", "RayJob")
MODES = ("K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
# Whatever happens at once in a world where nothing is slow has happened by then.
MOMENT = 5
# By then Ray has been asked again, and whatever followed from its answer is done.
ROUND = 8
SHUT_DOWN = {"shutdownAfterJobFinishes": True}


@asynccontextmanager
async def ray_world(*, flags=(), variables=None, scripts=(), operator=True, **ray):
    """Give a world whose heads answer, and the Ray that lives in it; `ray` says how long jobs last and how they end."""
    options = {"flags": flags, "variables": variables, "scripts": scripts, "operator": operator}
    async with world_of(kinds=KINDS, **options) as world, RayOnPods(world, **ray) as lives:
        yield world, lives


@asynccontextmanager
async def running(*, job=None, mode="K8sJobMode", flags=(), variables=None, scripts=(), lasts=None, **spec):
    """Give a world in which Ray runs the job `j`, which goes on until a test ends it."""
    async with ray_world(flags=flags, variables=variables, scripts=scripts, lasts=lasts) as (world, ray):
        await world.create(job or rayjob(submissionMode=mode, **spec))
        if mode == "InteractiveMode":
            await reached(world, "Waiting")
            (await head_of(world)).submit("by-hand")
            await world.patch("RayJob", "j", {"spec": {"jobId": "by-hand"}})
        await reported(world, "RUNNING")
        yield world, ray


@asynccontextmanager
async def ended(*, ends="SUCCEEDED", state="", lasts=2, flags=(), variables=None, **spec):
    """Give a world in which the job `j` has just ended."""
    async with ray_world(flags=flags, variables=variables, lasts=lasts, ends=ends) as (world, ray):
        await world.create(rayjob(**spec))
        await reached(world, state or ("Failed" if ends == "FAILED" else "Complete"))
        yield world, ray


async def status_of(world, name="j"):
    return await world.status(name, "RayJob")


async def state_of(world, name="j"):
    return (await status_of(world, name)).get("jobDeploymentStatus", "")


async def reached(world, *states, name="j", seconds=600):
    """Wait until a job is in one of these states; returns its status."""

    async def is_there():
        status = await status_of(world, name)
        return status if status.get("jobDeploymentStatus", "") in states else None

    return await world.until(is_there, seconds, step=0.1)


async def reported(world, word, name="j", seconds=600):
    """Wait until the status repeats this word of Ray's; returns it."""

    async def is_so():
        status = await status_of(world, name)
        return status if status.get("jobStatus") == word else None

    return await world.until(is_so, seconds, step=0.1)


async def condition_of(world, kind, name="j"):
    """Return a condition as (status, reason, message); None if it is not told."""
    found = {one["type"]: one for one in (await status_of(world, name)).get("conditions") or ()}
    one = found.get(kind)
    return (one["status"], one["reason"], one["message"]) if one else None


async def waits_for(world, name="j"):
    """Return what a job says that it waits for, as (reason, message)."""
    state, reason, message = await condition_of(world, "Progressing", name)
    assert state == "True"
    return reason, message


async def told(world, reason, name="j"):
    """Return the first event of a reason as (type, action, note)."""
    event, *_ = await world.events(reason, name)
    return event["type"], event["action"], event["note"]


async def host(world, name="j"):
    """Return where the dashboard of a job's cluster is."""
    return host_of((await status_of(world, name))["rayClusterName"])


async def head_of(world, name="j"):
    """Return the scripted head that answers for a job."""
    return world.dashboards.heads[await host(world, name)]


async def ray_says(world, word, message="", name="j"):
    """Have Ray say this about a job from now on."""
    (await head_of(world, name)).set_status((await status_of(world, name))["jobId"], word, message)


async def set_status(world, name="j", **fields):
    return await world.patch("RayJob", name, {"status": fields}, part="/status")


async def submitter_pods(world, name="j"):
    return await world.list("Pod", f"batch.kubernetes.io/job-name={name}")


async def head_pod(world, name="j"):
    return await world.head((await status_of(world, name))["rayClusterName"])


def names(objects):
    return [obj["metadata"]["name"] for obj in objects]


def states_written(world):
    """Return the states that the operator has written for its only job, one after the other; New is empty."""
    written = [""]
    for body in world.bodies("patch", "rayjobs.ray.io"):
        changes = body.get("status") or {}
        state = (changes["jobDeploymentStatus"] or "") if "jobDeploymentStatus" in changes else written[-1]
        if state != written[-1]:
            written.append(state)
    return written
