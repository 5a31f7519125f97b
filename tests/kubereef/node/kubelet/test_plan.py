"""What a Pod needs next, and what is told of it: decisions alone, without anything that runs."""

from datetime import UTC, datetime, timedelta

import pytest

from kubereef.node.kubelet.plan import Plan, Stop, pod_plan, will_restart
from kubereef.node.kubelet.records import ContainerRecord, Ending, PodRecord, Run, Waiting, Wish
from kubereef.node.kubelet.status import pod_phase, pod_status
from tests.kubereef.node.kubelet.fakes import IMAGE, container, pod

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def later(seconds):
    return NOW + timedelta(seconds=seconds)


def running(record, *, started=True, ready=True):
    record.start(Run("kubereef://1", IMAGE, "id", NOW, {}))
    record.is_started, record.is_ready = started, ready


def ended(record, code=0, at=NOW):
    running(record)
    record.end(Ending(code, "Error" if code else "Completed", at, NOW))


def sick(record):
    running(record)
    record.wish = Wish("it is sick", 3)


def failed(record):
    ended(record, 2)


def pod_record(*containers, states=None, has_sandbox=True, **spec):
    """Return a Pod whose containers were put into the given states, by name."""
    manifest = pod(*containers, **spec)
    manifest["metadata"] |= {"namespace": "default", "uid": "u", "generation": 1}
    record = PodRecord(manifest, NOW)
    record.has_sandbox = has_sandbox
    for name, change in (states or {}).items():
        change(record.container(name))
    record.is_initialized = record.was_initialized
    return record


SIDECAR = container("side", restartPolicy="Always")
INIT = container("init")


@pytest.mark.parametrize(
    ("record", "plan"),
    [
        pytest.param(pod_record(has_sandbox=False), Plan(open_sandbox=True), id="a new Pod gets its sandbox"),
        pytest.param(pod_record(), Plan(start="app"), id="a container is started"),
        pytest.param(pod_record(states={"app": running}), Plan(), id="one that runs is left alone"),
        pytest.param(pod_record(container("a"), container("b")), Plan(start="a"), id="one starts at a time"),
        pytest.param(
            pod_record(container("a"), container("b"), states={"a": running}),
            Plan(start="b"),
            id="then the next",
        ),
        pytest.param(pod_record(initContainers=[INIT]), Plan(start="init"), id="init containers come first"),
        pytest.param(
            pod_record(initContainers=[INIT], states={"init": running}), Plan(), id="and are waited for"
        ),
        pytest.param(
            pod_record(initContainers=[INIT], states={"init": ended}),
            Plan(start="app"),
            id="until they are done",
        ),
        pytest.param(
            pod_record(initContainers=[SIDECAR], states={"side": lambda one: running(one, started=False)}),
            Plan(),
            id="a sidecar that has not started holds the others up",
        ),
        pytest.param(
            pod_record(initContainers=[SIDECAR], states={"side": running}),
            Plan(start="app"),
            id="one that has does not",
        ),
        pytest.param(
            pod_record(initContainers=[INIT], restartPolicy="Never", states={"init": failed}),
            Plan(is_over=True),
            id="a failed init container is the end where nothing restarts",
        ),
        pytest.param(
            pod_record(restartPolicy="Never", states={"app": ended}), Plan(is_over=True), id="all done"
        ),
        pytest.param(
            pod_record(
                initContainers=[SIDECAR], restartPolicy="Never", states={"app": ended, "side": running}
            ),
            Plan(stop=(Stop("side", "Stopping container side"),)),
            id="sidecars go last",
        ),
        pytest.param(
            pod_record(states={"app": sick}),
            Plan(stop=(Stop("app", "it is sick, will be restarted", 3),)),
            id="a sick container is ended",
        ),
        pytest.param(
            pod_record(activeDeadlineSeconds=60, states={"app": running}),
            Plan(look_again=60.0),
            id="a deadline ahead",
        ),
        pytest.param(
            pod_record(states={"app": lambda one: one.wait(Waiting("ErrImagePull"), later(10))}),
            Plan(look_again=10.0),
            id="a pull is tried again later",
        ),
    ],
)
def test_what_to_do_next(record, plan):
    assert pod_plan(record, NOW) == plan


def test_an_init_container_that_is_done_is_not_restarted():
    assert not will_restart({"restartPolicy": "Always"}, ContainerRecord(INIT, "init"), 0)
    assert will_restart({"restartPolicy": "Always"}, ContainerRecord(INIT, "init"), 1)
    assert will_restart({"restartPolicy": "Never"}, ContainerRecord(SIDECAR, "init"), 0)
    assert not will_restart({"restartPolicy": "Always"}, ContainerRecord(INIT, "ephemeral"), 1)


