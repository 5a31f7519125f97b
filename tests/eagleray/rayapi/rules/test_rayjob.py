"""RayJob rules about names, the cluster, the run and the status; those about deletion are next door."""

import pytest

from tests.eagleray.rayapi.rules.builders import (
    cluster_spec,
    group,
    head,
    only,
    pod,
    problems,
    rayjob,
    rules,
    selecting,
)


def broken(obj, gates=""):
    return [name.removeprefix("rayjob-") for name in rules(obj, gates)]


@pytest.mark.case("RJ-1")
@pytest.mark.parametrize(("length", "refused"), [(47, False), (48, True)])
def test_a_name_has_at_most_47_characters(length, refused):
    assert broken(rayjob({"name": "a" * length})) == (["m1"] if refused else [])


@pytest.mark.case("RJ-2")
@pytest.mark.parametrize("name", ["1job", "my_job", "Job", "job-", "my.job"])
def test_a_name_is_a_dns_label(name):
    assert broken(rayjob({"name": name})) == ["m2"]


def test_a_generated_name_leaves_room_for_its_suffix():
    assert broken(rayjob({"name": None, "generateName": "a" * 42})) == []
    assert broken(rayjob({"name": None, "generateName": "a" * 43})) == ["m1"]


@pytest.mark.case("RJ-3")
@pytest.mark.parametrize("spec", [{}, None], ids=["empty", "null"])
def test_an_empty_spec_has_no_cluster(spec):
    problem = only({**rayjob(), "spec": spec})
    assert problem.rule == "rayjob-v9"
    assert "one of RayClusterSpec or ClusterSelector must be set" in problem.message


@pytest.mark.parametrize("selector", [{}, None], ids=["empty", "null"])
def test_an_empty_selector_selects_no_cluster(selector):
    assert broken(rayjob(rayClusterSpec=None, clusterSelector=selector or {})) == ["v9"]


@pytest.mark.case("RJ-4")
@pytest.mark.parametrize("shutdown", [False, None])
def test_a_suspended_job_must_shut_its_cluster_down(shutdown):
    assert broken(rayjob(suspend=True, shutdownAfterJobFinishes=shutdown)) == ["v1"]


@pytest.mark.case("RJ-5")
def test_a_suspended_job_that_shuts_its_cluster_down_is_fine():
    assert broken(rayjob(suspend=True, shutdownAfterJobFinishes=True)) == []


@pytest.mark.parametrize("suspend", [False, None])
def test_a_job_that_is_not_suspended_may_keep_its_cluster(suspend):
    assert broken(rayjob(suspend=suspend)) == []
    assert broken(selecting(suspend=suspend)) == []


@pytest.mark.case("RJ-6")
def test_a_suspended_job_has_no_selector():
    assert broken(selecting(suspend=True, shutdownAfterJobFinishes=True)) == ["v8"]


@pytest.mark.case("RJ-7")
@pytest.mark.parametrize(
    ("selector", "refused"),
    [
        ({"ray.io/cluster": "shared"}, False),
        ({"ray.io/cluster": ""}, True),
        ({"ray.io/cluster": None}, True),
        ({"app": "x"}, True),
        ({"app": "x", "ray.io/cluster": "shared"}, False),
    ],
    ids=["a name", "an empty name", "null", "another key", "another key too"],
)
def test_a_selector_names_the_cluster(selector, refused):
    obj = rayjob(rayClusterSpec=None, clusterSelector=selector)
    assert broken(obj) == (["v10a"] if refused else [])


@pytest.mark.case("RJ-8")
@pytest.mark.parametrize(("limit", "refused"), [(1, True), (0, False), (None, False)])
def test_a_job_with_a_selector_is_not_retried(limit, refused):
    assert broken(selecting(backoffLimit=limit)) == (["v10c"] if refused else [])


@pytest.mark.case("RJ-9")
def test_sidecar_mode_has_no_selector():
    assert broken(selecting(submissionMode="SidecarMode")) == ["v10b"]
    assert broken(selecting(submissionMode="K8sJobMode")) == []


@pytest.mark.case("RJ-10")
@pytest.mark.parametrize(("limit", "refused"), [(1, True), (0, False), (None, False)])
def test_interactive_mode_is_not_retried(limit, refused):
    obj = rayjob(submissionMode="InteractiveMode", backoffLimit=limit)
    assert broken(obj) == (["v11"] if refused else [])


