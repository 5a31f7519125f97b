"""RayJobs that a rule rejects, and those that somebody else manages: what a user sees of it on a running operator."""

import pytest

from eagleray.gates import parse_gates
from eagleray.rayapi.rules import ValidationConfig, problems_of
from kubewire import errors
from tests.eagleray.rayjob.situations import (
    KINDS,
    MOMENT,
    ROUND,
    SHUT_DOWN,
    condition_of,
    ended,
    ray_world,
    reached,
    running,
    set_status,
    state_of,
    states_written,
    status_of,
    told,
)
from tests.eagleray.world import rayjob, world_of

pytestmark = pytest.mark.usefixtures("virtual_time")

SELECTED = {"clusterSelector": {"ray.io/cluster": "c"}}
HEAD_RESTARTS = {"cluster": {"head": {"pod": {"restartPolicy": "Always"}}}}
TOKENS = {"mode": "token", "enableK8sTokenAuth": True}
NO_GATE = ("--feature-gates=RayJobDeletionPolicy=false",)


def legacy(success, failure):
    return {"deletionStrategy": {"onSuccess": {"policy": success}, "onFailure": {"policy": failure}}}


def rules(*triples):
    """Return a strategy of rules, each given as (policy, job status, seconds)."""
    return {
        "deletionStrategy": {
            "deletionRules": [
                {"policy": policy, "condition": {"jobStatus": word, "ttlSeconds": seconds}}
                for policy, word, seconds in triples
            ]
        }
    }


FAILED_TWICE = {
    "deletionStrategy": {
        "deletionRules": [{"policy": "DeleteCluster", "condition": {"jobDeploymentStatus": "Failed"}}] * 2
    }
}

REJECTED = {
    "suspended and never shut down": ({"suspend": True}, "rayjob-v1"),
    "suspended on a chosen cluster": ({"suspend": True, **SHUT_DOWN, **SELECTED}, "rayjob-v8"),
    "a selector with an empty name": (
        {"cluster": False, "clusterSelector": {"ray.io/cluster": ""}},
        "rayjob-v10a",
    ),
    "retries on a chosen cluster": ({**SELECTED, "backoffLimit": 1}, "rayjob-v10c"),
    "a sidecar in a chosen cluster": ({**SELECTED, "submissionMode": "SidecarMode"}, "rayjob-v10b"),
    "retries by hand": ({"submissionMode": "InteractiveMode", "backoffLimit": 1}, "rayjob-v11"),
    "less than no retries": ({"backoffLimit": -1}, "rayjob-v18"),
    "no mapping as environment": ({"runtimeEnvYAML": "invalid_yaml_string"}, "rayjob-v15"),
    "a delay of no shutdown": ({"ttlSecondsAfterFinished": 5}, "rayjob-v3"),
    "a delay below zero": ({**SHUT_DOWN, "ttlSecondsAfterFinished": -5}, "rayjob-v2"),
    "a sidecar with a configuration": (
        {"submissionMode": "SidecarMode", "submitterConfig": {"backoffLimit": 1}},
        "rayjob-v12b",
    ),
    "a sidecar with a template": (
        {"submissionMode": "SidecarMode", "submitterPodTemplate": {"spec": {"containers": []}}},
        "rayjob-v12a",
    ),
    "a sidecar that restarts": ({"submissionMode": "SidecarMode", **HEAD_RESTARTS}, "rayjob-v12c"),
    "tokens of kubernetes": ({"cluster": {"authOptions": TOKENS}}, "rayjob-v13"),
    "a head without containers": ({"cluster": {"head": {"pod": {"containers": []}}}}, "raycluster-1"),
    "deleting a chosen cluster": ({**SELECTED, **legacy("DeleteCluster", "DeleteNone")}, "rayjob-l3"),
    "deleting scaled workers": (
        {"cluster": {"enableInTreeAutoscaling": True}, **legacy("DeleteWorkers", "DeleteNone")},
        "rayjob-l4",
    ),
    "a shutdown of nothing": ({**SHUT_DOWN, **legacy("DeleteNone", "DeleteSelf")}, "rayjob-l5"),
    "rules and a shutdown": ({**SHUT_DOWN, **rules(("DeleteSelf", "FAILED", 0))}, "rayjob-v5"),
    "one rule twice": (
        rules(("DeleteCluster", "SUCCEEDED", 1), ("DeleteCluster", "SUCCEEDED", 2)),
        "rayjob-r6",
    ),
    "one rule about a state twice": (FAILED_TWICE, "rayjob-r7"),
    "workers outlive their cluster": (
        rules(("DeleteWorkers", "SUCCEEDED", 20), ("DeleteCluster", "SUCCEEDED", 10)),
        "rayjob-r8",
    ),
    "no cluster at all": ({"cluster": False}, "rayjob-v9"),
}


