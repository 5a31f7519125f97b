"""Whatever happens to Ray, a RayJob comes to an end that says so, and no attempt is executed twice.

Each row of a table is a mode, what goes wrong, and when: `before` the job is submitted, while it `runs`, when it is
`over` in Ray and its submitter has not ended yet, or after the `end` of the RayJob.
"""

from collections.abc import Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from kubereef.node.scripts import Running, Script
from tests.eagleray.dashboard.scripted import (
    ANSWER_HANGS,
    ANSWER_LOST,
    CONNECT_HANGS,
    HANGS,
    NO_SUCH_PAGE,
    REFUSES,
    SERVER_ERROR,
    WRONG_JSON,
    WRONG_SHAPE,
    late,
    says,
    slow,
)
from tests.eagleray.ray import RayOnPods, host_of
from tests.eagleray.world import rayjob, world_of

KINDS = ("RayCluster", "RayJob")
K8S, HTTP, SIDECAR, INTERACTIVE = "K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"
MODES = (K8S, HTTP, SIDECAR, INTERACTIVE)
LASTS = 30
# An end is reached within this time after the fault: the status-check timeout and a few rounds.
BOUND = 400
# An end has to last so long to be one; a Job starts the next Pods after 10 and 20 s.
AFTERMATH = 45
HEAD_STARTS = Script({"ray.io/node-type": "head"}, steps=(Running(after=1),), stops_after=1)
SUBMITTER_STARTS = Script({"ray.io/originated-from-crd": "RayJob"}, steps=(Running(after=12),))


class Drama:
    """A RayJob of a mode, the Ray under it, and what can happen to them."""

    def __init__(self, world, ray, mode):
        self.world = world
        self.ray = ray
        self.mode = mode
        self.host = ""
        self.is_held = False

    async def status(self):
        return await self.world.status("j", "RayJob")

    async def until(self, seconds=BOUND, **wanted):
        """Wait until fields of the status are these; returns it."""

        async def is_so():
            status = await self.status()
            return status if all(status.get(field) == value for field, value in wanted.items()) else None

        return await self.world.until(is_so, seconds)

    async def end(self):
        async def is_over():
            status = await self.status()
            return status if status.get("jobDeploymentStatus") in ("Complete", "Failed") else None

        return await self.world.until(is_over, BOUND, step=3)

    # --- moments

    async def before(self):
        """Come to where the job could be submitted at any moment, and is not."""
        await self.until(jobDeploymentStatus="Initializing")
        self.host = host_of((await self.status())["rayClusterName"])
        if self.mode == HTTP:
            self.is_held = True
            self.world.dashboards.fault(self.host, REFUSES)
        await self.until(jobDeploymentStatus="Waiting" if self.mode == INTERACTIVE else "Running")
        assert self.ray.ledger.started == []

    async def runs(self):
        """Come to where Ray runs the job, and the status says so."""
        if self.mode == INTERACTIVE:
            await self.before()
            await self.submit_by_hand()
        await self.until(jobStatus="RUNNING")
        self.host = host_of((await self.status())["rayClusterName"])

    async def over(self):
        """Come to where the job is over and the submitter is not."""
        self.ray.held = True
        await self.runs()
        await self.until(jobStatus="SUCCEEDED")

    async def ended(self):
        await self.runs()
        await self.end()

    async def goes_on(self):
        """Take back what only served to hold a moment; a user does what is waited for."""
        self.ray.held = False
        if self.is_held:
            self.world.dashboards.heal(self.host)
        if self.mode == INTERACTIVE and (await self.status()).get("jobDeploymentStatus") == "Waiting":
            await self.submit_by_hand()

    async def submit_by_hand(self):
        async def answers():
            return self.host in self.world.dashboards.heads

        await self.world.until(answers)
        self.world.dashboards.heads[self.host].submit("by-hand")
        await self.world.patch("RayJob", "j", {"spec": {"jobId": "by-hand"}})

    # --- faults

    @property
    def head(self):
        return self.world.dashboards.heads[self.host]

    async def head_pod(self):
        return await self.world.head((await self.status())["rayClusterName"])

    async def delete_head(self):
        await self.world.delete("Pod", (await self.head_pod())["metadata"]["name"])
        await self.world.pass_time(5)

    async def restart_head(self):
        """Have Ray's container end and, where that is allowed, start again in its place."""
        pod = await self.head_pod()
        status = pod["status"]
        now = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": pod["metadata"]["creationTimestamp"]}
        ray = next(one for one in status["containerStatuses"] if one["name"] == "ray")
        if pod["spec"]["restartPolicy"] == "Never":
            ray |= {"state": {"terminated": now}, "ready": False}
        else:
            ray |= {"lastState": {"terminated": now}, "restartCount": ray.get("restartCount", 0) + 1}
        await self.world.patch("Pod", pod["metadata"]["name"], {"status": status}, part="/status")
        await self.world.pass_time(5)

    async def lose_table(self):
        self.head.forget_jobs()

    async def delete_submitter(self):
        for pod in await self.world.list("Pod", "batch.kubernetes.io/job-name=j"):
            await self.world.delete("Pod", pod["metadata"]["name"])


