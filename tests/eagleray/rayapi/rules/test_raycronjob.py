"""The rules of a RayCronJob."""

import pytest

from tests.eagleray.rayapi.rules.builders import (
    cluster_spec,
    group,
    only,
    problems,
    raycronjob,
    rayjob,
    rules,
)


def broken(obj):
    return [name.removeprefix("raycronjob-") for name in rules(obj)]


@pytest.mark.case("CJ-1")
def test_a_text_that_is_no_schedule():
    problem = only(raycronjob(schedule="invalid cron string"))
    assert problem.rule == "raycronjob-c3"
    assert "invalid cron schedule" in problem.message


@pytest.mark.case("CJ-2")
@pytest.mark.parametrize(
    "schedule", ["TZ=UTC */5 * * * *", "CRON_TZ=UTC */5 * * * *", "*/5 * * * * TZ", "TZ"]
)
def test_a_schedule_carries_no_zone(schedule):
    problem = only(raycronjob(schedule=schedule))
    assert problem.rule == "raycronjob-c2"
    assert "cannot use TZ or CRON_TZ in schedule" in problem.message


@pytest.mark.case("CJ-3")
@pytest.mark.parametrize(
    ("zone", "rule"),
    [
        ("Asia/Taipei", None),
        ("UTC", None),
        ("Local", None),
        (None, None),
        ("Invalid/Zone", "c5"),
        ("asia/taipei", "c5"),
        ("../../etc/passwd", "c5"),
        ("x" * 10_000, "c5"),
        ("", "c4"),
    ],
)
def test_a_time_zone_exists(zone, rule):
    found = problems(raycronjob(timeZone=zone))
    assert [problem.rule for problem in found] == ([f"raycronjob-{rule}"] if rule else [])
    for problem in found:
        assert problem.path == ("spec", "timeZone")
        assert ("invalid time zone" in problem.message) == (rule == "c5")
        assert len(str(problem)) < 300


def test_a_zone_that_was_probably_meant_is_the_way_out():
    assert only(raycronjob(timeZone="Europe/berlin")).way_out == "did you mean Europe/Berlin?"


@pytest.mark.case("CJ-4")
@pytest.mark.parametrize("template", [{}, None], ids=["empty", "null"])
def test_an_empty_template_has_no_cluster(template):
    problem = only(raycronjob(jobTemplate=template))
    assert problem.rule == "rayjob-v9"
    assert "one of RayClusterSpec or ClusterSelector must be set" in problem.message
    assert str(problem).startswith("spec.jobTemplate: invalid RayJob template: ")


@pytest.mark.case("CJ-5")
def test_a_template_whose_head_has_no_container():
    spec = cluster_spec(headGroupSpec={"template": {"spec": {"containers": []}}})
    problem = only(raycronjob(jobTemplate=rayjob(rayClusterSpec=spec)["spec"]))
    assert problem.rule == "raycluster-1"
    assert "invalid RayJob template" in problem.message
    assert str(problem).startswith("spec.jobTemplate.rayClusterSpec.headGroupSpec.template.spec.containers: ")


@pytest.mark.case("CJ-6")
@pytest.mark.parametrize(("length", "refused"), [(36, False), (37, True)])
def test_a_name_has_at_most_36_characters(length, refused):
    found = problems(raycronjob({"name": "a" * length}))
    assert [problem.rule for problem in found] == (["raycronjob-c1"] if refused else [])
    assert all("RayCronJob name should be no more than 36" in problem.message for problem in found)


@pytest.mark.case("CJ-7")
def test_a_template_that_could_not_be_suspended():
    problem = only(raycronjob(jobTemplate=rayjob(suspend=True)["spec"]))
    assert problem.rule == "rayjob-v1"
    assert problem.path == ("spec", "jobTemplate", "suspend")
    assert "invalid RayJob template" in problem.message


@pytest.mark.case("CJ-29")
@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * * *",
        "60 * * * *",
        "* * * * 7",
        "5-1 * * * *",
        "*/0 * * * *",
        "",
        "@often",
        "@every x",
        "x" * 10_000,
    ],
)
def test_schedules_that_cannot_be_read(schedule):
    problem = only(raycronjob(schedule=schedule))
    assert problem.rule == "raycronjob-c3"
    assert problem.message.startswith("invalid cron schedule: ")
    assert problem.way_out
    assert len(str(problem)) < 400


@pytest.mark.parametrize(
    "schedule", ["*/5 * * * *", "0 9 * * MON-FRI", "@hourly", "@every 90s", "0 0 30 2 *"]
)
def test_schedules_that_can(schedule):
    assert broken(raycronjob(schedule=schedule)) == []


def test_a_complaint_about_a_schedule_ends_with_its_own_way_out():
    assert str(only(raycronjob(schedule="60 * * * *"))) == (
        "spec.schedule: invalid cron schedule: minute: 60 is above 59; use 0-59"
    )


@pytest.mark.parametrize(
    "schedule", ["", "0 9; rm -rf"], ids=["nothing to quote", "a semicolon of the user's"]
)
def test_a_complaint_without_a_way_out_gets_one(schedule):
    problem = only(raycronjob(schedule=schedule))
    assert problem.way_out == "write five fields, such as `*/15 * * * *`, or `@hourly`"


def test_a_missing_schedule_is_left_to_the_schema():
    assert broken(raycronjob(schedule=None)) == []


def test_schedule_and_zone_are_judged_apart():
    assert broken(raycronjob(schedule="x", timeZone="y")) == ["c3", "c5"]
    assert broken(raycronjob(schedule="TZ", timeZone="")) == ["c2", "c4"]


def test_a_template_has_no_metadata_and_no_status():
    annotated = {"annotations": {"ray.io/ft-enabled": "true"}}
    template = rayjob(rayClusterSpec=cluster_spec(gcsFaultToleranceOptions={}))["spec"]
    obj = {**raycronjob(annotated, jobTemplate=template), "status": {"jobDeploymentStatus": "Waiting"}}
    assert broken(obj) == []


def test_every_problem_of_a_template_is_given():
    template = rayjob(rayClusterSpec=cluster_spec(group(minReplicas=-1)), backoffLimit=-1, suspend=True)[
        "spec"
    ]
    found = problems(raycronjob(jobTemplate=template))
    assert [problem.rule for problem in found] == ["rayjob-v1", "raycluster-4c", "rayjob-v18"]
    assert all(problem.message.startswith("invalid RayJob template: ") for problem in found)
    assert all(problem.path[:2] == ("spec", "jobTemplate") for problem in found)


def test_a_warning_about_a_template_does_not_call_it_invalid():
    template = rayjob(rayClusterSpec=cluster_spec(group(replicas=9)))["spec"]
    problem = only(raycronjob(jobTemplate=template))
    assert (problem.rule, problem.severity) == ("raycluster-w2", "warning")
    assert "invalid" not in problem.message


@pytest.mark.parametrize(
    ("name", "warned"),
    [("report", False), ("1abc", True), ("a.b", True), ("1" * 36, True), ("1" * 37, False), (None, False)],
)
def test_a_name_that_no_child_could_carry_is_warned_about(name, warned):
    found = [problem for problem in problems(raycronjob({"name": name})) if problem.rule == "raycronjob-w1"]
    assert [problem.severity for problem in found] == (["warning"] if warned else [])