@pytest.mark.case("RJ-3", "RJ-4", "RJ-6", "RJ-7", "RJ-8", "RJ-9", "RJ-10", "RJ-11", "RJ-12", "RJ-13", "RJ-14")
@pytest.mark.case("RJ-15", "RJ-16", "RJ-17", "RJ-20", "RJ-21", "RJ-22", "RJ-23", "RJ-24", "RJ-26", "RJ-103")
async def test_a_rejected_job_says_why_and_makes_nothing():
    async with world_of(kinds=KINDS) as world:
        made = {
            title: await world.create(rayjob(title.replace(" ", "-"), **spec))
            for title, (spec, _) in REJECTED.items()
        }
        await world.pass_time(MOMENT)
        for title, (_, rule) in REJECTED.items():
            await assert_rejected(world, made[title], "Spec", rule)


async def assert_rejected(world, made, part, rule, gates=""):
    """Check all that a user sees of a job that was never valid, by this rule."""
    name = made["metadata"]["name"]
    problem, *_ = [
        one for one in problems_of(made, ValidationConfig(parse_gates(gates))) if one.severity == "error"
    ]
    assert problem.rule == rule, name
    job = await world.get("RayJob", name)
    status = job["status"]
    assert (status["jobDeploymentStatus"], status["reason"]) == ("ValidationFailed", "ValidationFailed")
    assert status["message"] == f"The RayJob {part.lower()} is invalid: {problem}"
    assert await condition_of(world, "Failed", name) == ("True", "ValidationFailed", status["message"])
    assert await condition_of(world, "Progressing", name) is None
    assert status["observedGeneration"] == job["metadata"]["generation"]
    assert "finalizers" not in job["metadata"]
    told_about = await told(world, f"InvalidRayJob{part}", name)
    assert told_about == ("Warning", "Validate", f"default/{name}: {status['message']}")
    assert await world.list("RayCluster") == []
    assert await world.list("Job") == []


@pytest.mark.case("RJ-1", "RJ-2", "RJ-103")
@pytest.mark.parametrize(
    ("name", "rule"),
    [("j" * 48, "rayjob-m1"), ("1job", "rayjob-m2")],
    ids=["too long", "begins with a digit"],
)
async def test_a_name_that_leaves_no_room_or_is_no_label(name, rule):
    async with world_of(kinds=KINDS) as world:
        made = await world.create(rayjob(name))
        await world.pass_time(MOMENT)
        await assert_rejected(world, made, "Metadata", rule)


@pytest.mark.case("RJ-1")
async def test_the_longest_name_runs():
    async with ray_world(lasts=2) as (world, _):
        await world.create(rayjob("j" * 47))
        assert (await reached(world, "Complete", name="j" * 47))["succeeded"] == 1


