"""`eagleray explain`: what a user sees in the terminal."""

import argparse
import subprocess
import sys

import pytest

from eagleray.cli import explain


@pytest.fixture
def explained(capsys, monkeypatch):
    """Return a function that runs the command in a terminal of a given width and returns code, output, error."""

    def run(*arguments, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        parser = argparse.ArgumentParser()
        explain.configure(parser)
        code = explain.run(parser.parse_args(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.case("OP-188")
def test_a_field_is_described_with_its_own_fields(explained):
    code, out, err = explained("raycluster.spec.workerGroupSpecs.scaleStrategy")
    assert (code, err) == (0, "")
    assert out == (
        "KIND:     RayCluster\n"
        "VERSION:  ray.io/v1\n"
        "FIELD:    scaleStrategy  <ScaleStrategy>\n"
        "\n"
        "DESCRIPTION:\n"
        "  Which workers to remove first. Leave it to the autoscaler unless you scale by\n"
        "  hand.\n"
        "\n"
        "FIELDS:\n"
        "  workersToDelete  <[]string>\n"
        "    Names of worker Pods to delete, whatever `replicas` says; lower `replicas`\n"
        "    by as many to keep them from being replaced. Names that do not exist are\n"
        "    passed over.\n"
    )


def test_required_fields_defaults_and_choices_are_told(explained):
    _, out, _ = explained("raycluster.spec.workerGroupSpecs")
    assert "  groupName  <string>  -required-\n" in out
    assert "    Default: 2147483647\n" in out
    _, out, _ = explained("raycronjob.spec")
    assert "    One of: Allow, Forbid, Replace.\n" in out


@pytest.mark.parametrize("name", ["rayjob", "RayJob", "rayjobs", "RAYJOBS"])
def test_a_kind_may_be_called(explained, name):
    code, out, _ = explained(name)
    assert code == 0
    assert out.startswith("KIND:     RayJob\nVERSION:  ray.io/v1\n\nDESCRIPTION:\n")
    assert "\n  spec  <RayJobSpec>\n" in out


def test_it_goes_on_into_the_types_of_kubernetes(explained):
    code, out, _ = explained("raycluster.spec.headGroupSpec.template.spec.containers.ports")
    assert code == 0
    assert "FIELD:    ports  <[]ContainerPort>\n" in out
    assert '  protocol  <string>\n    Default: "TCP"\n' in out
    assert "  containerPort  <int32>  -required-\n" in out


def test_the_older_version_has_its_own_fields_and_a_warning(explained):
    _, out, _ = explained("raycluster.spec", "--api-version", "ray.io/v1alpha1")
    assert "WARNING:  ray.io/v1alpha1 is deprecated; use ray.io/v1\n" in out
    assert "  rayVersion  <string>\n" in out
    assert "authOptions" not in out


def test_recursive_shows_a_tree(explained):
    _, out, _ = explained("rayjob.spec.deletionStrategy", "--recursive")
    assert out.endswith(
        "FIELDS:\n"
        "  onSuccess  <DeletionPolicy>\n"
        "    policy  <string>\n"
        "  onFailure  <DeletionPolicy>\n"
        "    policy  <string>\n"
        "  deletionRules  <[]DeletionRule>\n"
        "    policy  <string>  -required-\n"
        "    condition  <DeletionCondition>  -required-\n"
        "      jobStatus  <string>\n"
        "      jobDeploymentStatus  <string>\n"
        "      ttlSeconds  <int32, at least 0>\n"
    )


def test_recursive_goes_down_to_the_last_field_of_a_pod(explained):
    _, out, _ = explained("raycluster", "--recursive")
    assert out.count(" livenessProbe  <Probe>\n") == 6, "two templates with three lists of containers each"
    assert "\n              terminationGracePeriodSeconds  <int64>\n" in out, "of a probe, seven levels deep"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["raycluster.spec.workerGroupSpec"],
            'raycluster.spec has no field "workerGroupSpec"; did you mean "workerGroupSpecs"?',
            id="a field that is almost right",
        ),
        pytest.param(
            ["raycluster.spec.HEADGROUPSPEC.template"],
            'raycluster.spec has no field "HEADGROUPSPEC"; did you mean "headGroupSpec"?',
            id="a field in the wrong case",
        ),
        pytest.param(
            ["raycluster.status.head.zzz"],
            'raycluster.status.head has no field "zzz"; there are: podIP, podName, serviceName, serviceIP',
            id="a field that is like no other",
        ),
        pytest.param(
            ["raycluster.spec.rayVersion.major"],
            'raycluster.spec.rayVersion has no fields, so there is no "major" in it',
            id="a field of a string",
        ),
        pytest.param(
            ["raycluster.spec."],
            'raycluster.spec has no field ""; '
            "there are: upgradeStrategy, authOptions, suspend, managedBy, autoscalerOptions, "
            "headServiceAnnotations, enableInTreeAutoscaling, gcsFaultToleranceOptions, "
            "historyServerOptions, networkPolicy, tlsOptions, headGroupSpec, rayVersion, workerGroupSpecs",
            id="a dot too many",
        ),
        pytest.param(
            ["rayclutser.spec"],
            'there is no kind "rayclutser"; did you mean "raycluster"?',
            id="a kind that is almost right",
        ),
        pytest.param(
            ["pod"],
            'there is no kind "pod"; there are: raycluster, rayjob, rayservice, raycronjob',
            id="a kind of Kubernetes",
        ),
        pytest.param(
            ["raycronjob", "--api-version", "ray.io/v1alpha1"],
            'RayCronJob has no version "ray.io/v1alpha1", only ray.io/v1',
            id="a version that the kind never had",
        ),
    ],
)
@pytest.mark.case("OP-188")
def test_what_does_not_exist_is_an_error_with_a_way_out(explained, arguments, message):
    assert explained(*arguments) == (1, "", f"error: {message}\n")


@pytest.mark.parametrize(("columns", "limit"), [(60, 60), (200, 120), (10, 40)])
def test_descriptions_are_wrapped_to_the_terminal_within_reason(explained, columns, limit):
    _, out, _ = explained("raycluster.spec", columns=columns)
    prose = [len(line) for line in out.splitlines() if line.startswith("    ")]
    assert limit - 15 < max(prose) <= limit


def test_without_a_path_the_kinds_are_listed(explained):
    code, out, _ = explained()
    assert code == 0
    assert "  raycluster  <ray.io/v1, ray.io/v1alpha1>\n" in out
    assert "  raycronjob  <ray.io/v1>\n" in out


def test_the_declarations_are_not_read_for_the_help_of_all_commands():
    program = "import sys, eagleray.cli.explain\nassert 'eagleray.rayapi.declare' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