class Row(NamedTuple):
    """What happens, and what comes of it."""

    mode: str
    moment: str
    fault: Any
    ends: str  # the state, and where it is Failed the reason
    executions: int = 1
    ray: Mapping[str, Any] = MappingProxyType({})
    name: str = ""

    def __str__(self):
        what = self.name or getattr(self.fault, "__name__", "")
        return f"{self.mode}: {what} ({self.moment})"


@asynccontextmanager
async def drama(mode, *, lasts=LASTS, spec=None, **ray):
    async with (
        world_of(kinds=KINDS, scripts=(HEAD_STARTS, SUBMITTER_STARTS)) as world,
        RayOnPods(world, lasts=lasts, health_delay=12 if mode == SIDECAR else 0, **ray) as lives,
    ):
        await world.create(rayjob(submissionMode=mode, cluster={"workers": []}, **(spec or {})))
        yield Drama(world, lives, mode)


def ended_as(status):
    state = status["jobDeploymentStatus"]
    return f"{state}: {status.get('reason')}" if state == "Failed" else state


def table(rows):
    return [pytest.param(row, id=str(row)) for row in rows]


async def play(row, **options):
    """Let a row happen; returns the status in the end, the ledger, and the names of the clusters that were made."""
    async with drama(row.mode, **row.ray, **options) as on:
        await getattr(on, row.moment)()
        await row.fault(on)
        await on.goes_on()
        status = await on.end()
        await on.world.pass_time(AFTERMATH)
        assert ended_as(await on.status()) == ended_as(status), "it did not stay so"
        assert on.ray.ledger.repeated == []
        made = {body["metadata"]["name"] for body in on.world.bodies("create", "rayclusters.ray.io")}
        return status, on.ray.ledger, made


# --- the head, the job table and the submitter

HEAD = (Drama.delete_head, Drama.restart_head)
KEPT = {"keeps_jobs": True}
GONE = "Failed: AppFailed"  # Ray head pod not found.
GRACE = "Failed: JobDeploymentStatusTransitionGracePeriodExceeded"

ROWS = [
    # Recorded for a head that is no more: nobody can know whether it had been submitted.
    *(Row(K8S, "before", lose, "Failed: JobLost", 0) for lose in HEAD),
    *(Row(HTTP, "before", lose, "Complete") for lose in HEAD),
    *(Row(SIDECAR, "before", lose, GONE, 0) for lose in HEAD),
    *(Row(INTERACTIVE, "before", lose, "Complete") for lose in HEAD),
    *(Row(mode, "runs", lose, "Failed: JobLost") for mode in (K8S, HTTP, INTERACTIVE) for lose in HEAD),
    *(Row(SIDECAR, "runs", lose, GONE) for lose in HEAD),
    *(Row(mode, "over", lose, "Complete") for mode in (K8S, SIDECAR) for lose in HEAD),
    *(Row(mode, "ended", lose, "Complete") for mode in MODES for lose in HEAD),
    # With fault tolerance the new head goes on where the old one was.
    *(
        Row(mode, moment, lose, "Complete", 1, KEPT, f"{lose.__name__} with fault tolerance")
        for mode in (K8S, HTTP, INTERACTIVE)
        for moment in ("before", "runs")
        for lose in HEAD
    ),
    *(Row(mode, "runs", Drama.lose_table, "Failed: JobLost") for mode in MODES),
    Row(K8S, "before", Drama.delete_submitter, "Complete"),
    Row(K8S, "runs", Drama.delete_submitter, "Complete"),
]


@pytest.mark.case("RJ-75", "RJ-89", "RJ-93", "RJ-94")
@pytest.mark.parametrize("row", table(ROWS))
async def test_what_is_lost_is_told_and_executed_at_most_once(row):
    status, ledger, _ = await play(row)
    assert (ended_as(status), len(ledger.started)) == (row.ends, row.executions)