@pytest.mark.parametrize("mode", ["K8sJobMode", "HTTPMode", "SidecarMode", None])
def test_other_modes_are_retried(mode):
    assert broken(rayjob(submissionMode=mode, backoffLimit=3)) == []


@pytest.mark.case("RJ-11")
@pytest.mark.parametrize(("limit", "refused"), [(-1, True), (0, False), (1, False), (None, False)])
def test_a_backoff_limit_is_not_negative(limit, refused):
    assert broken(rayjob(backoffLimit=limit)) == (["v18"] if refused else [])


@pytest.mark.case("RJ-12")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("invalid_yaml_string", "not a YAML mapping", id="a word"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="absent"),
        pytest.param("pip: [torch]\n", None, id="a mapping"),
        pytest.param("{}", None, id="an empty mapping"),
        pytest.param("# nothing\n", None, id="a comment alone is null"),
        pytest.param("null", None, id="null"),
        pytest.param("a: 1\na: 2\n", None, id="a key given twice is still a mapping"),
        pytest.param("- pip", "not a YAML mapping", id="a list"),
        pytest.param("12", "not a YAML mapping", id="a number"),
        pytest.param("a: [", "not YAML", id="an open bracket"),
        pytest.param("\tpip: x", "not YAML", id="a tab"),
    ],
)
def test_the_runtime_environment_is_a_mapping(text, message):
    found = problems(rayjob(runtimeEnvYAML=text))
    assert [problem.rule for problem in found] == (["rayjob-v15"] if message else [])
    assert all(problem.message.startswith(message) for problem in found)


def test_a_runtime_environment_that_explodes_is_refused_in_bounded_time():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert broken(rayjob(runtimeEnvYAML="\n".join(lines))) == ["v15"]


def test_a_long_complaint_about_a_runtime_environment_is_cut():
    assert len(str(only(rayjob(runtimeEnvYAML=f"a: *{'x' * 5000}")))) < 500


@pytest.mark.case("RJ-13")
@pytest.mark.parametrize(
    ("ttl", "shutdown", "refused"),
    [
        (5, False, ["v3"]),
        (5, None, ["v3"]),
        (5, True, []),
        (-5, True, ["v2"]),
        (-5, False, ["v2"]),
        (0, False, []),
        (1, False, ["v3"]),
        (None, False, []),
    ],
)
def test_a_ttl_delays_a_shutdown(ttl, shutdown, refused):
    assert broken(rayjob(ttlSecondsAfterFinished=ttl, shutdownAfterJobFinishes=shutdown)) == refused


@pytest.mark.case("RJ-14")
@pytest.mark.parametrize("gates", ["", "SidecarSubmitterRestart=true"], ids=["by default", "with restarts"])
@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("submitterPodTemplate", pod(), "v12a"),
        ("submitterPodTemplate", {}, "v12a"),
        ("submitterConfig", {"backoffLimit": 1}, "v12b"),
        ("submitterConfig", {}, "v12b"),
    ],
)
def test_sidecar_mode_has_no_submitter_of_its_own(field, value, rule, gates):
    assert broken(rayjob(submissionMode="SidecarMode", **{field: value}), gates) == [rule]
    assert broken(rayjob(submissionMode="K8sJobMode", **{field: value}), gates) == []


@pytest.mark.case("RJ-15")
@pytest.mark.parametrize(
    ("policy", "refused"),
    [("Always", True), ("OnFailure", True), ("Never", False), ("", False), (None, False)],
)
def test_the_head_does_not_restart_in_sidecar_mode(policy, refused):
    spec = cluster_spec(headGroupSpec=head(pod_spec={"restartPolicy": policy}))
    assert broken(rayjob(submissionMode="SidecarMode", rayClusterSpec=spec)) == (["v12c"] if refused else [])
    assert broken(rayjob(submissionMode="HTTPMode", rayClusterSpec=spec)) == []


@pytest.mark.case("RJ-16")
@pytest.mark.parametrize(("enabled", "refused"), [(True, True), (False, False), (None, False)])
def test_kubernetes_token_auth_does_not_work_for_jobs(enabled, refused):
    auth = {"mode": "token", "enableK8sTokenAuth": enabled}
    obj = rayjob(rayClusterSpec=cluster_spec(rayVersion="2.55.0", authOptions=auth))
    assert broken(obj) == (["v13"] if refused else [])


