"""RayCluster rules 11 to 15: suspended groups and the autoscaler."""

import pytest

from tests.eagleray.rayapi.rules.builders import env, group, head, only, problems, raycluster, rules

V2 = "RAY_enable_autoscaler_v2"


def autoscaled(*groups, version=None, **spec):
    options = {} if version is None else {"autoscalerOptions": {"version": version}}
    return raycluster(*groups, enableInTreeAutoscaling=True, **options, **spec)


@pytest.mark.parametrize(("suspend", "refused"), [(True, True), (False, False), (None, False)])
def test_a_suspended_group_needs_the_deletion_policy_gate(suspend, refused):
    obj = raycluster(group(), group("b", suspend=suspend))
    assert rules(obj) == []
    assert rules(obj, "RayJobDeletionPolicy=false") == (["raycluster-11"] if refused else [])


@pytest.mark.parametrize(
    ("value", "autoscaling", "refused"),
    [
        ("1", False, True),
        ("true", None, True),
        ("True", False, False),
        ("0", False, False),
        ("", False, False),
        ("1", True, False),
    ],
)
def test_autoscaler_v2_needs_autoscaling(value, autoscaling, refused):
    obj = raycluster(headGroupSpec=head(env(**{V2: value})), enableInTreeAutoscaling=autoscaling)
    assert rules(obj) == (["raycluster-12"] if refused else [])


def test_of_two_variables_of_one_name_the_first_counts():
    container = {"env": [{"name": V2, "value": "0"}, {"name": V2, "value": "1"}]}
    assert rules(raycluster(headGroupSpec=head(container))) == []


@pytest.mark.case("RC-17")
def test_a_suspended_group_is_rejected_with_autoscaling():
    problem = only(autoscaled(group(), group("b", suspend=True)))
    assert problem.rule == "raycluster-13a"
    assert problem.path == ("spec", "workerGroupSpecs", 1, "suspend")


@pytest.mark.parametrize("suspend", [False, None])
def test_a_group_that_is_not_suspended_is_fine_with_autoscaling(suspend):
    assert rules(autoscaled(group(suspend=suspend))) == []


@pytest.mark.parametrize(
    ("version", "variable", "refused"),
    [("v1", "0", True), ("v2", "1", True), (None, "1", False), ("v2", None, False)],
)
def test_the_autoscalers_version_is_given_once(version, variable, refused):
    container = None if variable is None else env(**{V2: variable})
    obj = autoscaled(version=version, headGroupSpec=head(container))
    assert rules(obj) == (["raycluster-13b"] if refused else [])


def test_without_autoscaling_its_version_may_be_given_twice():
    obj = raycluster(headGroupSpec=head(env(**{V2: "0"})), autoscalerOptions={"version": "v1"})
    assert rules(obj) == []


@pytest.mark.parametrize(
    ("policy", "refused"),
    [("Always", True), ("OnFailure", True), ("Never", False), ("", False), (None, False)],
)
def test_restarts_under_autoscaler_v2(policy, refused):
    pod_spec = {"restartPolicy": policy}
    on_head = autoscaled(version="v2", headGroupSpec=head(pod_spec=pod_spec))
    on_worker = autoscaled(group(), group("b", pod_spec=pod_spec), version="v2")
    assert rules(on_head) == (["raycluster-13c"] if refused else [])
    assert rules(on_worker) == (["raycluster-13d"] if refused else [])


def test_v2_by_variable_leaves_restarts_alone():
    obj = autoscaled(headGroupSpec=head(env(**{V2: "1"}), pod_spec={"restartPolicy": "Always"}))
    assert rules(obj) == []


def test_v2_without_autoscaling_leaves_restarts_alone():
    restarting = {"restartPolicy": "Always"}
    obj = raycluster(
        group(pod_spec=restarting),
        headGroupSpec=head(pod_spec=restarting),
        autoscalerOptions={"version": "v2"},
    )
    assert rules(obj) == []


@pytest.mark.case("RC-97")
def test_v2_with_a_restarting_head_is_rejected_and_v1_with_a_restarting_worker_only_warned_about():
    restarting = {"restartPolicy": "Always"}
    refusal = only(autoscaled(version="v2", headGroupSpec=head(pod_spec=restarting)))
    assert (refusal.rule, refusal.severity) == ("raycluster-13c", "error")
    warning = only(autoscaled(group(pod_spec=restarting), version="v1"))
    assert (warning.rule, warning.severity) == ("raycluster-w1", "warning")


@pytest.mark.parametrize(
    ("version", "policy", "autoscaling", "warned"),
    [
        ("v1", "OnFailure", True, True),
        ("v1", "Never", True, False),
        ("v1", None, True, False),
        ("v1", "Always", False, False),
        (None, "Always", True, False),
    ],
)
def test_restarts_of_workers_under_autoscaler_v1(version, policy, autoscaling, warned):
    obj = raycluster(
        group(pod_spec={"restartPolicy": policy}),
        headGroupSpec=head(pod_spec={"restartPolicy": "Always"}),
        enableInTreeAutoscaling=autoscaling,
        autoscalerOptions={"version": version},
    )
    assert rules(obj) == (["raycluster-w1"] if warned else [])


@pytest.mark.parametrize(("seconds", "refused"), [(-1, True), (0, False), (60, False), (None, False)])
@pytest.mark.parametrize("autoscaling", [True, False])
def test_the_idle_timeout_is_not_negative(seconds, refused, autoscaling):
    obj = raycluster(enableInTreeAutoscaling=autoscaling, autoscalerOptions={"idleTimeoutSeconds": seconds})
    assert rules(obj) == (["raycluster-14"] if refused else [])


@pytest.mark.parametrize("autoscaling", [True, False])
def test_the_autoscalers_start_command_is_the_operators(autoscaling):
    options = env("OTHER", "KUBERAY_GEN_AUTOSCALER_START_CMD")
    (problem,) = problems(raycluster(enableInTreeAutoscaling=autoscaling, autoscalerOptions=options))
    assert problem.rule == "raycluster-15"
    assert problem.path[-2:] == ("env", 1)


def test_other_variables_of_the_autoscaler_are_fine():
    assert rules(autoscaled(autoscalerOptions=env("KUBERAY_GEN_RAY_START_CMD"))) == []