ACCEPTED = {
    "suspended and shut down": ({"suspend": True, **SHUT_DOWN}, "Suspended"),
    "no retries on a chosen cluster": ({**SELECTED, "backoffLimit": 0}, "Initializing"),
    "a chosen cluster alone": ({"cluster": False, **SELECTED}, "Initializing"),
    "no retries by hand": ({"submissionMode": "InteractiveMode", "backoffLimit": 0}, "Waiting"),
    "by hand": ({"submissionMode": "InteractiveMode"}, "Waiting"),
    "no environment": ({"runtimeEnvYAML": ""}, "Running"),
    "a delay of a shutdown": ({**SHUT_DOWN, "ttlSecondsAfterFinished": 5}, "Running"),
    "a sidecar": ({"submissionMode": "SidecarMode"}, "Running"),
    "a sidecar that stays": (
        {"submissionMode": "SidecarMode", "cluster": {"head": {"pod": {"restartPolicy": "Never"}}}},
        "Running",
    ),
    "a legacy shutdown": ({**SHUT_DOWN, **legacy("DeleteCluster", "DeleteCluster")}, "Running"),
    "more and more is deleted": (
        rules(
            ("DeleteWorkers", "SUCCEEDED", 10),
            ("DeleteCluster", "SUCCEEDED", 20),
            ("DeleteSelf", "SUCCEEDED", 30),
        ),
        "Running",
    ),
    "rules about different ends": (
        rules(("DeleteWorkers", "SUCCEEDED", 20), ("DeleteCluster", "FAILED", 10)),
        "Running",
    ),
    "rules about job and state": (
        {
            "deletionStrategy": {
                "deletionRules": [
                    {"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED"}},
                    {"policy": "DeleteCluster", "condition": {"jobDeploymentStatus": "Failed"}},
                ]
            }
        },
        "Running",
    ),
}


@pytest.mark.case(
    "RJ-5", "RJ-7", "RJ-8", "RJ-10", "RJ-12", "RJ-13", "RJ-15", "RJ-22", "RJ-26", "RJ-27", "RJ-29"
)
async def test_an_accepted_job_goes_on():
    async with ray_world(lasts=None) as (world, _):
        for title, (spec, _) in ACCEPTED.items():
            await world.create(rayjob(title.replace(" ", "-"), **spec))
        await world.pass_time(20)
        states = {title: await state_of(world, title.replace(" ", "-")) for title in ACCEPTED}
        assert states == {title: state for title, (_, state) in ACCEPTED.items()}
        for title in ACCEPTED:
            assert await condition_of(world, "Failed", title.replace(" ", "-")) is None


@pytest.mark.case("RJ-18", "OP-42")
async def test_without_its_gate_a_deletion_strategy_is_rejected():
    async with world_of(kinds=KINDS, flags=NO_GATE) as world:
        made = await world.create(rayjob(**legacy("DeleteCluster", "DeleteNone")))
        await world.pass_time(MOMENT)
        await assert_rejected(world, made, "Spec", "rayjob-v4", "RayJobDeletionPolicy=false")


@pytest.mark.case("OP-42")
async def test_without_the_gate_a_suspended_group_is_rejected():
    async with world_of(kinds=KINDS, flags=NO_GATE) as world:
        made = await world.create(rayjob(cluster={"workers": [{"suspend": True}]}))
        await world.pass_time(MOMENT)
        await assert_rejected(world, made, "Spec", "raycluster-11", "RayJobDeletionPolicy=false")


SERVER_REFUSES = [
    pytest.param(
        {"deletionStrategy": {"onSuccess": {"policy": "DeleteCluster"}}},
        id="half a legacy strategy",
        marks=pytest.mark.case("RJ-19"),
    ),
    pytest.param({"deletionStrategy": {}}, id="an empty strategy", marks=pytest.mark.case("RJ-23")),
    pytest.param(
        {"deletionStrategy": {**legacy("DeleteNone", "DeleteNone")["deletionStrategy"], "deletionRules": []}},
        id="both kinds of strategy",
        marks=pytest.mark.case("RJ-23"),
    ),
    pytest.param(
        rules(("DeleteCluster", "SUCCEEDED", -1)),
        id="a rule with a delay below zero",
        marks=pytest.mark.case("RJ-25"),
    ),
    pytest.param(
        {"deletionStrategy": {"deletionRules": [{"policy": "DeleteSelf", "condition": {"ttlSeconds": 1}}]}},
        id="a rule about nothing",
        marks=pytest.mark.case("RJ-28"),
    ),
    pytest.param(
        {"managedBy": "invalid.com/controller"}, id="an unknown manager", marks=pytest.mark.case("RJ-31")
    ),
]