@pytest.mark.case("RJ-17")
def test_the_jobs_cluster_keeps_the_rules_of_a_cluster():
    spec = cluster_spec(headGroupSpec={"template": {"spec": {"containers": []}}})
    problem = only(rayjob(rayClusterSpec=spec))
    assert problem.rule == "raycluster-1"
    assert str(problem).startswith("spec.rayClusterSpec.headGroupSpec.template.spec.containers: ")


def test_the_jobs_cluster_is_judged_beside_a_selector_too():
    spec = cluster_spec(group(minReplicas=-1))
    obj = rayjob(rayClusterSpec=spec, clusterSelector={"ray.io/cluster": "shared"})
    assert rules(obj) == ["raycluster-4c"]


def test_the_jobs_cluster_is_judged_with_the_jobs_annotations():
    metadata = {"annotations": {"ray.io/ft-enabled": "true"}}
    problem = only(rayjob(metadata, rayClusterSpec=cluster_spec(gcsFaultToleranceOptions={})))
    assert problem.rule == "raycluster-5"
    assert problem.path == ("metadata", "annotations", "ray.io/ft-enabled")


def test_the_jobs_cluster_is_judged_with_the_same_gates():
    obj = rayjob(rayClusterSpec=cluster_spec(tlsOptions={}))
    assert rules(obj) == ["raycluster-19a"]
    assert rules(obj, "RayClusterMTLS=true") == []


def test_the_jobs_cluster_stands_between_the_rules_before_and_after_it():
    spec = cluster_spec(
        group(minReplicas=-1), rayVersion="2.55.0", authOptions={"mode": "token", "enableK8sTokenAuth": True}
    )
    obj = rayjob(rayClusterSpec=spec, runtimeEnvYAML="x", backoffLimit=-1)
    assert rules(obj) == ["rayjob-v13", "raycluster-4c", "rayjob-v15", "rayjob-v18"]


@pytest.mark.case("RC-98")
def test_the_jobs_cluster_has_no_upgrade_strategy():
    problem = only(rayjob(rayClusterSpec=cluster_spec(upgradeStrategy={"type": "None"})))
    assert problem.rule == "raycluster-u2"
    assert problem.path == ("spec", "rayClusterSpec", "upgradeStrategy", "type")
    assert "created by a RayJob" in problem.message
    assert problem.stricter


def test_the_jobs_cluster_is_warned_about_too():
    problem = only(rayjob(rayClusterSpec=cluster_spec(group(replicas=9))))
    assert (problem.rule, problem.severity) == ("raycluster-w2", "warning")
    assert problem.path == ("spec", "rayClusterSpec", "workerGroupSpecs", 0, "replicas")


@pytest.mark.parametrize(
    ("field", "rule"), [("activeDeadlineSeconds", "v16"), ("preRunningDeadlineSeconds", "v17")]
)
@pytest.mark.parametrize(("seconds", "refused"), [(-1, True), (0, True), (1, False), (None, False)])
def test_a_deadline_is_positive(field, rule, seconds, refused):
    assert broken(rayjob(**{field: seconds})) == ([rule] if refused else [])


@pytest.mark.case("RJ-30")
@pytest.mark.parametrize(
    ("mode", "refused"),
    [("K8sJobMode", True), ("HTTPMode", True), (None, True), ("InteractiveMode", False)],
)
def test_only_an_interactive_job_waits(mode, refused):
    obj = {**rayjob(submissionMode=mode), "status": {"jobDeploymentStatus": "Waiting"}}
    assert broken(obj) == (["s1"] if refused else [])


@pytest.mark.parametrize("status", [None, {}, {"jobDeploymentStatus": "Running"}], ids=repr)
def test_other_states_are_for_every_job(status):
    assert broken({**rayjob(), "status": status}) == []


def test_all_problems_are_given_in_rule_order():
    obj = rayjob(
        {"name": "A" * 48},
        rayClusterSpec=None,
        suspend=True,
        ttlSecondsAfterFinished=-1,
        deletionStrategy={},
        clusterSelector={"x": "y"},
        submissionMode="SidecarMode",
        submitterConfig={},
        backoffLimit=1,
        activeDeadlineSeconds=0,
    )
    expected = ["m1", "m2", "v1", "v2", "v7", "v8", "v10a", "v10b", "v10c", "v12b", "v16"]
    assert broken(obj) == expected
