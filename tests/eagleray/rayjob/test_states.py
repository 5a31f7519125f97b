"""The table of states: it is whole, and each of its ways is taken."""

import pytest

from eagleray.rayjob.states import STATES, decide, next_deadline
from eagleray.rayjob.timers import Timer
from tests.eagleray.rayjob.looks import (
    RECORDED,
    ago,
    cluster,
    head,
    look_at,
    missing,
    says,
    session,
    submitter,
    unreachable,
)

RUNS = {"cluster": cluster(), "submitter": submitter()}
DEADLINES = {"activeDeadlineSeconds": 60}


def way(state, when, to, look):
    return pytest.param(state, when, to, look, id=f"{state or 'New'} → {to or 'New'}: {when}")


def pre_running(state, **more):
    return look_at(state, preRunningDeadlineSeconds=60, **more)


WAYS = [
    way("", "always, once the names of the attempt are chosen", "Initializing", look_at("")),
    *(
        way(state, "suspend is set", "Suspending", look_at(state, suspend=True))
        for state in ("Initializing", "Waiting", "Running")
    ),
    *(
        way(state, "activeDeadlineSeconds have passed", "Failed", look_at(state, **DEADLINES))
        for state in ("Initializing", "Waiting", "Running")
    ),
    *(
        way(state, "preRunningDeadlineSeconds have passed", "Failed", pre_running(state))
        for state in ("Initializing", "Waiting")
    ),
    way(
        "Initializing",
        "the head with the sidecar submitter is lost",
        "Failed",
        look_at("Initializing", mode="SidecarMode", status=RECORDED, seen={"cluster": cluster(state="")}),
    ),
    way(
        "Initializing",
        "the cluster is ready, in InteractiveMode",
        "Waiting",
        look_at("Initializing", mode="InteractiveMode", seen={"cluster": cluster()}),
    ),
    way(
        "Initializing",
        "the cluster is ready and the job handed over",
        "Running",
        look_at("Initializing", status=RECORDED, seen=RUNS),
    ),
    way(
        "Initializing",
        "the sidecar submitter has ended before that",
        "Running",
        look_at(
            "Initializing",
            mode="SidecarMode",
            status={**RECORDED, "dashboardURL": ""},
            seen={"cluster": cluster(state=""), "heads": [head(code=0)]},
        ),
    ),
    way("Waiting", "spec.jobId is set", "Running", look_at("Waiting", mode="InteractiveMode", jobId="mine")),
    *(
        way(
            "Running",
            "Ray's job ended long ago and the submitter does not",
            to,
            look_at("Running", status={"jobStatus": word, "rayJobInfo": {"endTime": ago(300)}}, seen=RUNS),
        )
        for word, to in (("FAILED", "Failed"), ("STOPPED", "Complete"))
    ),
    way(
        "Running",
        "Ray cannot be asked for too long",
        "Failed",
        look_at(
            "Running",
            status={"jobStatusCheckFailureStartTime": ago(300)},
            seen={**RUNS, "info": unreachable()},
        ),
    ),
    *(
        way(
            "Running",
            "the job has ended and its submitter is done",
            to,
            look_at(
                "Running", seen={"cluster": cluster(), "submitter": submitter("Complete"), "info": says(word)}
            ),
        )
        for word, to in (("FAILED", "Failed"), ("SUCCEEDED", "Complete"))
    ),
    way(
        "Running",
        "the submitter ended and the job did not for 30 s",
        "Failed",
        look_at(
            "Running",
            seen={
                "cluster": cluster(),
                "submitter": submitter("Complete", seconds=30),
                "info": says("RUNNING"),
            },
        ),
    ),
    way(
        "Running",
        "the submitter failed",
        "Failed",
        look_at(
            "Running", seen={"cluster": cluster(), "submitter": submitter("Failed"), "info": says("RUNNING")}
        ),
    ),
    way(
        "Running",
        "the job was lost",
        "Failed",
        look_at(
            "Running",
            mode="HTTPMode",
            status={"jobStatus": "RUNNING"},
            seen={"cluster": cluster(), "info": missing()},
        ),
    ),
    way(
        "Running",
        "the submitter ended and Ray knows no such job",
        "Failed",
        look_at(
            "Running", seen={"cluster": cluster(), "submitter": submitter("Complete"), "info": missing()}
        ),
    ),
    way("Suspending", "nothing of the attempt is left", "Suspended", look_at("Suspending")),
    way("Retrying", "nothing of the attempt is left", "", look_at("Retrying")),
    way("Suspended", "suspend is false", "", look_at("Suspended")),
    way("ValidationFailed", "the spec was mended", "", look_at("ValidationFailed")),
]


@pytest.mark.parametrize(("state", "when", "to", "look"), WAYS)
def test_a_way_out_is_taken(state, when, to, look):
    taken = next(one for one in STATES[state].exits if one.check(look) is not None)
    assert taken.when == when
    decision = decide(look)
    assert decision.to == to
    assert to in taken.to


def test_every_way_of_the_table_is_taken():
    shown = {(one.values[0], one.values[1], one.values[2]) for one in WAYS}
    stated = {(name, one.when, to) for name, state in STATES.items() for one in state.exits for to in one.to}
    assert shown == stated