@pytest.mark.case("RJ-92", "RJ-93")
@pytest.mark.parametrize(
    "row", table(row for row in ROWS if row.fault in HEAD and row.moment in ("before", "runs"))
)
async def test_what_is_lost_while_the_operator_is_away_is_executed_at_most_once(row):
    """Only what the operator has left behind, on record and in the submitter's command, can keep it from that."""

    async def happens(on):
        await on.world.kill_operator()
        await row.fault(on)
        await on.world.pass_time(90)
        await on.world.start_operator()
        await on.world.pass_time(5)

    status, ledger, _ = await play(row._replace(fault=happens))
    ends = row.ends
    if row.mode == SIDECAR and row.fault is Drama.restart_head:
        ends = GRACE  # the submitter ended long ago by then, and its Pod is still there to tell
    assert (ended_as(status), len(ledger.started)) == (ends, row.executions)


@pytest.mark.case("RJ-89")
@pytest.mark.parametrize(
    "row", table(row for row in ROWS if row.ends.startswith("Failed") and row.mode != INTERACTIVE)
)
async def test_a_retry_runs_on_a_new_cluster_under_a_new_id(row):
    status, ledger, clusters = await play(row, spec={"backoffLimit": 1})
    assert ended_as(status) == "Complete"
    assert (status["failed"], status["succeeded"], status["submission"]["attempt"]) == (1, 1, 2)
    assert len(ledger.started) == row.executions + 1
    assert len(clusters) == 2


# --- the dashboard

NO_SUCH_JOB = says(404, b"Job does not exist")
TROUBLES = {
    "slow": slow(1.5),
    "hangs": HANGS,
    "connection hangs": CONNECT_HANGS,
    "refuses": REFUSES,
    "no such page": NO_SUCH_PAGE,
    "500": SERVER_ERROR,
    "wrong JSON": WRONG_JSON,
    "wrong shape": WRONG_SHAPE,
    "answers hang": ANSWER_HANGS,
}


def answers_with(fault, seconds=None):
    """Have the dashboard do this for so many seconds, or for ever."""

    async def happens(on):
        on.world.dashboards.fault(on.host, fault)
        if seconds is not None:
            await on.world.pass_time(seconds)
            on.world.dashboards.heal(on.host)

    return happens


def says_in_turn(*words):
    async def happens(on):
        on.head.flap((await on.status())["jobId"], *words)

    return happens


async def fails_and_runs_on(on):
    """Have Ray call a job failed that it goes on to execute."""
    on.head.set_status((await on.status())["jobId"], "FAILED", "the supervisor is gone")


def rows_of_dashboards():
    for mode in MODES:
        for name, fault in TROUBLES.items():
            yield Row(mode, "runs", answers_with(fault, 20), "Complete", name=f"{name} for a while")
        yield Row(mode, "runs", answers_with(NO_SUCH_JOB), "Failed: JobLost", name="no such job")
        yield Row(mode, "runs", says_in_turn("PENDING", "RUNNING", "PENDING"), "Complete", name="flaps")
        yield Row(mode, "runs", fails_and_runs_on, "Failed: AppFailed", name="failed, and runs on")
    # What ends a wait without end: the submitter's end, or the timeout of the status checks.
    timeout = "Failed: JobStatusCheckTimeoutExceeded"
    for mode, ends in ((K8S, GRACE), (SIDECAR, GRACE), (HTTP, timeout), (INTERACTIVE, timeout)):
        for name in ("hangs", "500", "wrong JSON"):
            yield Row(mode, "runs", answers_with(TROUBLES[name]), ends, name=f"{name} for ever")


@pytest.mark.case("RJ-98")
@pytest.mark.parametrize("row", table(rows_of_dashboards()))
async def test_an_end_is_reached_whatever_a_dashboard_says(row):
    status, ledger, _ = await play(row)
    assert (ended_as(status), len(ledger.started)) == (row.ends, row.executions)


# --- the submission

POSTS = {
    "answer lost": (ANSWER_LOST, "Complete", 1),
    "answer never comes": (ANSWER_HANGS, "Complete", 1),
    "never read": (HANGS, "Complete", 1),
    "refused": (REFUSES, "Complete", 1),
    "500": (SERVER_ERROR, "Complete", 1),
    "done late": (late(3), "Complete", 1),
}


def spoil_posts(on, fault, times=1):
    """Have this go wrong with the next submissions to any dashboard; all else goes well."""
    answer, dashboards = on.world.dashboards._answer, on.world.dashboards

    async def spoiled(host, request, headers, connect_seconds):
        nonlocal times
        if request.method == "POST" and times:
            times -= 1
            dashboards.fault(host, fault, times=1)
        return await answer(host, request, headers, connect_seconds)

    dashboards._answer = spoiled


@pytest.mark.case("RJ-91")
@pytest.mark.parametrize("name", POSTS)
async def test_a_submission_that_goes_wrong_is_made_once(name):
    fault, ends, executions = POSTS[name]
    async with drama(HTTP) as on:
        spoil_posts(on, fault)
        status = await on.end()
        assert (ended_as(status), len(on.ray.ledger.started)) == (ends, executions)