@pytest.mark.parametrize("spec", SERVER_REFUSES)
async def test_the_server_refuses_what_the_definition_forbids(spec):
    async with world_of(kinds=KINDS) as world:
        with pytest.raises(errors.Invalid):
            await world.create(rayjob(**spec))


@pytest.mark.case("RJ-30", "RJ-103")
async def test_a_state_that_the_mode_does_not_have_is_rejected():
    async with world_of(kinds=KINDS, operator=False) as world:
        await world.create(rayjob())
        made = await set_status(world, jobDeploymentStatus="Waiting")
        await world.start_operator()
        await world.pass_time(MOMENT)
        await assert_rejected(world, made, "Status", "rayjob-s1")


@pytest.mark.case("RJ-31")
async def test_a_job_that_somebody_else_manages_is_never_touched():
    async with world_of(kinds=KINDS) as world:
        made = await world.create(rayjob(managedBy="kueue.x-k8s.io/multikueue"))
        await world.pass_time(700)
        assert await world.get("RayJob", "j") == made
        assert await world.list("RayCluster") == []
        assert await world.events() == []
        assert world.writes() == []
        with pytest.raises(errors.Invalid):
            await world.patch("RayJob", "j", {"spec": {"managedBy": "ray.io/kuberay-operator"}})


@pytest.mark.case("RJ-32")
async def test_a_mended_job_runs():
    async with ray_world(lasts=None) as (world, _):
        await world.create(rayjob(backoffLimit=-1))
        await reached(world, "ValidationFailed")
        await world.patch("RayJob", "j", {"spec": {"backoffLimit": 0}})
        status = await reached(world, "Running")
        assert "reason" not in status
        assert status["observedGeneration"] == 2
        assert (await condition_of(world, "Failed"))[0] == "False"
        assert states_written(world) == ["", "ValidationFailed", "", "Initializing", "Running"]


@pytest.mark.case("RJ-32")
@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode"])
async def test_a_running_job_that_is_broken_and_mended_is_not_submitted_again(mode):
    async with running(mode=mode) as (world, ray):
        before = await status_of(world)
        await world.patch("RayJob", "j", {"spec": {"backoffLimit": -1}})
        await reached(world, "ValidationFailed")
        await world.pass_time(ROUND)
        await world.patch("RayJob", "j", {"spec": {"backoffLimit": 0}})
        after = await reached(world, "Running")
        await world.pass_time(ROUND)
        for field in ("jobId", "rayClusterName", "submission"):
            assert after[field] == before[field]
        assert len(ray.ledger.started) == 1


@pytest.mark.case("RJ-32", "RJ-97")
@pytest.mark.parametrize("ends", ["SUCCEEDED", "FAILED"])
async def test_an_invalid_edit_of_an_ended_job_is_only_told(ends):
    async with ended(ends=ends) as (world, _):
        before = await status_of(world)
        await world.patch("RayJob", "j", {"spec": {"backoffLimit": -1}})
        await world.pass_time(ROUND)
        assert await status_of(world) == {**before, "observedGeneration": 2}
        assert (await told(world, "InvalidRayJobSpec"))[:2] == ("Warning", "Validate")


@pytest.mark.case("RJ-97")
async def test_every_generation_that_was_handled_is_noted():
    async with running() as (world, _):
        assert (await status_of(world))["observedGeneration"] == 1
        await world.patch(
            "RayJob", "j", {"spec": {"ttlSecondsAfterFinished": 0, "activeDeadlineSeconds": 9000}}
        )
        await world.pass_time(MOMENT)
        assert (await status_of(world))["observedGeneration"] == 2
        await world.patch("RayJob", "j", {"spec": {"activeDeadlineSeconds": 0}})
        await world.pass_time(MOMENT)
        assert (await status_of(world))["observedGeneration"] == 3
        assert await state_of(world) == "ValidationFailed"