def test_a_deadline_that_has_passed_is_a_verdict():
    record = pod_record(activeDeadlineSeconds=60, states={"app": running})
    assert pod_plan(record, later(59)).verdict is None
    assert pod_plan(record, later(60)).verdict == Waiting(
        "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
    )


def test_a_deleted_pod_ends_its_containers_first_and_its_sidecars_one_by_one_after_them():
    sidecars = [container(name, restartPolicy="Always") for name in ("one", "two")]
    record = pod_record(
        container("a"), container("b"), initContainers=sidecars,
        states=dict.fromkeys(("one", "two", "a", "b"), running),
    )  # fmt: skip
    record.is_deleted = True
    order = []
    while not (plan := pod_plan(record, NOW)).is_over:
        order.append([stop.name for stop in plan.stop])
        for stop in plan.stop:
            record.container(stop.name).end(Ending(0, "Completed", NOW))
    assert order == [["a", "b"], ["two"], ["one"]]


@pytest.mark.parametrize(
    ("policy", "fields", "code", "restarts"),
    [
        ("Always", {}, 0, True),
        ("OnFailure", {}, 0, False),
        ("OnFailure", {}, 1, True),
        ("Never", {}, 1, False),
        ("Never", {"restartPolicy": "Always"}, 0, True),
        ("Always", {"restartPolicy": "Never"}, 1, False),
        (
            "Never",
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
                ],
            },
            42,
            True,
        ),
        (
            "Never",
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1]}},
                ],
            },
            1,
            False,
        ),
    ],
)
def test_who_is_restarted(policy, fields, code, restarts):
    record = ContainerRecord(container(**fields), "container")
    assert will_restart({"restartPolicy": policy}, record, code) is restarts


@pytest.mark.parametrize(
    ("record", "phase"),
    [
        pytest.param(pod_record(), "Pending", id="nothing has run"),
        pytest.param(
            pod_record(container("a"), container("b"), states={"a": running}),
            "Pending",
            id="not all have run",
        ),
        pytest.param(pod_record(states={"app": running}), "Running", id="one runs"),
        pytest.param(pod_record(states={"app": failed}), "Running", id="one will be restarted"),
        pytest.param(
            pod_record(restartPolicy="Never", states={"app": ended}), "Succeeded", id="all ended well"
        ),
        pytest.param(
            pod_record(
                container("a"), container("b"), restartPolicy="Never", states={"a": ended, "b": failed}
            ),
            "Failed",
            id="one ended badly",
        ),
        pytest.param(
            pod_record(
                container("a"), container("b"), restartPolicy="Never", states={"a": running, "b": failed}
            ),
            "Running",
            id="one ended badly and another runs",
        ),
        pytest.param(
            pod_record(
                initContainers=[SIDECAR], restartPolicy="Never", states={"app": ended, "side": running}
            ),
            "Running",
            id="a sidecar is still there",
        ),
    ],
)
def test_the_phase(record, phase):
    assert pod_phase(record) == phase


def test_a_pod_that_is_over_stays_so():
    record = pod_record(states={"app": running})
    record.pod["status"] = {"phase": "Failed"}
    assert pod_phase(record) == "Failed"


def test_conditions_keep_their_time_until_they_change_and_those_of_others_stay():
    record = pod_record(states={"app": running})
    foreign = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    first = pod_status(record, ("192.0.2.1",), NOW)
    record.pod["status"] = {**first, "conditions": [*first["conditions"], foreign]}
    record.container("app").is_ready = False
    second = {one["type"]: one for one in pod_status(record, ("192.0.2.1",), later(60))["conditions"]}
    assert second["Ready"]["lastTransitionTime"] == "2030-01-01T00:01:00Z"
    assert second["Initialized"]["lastTransitionTime"] == "2030-01-01T00:00:00Z"
    assert second["DisruptionTarget"] == foreign
    assert second["Ready"]["observedGeneration"] == 1


def test_a_pause_between_runs_doubles_up_to_five_minutes():
    record = ContainerRecord(container(), "container")
    moment, pauses = NOW, []
    for _ in range(8):
        ended(record, 1, moment)
        pauses.append(record.pause_left(moment))
        moment += timedelta(seconds=pauses[-1])
        record.begin(moment)
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