@pytest.mark.case("RJ-89", "RJ-91")
@pytest.mark.parametrize(("fault", "executions"), [(ANSWER_LOST, 1), (HANGS, 0)], ids=["done", "not done"])
@pytest.mark.parametrize("lose", HEAD, ids=lambda lose: lose.__name__)
async def test_a_submission_is_not_made_again_to_the_next_head(fault, executions, lose):
    async with drama(HTTP) as on:
        spoil_posts(on, fault, times=100)
        await on.until(jobDeploymentStatus="Running")
        await on.world.until(lambda: is_posted(on), step=0.01)
        await lose(on)
        assert ended_as(await on.end()) == "Failed: JobLost"
        await on.world.pass_time(AFTERMATH)
        assert len(on.ray.ledger.started) == executions


@pytest.mark.case("RJ-89")
async def test_an_order_on_its_way_does_not_reach_the_next_head():
    async with drama(HTTP) as on:
        await on.world.until(lambda: has_submission(on), step=0.001)
        assert not await is_posted(on)
        await on.restart_head()
        assert ended_as(await on.end()) == "Failed: JobLost"
        assert on.ray.ledger.started == []


@pytest.mark.parametrize(
    ("mode", "made"), [(K8S, "jobs.batch"), (SIDECAR, "rayclusters.ray.io")], ids=[K8S, SIDECAR]
)
async def test_a_submission_is_on_record_before_there_is_a_submitter(mode, made):
    async with drama(mode) as on:
        await on.end()
        sent = [(request.verb, request.resource, request.body or b"") for request in on.world.faults.sent]
        recorded = next(at for at, (_, _, body) in enumerate(sent) if b'"submission"' in body)
        created = next(at for at, (verb, what, _) in enumerate(sent) if (verb, what) == ("create", made))
        assert recorded < created


async def has_submission(on):
    return (await on.status()).get("submission")


async def is_posted(on):
    return on.world.dashboards.asked(on.host or None, "POST")


SUBMITTERS = [
    pytest.param(K8S, ["dies before"], "Complete", 1, id="K8sJobMode: the first dies before it submits"),
    pytest.param(K8S, ["dies after"], "Complete", 1, id="K8sJobMode: the first dies after it has submitted"),
    pytest.param(K8S, ["dies before"] * 3, "Failed: SubmissionFailed", 0, id="K8sJobMode: all die before"),
    pytest.param(K8S, ["dies after"] * 3, "Failed: SubmissionFailed", 1, id="K8sJobMode: all die after"),
    pytest.param(SIDECAR, ["dies before"], "Failed: SubmissionFailed", 0, id="SidecarMode: it dies before"),
    pytest.param(SIDECAR, ["dies after"], "Failed: SubmissionFailed", 1, id="SidecarMode: it dies after"),
]


@pytest.mark.parametrize(("mode", "faults", "ends", "executions"), SUBMITTERS)
async def test_submitters_that_die_submit_at_most_once(mode, faults, ends, executions):
    async with drama(mode, lasts=90, submitter_faults=faults) as on:
        status = await on.end()
        await on.world.pass_time(AFTERMATH)
        assert (ended_as(status), len(on.ray.ledger.started)) == (ends, executions)


@pytest.mark.case("RJ-93")
@pytest.mark.parametrize("is_lost", [False, True], ids=["the head stays", "the head is replaced"])
async def test_a_head_that_does_not_tell_its_session_is_known_by_its_age(is_lost):
    async with drama(K8S) as on:
        await on.until(jobDeploymentStatus="Initializing")
        on.host = host_of((await on.status())["rayClusterName"])
        on.world.dashboards.fault(on.host, SERVER_ERROR)
        status = await on.until(seconds=30, jobDeploymentStatus="Running")
        assert "headSession" not in status["submission"]
        on.world.dashboards.heal(on.host)
        if is_lost:
            await on.delete_head()
        status = await on.end()
        ends, executions = ("Failed: JobLost", 0) if is_lost else ("Complete", 1)
        assert (ended_as(status), len(on.ray.ledger.started)) == (ends, executions)


@pytest.mark.case("RJ-92")
@pytest.mark.parametrize("away", [20, 120])
@pytest.mark.parametrize("mode", MODES)
async def test_an_operator_that_was_away_finds_what_has_become_of_the_job(mode, away):
    async with drama(mode) as on:
        await on.runs()
        await on.world.kill_operator()
        await on.world.pass_time(away)
        await on.world.start_operator()
        assert ended_as(await on.end()) == "Complete"
        assert len(on.ray.ledger.started) == 1