def test_the_table_has_the_states_of_the_specification():
    before_the_end = ("", "Initializing", "Waiting", "Running", "Suspending", "Retrying", "Suspended")
    assert tuple(STATES) == (*before_the_end, "Complete", "Failed", "ValidationFailed")


@pytest.mark.parametrize("state", STATES.values(), ids=lambda state: state.name or "New")
def test_a_state_says_what_it_waits_for_what_ends_it_and_until_when(state):
    assert state.waits_for
    is_end = state.name in ("Complete", "Failed")
    assert is_end == (not state.exits), "a state that nothing ends is an end"
    assert bool(state.deadlines) != bool(state.without_deadline), "a deadline, or why there is none"
    assert all(isinstance(one, Timer) for one in state.deadlines)
    for one in state.exits:
        assert one.when
        assert set(one.to) <= set(STATES)
    assert (state.waits_for == "nothing") == is_end


def test_every_state_can_be_reached_and_every_state_leads_to_an_end():
    leads = {name: {to for one in state.exits for to in one.to} for name, state in STATES.items()}
    # A failure that may be retried becomes Retrying, whichever way it came; a rejection may come in any state.
    for ways in leads.values():
        if "Failed" in ways:
            ways.add("Retrying")
    assert set().union(*leads.values()) | {"", "ValidationFailed"} == set(STATES)
    for name in STATES:
        seen, todo = set(), [name]
        while todo:
            at = todo.pop()
            if at not in seen:
                seen.add(at)
                todo += leads[at]
        assert seen & {"Complete", "Failed"}, name


WAITS = [
    pytest.param(look_at("Initializing"), id="Initializing without a cluster"),
    pytest.param(
        look_at("Initializing", status={"dashboardURL": ""}, seen={"cluster": cluster(state="")}),
        id="Initializing",
    ),
    pytest.param(look_at("Waiting", mode="InteractiveMode", seen={"cluster": cluster()}), id="Waiting"),
    pytest.param(look_at("Running", seen={**RUNS, "info": unreachable()}), id="Running, unreachable"),
    pytest.param(look_at("Running", seen={**RUNS, "info": missing()}), id="Running, not submitted"),
    pytest.param(look_at("Running", seen={**RUNS, "info": says("RUNNING")}), id="Running"),
    pytest.param(look_at("Suspending", seen=RUNS), id="Suspending"),
    pytest.param(look_at("Retrying", seen=RUNS), id="Retrying"),
]


@pytest.mark.parametrize("look", WAITS)
def test_a_job_that_waits_says_for_what_or_acts(look):
    decision = decide(look)
    assert decision.to is None
    assert decision.cause is None or (decision.cause.reason and decision.cause.message)
    assert decision.cause is not None or decision.stages


def test_the_next_deadline_is_the_nearest_that_is_still_to_come():
    assert (
        next_deadline(look_at("Initializing", activeDeadlineSeconds=90, preRunningDeadlineSeconds=70)) == 10
    )
    assert next_deadline(look_at("Initializing")) is None
    assert next_deadline(look_at("Suspended", activeDeadlineSeconds=90)) is None


def test_an_unknown_state_is_left_alone():
    assert decide(look_at("Dreaming")).is_idle


# --- the order of what ends a running job


@pytest.mark.parametrize(
    ("look", "reason"),
    [
        pytest.param(
            look_at("Running", **DEADLINES, status={"jobStatusCheckFailureStartTime": ago(999)}, seen=RUNS),
            "DeadlineExceeded",
            id="the user's deadline before a dashboard that is silent",
        ),
        pytest.param(
            look_at(
                "Running",
                seen={"cluster": cluster(), "submitter": submitter("Failed", seconds=40), "info": missing()},
            ),
            "JobDeploymentStatusTransitionGracePeriodExceeded",
            id="a submitter that ended long ago before its failure",
        ),
        pytest.param(
            look_at(
                "Running",
                status=RECORDED,
                seen={
                    "cluster": cluster(),
                    "submitter": submitter("Failed"),
                    "info": missing(),
                    "session": session("s2"),
                },
            ),
            "JobLost",
            id="another head before the failure of the submitter",
        ),
        pytest.param(
            look_at(
                "Running",
                mode="SidecarMode",
                seen={"cluster": cluster(), "heads": [head(code=1)], "info": says("FAILED")},
            ),
            "AppFailed",
            id="a sidecar that fails with its job",
        ),
        pytest.param(
            look_at(
                "Running",
                mode="SidecarMode",
                seen={"cluster": cluster(), "heads": [head(code=1)], "info": missing()},
            ),
            "SubmissionFailed",
            id="a sidecar that fails without a job",
        ),
    ],
)
def test_what_decides_first(look, reason):
    assert decide(look).fields["reason"] == reason


def test_what_was_known_before_the_submitter_ended_ends_nothing():
    seen = {"cluster": cluster(), "submitter": submitter("Failed", seconds=0), "info": missing()}
    decision = decide(look_at("Running", seen=seen, mode="K8sJobMode"))
    assert decision.to is None
